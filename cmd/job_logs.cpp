// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_output.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/follow.hpp"
#include "cmd/log_lines.hpp"
#include "cmd/log_printer.hpp"

namespace gridctl::cmd {

namespace job_logs {
namespace {
Result<std::optional<AttemptNumber>> wanted_attempt(registry::RunRecords& registry, const JobId& id,
                                                    const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> number, parsed.whole("attempt"));
  if (!number) return std::optional<AttemptNumber>{};
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(id));
  for (const registry::AttemptRecord& attempt : attempts)
    if (attempt.number.value == *number) return std::optional{attempt.number};
  return make_error(Code::not_found,
                    "job " + id.value + " has no attempt " + std::to_string(*number) + ", only " +
                        std::to_string(attempts.size()) + (attempts.size() == 1 ? " attempt" : " attempts"),
                    "gridctl job show " + id.value);
}

// gridctl starts several processes, whose lines are labelled.
bool has_ranks(const job::Spec& spec) {
  return spec.num_nodes > 1 || spec.gang.ranks_per_node > 1 || spec.launcher != job::Launcher::plain;
}

Result<int> print_lines(Context& context, registry::JobRecords& registry, const JobId& id, const Parsed& parsed,
                        LogReader& reader, std::optional<std::uint64_t> rank) {
  TRY_ASSIGN(LogLines lines, LogLines::make(context, parsed, id, rank));
  const auto print_new = [&](const registry::Job& job) -> Result<bool> {
    TRY(lines.print_new(reader, false));
    return job::is_final(job.state) || context.reader_gone();
  };
  if (parsed.has("follow")) TRY(follow(context, registry, id, print_new));
  TRY(lines.print_new(reader, true));
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> rank, parsed.whole("rank"));
  TRY_ASSIGN(const std::optional<std::uint64_t> tail, parsed.whole("tail"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job about, registry.job(id));
  if (rank && *rank != 0 && !has_ranks(about.spec))
    return make_error(Code::not_found,
                      "job " + id.value + " is a single process and has no rank " + std::to_string(*rank),
                      "gridctl job logs " + id.value);
  if (parsed.has("task") && !about.spec.tasks)
    return make_error(Code::usage, "job " + id.value + " is not a bag of tasks", "gridctl job logs " + id.value);
  if (about.spec.tasks && !parsed.has("attempt") && !parsed.has("follow") && !tail) {
    for (const std::string_view option : {"since", "timestamps", "grep"})
      if (parsed.has(option))
        return make_error(Code::unsupported,
                          "--" + std::string(option) +
                              " does not apply to the output of tasks; use it with --attempt, for a worker's log",
                          "gridctl job logs " + id.value + " | grep PATTERN");
    return print_task_output(context, about, parsed.has("task") ? std::optional(parsed.value("task")) : std::nullopt);
  }
  TRY_ASSIGN(const std::optional<AttemptNumber> attempt, wanted_attempt(registry, id, parsed));
  LogReader reader(context.paths(), id, attempt);
  if (tail) TRY(reader.begin_at_tail(*tail));
  if (wants_lines(context, parsed)) return print_lines(context, registry, id, parsed, reader, has_ranks(about.spec) ? rank : std::nullopt);
  LogPrinter printer(context, has_ranks(about.spec) ? rank : std::nullopt);
  const auto print_new = [&](const registry::Job& job) -> Result<bool> {
    TRY(printer.print_new(reader));
    return job::is_final(job.state) || context.reader_gone();
  };
  if (parsed.has("follow")) TRY(follow(context, registry, id, print_new));
  TRY(printer.print_new(reader, {}, true));
  printer.flush();
  return 0;
}
}  // namespace
}  // namespace job_logs

const Command k_job_logs{
    .name = "job logs",
    .summary = "print a job's output, across attempts",
    .examples = {{"Print all output of a job, across attempts", "gridctl job logs train-gpt"},
                 {"Print the last 50 lines and follow", "gridctl job logs -f --tail 50 @last"},
                 {"Print the lines of the last ten minutes that mention a loss",
                  "gridctl job logs train-gpt --since 10m --grep 'loss|nan'"},
                 {"Print the output of the second attempt", "gridctl job logs train-gpt --attempt 2 > attempt2.log"}},
    .description =
        "Prints the job's output. Pipes and files receive the bytes unchanged; on a terminal, control characters are "
        "made visible. A line on standard error marks the start of each attempt. For a bag, the output of its tasks "
        "comes in the order of the tasks; --attempt prints the other output of the first worker, for example of its "
        "setup.\n\n"
        "The times of --since, --timestamps and --json are those at which lines reached this machine: up to some "
        "seconds "
        "after they were printed, later after a broken link. --json prints one object a line.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"follow", 'f', "", "continue until the job ends"},
                {"tail", 'n', "N", "start with the last N lines"},
                {"attempt", 0, "K", "only this attempt"},
                {"task", 0, "LIST", "only these tasks of a bag: 17, or 17,20-30", "all"},
                {"rank", 0, "R", "only this rank's lines", "all"},
                {"since", 0, "TIME", "only lines received since then: 10m (ago), or 2026-12-01T08:00:00Z"},
                {"timestamps", 't', "", "prefix each line with the time it was received"},
                {"grep", 'g', "PATTERN", "only lines that match this extended regular expression"}},
    .exit_codes = k_exits_job,
    .waits = true,
    .run = job_logs::run};

}  // namespace gridctl::cmd
