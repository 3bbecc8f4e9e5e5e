// SPDX-License-Identifier: Apache-2.0
#include "cmd/receipt_words.hpp"

#include "base/text.hpp"
#include "os/terminal.hpp"
#include "registry/receipts.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace {

constexpr std::size_t k_exported_max = 1u << 30;  // bytes of a file

std::string verdict_of(const lend::SignedReceipt& one) { return !one.answer ? "unanswered" : one.answer->agreed ? "agreed" : "disputed"; }

std::string hours_text(std::uint64_t ms) { return ms == 0 ? "-" : format_duration(std::chrono::milliseconds{ms}); }

std::string receipt_json(const CheckedChain& chain, const lend::SignedReceipt& one) {
  const lend::Receipt& r = one.receipt;
  JsonObject json;
  json("chain", chain.chain)("with", chain.name)("number", r.number)("job_id", r.job.value)("epoch", r.epoch.value)("began_at", r.began);
  json("ended_at", r.ended)("lost", r.lost)("gpus", r.gpus)("cpus", static_cast<double>(r.cpus_milli) / 1000)("gpu_ms", r.use.gpu_ms)("cpu_ms", r.use.cpu_ms);
  json("bytes_up", r.use.bytes_up)("bytes_down", r.use.bytes_down)("rates", rates_text(r.rates))("amount_micro", r.amount);
  json("verdict", verdict_of(one))("counted_micro", one.counted()).text_or_null("why", one.answer ? one.answer->why : "");
  return json.text();
}

std::string csv_row(const lend::SignedReceipt& one) {
  const lend::Receipt& r = one.receipt;
  const std::vector<std::string> cells{r.pair.chain, std::to_string(r.number), r.job.value, std::to_string(r.epoch.value), format_rfc3339(r.began), format_rfc3339(r.ended),
                                       std::to_string(r.gpus), std::to_string(r.use.gpu_ms), std::to_string(r.use.cpu_ms), std::to_string(r.use.bytes_up),
                                       std::to_string(r.use.bytes_down), usd_text(r.amount), verdict_of(one), usd_text(one.counted())};
  return join(cells, ",");
}

}  // namespace

Result<std::map<std::string, std::vector<std::string>>> read_exported(const std::string& file) {
  Result<std::string> text = file == "-" ? os::read_standard_input(k_exported_max) : os::read_file(file, k_exported_max);
  if (!text) return make_error(Code::not_found, text.error().message, "gridctl receipts export > FILE");
  std::map<std::string, std::vector<std::string>> chains;
  std::string chain;
  for (const std::string& line : split_lines(*text)) {
    if (const Result<lend::SignedReceipt> one = lend::parse_receipt(line)) chain = one->receipt.pair.chain;
    chains[chain].push_back(line);  // what is damaged belongs to the chain of its neighbours
  }
  // The damage is before the first good line.
  if (const auto unknown = chains.find(""); unknown != chains.end() && chains.size() > 1) {
    const auto head = std::move(unknown->second);
    chains.erase(unknown);
    auto& lines = chains.begin()->second;
    lines.insert(lines.begin(), head.begin(), head.end());
  }
  return chains;
}

std::string disputes_of(const Context& context, const JobId& job) {
  Result<registry::ReceiptStore> store = registry::ReceiptStore::open(context.state);
  const auto found = store ? store->disputed(job) : Result<std::vector<registry::ReceiptRecord>>(store.error());
  if (!found || found->empty()) return {};
  std::int64_t asked = 0, counted = 0;
  std::string why;
  for (const registry::ReceiptRecord& one : *found) {
    asked += one.asked_micro;
    counted += one.counted_micro;
    const Result<lend::SignedReceipt> receipt = lend::parse_receipt(one.line);
    if (receipt && receipt->answer) why = receipt->answer->why;
  }
  return "disputed: the host asks " + usd_text(asked) + " USD, and " + usd_text(counted) + " USD is counted here (" + sanitize(why, 200) +
         "): gridctl receipts ls --job " + job.value;
}

int print_receipts(Context& context, const std::vector<CheckedChain>& chains, const std::string& job) {
  ui::Table table({{.title = "WITH", .shrinks = true}, {.title = "NUMBER", .right = true}, {.title = "JOB"}, {.title = "EPOCH", .right = true},
                   {.title = "ENDED", .drop = 1}, {.title = "GPU", .right = true}, {.title = "CPU", .right = true}, {.title = "TRAFFIC", .right = true, .drop = 2},
                   {.title = "USD", .right = true}, {.title = "VERDICT", .shrinks = true}});
  std::vector<std::string> json;
  bool disputed = false;
  for (const CheckedChain& chain : chains) {
    for (const lend::SignedReceipt& one : chain.report.receipts) {
      const lend::Receipt& r = one.receipt;
      if (!job.empty() && r.job.value != job) continue;
      if (context.json) json.push_back(receipt_json(chain, one));
      std::string verdict = verdict_of(one);
      disputed = disputed || (one.answer && !one.answer->agreed);
      if (one.answer && !one.answer->agreed) verdict += ": " + usd_text(one.answer->amount) + " here (" + one.answer->why + ")";
      table.add({chain.name, std::to_string(r.number), r.job.value, std::to_string(r.epoch.value), format_rfc3339(r.ended), hours_text(r.use.gpu_ms), hours_text(r.use.cpu_ms),
                 format_size(r.use.bytes_up + r.use.bytes_down), usd_text(r.amount), verdict + (r.lost ? ", host lost" : "")});
    }
  }
  if (context.json) return context.print_line("[" + join(json, ",") + "]");
  if (table.empty()) return context.note("there are no receipts");
  context.print(table.render(context.columns_out(), context.out_style));
  if (disputed) context.note("USD is what the host asks, 'here' what the researcher's side counts; compare all lines with the other side's: gridctl receipts verify FILE");
  return 0;
}

Result<int> print_checked(Context& context, const std::vector<CheckedChain>& chains) {
  std::vector<std::string> json;
  const CheckedChain* bad = nullptr;
  for (const CheckedChain& chain : chains) {
    const lend::ChainReport& report = chain.report;
    const bool good = report.fault == lend::ChainFault::none;
    if (!good && bad == nullptr) bad = &chain;
    if (context.json) {
      JsonObject one;
      one("chain", chain.chain)("with", chain.name)("good", good)("receipts", report.receipts.size())("asked_micro", report.asked)("counted_micro", report.counted);
      one("disputed", report.disputed)("unanswered", report.unanswered).text_or_null("fault", good ? "" : lend::fault_name(report.fault));
      json.push_back(one.text_or_null("text", report.text).text_or_null("other_side", chain.note).text());
      continue;
    }
    std::string text = sanitize(chain.name) + ": " + ui::counted(report.receipts.size(), "receipt") + ", " +
                       usd_text(report.asked) + " USD";
    if (report.disputed > 0) text += ", " + std::to_string(report.disputed) + " disputed (" + usd_text(report.counted) + " USD by the researcher)";
    if (report.unanswered > 0) text += ", " + std::to_string(report.unanswered) + " unanswered";
    context.print_line(text + (good ? "; all signatures and links are good" : ""));
    if (!chain.note.empty()) context.print_line("  " + sanitize(chain.note, 500));
  }
  if (context.json) context.print_line("[" + join(json, ",") + "]");
  else if (chains.empty()) context.note("there are no receipts");
  if (bad == nullptr) return 0;
  return make_error(Code::state_unreadable, "receipts with " + sanitize(bad->name) + ": " + sanitize(bad->report.text, 500),
                    "compare with the other side's: gridctl receipts verify FILE, or gridctl lend receipts --against FILE");
}

void print_exported(Context& context, const std::vector<std::string>& lines, const std::string& format, bool first) {
  if (format == "csv" && first) context.print_line("chain,number,job,epoch,began,ended,gpus,gpu_ms,cpu_ms,bytes_up,bytes_down,usd,verdict,usd_counted");
  for (const std::string& line : lines) {
    if (format != "csv") context.print_line(line);
    else if (const Result<lend::SignedReceipt> one = lend::parse_receipt(line)) context.print_line(csv_row(*one));
  }
}

}  // namespace gridctl::cmd
