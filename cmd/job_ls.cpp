// SPDX-License-Identifier: Apache-2.0

#include "cmd/bag_view.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/job_query.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace job_ls {
namespace {
constexpr std::size_t k_shown = 50;  // newest so many for people, unless --all or --limit
constexpr Duration k_watch_period = std::chrono::seconds{1};
constexpr std::size_t k_many = 200;  // for more of them all pasts are read at once

Result<ListedJob> listed(registry::JobRecords& registry, registry::JobRow job, WallTime now) {
  ListedJob one{std::move(job), {}, 0, now};
  one.host = one.row.provider;
  TRY_ASSIGN(const registry::Spent spent, registry.spent(one.row.id, now));
  one.cost = spent.usd;
  if (!one.host.empty() || !job::is_final(one.row.state)) return one;
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(one.row.id));
  if (!attempts.empty()) one.host = attempts.back().provider;
  return one;
}

Result<std::vector<ListedJob>> all_listed(registry::JobRecords& registry, std::vector<registry::JobRow> jobs, WallTime now) {
  std::vector<ListedJob> list;
  list.reserve(jobs.size());
  const auto read = [&]() -> Result<void> {
    if (jobs.size() > k_many) {
      TRY_ASSIGN(const auto all, registry.pasts(now));
      for (registry::JobRow& job : jobs) {
        const auto found = all.find(job.id.value);
        const auto past = found == all.end() ? registry::Registry::Past{} : found->second;
        HostName host = job.provider.empty() && job::is_final(job.state) ? past.host : job.provider;
        list.push_back({std::move(job), std::move(host), past.usd, now});
      }
      return {};
    }
    for (registry::JobRow& job : jobs) {
      TRY_ASSIGN(ListedJob one, listed(registry, std::move(job), now));
      list.push_back(std::move(one));
    }
    return {};
  };
  TRY(registry.at_once(read));
  return list;
}

ui::Table table_of(const control::Paths& paths, std::vector<ListedJob> jobs, bool wide) {
  std::vector<ui::Column> columns{{.title = "ID", .width_min = 13},
                                  {.title = "NAME"},
                                  {.title = "STATE", .width_min = 10},
                                  {.title = "PROVIDER"},
                                  {.title = "RESOURCES", .shrinks = true, .drop = 3},
                                  {.title = "AGE", .right = true, .drop = 2},
                                  {.title = "TOOK", .right = true},
                                  {.title = "MOVES", .right = true, .drop = 4},
                                  {.title = "COST", .right = true, .drop = 1},
                                  {.title = "REASON", .shrinks = true, .drop = 5}};
  if (wide)
    for (const char* title : {"EXIT", "SUBMITTED", "ENDED"}) columns.push_back({.title = title});
  ui::Table table(std::move(columns));
  for (ListedJob& one : jobs) {
    registry::JobRow& job = one.row;
    std::vector<std::string> cells(10);  // a list in braces would copy each of them
    const std::optional<bag::Progress> bag = bag_progress(paths, job.id);
    cells[0] = std::move(job.id.value);
    cells[1] = std::move(job.name);
    cells[2] = job::state_name(job.state);
    cells[3] = std::move(one.host.value);
    cells[4] = std::move(job.resources);
    cells[5] = ui::age(job.submitted_at, one.now);
    cells[6] = ui::span(job.submitted_at, job.ended_at, one.now);
    cells[7] = job.recoveries == 0 ? "-" : std::to_string(job.recoveries);
    cells[8] = ui::money(one.cost);
    cells[9] = std::move(job.reason);
    if (bag)
      cells[9] = std::to_string((bag->done + bag->failed) * 100 / std::max<std::uint64_t>(bag->tasks, 1)) + " %" +
                 (bag->failed > 0 ? ", " + std::to_string(bag->failed) + " failed" : "");
    if (wide) {
      cells.push_back(job.exit_code ? std::to_string(*job.exit_code) : "-");
      cells.push_back(ui::moment(job.submitted_at, one.now));
      cells.push_back(job.ended_at ? ui::moment(*job.ended_at, one.now) : "-");
    }
    table.add(std::move(cells), {ui::Paint::none, ui::Paint::bold, ui::paint_of(job.state)});
  }
  return table;
}

struct Wish {
  registry::JobFilter filter;
  JobQuery query;
  std::optional<JobOrder> order;
  std::uint64_t limit = 0;  // newest, or first in order; 0 = all
  bool wide = false;
};

Result<Wish> wish_of(const Context& context, const Parsed& parsed) {
  Wish wish;
  TRY_ASSIGN(const std::optional<std::uint64_t> limit, parsed.whole("limit"));
  wish.filter.active_only = parsed.has("active");
  for (const std::string& word : parsed.values("status")) {
    TRY_ASSIGN(const job::JobState state, job::parse_state_name(word));
    wish.filter.states.push_back(state);
  }
  TRY_ASSIGN(wish.query, JobQuery::parse(parsed.positionals.empty() ? "" : parsed.positionals[0]));
  if (parsed.has("sort")) {
    TRY_ASSIGN(wish.order, JobOrder::parse(parsed.value("sort")));
  }
  const bool chosen = !wish.query.empty() || wish.order;
  wish.limit = limit ? *limit : context.json || parsed.has("all") || wish.filter.active_only || chosen ? 0 : k_shown;
  wish.filter.limit = chosen ? 0 : wish.limit;  // the query and the order see all jobs
  wish.wide = parsed.has("output");
  return wish;
}

// Holds one listing: text for standard output, and a note for people.
struct Listing {
  std::string text, note;
};

Result<Listing> look(Context& context, registry::Registry& registry, const Wish& wish) {
  TRY_ASSIGN(std::vector<registry::JobRow> rows, registry.jobs(wish.filter));
  const bool older = wish.filter.limit == k_shown && rows.size() == k_shown;
  std::erase_if(rows, registry::is_bag_worker);
  const bool none = rows.empty();
  if (context.json && wish.query.empty() && !wish.order) return Listing{ui::jobs_json(rows) + "\n", ""};
  TRY_ASSIGN(std::vector<ListedJob> jobs, all_listed(registry, std::move(rows), context.now()));
  std::erase_if(jobs, [&](const ListedJob& one) { return !wish.query.matches(one); });
  if (wish.order)
    std::ranges::stable_sort(jobs, [&](const ListedJob& a, const ListedJob& b) { return wish.order->before(a, b); });
  if (wish.limit > 0 && jobs.size() > wish.limit) jobs.resize(wish.limit);
  if (context.json) {
    std::vector<registry::JobRow> chosen;
    for (ListedJob& one : jobs) chosen.push_back(std::move(one.row));
    return Listing{ui::jobs_json(chosen) + "\n", ""};
  }
  if (jobs.empty())
    return Listing{"", !none                           ? "no job matches"
                       : !wish.filter.states.empty()   ? "no job is in this state"
                       : wish.filter.active_only       ? "no job is active"
                                                       : "no jobs yet; start one: gridctl job submit FILE.yaml"};
  return Listing{table_of(context.paths(), std::move(jobs), wish.wide).render(wish.wide ? 0 : context.columns_out(), context.out_style),
                 older ? "older jobs are not shown; --all shows them" : ""};
}

// On a terminal, the list is redrawn in place; elsewhere it is printed again when it has changed.
Result<int> keep_looking(Context& context, registry::Registry& registry, const Wish& wish) {
  std::string shown;
  const auto again = [&]() -> Result<bool> {
    TRY_ASSIGN(const Listing now, look(context, registry, wish));
    const std::string text = now.text.empty() ? now.note + "\n" : now.text;
    if (text == shown) return context.reader_gone();
    context.print((context.redraws && context.terminal_out ? "\033[H\033[J" : shown.empty() || context.json ? "" : "\n") + text);
    shown = text;
    return context.reader_gone();
  };
  TRY(repeat(context, k_watch_period, again, "jobs continue", "gridctl job ls --watch"));
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const Wish wish, wish_of(context, parsed));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY(warn_unfollowed(context, registry));
  if (parsed.has("watch")) return keep_looking(context, registry, wish);
  TRY_ASSIGN(const Listing listing, look(context, registry, wish));
  context.print(listing.text);
  if (!listing.note.empty()) context.note(listing.note);
  return 0;
}
}  // namespace
}  // namespace job_ls

const Command k_job_ls{
    .name = "job ls",
    .summary = "list jobs, newest first",
    .examples = {{"List unfinished jobs, and the newest finished ones", "gridctl job ls"},
                 {"List only unfinished jobs", "gridctl job ls --active"},
                 {"List failed jobs", "gridctl job ls --status FAILED"},
                 {"List the week's most expensive jobs on one host",
                  "gridctl job ls 'provider=ada age<7d' --sort cost- -n 10"},
                 {"For a script", "gridctl job ls --json"}},
    .description = "Lists jobs with their states. MOVES counts how often a job continued on another host.\n\n"
                   "QUERY is a sequence of terms that must all hold: FIELD OPERATOR VALUE with the operators = != > >= < <= "
                   "in notin, as in 'state in [FAILED,CANCELLED] cost>5 age<7d name=train*'. Fields: id, name, state, reason, "
                   "provider, resources, exit_code, moves, cost (USD), age and ended (since then), took. A term about "
                   "a property that a job does not have never holds.",
    .positionals = {{"QUERY", Completion::nothing, false}},
    .options = {{"status", 's', "STATE", "only jobs in this state: RUNNING, FAILED,...", "", Completion::choices,
                 "PENDING|STARTING|RUNNING|RECOVERING|SUCCEEDED|FAILED|CANCELLED", true},
                {"active", 'a', "", "only unfinished jobs"},
                {"all", 0, "", "every job, however old"},
                {"limit", 'n', "N", "the newest N, or the first N with --sort", "50; with --json, QUERY or --sort all"},
                {"sort", 0, "FIELDS",
                 "sort by these fields, such as cost- or state,age; FIELD- sorts in descending order"},
                {"output", 'o', "FORM", "more columns, none of them cut to the terminal's width", "",
                 Completion::choices, "wide"},
                {"watch", 'w', "", "show the list again whenever it changes, until Ctrl-C"}},
    .exit_codes = {7, 130},
    .waits = true,
    .run = job_ls::run};

}  // namespace gridctl::cmd
