// SPDX-License-Identifier: Apache-2.0
// Implements the owner's receipts. They need no network.

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/receipt_words.hpp"
#include "lend/lent.hpp"
#include "lend/receipt_book.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace lend_receipts {
namespace {
constexpr std::initializer_list<int> k_exits = {3, 7};

struct OwnChain {
  lend::Lent lent;
  std::string who;
  lend::ReceiptBook book;
};

Result<std::vector<OwnChain>> own_chains() {
  std::vector<OwnChain> all;
  for (const lend::Lent& lent : lend::all_lent()) {
    TRY_ASSIGN(const wire::GuestTerms terms, lent.terms());
    TRY_ASSIGN(lend::ReceiptBook book, lend::read_receipts(lent.folder()));
    all.push_back({lent, terms.who, std::move(book)});
  }
  if (!all.empty()) return all;
  return make_error(Code::not_found, "this machine is not lent to anybody", "gridctl provider join TOKEN");
}

CheckedChain checked(const OwnChain& own) {
  return {own.lent.id(), own.who, lend::check_chain(own.book.lines, own.book.head), {}};
}

Result<int> compare(Context& context, const std::vector<OwnChain>& own, const std::string& file) {
  TRY_ASSIGN(const auto exported, read_exported(file));
  std::vector<CheckedChain> all;
  for (const OwnChain& one : own) {
    const auto other = exported.find(one.lent.id());
    if (other == exported.end()) continue;
    CheckedChain mine = checked(one);
    const lend::ChainReport its = lend::check_chain(other->second);
    if (its.fault != lend::ChainFault::none) {
      mine.report.fault = its.fault;
      mine.report.text = "in " + file + ": " + its.text;
    } else if (mine.report.fault == lend::ChainFault::none) {
      mine.report = lend::compare_chains(mine.report, its);
    }
    all.push_back(std::move(mine));
  }
  if (all.empty()) return make_error(Code::not_found, file + " has no receipts of this machine", "gridctl receipts export > FILE");
  return print_checked(context, all);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::vector<OwnChain> own, own_chains());
  if (parsed.has("against")) return compare(context, own, parsed.value("against"));
  if (parsed.has("export")) {
    const std::string format = parsed.given(k_receipt_format_option.name).value_or("jsonl");
    for (const OwnChain& one : own) print_exported(context, one.book.lines, format, &one == &own.front());
    return 0;
  }
  std::vector<CheckedChain> all;
  for (const OwnChain& one : own) all.push_back(checked(one));
  if (parsed.has("verify")) return print_checked(context, all);
  const int code = print_receipts(context, all, parsed.value(k_receipt_job_option.name));
  for (const CheckedChain& one : all)
    if (one.report.fault != lend::ChainFault::none)
      context.note("receipts with " + sanitize(one.name) +
                   " have changed since they were signed: " + sanitize(one.report.text, 500));
  return code;
}

Result<int> earnings(Context& context, const Parsed&) {
  TRY_ASSIGN(const std::vector<OwnChain> own, own_chains());
  ui::Table table({{.title = "RESEARCHER", .shrinks = true}, {.title = "RECEIPTS", .right = true}, {.title = "EARNED", .right = true}, {.title = "AGREED", .right = true},
                   {.title = "UNANSWERED", .right = true}, {.title = "DISPUTED", .right = true}, {.title = "PRICE", .shrinks = true}});
  std::vector<std::string> json;
  std::int64_t sum = 0;
  for (const OwnChain& one : own) {
    const lend::ChainReport report = checked(one).report;
    std::int64_t agreed = 0, unanswered = 0, disputed = 0;
    for (const lend::SignedReceipt& receipt : report.receipts) (!receipt.answer ? unanswered : receipt.answer->agreed ? agreed : disputed) += receipt.receipt.amount;
    sum += report.asked;
    TRY_ASSIGN(const wire::GuestTerms terms, one.lent.terms());
    JsonObject line;
    line("id", one.lent.id())("researcher", one.who)("receipts", report.receipts.size())("earned_micro", report.asked);
    line("agreed_micro", agreed)("unanswered_micro", unanswered)("disputed_micro", disputed);
    line("counted_micro", report.counted)("price", rates_text(terms.rates)).text_or_null("fault", report.text);
    json.push_back(line.text());
    table.add({one.who, std::to_string(report.receipts.size()), usd_text(report.asked), usd_text(agreed), usd_text(unanswered), usd_text(disputed), rates_text(terms.rates)});
    if (report.fault != lend::ChainFault::none)
      context.note("receipts with " + sanitize(one.who) +
                   " have changed since they were signed: " + sanitize(report.text, 500));
  }
  if (context.json) return context.print_line("[" + join(json, ",") + "]");
  context.print(table.render(context.columns_out(), context.out_style));
  return context.print_line("earned: " + usd_text(sum) + " USD");
}
}  // namespace
}  // namespace lend_receipts

const Command k_lend_receipts{
    .name = "lend receipts",
    .summary = "show and check what jobs of others have paid",
    .examples = {{"What has each job paid?", "gridctl lend receipts"},
                 {"Compare with the receipts that the researcher has exported",
                  "gridctl lend receipts --against alice.jsonl"},
                 {"For the researcher to compare", "gridctl lend receipts --export > mine.jsonl"}},
    .description =
        "Lists the receipts that this machine has signed: one for each attempt of a job that has ended here since you "
        "ask a "
        "price. The researcher's gridctl signs each, too, and says whether it agrees.\n\nWith --verify or --against, a "
        "byte that "
        "was changed, a receipt that is missing, an end that was cut off and a fork are each named, and the exit code "
        "is 7.",
    .options = {{"verify", 0, "", "check signatures and links, and print no list"},
                {"against", 0, "FILE|-", "check, and compare with the receipts that the other side has exported", "",
                 Completion::file},
                {"export", 0, "", "print them for other programs"},
                k_receipt_format_option,
                k_receipt_job_option},
    .exit_codes = lend_receipts::k_exits,
    .run = lend_receipts::run};
const Command k_lend_earnings{.name = "lend earnings",
                              .summary = "show what this machine has earned",
                              .examples = {{"What has this machine earned?", "gridctl lend earnings"}},
                              .description = "Adds up the receipts for each researcher: those that both sides have signed alike, those that the researcher has not "
                                             "answered yet, and those on which the two disagree. gridctl moves no money.",
                              .exit_codes = lend_receipts::k_exits,
                              .run = lend_receipts::earnings};

}  // namespace gridctl::cmd
