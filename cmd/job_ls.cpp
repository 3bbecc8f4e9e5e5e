// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cmd/bag_view.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/followed.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace job_ls {
namespace {
constexpr std::size_t k_shown = 50;  // newest so many for people, unless --all or --limit
constexpr std::size_t k_many = 200;  // for more of them all pasts are read at once

constexpr Example k_examples[] = {{"Jobs that are not finished, and the newest that are", "gridctl job ls"},
                                  {"Only those that are not finished", "gridctl job ls --active"},
                                  {"What failed", "gridctl job ls --status FAILED"},
                                  {"For a script", "gridctl job ls --json"}};
constexpr Option k_options[] = {
    {"status", 's', "STATE", "only jobs in this state: RUNNING, FAILED,...", "", Completion::choices,
     "PENDING|STARTING|RUNNING|RECOVERING|SUCCEEDED|FAILED|CANCELLED", true},
    {"active", 'a', "", "only jobs that are not finished"},
    {"all", 0, "", "every job, however old"},
    {"limit", 'n', "N", "the newest N", "50; with --json all"}};

struct Past {
  HostName host;  // where it is, or was last
  double cost = 0;
};
Result<Past> past_of(registry::Registry& registry, const registry::JobRow& job, WallTime now) {
  Past past{job.provider, 0};
  TRY_ASSIGN(const registry::Spent spent, registry.spent(job.id, now));
  past.cost = spent.usd;
  if (!past.host.empty() || !job::is_final(job.state)) return past;
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(job.id));
  if (!attempts.empty()) past.host = attempts.back().provider;
  return past;
}

Result<ui::Table> table_of(const control::Paths& paths, registry::Registry& registry, std::vector<registry::JobRow> jobs,
                           WallTime now) {
  ui::Table table({{.title = "ID", .width_min = 13},
                   {.title = "NAME"},
                   {.title = "STATE", .width_min = 10},
                   {.title = "PROVIDER"},
                   {.title = "RESOURCES", .shrinks = true, .drop = 3},
                   {.title = "AGE", .right = true, .drop = 2},
                   {.title = "TOOK", .right = true},
                   {.title = "MOVES", .right = true, .drop = 4},
                   {.title = "COST", .right = true, .drop = 1},
                   {.title = "REASON", .shrinks = true, .drop = 5}});
  std::vector<Past> pasts;
  TRY(registry.at_once([&]() -> Result<void> {
    if (jobs.size() > k_many) {
      TRY_ASSIGN(const auto all, registry.pasts(now));
      for (const registry::JobRow& job : jobs) {
        const auto found = all.find(job.id.value);
        const auto past = found == all.end() ? registry::Registry::Past{} : found->second;
        pasts.push_back({job.provider.empty() && job::is_final(job.state) ? past.host : job.provider, past.usd});
      }
      return {};
    }
    for (const registry::JobRow& job : jobs)
      if (Result<Past> past = past_of(registry, job, now)) pasts.push_back(*std::move(past));
      else return std::move(past).error();
    return {};
  }));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    registry::JobRow& job = jobs[i];
    std::vector<std::string> cells(10);  // a list in braces would copy each of them
    cells[0] = std::move(job.id.value);
    cells[1] = std::move(job.name);
    cells[2] = job::state_name(job.state);
    cells[3] = std::move(pasts[i].host.value);
    cells[4] = std::move(job.resources);
    cells[5] = ui::age(job.submitted_at, now);
    cells[6] = ui::span(job.submitted_at, job.ended_at, now);
    cells[7] = job.recoveries == 0 ? "-" : std::to_string(job.recoveries);
    cells[8] = ui::money(pasts[i].cost);
    cells[9] = std::move(job.reason);
    if (const std::optional<bag::Progress> bag = bag_progress(paths, job.id))
      cells[9] = std::to_string((bag->done + bag->failed) * 100 / std::max<std::uint64_t>(bag->tasks, 1)) + " %" +
                 (bag->failed > 0 ? ", " + std::to_string(bag->failed) + " failed" : "");
    table.add(std::move(cells), {ui::Paint::none, ui::Paint::bold, ui::paint_of(job.state)});
  }
  return table;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> limit, parsed.whole("limit"));
  registry::JobFilter filter;
  filter.active_only = parsed.has("active");
  for (const std::string& word : parsed.values("status")) {
    TRY_ASSIGN(const job::JobState state, job::parse_state_name(word));
    filter.states.push_back(state);
  }
  filter.limit = limit ? *limit : context.json || parsed.has("all") || filter.active_only ? 0 : k_shown;
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY(warn_unfollowed(context, registry));
  TRY_ASSIGN(std::vector<registry::JobRow> jobs, registry.jobs(filter));
  std::erase_if(jobs, registry::is_bag_worker);
  if (context.json) return context.print_line(ui::jobs_json(jobs));
  if (jobs.empty())
    return context.note(!filter.states.empty() ? "no job is in this state"
                        : filter.active_only   ? "no job is active"
                                               : "no jobs yet; start one: gridctl job submit FILE.yaml");
  const bool older = filter.limit == k_shown && jobs.size() == k_shown;
  TRY_ASSIGN(const ui::Table table, table_of(context.paths(), registry, std::move(jobs), context.now()));
  context.print(table.render(context.columns_out(), context.out_style));
  if (older) context.note("older jobs are not shown; see them with --all");
  return 0;
}
}  // namespace
}  // namespace job_ls

const Command k_job_ls{
    .noun = "job",
    .verb = "ls",
    .summary = "list jobs, newest first",
    .examples = job_ls::k_examples,
    .description = "Lists jobs with their states. MOVES counts how often a job continued on another host.",
    .options = job_ls::k_options,
    .exit_codes = k_exits_state,
    .run = job_ls::run};

}  // namespace gridctl::cmd
