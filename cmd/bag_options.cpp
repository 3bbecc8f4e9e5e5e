// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_options.hpp"

#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/bag_log.hpp"
#include "config/tasks.hpp"
#include "os/files.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace {

constexpr std::size_t k_stdin_items_max = 1u << 30;
constexpr std::string_view k_items_mark = ":::", k_files_mark = "::::";

// An empty line is an item too; text after the last line break is one only if it is not empty.
std::vector<std::string> item_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

Result<std::vector<std::string>> item_lines_of_file(const std::string& path) {
  if (path == "-") {
    TRY_ASSIGN(const std::string text, os::read_standard_input(k_stdin_items_max));
    return item_lines(text);
  }
  TRY_ASSIGN(const std::string text, os::read_file(path, k_stdin_items_max));
  return item_lines(text);
}

bool is_mark(const std::string& word) { return word == k_items_mark || word == k_files_mark; }

// Returns the lists after the command: one for each mark. Each file of `::::` is a separate list.
Result<std::vector<std::vector<std::string>>> sources_of(const std::vector<std::string>& command, std::size_t at) {
  std::vector<std::vector<std::string>> sources;
  while (at < command.size()) {
    const bool files = command[at++] == k_files_mark;
    std::vector<std::string> words;
    while (at < command.size() && !is_mark(command[at])) words.push_back(command[at++]);
    if (!files) {
      sources.push_back(std::move(words));
      continue;
    }
    for (const std::string& path : words) {
      TRY_ASSIGN(std::vector<std::string> lines, item_lines_of_file(path));
      sources.push_back(std::move(lines));
    }
  }
  return sources;
}

// Returns every combination; the last list changes first.
Result<std::vector<std::string>> combined(const std::vector<std::vector<std::string>>& sources) {
  std::uint64_t count = 1;
  for (const auto& source : sources) {
    count *= source.size();
    if (count > static_cast<std::uint64_t>(job::k_tasks_max)) return make_error(Code::usage, "more than 10,000,000 tasks");
  }
  std::vector<std::string> items(count);
  for (std::uint64_t index = 0; index < count; ++index) {
    std::uint64_t rest = index;
    for (std::size_t i = sources.size(); i-- > 0; rest /= sources[i].size())
      items[index] = sources[i][rest % sources[i].size()] + (i + 1 < sources.size() ? "\x1f" + items[index] : "");
  }
  return items;
}

// Matches "{}", "{.}", "{/}", "{1}", "{2/.}", "{#}", "{%}".
bool has_placeholder(std::string_view text) {
  static const std::set<std::string_view> k_words{"", ".", "/", "//", "/.", "#", "%"};
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) return false;
    std::string_view inside = text.substr(at + 1, end - at - 1);
    const bool numbered = take_number<unsigned>(inside).has_value();
    if (k_words.contains(inside) && !(numbered && (inside == "#" || inside == "%"))) return true;
  }
  return false;
}

}  // namespace

Result<config::ParsedJob> each_from_command(const Parsed& parsed, const config::Context& context) {
  const auto mark = std::find_if(parsed.command.begin(), parsed.command.end(), is_mark);
  const std::vector<std::string> words(parsed.command.begin(), mark);
  std::vector<std::vector<std::string>> sources;
  if (mark != parsed.command.end()) {
    TRY_ASSIGN(sources, sources_of(parsed.command, static_cast<std::size_t>(mark - parsed.command.begin())));
  }
  std::vector<std::string> files = parsed.values("arg-file");
  if (files.empty() && sources.empty()) files = {"-"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    TRY_ASSIGN(std::vector<std::string> lines, item_lines_of_file(files[i]));
    sources.insert(sources.begin() + static_cast<std::ptrdiff_t>(i), std::move(lines));
  }
  TRY_ASSIGN(const std::vector<std::string> all, combined(sources));
  if (all.empty()) return make_error(Code::usage, "--each: there are no items", "ls *.wav | gridctl job submit --each -- CMD {}");
  TRY_ASSIGN(config::Items items, config::items_of_lines(all));
  // Like parallel, joins the words with blanks, and a shell reads the line.
  std::string run = join(words, " ");
  const bool stream = parsed.has("stream");
  if (words.empty() && stream) return make_error(Code::usage, "--stream: expected a command after --");
  if (words.empty()) run = "{}";
  else if (!stream && !has_placeholder(run)) run += " {}";
  const std::vector<std::string> named = words.empty() ? std::vector<std::string>{"each"} : words;
  TRY_ASSIGN(config::ParsedJob job, config::spec_from_command(named, context, parsed.value("workdir")));
  job.spec.run = run;
  job.spec.tasks = job::Tasks{};
  job.spec.tasks->items = sources.size() > 1 ? job::ItemForm::columns : job::ItemForm::text;
  job.spec.tasks->render = !stream;
  job.spec.tasks->split = true;
  job.spec.tasks->stream_window = stream ? job::k_stream_window : 0;
  job.spec.workload.tasks = static_cast<int>(items.count);
  job.items = std::move(items.texts);
  return job;
}

Result<void> apply_bag_options(const Parsed& parsed, config::ParsedJob& job) {
  if (parsed.has("array")) {
    if (job.spec.tasks && !job.spec.envs.contains(config::k_array_count_name))
      return make_error(Code::usage, "--array: the job already has tasks");
    const Result<config::ArraySpec> array = config::parse_array(parsed.value("array"));
    if (!array) return make_error(Code::usage, "--array: expected " + array.error().message);
    TRY(config::set_array(*array, job));
    // The time limit in a Slurm batch script applies to one task.
    if (job.spec.max_duration && job.spec.run.find("\n#SBATCH") != std::string::npos)
      job.spec.tasks->timeout = *std::exchange(job.spec.max_duration, std::nullopt);
  }
  if (parsed.has("stream") && !parsed.has("each"))
    return make_error(Code::usage, "--stream requires --each; in a job file, write tasks: {mode: stream}");
  const auto number = [&](std::string_view name, int least, int most, int& into) -> Result<void> {
    if (!parsed.has(name)) return {};
    if (!job.spec.tasks) return make_error(Code::usage, "--" + std::string(name) + " requires --array or --each");
    if (!parse_into(parsed.value(name), into) || into < least || into > most)
      return make_error(Code::usage, "--" + std::string(name) + ": expected a number from " + std::to_string(least) +
                                         " to " + std::to_string(most));
    return {};
  };
  if (parsed.has("arg-file") && !parsed.has("each")) return make_error(Code::usage, "--arg-file requires --each");
  if (parsed.has("resume") && !parsed.has("joblog")) return make_error(Code::usage, "--resume requires --joblog");
  for (const std::string_view option : {"keep-order", "joblog", "results", "halt"})
    if (parsed.has(option) && !job.spec.tasks)
      return make_error(Code::usage, "--" + std::string(option) + " requires --array, --each, or a file with tasks");
  int none = 0;
  job::Tasks* tasks = job.spec.tasks ? &*job.spec.tasks : nullptr;
  int most = -1;
  TRY(number("max-fails", 0, job::k_tasks_max, most));
  if (most >= 0) tasks->max_fails = most;
  if (parsed.has("halt")) {
    TRY_ASSIGN(const int fails, fails_of_halt(parsed.value("halt"), job.spec.workload.tasks));
    if (fails >= 0) tasks->max_fails = fails;
  }
  if (parsed.has("retry-memory")) {
    if (tasks == nullptr || job.spec.resources.memory_bytes == 0)
      return make_error(Code::usage, "--retry-memory requires --memory, and --array or --each");
    const Result<double> factor = config::parse_raise(parsed.value("retry-memory"));
    if (!factor) return make_error(Code::usage, "--retry-memory: expected " + factor.error().message);
    tasks->raise.memory = *factor;
  }
  TRY(number("jobs", 1, job::k_bag_workers_max, tasks != nullptr ? tasks->max_parallel : none));
  return number("retries", 0, job::k_task_retries_max, tasks != nullptr ? tasks->retries : none);
}

}  // namespace gridctl::cmd
