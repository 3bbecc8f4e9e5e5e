// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/outcome.hpp"

namespace gridctl::cmd {

namespace job_watch {
namespace {
Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, watch(context, registry, id,
                                            {.logs = !context.json && !parsed.has("no-logs"),
                                             .from_start = context.json,
                                             .quiet = context.json,
                                             .events_json = context.json}));
  return outcome_of(job);
}
}  // namespace
}  // namespace job_watch

const Command k_job_watch{.name = "job watch",
                          .summary = "follow a job until it ends",
                          .examples = {{"Follow the most recent job until it ends", "gridctl job watch @last"},
                                       {"Follow it for at most an hour", "gridctl job watch train-gpt --timeout 1h"},
                                       {"Print events as JSON lines", "gridctl job watch train-gpt --json"}},
                          .description =
                              "Shows the job's events and output until it ends, and exits as the job did. Output goes "
                              "to standard output, events and the live view to standard error. On a terminal, the view shows "
                              "how much each host is used (GPU, memory, temperature, processors), with the last "
                              "minutes as a row of bars. A transfer that takes longer than a second is shown with its rate; with --json, every two seconds as an event "
                              "of kind 'progress' (bytes, bytes_total, bytes_per_second). Ctrl-C stops watching; the job "
                              "keeps running. If no daemon is running, this command starts one.",
                          .positionals = {{"ID", Completion::job}},
                          .options = {{"no-logs", 0, "", "do not show the job's output"}},
                          .exit_codes = k_exits_follow,
                          .waits = true,
                          .run = job_watch::run};

}  // namespace gridctl::cmd
