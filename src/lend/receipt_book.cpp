// SPDX-License-Identifier: Apache-2.0
#include "lend/receipt_book.hpp"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "wire/guest.hpp"
#include "wire/receipts.hpp"

namespace gridctl::lend {

namespace {

constexpr std::uint64_t k_book_max = 1u << 30, k_small_max = 64 * 1024;  // bytes
constexpr std::int64_t k_never_began_ms = 10 * 60 * 1000;  // a start that was refused leaves its mark behind

os::Path file_of(const os::Path& invitation, std::string_view name) { return invitation / wire::k_receipts_folder / name; }

std::optional<Digest> read_key(const os::Path& path) {
  const Result<std::string> text = os::read_file(path, k_small_max);
  const Result<Digest> key = text ? parse_digest(trim(*text)) : Result<Digest>(text.error());
  return key ? std::optional(*key) : std::nullopt;
}

// The machine's own key; without one it is drawn.
Result<Digest> host_seed(const os::Path& invitation) {
  const os::Path file = file_of(invitation, wire::k_receipts_key);
  if (!os::exists(file)) {
    Digest seed;
    std::ranges::copy(os::random_bytes(seed.bytes.size()), seed.bytes.begin());
    TRY(os::make_directories(file.parent_path()));
    TRY(os::write_file_durably(file, to_hex(seed) + "\n"));
  }
  TRY_ASSIGN(const std::string text, os::read_file(file, k_small_max));
  TRY_ASSIGN(const Digest seed, parse_digest(trim(text)));
  const os::Path open = file_of(invitation, wire::k_receipts_host_key);
  if (!os::exists(open)) TRY(os::write_file_durably(open, to_hex(crypto::ed25519_public(seed)) + "\n"));
  return seed;
}

Result<std::vector<std::string>> lines_of(const os::Path& path) {
  if (!os::exists(path)) return std::vector<std::string>{};
  TRY_ASSIGN(const std::string text, os::read_file(path, k_book_max));
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back();  // empty; or what a power cut left of a line, which was never told to anybody
  return lines;
}

// Adds a line that is whole on disk before this returns. What a power cut left of an earlier one goes first.
Result<void> append_line(const os::Path& path, const std::string& line) {
  std::string before;
  if (os::exists(path)) {
    TRY_ASSIGN(before, os::read_file(path, k_book_max));
  }
  const std::size_t whole = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
  if (whole < before.size()) TRY(os::write_file_durably(path, std::string_view(before).substr(0, whole)));
  TRY_ASSIGN(const os::Fd file, os::open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC));
  TRY(os::write_all(file.get(), as_bytes(line + "\n")));
  TRY(os::sync_fd(file.get()));
  return before.empty() ? os::sync_directory(path.parent_path()) : Result<void>{};
}

bool has_ended(const os::Path& invitation, const os::Path& file, const wire::UseMark& mark, const ControllerId& controller, WallTime now) {
  if (mark.done || mark.boot_id != os::boot_id()) return true;
  const os::Path attempt = invitation.parent_path().parent_path() / "jobs" / controller.value / mark.job.value / std::to_string(mark.epoch.value);
  const auto status = os::status_of(file);
  return !os::exists(attempt) && status && *status && now.ms - (*status)->mtime_ns / 1'000'000 > k_never_began_ms;
}

// The chain up to now, as whoever continues it has to know it.
struct ChainEnd {
  ReceiptPair pair;
  std::uint64_t number = 0;
  Digest hash;
  std::set<std::pair<std::string, std::uint64_t>> attempts;  // with a receipt
};

Result<ChainEnd> end_of_chain(const ReceiptPair& pair, const os::Path& invitation) {
  ChainEnd end{pair, 0, hash_of(pair), {}};
  TRY_ASSIGN(const std::vector<std::string> lines, lines_of(file_of(invitation, wire::k_receipts_book)));
  for (const std::string& line : lines) {
    TRY_ASSIGN(const SignedReceipt one, parse_receipt(line).context("while continuing the receipts in " + invitation.string()));
    end.number = one.receipt.number;
    end.hash = hash_of(one.receipt);
    end.attempts.emplace(one.receipt.job.value, one.receipt.epoch.value);
  }
  return end;
}

Receipt receipt_for(const ChainEnd& end, const wire::UseMark& mark) {
  Receipt next{end.pair, end.number + 1, end.hash, mark.job, mark.epoch, mark.began, mark.ended, !mark.done, mark.gpus, mark.cpus_milli, mark.use, mark.rates, 0};
  next.amount = charge(next.rates, next.use);
  return next;
}

}  // namespace

Result<std::size_t> make_receipts(const os::Path& invitation, os::Clock& clock) {
  TRY_ASSIGN(const Digest seed, host_seed(invitation));
  const os::Path uses = file_of(invitation, wire::k_receipts_uses);
  const auto names = os::list_directory(uses);
  if (!names || names->empty()) return std::size_t{0};
  TRY_ASSIGN(const std::string terms_text, os::read_file(invitation / "terms.json", k_small_max));
  TRY_ASSIGN(const wire::GuestTerms terms, wire::parse_guest_terms(terms_text));
  const auto researcher = read_key(file_of(invitation, wire::k_receipts_researcher_key));
  std::optional<ChainEnd> end;
  std::size_t made = 0;
  for (const std::string& name : *names) {
    const os::Path file = uses / name;
    const auto text = os::read_file(file, k_small_max);
    const auto mark = text ? wire::parse_use_mark(*text) : Result<wire::UseMark>(text.error());
    if (!mark || name != mark->job.value + "." + std::to_string(mark->epoch.value)) continue;  // what a crash left of a write
    if (!has_ended(invitation, file, *mark, terms.controller, clock.wall())) continue;
    if (mark->use.ran()) {
      if (!researcher) continue;  // the first contact brings it
      if (!end) {
        TRY_ASSIGN(end, end_of_chain({invitation.filename().string(), terms.controller, crypto::ed25519_public(seed), *researcher}, invitation));
      }
      if (end->attempts.emplace(mark->job.value, mark->epoch.value).second) {
        const Receipt receipt = receipt_for(*end, *mark);
        TRY(append_line(file_of(invitation, wire::k_receipts_book), to_line(sign(receipt, seed))));
        end->number = receipt.number;
        end->hash = hash_of(receipt);
        ++made;
      }
    }
    TRY(os::remove_file(file));
  }
  return made;
}

Result<ReceiptBook> read_receipts(const os::Path& invitation) {
  ReceiptBook book;
  TRY_ASSIGN(book.lines, lines_of(file_of(invitation, wire::k_receipts_book)));
  TRY_ASSIGN(const std::vector<std::string> answers, lines_of(file_of(invitation, wire::k_receipts_answers)));
  for (std::size_t at = 0; at < std::min(answers.size(), book.lines.size()); ++at) {
    Result<SignedReceipt> receipt = parse_receipt(book.lines[at]);
    if (!receipt) continue;  // whoever checks the chain says so
    if (const Result<void> added = add_answer(*receipt, answers[at]); !added)
      return make_error(Code::state_unreadable, "the answer to receipt " + std::to_string(at + 1) + " is damaged: " + added.error().message);
    book.lines[at] = to_line(*receipt);
  }
  const Result<std::string> known = os::read_file(file_of(invitation, wire::k_receipts_known), k_small_max);
  book.head = std::max<std::uint64_t>(answers.size(), known ? parse_number<std::uint64_t>(trim(*known)).value_or(0) : 0);
  return book;
}

Result<os::Path> save_receipts(const os::Path& invitation, const os::Path& into, const std::string& name) {
  TRY_ASSIGN(const ReceiptBook book, read_receipts(invitation));
  if (book.lines.empty()) return os::Path{};
  os::Path file = into / ("gridctl-receipts-" + name + ".jsonl");
  TRY(os::write_file_durably(file, join(book.lines, "\n") + "\n"));
  return file;
}

}  // namespace gridctl::lend
