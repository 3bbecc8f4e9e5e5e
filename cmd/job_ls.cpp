// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace job_ls {
namespace {
constexpr std::size_t k_shown = 50;  // newest so many for people, unless --all or --limit

constexpr Example k_examples[] = {{"List unfinished jobs and the newest finished ones", "gridctl job ls"},
                                  {"List only unfinished jobs", "gridctl job ls --active"},
                                  {"In a script", "gridctl job ls --json"}};
constexpr Option k_options[] = {{"active", 'a', "", "only unfinished jobs"},
                                {"all", 0, "", "all jobs, regardless of age"},
                                {"limit", 'n', "N", "only the newest N", "50; with --json all"}};

ui::Table table_of(const std::vector<registry::JobRow>& jobs, WallTime now) {
  ui::Table table({{.title = "ID", .width_min = 13},
                   {.title = "NAME", .shrinks = true},
                   {.title = "STATE", .width_min = 10},
                   {.title = "PROVIDER", .shrinks = true},
                   {.title = "RESOURCES", .shrinks = true},
                   {.title = "AGE", .right = true},
                   {.title = "TOOK", .right = true},
                   {.title = "MOVES", .right = true},
                   {.title = "REASON", .shrinks = true}});
  for (const registry::JobRow& job : jobs)
    table.add({job.id.value, job.name, std::string(job::state_name(job.state)), job.provider.value, job.resources,
               ui::age(job.submitted_at, now), ui::span(job.submitted_at, job.ended_at, now),
               job.recoveries == 0 ? "-" : std::to_string(job.recoveries), job.reason},
              {ui::Paint::none, ui::Paint::bold, ui::paint_of(job.state)});
  return table;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> limit, parsed.whole("limit"));
  registry::JobFilter filter;
  filter.active_only = parsed.has("active");
  filter.limit = limit ? *limit : context.json || parsed.has("all") || filter.active_only ? 0 : k_shown;
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const std::vector<registry::JobRow> jobs, registry.jobs(filter));
  if (context.json) {
    context.print_line(ui::jobs_json(jobs));
    return 0;
  }
  if (jobs.empty()) {
    context.note(filter.active_only ? "no job is active" : "no jobs yet; start one: gridctl job submit FILE.yaml");
    return 0;
  }
  context.print(table_of(jobs, context.now()).render(context.columns_out(), context.out_style));
  if (filter.limit == k_shown && jobs.size() == k_shown) context.note("older jobs are not shown; see them with --all");
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
