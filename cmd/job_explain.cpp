// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/provider_facts.hpp"
#include "sched/place.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_explain {
namespace {
constexpr Example k_examples[] = {{"Why is it still pending?", "gridctl job explain train-gpt"},
                                  {"Why does it run there?", "gridctl job explain @last"}};
constexpr Positional k_positionals[] = {{"ID", Offer::job}};

// What the scheduler decided last; for a job nobody has looked at yet, what it would decide now.
Result<std::vector<std::string>> reasons(registry::Registry& registry, const registry::Job& job, WallTime now) {
  TRY_ASSIGN(std::vector<std::string> lines, registry.explanation(job.id));
  if (!lines.empty() || job::is_final(job.state)) return lines;
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts, all_host_facts(registry, now));
  const sched::Decision decision = sched::place(job.spec, hosts, job.machine.avoided);
  lines = sched::explain(decision);
  lines.insert(lines.begin(), "not decided yet; with what is known now:");
  return lines;
}

std::string json_of(const registry::Job& job, const std::vector<std::string>& lines) {
  std::string list;
  for (const std::string& line : lines) list += (list.empty() ? "" : ",") + ui::quoted(line);
  return "{\"job_id\":" + ui::quoted(job.id.value) + ",\"state\":" + ui::quoted(job::state_name(job.state)) +
         ",\"reason\":" + ui::quoted(job.reason) + ",\"reason_text\":" + ui::quoted(job.machine.reason_text) +
         ",\"lines\":[" + list + "]}";
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY_ASSIGN(const std::vector<std::string> lines, reasons(registry, job, context.now()));
  if (context.json) {
    context.print_line(json_of(job, lines));
    return 0;
  }
  std::string head = job.name + " (" + job.id.value + ") is " + std::string(job::state_name(job.state));
  const std::string& why = job.machine.reason_text.empty() ? job.reason : job.machine.reason_text;
  if (!why.empty()) head += ": " + why;
  context.print_line(sanitize(head));
  for (const std::string& line : lines) context.print_line("  " + sanitize(line));
  for (const job::Avoided& avoided : job.machine.avoided)
    context.print_line("  stays away from " + avoided.host.value + ": " + sanitize(avoided.reason));
  return 0;
}
}  // namespace
}  // namespace job_explain

const Command k_job_explain{.noun = "job",
                            .verb = "explain",
                            .summary = "why a job is where it is, or why it still waits",
                            .examples = job_explain::k_examples,
                            .description =
                                "Prints the reason of the job's state and the scheduler's last decision: why "
                                "this provider, and for each other one why not.",
                            .positionals = job_explain::k_positionals,
                            .exit_codes = k_exits_job,
                            .run = job_explain::run};

}  // namespace gridctl::cmd
