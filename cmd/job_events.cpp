// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "ui/job_view.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_events {
namespace {
constexpr std::size_t k_page = 1000;  // events read at once

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  if (!parsed.has("follow")) TRY(warn_unfollowed(context, registry));
  std::int64_t after = 0;
  const auto print_new = [&]() -> Result<void> {
    for (;;) {
      TRY_ASSIGN(const std::vector<registry::EventRecord> events, registry.events(id, after, k_page));
      for (const registry::EventRecord& event : events) {
        context.print_line(context.json ? ui::event_json(event) : ui::event_line(event, context.now(), context.out_style));
        after = event.id;
      }
      if (events.size() < k_page) return {};
    }
  };
  if (!parsed.has("follow")) {
    TRY(print_new());
    return 0;
  }
  const auto look = [&](const registry::Job& job) -> Result<bool> {
    TRY(print_new());
    return job::is_final(job.state) || context.reader_gone();
  };
  TRY(follow(context, registry, id, look));
  return 0;
}
}  // namespace
}  // namespace job_events

const Command k_job_events{.name = "job events",
                           .summary = "show a job's events in order",
                           .examples = {{"Show what happened to a job", "gridctl job events train-gpt"},
                                        {"Follow the job until it ends", "gridctl job events -f @last"},
                                        {"Print one JSON object per line", "gridctl job events @last --json"}},
                           .description = "Prints the job's events, oldest first, in your time zone; --json has UTC.",
                           .positionals = {{"ID", Completion::job}},
                           .options = {{"follow", 'f', "", "continue until the job ends"}},
                           .exit_codes = k_exits_job,
                           .waits = true,
                           .run = job_events::run};

}  // namespace gridctl::cmd
