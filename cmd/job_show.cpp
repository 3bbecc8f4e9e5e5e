// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace job_show {
namespace {
constexpr Example k_examples[] = {{"Everything about the job submitted last", "gridctl job show @last"},
                                  {"Its state, for a script", "gridctl job show train-gpt --json | jq -r .state"}};
constexpr Positional k_positionals[] = {{"ID", Offer::job}};

ui::Facts facts_of(const registry::Job& job, const std::optional<registry::Checkpoint>& head,
                   const std::optional<registry::Drill>& drill, WallTime now) {
  ui::Facts facts;
  facts.add("job", job.id.value);
  facts.add("name", job.name);
  facts.add("state", std::string(job::state_name(job.state)));
  facts.add("reason", job.machine.reason_text.empty() ? job.reason : job.machine.reason_text);
  if (job.exit_code) facts.add("exit code", std::to_string(*job.exit_code));
  facts.add("provider", job.provider.value);
  facts.add("resources", job.resources);
  facts.add("image", job.spec.image);
  facts.add("submitted", ui::moment(job.submitted_at) + " UTC, " + ui::age(job.submitted_at, now));
  if (job.ended_at) facts.add("ended", ui::moment(job.ended_at) + " UTC, " + ui::age(job.ended_at, now));
  facts.add("took", ui::span(job.submitted_at, job.ended_at, now));
  if (job.recoveries > 0)
    facts.add("moves", std::to_string(job.recoveries) + ", work lost " + format_duration(job.machine.lost));
  if (head)
    facts.add("checkpoint", checkpoint_name(job.id, head->seq) + ", " + format_size(head->bytes) + ", " +
                                ui::age(head->created_at, now));
  if (job.cost > 0) facts.add("cost", ui::money(job.cost));
  if (drill) facts.add("drill", ui::age(drill->at, now) + ": " + drill->summary);
  return facts;
}

ui::Table table_of(const JobId& id, const std::vector<registry::AttemptRecord>& attempts, WallTime now) {
  ui::Table table({{.title = "ATTEMPT", .right = true},
                   {.title = "PROVIDER", .shrinks = true},
                   {.title = "STATE", .width_min = 9},
                   {.title = "STARTED"},
                   {.title = "RAN", .right = true},
                   {.title = "FROM", .shrinks = true},
                   {.title = "EXIT", .right = true},
                   {.title = "REASON", .shrinks = true}});
  for (const registry::AttemptRecord& attempt : attempts)
    table.add({std::to_string(attempt.number.value), attempt.provider.value, attempt.state,
               ui::moment(attempt.started_at), ui::span(attempt.started_at, attempt.ended_at, now),
               attempt.resumed_from.value == 0 ? "-" : checkpoint_name(id, attempt.resumed_from),
               attempt.exit_code ? std::to_string(*attempt.exit_code) : "-", attempt.reason});
  return table;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(id));
  if (context.json) {
    context.print_line(ui::job_json(job, attempts));
    return 0;
  }
  std::optional<registry::Checkpoint> head;
  if (job.machine.head.value != 0) {
    TRY_ASSIGN(head, registry.checkpoint(id, std::nullopt));
  }
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(job.name));
  const WallTime now = context.now();
  context.print(facts_of(job, head, drill, now).render(context.out_style));
  if (!attempts.empty())
    context.print("\n" + table_of(id, attempts, now).render(context.columns_out(), context.out_style));
  return 0;
}
}  // namespace
}  // namespace job_show

const Command k_job_show{.noun = "job",
                         .verb = "show",
                         .summary = "everything about one job",
                         .examples = job_show::k_examples,
                         .description =
                             "Shows the job's state, why it is in it, its attempts and its newest checkpoint. "
                             "ID is the job's id, a unique beginning of it, its name, or @last.",
                         .positionals = job_show::k_positionals,
                         .exit_codes = k_exits_job,
                         .run = job_show::run};

}  // namespace gridctl::cmd
