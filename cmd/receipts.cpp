// SPDX-License-Identifier: Apache-2.0
// Implements the researcher's receipts of lent hosts.
#include "cmd/receipt_words.hpp"

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "registry/receipts.hpp"

namespace gridctl::cmd {

namespace receipts {
namespace {
struct KeptChain {
  registry::ReceiptChain chain;
  std::vector<std::string> lines;
};

Result<std::vector<KeptChain>> kept_chains(const Context& context) {
  std::vector<KeptChain> all;
  if (!os::exists(context.state / "state.db")) return all;
  TRY_ASSIGN(registry::ReceiptStore store, registry::ReceiptStore::open(context.state));
  TRY_ASSIGN(const auto chains, store.chains());
  for (const registry::ReceiptChain& chain : chains) {
    TRY_ASSIGN(const auto list, store.receipts(chain.chain));
    KeptChain kept{chain, {}};
    for (const registry::ReceiptRecord& one : list) kept.lines.push_back(one.line);
    if (!kept.lines.empty() || chain.head > 0 || chain.host_head > 0 || !chain.trouble.empty()) all.push_back(std::move(kept));
  }
  return all;
}

CheckedChain checked(const KeptChain& kept) {
  CheckedChain out{kept.chain.chain, kept.chain.provider.value, lend::check_chain(kept.lines, kept.chain.head), {}};
  if (!kept.chain.trouble.empty()) out.note = "the host's own receipts do not fit these: " + kept.chain.trouble;
  else if (kept.chain.host_head > kept.chain.head)
    out.note = "the host has " + std::to_string(kept.chain.host_head) + ": the others come at the next contact";
  if (out.report.fault != lend::ChainFault::none || kept.chain.trouble.empty()) return out;
  out.report.fault = kept.chain.trouble.starts_with("cut off") ? lend::ChainFault::cut
                     : kept.chain.trouble.starts_with("fork")  ? lend::ChainFault::fork
                                                                : lend::ChainFault::damaged;
  out.report.text = kept.chain.trouble;
  return out;
}

Result<int> ls(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const auto chains, kept_chains(context));
  std::vector<CheckedChain> all;
  for (const KeptChain& kept : chains) all.push_back(checked(kept));
  const int code = print_receipts(context, all, parsed.value(k_receipt_job_option.name));
  for (const CheckedChain& one : all)
    if (one.report.fault != lend::ChainFault::none)
      context.note("receipts of " + one.name +
                   " have changed since they were signed: " + sanitize(one.report.text, 500));
  return code;
}

Result<int> verify(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const auto chains, kept_chains(context));
  std::vector<CheckedChain> all;
  if (parsed.positionals.empty()) {
    for (const KeptChain& kept : chains) all.push_back(checked(kept));
    return print_checked(context, all);
  }
  TRY_ASSIGN(const auto exported, read_exported(parsed.positionals[0]));
  for (const auto& [chain, lines] : exported) {
    CheckedChain one{chain, parsed.positionals[0], lend::check_chain(lines), {}};
    for (const KeptChain& kept : chains) {
      if (kept.chain.chain != chain || one.report.fault != lend::ChainFault::none) continue;
      CheckedChain own{chain, kept.chain.provider.value, lend::check_chain(kept.lines, kept.chain.head), {}};
      if (own.report.fault == lend::ChainFault::none) own.report = lend::compare_chains(own.report, one.report);
      one = std::move(own);
    }
    all.push_back(std::move(one));
  }
  return print_checked(context, all);
}

Result<int> export_all(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const auto chains, kept_chains(context));
  const std::string format = parsed.given(k_receipt_format_option.name).value_or("jsonl");
  bool first = true;
  for (const KeptChain& kept : chains) {
    print_exported(context, kept.lines, format, first);
    first = false;
  }
  return 0;
}
}  // namespace
}  // namespace receipts

const Command k_receipts_ls{
    .name = "receipts ls",
    .summary = "list what attempts on lent hosts have cost",
    .examples = {{"What did the jobs on lent hosts cost?", "gridctl receipts ls"},
                 {"The receipts on which the two sides disagree",
                  "gridctl receipts ls --json | jq '.[] | select(.verdict == \"disputed\")'"}},
    .description =
        "Lists the receipts of hosts whose owners ask a price: one for each attempt that has ended there, signed by "
        "the "
        "host. gridctl has compared each with what it saw itself, and has signed whether it agrees. Where it does not, "
        "both figures are shown, and costs and budgets count its own.",
    .options = {k_receipt_job_option},
    .exit_codes = k_exits_state,
    .run = receipts::ls};
const Command k_receipts_verify{
    .name = "receipts verify",
    .summary = "check the receipts of lent hosts",
    .examples = {{"Check signatures and links", "gridctl receipts verify"},
                 {"Compare with the receipts that the owner has exported", "gridctl receipts verify bob.jsonl"}},
    .description =
        "Checks all signatures, amounts and links: a byte that was changed, a receipt that "
        "is missing, an end that was cut off, and a fork (two receipts that follow the "
        "same one) are each named, and the exit code is 7.\n\nWith FILE, what the other "
        "side has exported is checked and compared with the receipts here.",
    .positionals = {{"FILE|-", Completion::file, false}},
    .exit_codes = k_exits_job,
    .run = receipts::verify};
const Command k_receipts_export{
    .name = "receipts export",
    .summary = "print the receipts of lent hosts for other programs",
    .examples = {{"For the owner to compare", "gridctl receipts export > mine.jsonl"},
                 {"For a spreadsheet", "gridctl receipts export --format csv > receipts.csv"}},
    .description =
        "Prints all receipts with both signatures, one a line (gridctl-lend(7), RECEIPTS), or without signatures as "
        "comma-separated values.",
    .options = {k_receipt_format_option},
    .exit_codes = k_exits_state,
    .run = receipts::export_all};

}  // namespace gridctl::cmd
