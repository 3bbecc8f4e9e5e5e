// SPDX-License-Identifier: Apache-2.0
#include "agent/guest_receipts.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "agent/owner_terms.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

namespace {

constexpr std::uint64_t k_receipts_file_max = 1u << 30, k_account_max = 64 * 1024;  // bytes
constexpr std::size_t k_device_fields = 16, k_sent_field = 8;  // of a line in /proc/PID/net/dev, behind the name
constexpr std::size_t k_reply_bytes = 512 * 1024;              // of receipts: a frame holds more

Path receipts_file(const Path& invitation, std::string_view name) { return invitation / wire::k_receipts_folder / name; }

Path account_file(const Path& invitation, const JobId& job, Epoch epoch) {
  return receipts_file(invitation, wire::k_receipts_uses) / (job.value + "." + std::to_string(epoch.value));
}

// Whole lines only: what a power cut left of one is nobody's.
Result<std::vector<std::string>> whole_lines(const Path& path) {
  if (!os::exists(path)) return std::vector<std::string>{};
  TRY_ASSIGN(const std::string text, os::read_file(path, k_receipts_file_max));
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

Result<void> keep_answers(const Path& invitation, const std::vector<wire::ReceiptAnswer>& answers, std::size_t head, std::uint64_t& answered) {
  const Path path = receipts_file(invitation, wire::k_receipts_answers);
  TRY_ASSIGN(std::vector<std::string> lines, whole_lines(path));
  const std::size_t before = lines.size();
  for (const wire::ReceiptAnswer& one : answers) {
    if (one.number <= lines.size()) continue;  // it came before
    if (one.number != lines.size() + 1 || one.number > head || one.line.find('\n') != std::string::npos)
      return make_error(Code::refused, "an answer to a receipt that does not follow: number " + std::to_string(one.number));
    lines.push_back(one.line);
  }
  if (lines.size() > before) TRY(os::write_file_durably(path, join(lines, "\n") + "\n"));
  answered = lines.size();
  return {};
}

Result<void> keep_researcher_key(const Path& invitation, const Digest& key) {
  const Path path = receipts_file(invitation, wire::k_receipts_researcher_key);
  if (!os::exists(path)) return os::write_file_durably(path, to_hex(key) + "\n");
  TRY_ASSIGN(const std::string known, os::read_file(path, k_account_max));
  if (trim(known) == to_hex(key)) return {};
  return make_error(Code::refused, "receipts of this invitation are for another key; its owner has to join again: gridctl provider join TOKEN");
}

}  // namespace

Result<void> check_rates(const os::Path& invitation, const wire::GuestTerms& terms) {
  if (terms.rates == Rates{}) return {};
  const Result<std::string> text = os::read_file(receipts_file(invitation, wire::k_receipts_accepted), k_account_max);
  const Result<Rates> accepted = text ? wire::parse_stored_rates(*text) : Result<Rates>(text.error());
  if (accepted && *accepted == terms.rates) return {};
  return make_error(Code::refused, "the owner of this machine asks " + rates_text(terms.rates) + " (USD), which has not been accepted yet");
}

Result<void> open_account(const os::Path& invitation, const wire::GuestTerms& terms, const wire::AttemptSpec& spec) {
  const Path file = account_file(invitation, spec.job, spec.epoch);
  if (os::exists(file)) return {};
  const double cpus = spec.cpus > 0 ? spec.cpus : static_cast<double>(std::max(std::thread::hardware_concurrency(), 1u));
  wire::UseMark mark;
  mark.job = spec.job;
  mark.epoch = spec.epoch;
  mark.rates = terms.rates;
  mark.gpus = static_cast<int>(spec.gpu_uuids.size());
  mark.cpus_milli = std::llround(std::min(cpus, 1e6) * 1000);
  mark.boot_id = os::boot_id();
  TRY(os::make_directories(file.parent_path()));
  return os::write_file_durably(file, wire::encode(mark));
}

void forget_account(const os::Path& invitation, const wire::AttemptSpec& spec) {
  (void)os::remove_file(account_file(invitation, spec.job, spec.epoch));  // one that stays goes after ten minutes
}

Result<wire::ReceiptsReply> exchange_receipts(const os::Path& invitation, const wire::GuestTerms& terms, const wire::ReceiptsRequest& request) {
  TRY(os::make_directories(invitation / wire::k_receipts_folder));
  TRY(keep_researcher_key(invitation, request.researcher_key));
  wire::ReceiptsReply reply;
  reply.rates = terms.rates;
  if (const auto key = os::read_file(receipts_file(invitation, wire::k_receipts_host_key), k_account_max)) {
    TRY_ASSIGN(reply.host_key, parse_digest(trim(*key)));
  }
  if (request.accepts && *request.accepts == terms.rates)
    TRY(os::write_file_durably(receipts_file(invitation, wire::k_receipts_accepted), wire::encode(terms.rates)));
  // Before the book: an attempt that gets its receipt meanwhile is in both, and never in none.
  if (auto uses = os::list_directory(receipts_file(invitation, wire::k_receipts_uses))) reply.pending = *std::move(uses);
  reply.pending.resize(std::min(reply.pending.size(), wire::k_list_max));
  TRY_ASSIGN(const std::vector<std::string> book, whole_lines(receipts_file(invitation, wire::k_receipts_book)));
  reply.head = book.size();
  TRY(keep_answers(invitation, request.answers, book.size(), reply.answered));
  const Path known = receipts_file(invitation, wire::k_receipts_known);
  const auto told = os::read_file(known, k_account_max);
  if (request.after > (told ? parse_number<std::uint64_t>(trim(*told)).value_or(0) : 0)) TRY(os::write_file_durably(known, std::to_string(request.after) + "\n"));
  std::size_t bytes = 0;
  for (std::uint64_t at = request.after; at < book.size() && reply.receipts.size() < wire::k_receipts_most; ++at) {
    bytes += book[at].size();
    if (bytes > k_reply_bytes) break;
    reply.receipts.push_back(book[at]);
  }
  return reply;
}

TrafficCounters parse_network_devices(std::string_view text) {
  TrafficCounters sum;
  for (const std::string& line : split(std::string(text), '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || is_one_of(trim(line.substr(0, colon)), {"lo"})) continue;
    std::vector<std::string> words = split(line.substr(colon + 1), ' ');
    std::erase_if(words, [](const std::string& word) { return word.empty(); });
    if (words.size() < k_device_fields) continue;
    sum.received += leading_number<std::uint64_t>(words[0]).value_or(0);
    sum.sent += leading_number<std::uint64_t>(words[k_sent_field]).value_or(0);
  }
  return sum;
}

std::unique_ptr<UseAccount> UseAccount::of(const AttemptDir& attempt, int payload_pid, os::Clock& clock) {
  const auto owner = owner_terms(attempt.agent_home(), attempt.controller());
  if (!owner || !*owner) return nullptr;
  Path file = account_file((*owner)->folder, attempt.job(), attempt.epoch());
  const Result<std::string> text = os::read_file(file, k_account_max);
  Result<wire::UseMark> mark = text ? wire::parse_use_mark(*text) : Result<wire::UseMark>(text.error());
  if (!mark || mark->done || mark->boot_id != os::boot_id()) return nullptr;
  return std::unique_ptr<UseAccount>(new UseAccount(std::move(file), *std::move(mark), payload_pid, clock));
}

UseAccount::UseAccount(Path file, wire::UseMark mark, int payload_pid, os::Clock& clock)
    : file_(std::move(file)), mark_(std::move(mark)), pid_(payload_pid), clock_(clock), counted_(os::awake_time()), due_(clock.boot() + k_use_mark_every) {
  if (mark_.began.ms == 0) mark_.began = clock.wall();
  mark_.ended = clock.wall();
}

void UseAccount::add(bool gpus, bool running) {
  const auto passed_ms = std::chrono::duration_cast<std::chrono::milliseconds>(os::awake_time() - counted_);
  if (passed_ms.count() <= 0) return;
  counted_ += passed_ms;
  mark_.ended = clock_.wall();
  const auto passed = static_cast<std::uint64_t>(passed_ms.count());
  if (gpus) mark_.use.gpu_ms += passed * static_cast<std::uint64_t>(mark_.gpus);
  if (running) mark_.use.cpu_ms += passed * static_cast<std::uint64_t>(mark_.cpus_milli) / 1000;
}

// A job that shares this machine's own network is not counted: the bytes could be anybody's.
void UseAccount::add_traffic() {
  const Path process = "/proc/" + std::to_string(pid_);
  std::error_code failed, failed_too;
  const Path its = std::filesystem::read_symlink(process / "ns/net", failed), ours = std::filesystem::read_symlink("/proc/self/ns/net", failed_too);
  if (failed || failed_too || its == ours) return;
  const Result<std::string> text = os::read_file(process / "net/dev", k_account_max);
  if (!text) return;
  const TrafficCounters now = parse_network_devices(*text);
  mark_.use.bytes_up += now.sent - std::min(mark_.seen_up, now.sent);
  mark_.use.bytes_down += now.received - std::min(mark_.seen_down, now.received);
  mark_.seen_up = now.sent;
  mark_.seen_down = now.received;
}

// A mark that cannot be written is not missed: the next one says the same and more.
void UseAccount::write() {
  due_ = clock_.boot() + k_use_mark_every;
  if (!os::exists(file_)) return;  // the owner has left
  if (const Result<void> written = os::write_file_durably(file_, wire::encode(mark_)); !written)
    os::log(os::LogLevel::warn, "cannot mark the use: " + written.error().one_line());
}

void UseAccount::tick(bool gpus, bool running) {
  if (clock_.boot() < due_) return;
  add(gpus, running);
  add_traffic();
  write();
}

void UseAccount::close(bool gpus, bool running) {
  add(gpus, running);
  add_traffic();
  mark_.done = true;
  write();
}

void UseAccount::close(const AttemptDir& attempt) {
  const auto owner = owner_terms(attempt.agent_home(), attempt.controller());
  if (!owner || !*owner) return;
  const Path file = account_file((*owner)->folder, attempt.job(), attempt.epoch());
  const Result<std::string> text = os::read_file(file, k_account_max);
  Result<wire::UseMark> mark = text ? wire::parse_use_mark(*text) : Result<wire::UseMark>(text.error());
  if (!mark || mark->done || mark->boot_id != os::boot_id()) return;  // of another boot: as lost as it was
  mark->done = true;
  (void)os::write_file_durably(file, wire::encode(*mark));
}

}  // namespace gridctl::agent
