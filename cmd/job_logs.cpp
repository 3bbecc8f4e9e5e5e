// SPDX-License-Identifier: Apache-2.0
#include <regex.h>

#include <utility>

#include "base/text.hpp"
#include "cmd/bag_output.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/log_printer.hpp"
#include "cmd/log_reader.hpp"
#include "control/follow/log_times.hpp"

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
                        ui::counted(attempts.size(), "attempt"),
                    "gridctl job show " + id.value);
}

// gridctl starts several processes, whose lines are labelled.
bool has_ranks(const job::Spec& spec) {
  return spec.num_nodes > 1 || spec.gang.ranks_per_node > 1 || spec.launcher != job::Launcher::plain;
}

constexpr std::size_t k_line_max = 1u << 20;  // bytes; a longer one is given in parts

// Returns true if the command asks for lines, not for the bytes as they are.
bool wants_lines(const Context& context, const Parsed& parsed) {
  return context.json || parsed.has("since") || parsed.has("timestamps") || parsed.has("grep");
}

// Holds a compiled regular expression.
struct Pattern {
  regex_t compiled{};
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() { ::regfree(&compiled); }
};

// Prints a job's output line by line: only some of the lines, with their times, or as JSON.
class LogLines {
 public:
  LogLines(Context& context, JobId job, std::optional<std::uint64_t> rank)
      : context_(&context), job_(std::move(job)), rank_(rank) {}

  // Fails with usage if --since or --grep cannot be read.
  Result<void> begin(const Parsed& parsed) {
    timestamps_ = parsed.has("timestamps");
    if (parsed.has("since")) {
      const std::string text = parsed.value("since");
      const Result<Duration> ago = parse_duration(text);
      const Result<WallTime> moment = parse_rfc3339(text);
      if (!ago && !moment)
        return make_error(Code::usage,
                          "--since: expected how long ago (10m), or a time such as 2026-12-01T08:00:00Z, got '" +
                              sanitize(text) + "'");
      since_ = moment ? *moment : WallTime{context_->now().ms - *ago / std::chrono::milliseconds{1}};
    }
    if (!parsed.has("grep")) return {};
    pattern_.emplace();
    const int wrong = ::regcomp(&pattern_->compiled, parsed.value("grep").c_str(), REG_EXTENDED | REG_NOSUB);
    if (wrong == 0) return {};
    char why[128];
    ::regerror(wrong, &pattern_->compiled, why, sizeof why);
    return make_error(Code::usage, "--grep: '" + sanitize(parsed.value("grep")) +
                                       "' is not an extended regular expression: " + why);
  }

  // Prints new lines; `all`: including a last one without an end.
  Result<void> print_new(LogReader& reader, bool all) {
    times_.clear();
    const auto on_bytes = [&](AttemptNumber, std::string_view bytes) {
      const LogReader::Place place = reader.place();
      Begun& begun = begun_[place.file];
      std::uint64_t position = place.position;
      while (!bytes.empty()) {
        if (begun.text.empty()) begun.position = position;
        const std::size_t end = bytes.find('\n');
        const std::size_t size = std::min(end == std::string_view::npos ? bytes.size() : end, k_line_max);
        begun.text += bytes.substr(0, size);
        const bool ended = end != std::string_view::npos && size == end;
        bytes.remove_prefix(size + (ended ? 1 : 0));
        position += size + (ended ? 1 : 0);
        if (ended || begun.text.size() >= k_line_max) take(place.file, begun);
      }
    };
    TRY(reader.read_new(on_bytes, all));
    if (!all) return {};
    for (auto& [file, begun] : begun_)
      if (!begun.text.empty()) take(file, begun);
    return {};
  }

 private:
  struct Begun {
    std::string text;            // of a line without its end
    std::uint64_t position = 0;  // where the line begins
  };

  void take(const LogReader::File& file, Begun& begun) {
    std::string text = std::exchange(begun.text, {});
    if (rank_) {
      RankLines of_rank(*rank_);
      text = of_rank.of(text + "\n");
      if (text.empty()) return;
      text.pop_back();
    }
    auto times = times_.find(file);
    if (times == times_.end())
      times = times_.emplace(file, control::LogTimes::read(context_->paths().log_of(job_, file.first, file.second)))
                  .first;
    const std::optional<WallTime> at = times->second.at(begun.position);
    if (since_ && (!at || *at < *since_)) return;
    if (pattern_ && ::regexec(&pattern_->compiled, text.c_str(), 0, nullptr, 0) != 0) return;
    if (context_->json) {
      context_->print_line(JsonObject()("at", at)("attempt", file.first.value)("node", file.second)("text", text).text());
      return;
    }
    const std::string time = !timestamps_ ? "" : (at ? format_rfc3339(*at) : std::string(24, '-')) + " ";
    context_->print_line(time + (context_->terminal_out ? sanitize_lines(text) : text));
  }

  Context* context_;
  JobId job_;
  std::optional<std::uint64_t> rank_;
  std::optional<WallTime> since_;
  bool timestamps_ = false;
  std::optional<Pattern> pattern_;
  std::map<LogReader::File, Begun> begun_;
  std::map<LogReader::File, control::LogTimes> times_;  // read anew with each look
};

Result<int> print_lines(Context& context, registry::JobRecords& registry, const JobId& id, const Parsed& parsed,
                        LogReader& reader, std::optional<std::uint64_t> rank) {
  LogLines lines(context, id, rank);
  TRY(lines.begin(parsed));
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
    return print_task_output(context, about, parsed.given("task"));
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
