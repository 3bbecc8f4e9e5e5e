// SPDX-License-Identifier: Apache-2.0
// Implements gridctl budget: monthly limits on cost.

#include "cmd/commands.hpp"
#include "config/fields.hpp"
#include "control/follow/budgets.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace budget {
namespace {
const std::initializer_list<Option> k_owner = {
    {"owner", 0, "NAME", "only for jobs with this owner", "all jobs together"}};

Result<std::string> owner_of(const Parsed& parsed) {
  std::string owner = parsed.value("owner");
  if (!owner.empty())
    if (const auto checked = check_name("owner", owner); !checked)
      return make_error(Code::usage, "--owner: " + checked.error().message);
  return owner;
}

std::string whose(const std::string& owner) { return owner.empty() ? "all jobs together" : "jobs of " + owner; }

std::string json_of(const control::BudgetNow& now) {
  JsonObject json;
  json.text_or_null("owner", now.budget.owner)("month", now.month.name)("usd_month", now.budget.usd_month);
  json("spent", now.spending.usd)("usd_per_hour", now.spending.usd_per_hour)("forecast", now.forecast);
  return json("used_up", now.used_up)("month_ends_at", now.month.ends).text();
}

// Returns "in 5.2h": when it is used up, if the running jobs continue.
std::string lasts(const control::BudgetNow& now) {
  if (now.used_up) return "used up";
  if (now.forecast <= now.budget.usd_month) return "to the end";
  const double hours = (now.budget.usd_month - now.spending.usd) / now.spending.usd_per_hour;
  return format_duration(std::chrono::seconds{static_cast<std::int64_t>(std::max(hours, 0.0) * 3600)});
}

Result<int> set(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::string owner, owner_of(parsed));
  const auto usd = config::parse_decimal(parsed.positionals[0], config::k_budget_limits);
  if (!usd)
    return make_error(
        Code::usage, "USD: expected " + usd.error().message + ", got '" + config::excerpt(parsed.positionals[0]) + "'");
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY(registry.save_budget({owner, *usd}));
  TRY_ASSIGN(const std::vector<control::BudgetNow> budgets, control::budgets_now(registry, context.now()));
  const auto mine = std::ranges::find_if(budgets, [&](const auto& one) { return one.budget.owner == owner; });
  if (mine == budgets.end()) return make_error(Code::not_found, "another gridctl has just removed that budget");
  if (context.json) return context.print_line(json_of(*mine));
  context.print_line(whose(owner) + " may cost " + ui::money(*usd, false) + " in a month; " +
                     ui::money(mine->spending.usd, false) + " of " + mine->month.name + " is spent");
  if (mine->used_up) context.note("this budget is already used up: running jobs that cost money will save and stop");
  return 0;
}

Result<int> ls(Context& context, const Parsed&) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const std::vector<control::BudgetNow> budgets, control::budgets_now(registry, context.now()));
  if (context.json) return context.print_line(json_list(budgets, json_of));
  if (budgets.empty()) return context.note("there is no monthly budget; set one with: gridctl budget set USD");
  ui::Table table({{.title = "OWNER", .shrinks = true},
                   {.title = "MONTH"},
                   {.title = "BUDGET", .right = true},
                   {.title = "SPENT", .right = true},
                   {.title = "NOW", .right = true},
                   {.title = "FORECAST", .right = true},
                   {.title = "LASTS", .right = true}});
  for (const control::BudgetNow& now : budgets)
    table.add({now.budget.owner.empty() ? "(all)" : now.budget.owner, now.month.name,
               ui::money(now.budget.usd_month, false), ui::money(now.spending.usd, false),
               now.spending.usd_per_hour > 0 ? ui::money(now.spending.usd_per_hour) + "/h" : "-",
               ui::money(now.forecast, false), lasts(now)},
              {ui::Paint::bold});
  return context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> rm(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::string owner, owner_of(parsed));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const std::vector<registry::Budget> budgets, registry.budgets());
  const bool known = std::ranges::any_of(budgets, [&](const registry::Budget& one) { return one.owner == owner; });
  if (!known) return make_error(Code::not_found, "there is no budget for " + whose(owner), "gridctl budget ls");
  TRY(registry.remove_budget(owner));
  return context.print_line(context.json ? JsonObject().text_or_null("owner", owner)("removed", true).text()
                                         : whose(owner) + " have no monthly limit");
}
}  // namespace
}  // namespace budget

const Command k_budget_set{
    .name = "budget set",
    .summary = "set a monthly budget",
    .examples = {{"Limit all jobs together to 200 USD a month", "gridctl budget set 200"},
                 {"Limit the jobs of one project", "gridctl budget set 50 --owner vision"}},
    .description =
        "Limits the monthly cost (UTC) of all jobs, or of the jobs whose file names this owner (a person or project). "
        "Both limits apply at the same time.\n\nWhen the budget is used up, gridctl stops running jobs that cost "
        "money: they save first and end as CANCELLED with exit code 9. 'gridctl job resume' continues them in the next "
        "month or after you raise the budget. Waiting jobs run on free hosts or keep waiting.",
    .positionals = {{"USD"}},
    .options = budget::k_owner,
    .exit_codes = k_exits_state,
    .run = budget::set};

const Command k_budget_ls{
    .name = "budget ls",
    .summary = "list monthly budgets and this month's cost",
    .examples = {{"Show this month's cost and its forecast", "gridctl budget ls"},
                 {"List the budgets that will be exceeded",
                  "gridctl budget ls --json | jq -r '.[] | select(.forecast > .usd_month) | .owner'"}},
    .description =
        "Lists the budgets with the cost since the start of the month (UTC), the current cost per hour, the forecast "
        "for the end of the month if the running jobs continue, and how long the budget will last.",
    .exit_codes = k_exits_state,
    .run = budget::ls};

const Command k_budget_rm{.name = "budget rm",
                          .summary = "remove a monthly budget",
                          .examples = {{"Remove the monthly limit", "gridctl budget rm"},
                                       {"Remove the limit of a project", "gridctl budget rm --owner vision"}},
                          .description = "Removes the budget of all jobs, or of one owner.",
                          .options = budget::k_owner,
                          .exit_codes = k_exits_job,
                          .run = budget::rm};

}  // namespace gridctl::cmd
