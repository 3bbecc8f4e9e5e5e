// SPDX-License-Identifier: Apache-2.0
#include "lend/receipt.hpp"

#include <algorithm>

#include "base/names.hpp"
#include "base/rates_record.hpp"
#include "base/record.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::lend {

namespace {

constexpr std::string_view k_receipt_form = "gridctl-receipt-1", k_answer_form = "gridctl-answer-1", k_pair_form = "gridctl-receipts-1";
constexpr std::string_view k_receipt_currency = "USD";
constexpr std::size_t k_why_max = 500;
constexpr std::size_t k_hex_digits = 2 * sizeof(crypto::Signature);
constexpr ReadRules k_receipt_rules{};  // of a stranger
constexpr Names<ChainFault, ChainFault::fork> k_fault_names{"none", "damaged", "missing", "cut", "fork"};

}  // namespace

template <class R>
void fields(R& r, Of<R, ReceiptPair>& m) {
  r.id("chain", m.chain).id("controller", m.controller.value)("host_key", m.host_key)("researcher_key", m.researcher_key);
}

template <class R>
void fields(R& r, Of<R, Receipt>& m) {
  std::string form(k_receipt_form), currency(k_receipt_currency);
  r("form", form)("currency", currency).check(form == k_receipt_form && currency == k_receipt_currency, "is of another form");
  r("pair", m.pair)("number", m.number)("previous", m.previous)("job", m.job)("epoch", m.epoch)("began_ms", m.began);
  r("ended_ms", m.ended)("lost", m.lost)("gpus", m.gpus)("cpus_milli", m.cpus_milli)("use", m.use)("rates", m.rates);
  r("amount", m.amount).check(m.number > 0, "has no number");
}

template <class R>
void fields(R& r, Of<R, Answer>& m) {
  std::string form(k_answer_form);
  r("form", form).check(form == k_answer_form, "is of another form");
  r("receipt", m.receipt)("agreed", m.agreed)("amount", m.amount)("why", m.why, k_why_max);
}

namespace {

// A line as it is stored: signatures in hexadecimal digits.
struct ReceiptLine {
  Receipt receipt;
  std::string signature, answer_signature;
  std::optional<Answer> answer;
};
struct AnswerLine {
  Answer answer;
  std::string signature;
};

template <class R>
void fields(R& r, Of<R, ReceiptLine>& m) {
  r("receipt", m.receipt)("signature", m.signature, k_hex_digits).maybe("answer", m.answer);
  r.unless("answer_signature", m.answer_signature, "", k_hex_digits);
}

template <class R>
void fields(R& r, Of<R, AnswerLine>& m) {
  r("answer", m.answer)("signature", m.signature, k_hex_digits);
}

std::optional<crypto::Signature> signature_of(const std::string& hex) {
  if (hex.size() != k_hex_digits) return std::nullopt;
  crypto::Signature signature{};
  for (std::size_t half = 0; half < 2; ++half) {
    const auto part = parse_digest(std::string_view(hex).substr(half * k_hex_digits / 2, k_hex_digits / 2));
    if (!part) return std::nullopt;
    std::ranges::copy(part->bytes, signature.begin() + static_cast<std::ptrdiff_t>(half * part->bytes.size()));
  }
  return signature;
}

Error damaged(std::string what) { return make_error(Code::state_unreadable, std::move(what)); }

// Reads a line that is exactly what this would write.
template <class Line>
Result<Line> read_line(std::string_view text, std::string_view what) {
  auto line = read_record<Line>(text, what, k_receipt_rules, Code::state_unreadable);
  if (!line || write_record(*line) == text) return line;
  return damaged(std::string(what) + " is not written as such lines are");
}

bool answers_well(const SignedReceipt& receipt) {
  const std::string text = write_record(*receipt.answer);
  return receipt.answer->receipt == hash_of(receipt.receipt) &&
         crypto::ed25519_verifies(receipt.receipt.pair.researcher_key, as_bytes(text), receipt.answer_signature);
}

}  // namespace

std::string_view fault_name(ChainFault fault) { return k_fault_names(fault); }

Digest hash_of(const ReceiptPair& pair) { return crypto::sha256(as_bytes(std::string(k_pair_form) + write_record(pair))); }
Digest hash_of(const Receipt& receipt) { return crypto::sha256(as_bytes(write_record(receipt))); }

SignedReceipt sign(const Receipt& receipt, const Digest& host_seed) {
  return {receipt, crypto::ed25519_sign(host_seed, as_bytes(write_record(receipt))), std::nullopt, {}};
}

std::string to_line(const SignedReceipt& receipt) {
  ReceiptLine line{receipt.receipt, to_hex(receipt.signature), {}, receipt.answer};
  if (receipt.answer) line.answer_signature = to_hex(receipt.answer_signature);
  return write_record(line);
}

std::string answer_line(const Answer& answer, const Digest& researcher_seed) {
  return write_record(AnswerLine{answer, to_hex(crypto::ed25519_sign(researcher_seed, as_bytes(write_record(answer))))});
}

Result<SignedReceipt> parse_receipt(std::string_view text) {
  TRY_ASSIGN(ReceiptLine line, read_line<ReceiptLine>(text, "a receipt"));
  SignedReceipt out{std::move(line.receipt), {}, std::move(line.answer), {}};
  const auto signature = signature_of(line.signature);
  if (!signature || !crypto::ed25519_verifies(out.receipt.pair.host_key, as_bytes(write_record(out.receipt)), *signature))
    return damaged("the machine's signature does not fit");
  out.signature = *signature;
  if (out.answer.has_value() != !line.answer_signature.empty()) return damaged("an answer and its signature belong together");
  if (out.receipt.amount != charge(out.receipt.rates, out.receipt.use)) return damaged("the amount is not what the rates come to");
  if (!out.answer) return out;
  const auto answered = signature_of(line.answer_signature);
  out.answer_signature = answered.value_or(crypto::Signature{});
  if (!answered || !answers_well(out)) return damaged("the researcher's signature does not fit");
  return out;
}

Result<void> add_answer(SignedReceipt& receipt, std::string_view text) {
  TRY_ASSIGN(AnswerLine line, read_line<AnswerLine>(text, "an answer to a receipt"));
  const auto signature = signature_of(line.signature);
  SignedReceipt with = receipt;
  with.answer = std::move(line.answer);
  with.answer_signature = signature.value_or(crypto::Signature{});
  if (!signature || !answers_well(with)) return damaged("the answer is to another receipt, or the researcher's signature does not fit");
  receipt = std::move(with);
  return {};
}

namespace {

std::string numbered(const Receipt& receipt) {
  return "receipt " + std::to_string(receipt.number) + " (job " + receipt.job.value + ", epoch " + std::to_string(receipt.epoch.value) + ")";
}

// Names what is wrong with `next` behind `last`; ChainFault::none: nothing.
ChainFault judge_link(const std::vector<SignedReceipt>& before, const Receipt& next, std::string& text) {
  const bool first = before.empty();
  const Digest expected = first ? hash_of(next.pair) : hash_of(before.back().receipt);
  const std::uint64_t number = first ? 1 : before.back().receipt.number + 1;
  const auto twin = std::ranges::find_if(before, [&](const SignedReceipt& one) {
    return one.receipt.number == next.number || one.receipt.previous == next.previous;
  });
  if (twin != before.end() && hash_of(twin->receipt) == hash_of(next)) {
    text = numbered(next) + " is there twice";
    return ChainFault::damaged;
  }
  if (twin != before.end()) {
    text = "fork: " + numbered(twin->receipt) + " and " + numbered(next) + " both follow the same receipt";
    return ChainFault::fork;
  }
  if (!first && next.pair != before.front().receipt.pair) {
    text = numbered(next) + " is of other keys than those before it";
    return ChainFault::damaged;
  }
  if (next.number == number && next.previous == expected) return ChainFault::none;
  if (next.number > number) {
    text = next.number == number + 1 ? "receipt " + std::to_string(number) + " is missing"
                                     : "receipts " + std::to_string(number) + " to " + std::to_string(next.number - 1) + " are missing";
    return ChainFault::missing;
  }
  text = numbered(next) + (next.number == number ? " does not follow the one before it: another one stood there" : " is out of order");
  return next.number == number ? ChainFault::fork : ChainFault::damaged;
}

}  // namespace

ChainReport check_chain(std::span<const std::string> lines, std::uint64_t head) {
  ChainReport report;
  const auto found = [&](ChainFault fault, std::string text) {
    report.fault = fault;
    report.text = std::move(text);
    return report;
  };
  for (const std::string& line : lines) {
    Result<SignedReceipt> read = parse_receipt(line);
    const std::uint64_t behind = report.receipts.empty() ? 0 : report.receipts.back().receipt.number;
    if (!read) return found(ChainFault::damaged, "damaged: the receipt behind number " + std::to_string(behind) + ": " + read.error().message);
    std::string text;
    if (const ChainFault fault = judge_link(report.receipts, read->receipt, text); fault != ChainFault::none) return found(fault, std::move(text));
    report.asked += read->receipt.amount;
    report.counted += read->counted();
    report.disputed += read->answer && !read->answer->agreed ? 1 : 0;
    report.unanswered += read->answer ? 0 : 1;
    report.receipts.push_back(*std::move(read));
  }
  const std::uint64_t last = report.receipts.size();
  if (last >= head) return report;
  return found(ChainFault::cut, "cut off: the last receipt here is number " + std::to_string(last) + ", and number " + std::to_string(head) + " is known to exist");
}

ChainReport compare_chains(const ChainReport& own, const ChainReport& other) {
  ChainReport report = own;
  const std::size_t both = std::min(own.receipts.size(), other.receipts.size());
  for (std::size_t at = 0; at < both; ++at) {
    const Receipt &one = own.receipts[at].receipt, &its = other.receipts[at].receipt;
    if (hash_of(one) == hash_of(its)) continue;
    report.fault = ChainFault::fork;
    report.text = "fork: the two sides have different receipts of number " + std::to_string(at + 1) + ": " + numbered(one) + " and " + numbered(its);
    return report;
  }
  if (own.receipts.size() == other.receipts.size()) return report;
  report.fault = ChainFault::cut;
  report.text = "cut off: " + std::string(own.receipts.size() < other.receipts.size() ? "the chain here" : "the other side's chain") + " ends with number " +
                std::to_string(both) + ", and the " + (own.receipts.size() < other.receipts.size() ? "other one" : "one here") + " has " +
                std::to_string(std::max(own.receipts.size(), other.receipts.size()));
  return report;
}

Answer judge(const Receipt& receipt, const std::optional<SeenAttempt>& seen) {
  Answer answer{hash_of(receipt), false, 0, {}};
  const auto differ = [&](std::string why) { answer.why += (answer.why.empty() ? "" : "; ") + std::move(why); };
  if (!seen) {
    differ("no such attempt is known here");
    return answer;
  }
  if (seen->billed > 0) {
    differ("the attempt was billed already, by receipt " + std::to_string(seen->billed));
    return answer;
  }
  if (!seen->never_began.empty()) {
    differ("the attempt never began: its host said " + seen->never_began);
    return answer;
  }
  MeteredUse use = receipt.use;
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(seen->ran_ms, 0) + k_receipt_slack_ms);
  const std::uint64_t gpu_ms = ms * static_cast<std::uint64_t>(std::max(seen->gpus, 0));
  const std::uint64_t cpu_ms = ms * static_cast<std::uint64_t>(std::max<std::int64_t>(seen->cpus_milli, 0)) / 1000;
  if (use.gpu_ms > gpu_ms) differ("more GPU time than the attempt had here: " + std::to_string(use.gpu_ms) + " ms, at most " + std::to_string(gpu_ms));
  if (use.cpu_ms > cpu_ms) differ("more processor time than the attempt had here: " + std::to_string(use.cpu_ms) + " ms, at most " + std::to_string(cpu_ms));
  const std::uint64_t traffic = std::min(ms, k_metered_bytes_max / k_traffic_most) * k_traffic_most;
  if (use.bytes_up > traffic || use.bytes_down > traffic) differ("more traffic than 10 Gbit/s for the time of the attempt");
  use.bytes_up = std::min(use.bytes_up, traffic);
  use.bytes_down = std::min(use.bytes_down, traffic);
  use.gpu_ms = std::min(use.gpu_ms, gpu_ms);
  use.cpu_ms = std::min(use.cpu_ms, cpu_ms);
  Rates rates = receipt.rates;
  if (std::ranges::find(seen->accepted, rates) == seen->accepted.end() && rates != Rates{}) {
    differ("rates that were not accepted here: " + rates_text(rates));
    rates = seen->accepted.empty() ? Rates{} : seen->accepted.back();
  }
  answer.agreed = answer.why.empty();
  answer.amount = answer.agreed ? receipt.amount : std::min(receipt.amount, charge(rates, use));
  answer.why.resize(std::min(answer.why.size(), k_why_max));
  return answer;
}

}  // namespace gridctl::lend
