// SPDX-License-Identifier: Apache-2.0
// Reads `tasks` and `finally`: the job is a bag of tasks, by their number, by a file of items, or by a matrix of
// values.
#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"
#include "config/tasks.hpp"
#include "os/entries.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr int k_chunk_max = 100'000;
constexpr std::uint64_t k_items_file_max = 1ull << 30;
constexpr Duration k_task_timeout_max = 24h * 365;

// Adds matching paths, sorted, as they were written: relative if the pattern is.
Result<void> expand_glob(const std::string& base, const std::string& done, std::string_view rest,
                         std::vector<std::string>& found) {
  const std::size_t slash = rest.find('/');
  const std::string part(rest.substr(0, slash));
  const bool last = slash == std::string_view::npos;
  const std::string_view next = last ? std::string_view{} : rest.substr(slash + 1);
  const auto go_on = [&](const std::string& name) -> Result<void> {
    const std::string path = done + name;
    if (!last) return expand_glob(base, path + "/", next, found);
    if (os::exists(resolve_beside(path, base))) found.push_back(path);
    return found.size() > static_cast<std::size_t>(job::k_tasks_max) ? make_error(Code::usage, "too many files") : Result<void>{};
  };
  if (part.find_first_of("*?[") == std::string::npos) return go_on(part);
  const auto names = os::list_directory(os::Path(resolve_beside(done.empty() ? "." : done, base)));
  if (!names) return {};
  for (const std::string& name : *names)
    if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) TRY(go_on(name));
  return {};
}

// Returns whether the text contains only complete UTF-8 characters, none of them a surrogate or longer than necessary.
// Items travel as JSON, and a host would refuse a request with anything else, again and again.
bool is_utf8(std::string_view text) {
  std::uint32_t code = 0;
  for (std::size_t at = 0, length = 0; at < text.size(); at += length)
    if ((length = decode_utf8(text, at, code)) == 0) return false;
  return true;
}

// Reads "0..9" or one value.
Result<std::vector<std::string>> values_of(const Node& node) {
  std::vector<std::string> out;
  for (const Node& one : items_of(node)) {
    if (one.kind != Node::Kind::scalar || one.text.find('\n') != std::string::npos)
      return make_error(Code::usage, "expected values, or a range such as 0..9");
    std::string_view text = one.text;
    const auto first = take_number<std::int64_t>(text);
    const auto end = first && text.starts_with("..") ? parse_number<std::int64_t>(text.substr(2)) : std::nullopt;
    if (!end) {
      out.push_back(one.text);
      continue;
    }
    if (*end < *first || *end - *first >= job::k_tasks_max) return make_error(Code::usage, "expected a range such as 0..9");
    for (std::int64_t value = *first; value <= *end; ++value) out.push_back(std::to_string(value));
  }
  if (out.empty()) return make_error(Code::usage, "expected at least one value");
  return out;
}

// The last name changes first.
Result<Items> matrix_items(const Fields& fields) {
  const Node& node = *fields.find("matrix");
  if (node.kind != Node::Kind::map || node.keys.empty())
    return fields.expected("matrix", "a mapping of names to lists of values");
  std::vector<std::vector<std::string>> values;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const auto named = check_env_name(node.keys[i].text);
    const auto listed = values_of(node.items[i]);
    if (!named || !listed) return fields.error("matrix", (named ? listed.error() : named.error()).message + " (" + node.keys[i].text + ")");
    values.push_back(*listed);
    count *= listed->size();
    if (count > static_cast<std::uint64_t>(job::k_tasks_max)) return fields.error("matrix", "has more than 10,000,000 tasks");
  }
  Items items{job::ItemForm::variables, {}, count};
  for (std::uint64_t index = 0; index < count; ++index) {
    std::vector<std::string> lines(values.size());
    std::uint64_t rest = index;
    for (std::size_t i = values.size(); i-- > 0; rest /= values[i].size())
      lines[i] = node.keys[i].text + "=" + values[i][rest % values[i].size()];
    items.texts += join(lines, "\n") + '\0';
  }
  return items;
}

Result<Items> file_items(const Fields& fields, const Context& context) {
  std::string from;
  TRY(fields.text("from", from));
  int chunk = 1;
  TRY(fields.integer("chunk", 1, k_chunk_max, chunk));
  std::vector<std::string> all;
  if (from.find_first_of("*?[") != std::string::npos) {
    if (const auto done = expand_glob(context.base_directory, "", from, all); !done) return fields.error("from", done.error().message);
    if (all.empty()) return fields.error("from", "no file matches '" + excerpt(from) + "'");
  } else {
    const auto text = os::read_file(os::Path(resolve_path(from, context)), k_items_file_max);
    if (!text) return fields.error("from", text.error().message);
    for (const std::string& line : split_lines(*text))
      if (!trim(line).empty()) all.push_back(line);
    if (all.empty()) return fields.error("from", "the file has no items");
  }
  const auto items = items_of_lines(all, static_cast<std::size_t>(chunk));
  if (!items) return fields.error("from", items.error().message);
  return *items;
}

Result<Items> read_items(const Fields& fields, const Context& context) {
  const auto ways = std::ranges::count_if(std::array{"from", "matrix", "count", "array"}, [&](const char* way) { return fields.find(way) != nullptr; });
  if (ways != 1)
    return error_at(fields.source().file, fields.node().at, "key 'tasks': expected one of count, from, matrix and array");
  if (fields.find("chunk") != nullptr && fields.find("from") == nullptr) return fields.error("chunk", "requires from");
  if (fields.find("from") != nullptr) return file_items(fields, context);
  if (fields.find("matrix") != nullptr) return matrix_items(fields);
  int count = 1;  // or `array`
  TRY(fields.integer("count", 1, job::k_tasks_max, count));
  return Items{job::ItemForm::none, {}, static_cast<std::uint64_t>(count)};
}

// SkyPilot gives each of several jobs its rank among them.
Result<Items> num_jobs_items(const Fields& root, job::Spec& spec) {
  int count = 1;
  TRY(root.integer("num_jobs", 1, job::k_tasks_max, count));
  spec.envs.insert_or_assign("SKYPILOT_NUM_JOBS", std::to_string(count));
  Items items{job::ItemForm::variables, {}, static_cast<std::uint64_t>(count)};
  for (int rank = 0; rank < count; ++rank) items.texts += "SKYPILOT_JOB_RANK=" + std::to_string(rank) + '\0';
  return items;
}

// Reads `retry: {memory: x2, disk: x1.5}`.
Result<void> read_raise(const Fields& tasks, const job::Resources& resources, job::Tasks& into) {
  const Node* node = tasks.find("retry");
  if (node == nullptr) return {};
  TRY_ASSIGN(const Fields fields, Fields::open(tasks.source(), *node, "tasks.retry", {"memory", "disk"}));
  TRY(fields.value("memory", into.raise.memory, parse_raise));
  TRY(fields.value("disk", into.raise.disk, parse_raise));
  if (into.raise.memory > 0 && resources.memory_bytes == 0)
    return fields.error("memory", "requires resources.memory, which it multiplies");
  if (into.raise.disk > 0 && resources.disk_bytes == 0)
    return fields.error("disk", "requires resources.disk, which it multiplies");
  return {};
}

// Reads `mode: stream` and its keys.
Result<void> read_stream(const Fields& fields, job::Tasks& tasks) {
  bool stream = false;
  TRY(fields.choice("mode", "tasks", "stream", stream));
  for (const std::string_view key : {"window", "json"})
    if (!stream && fields.find(key) != nullptr) return fields.error(key, "requires mode: stream");
  if (!stream) return {};
  for (const std::string_view key : {"chunk", "matrix", "stdin", "folder"})
    if (fields.find(key) != nullptr)
      return fields.error(key, "cannot be combined with mode: stream, where an item is one line");
  tasks.stream_window = job::k_stream_window;
  TRY(fields.integer("window", 1, job::k_stream_window_max, tasks.stream_window));
  return fields.boolean("json", tasks.stream_json);
}

}  // namespace

std::string resolve_beside(const std::string& path, const std::string& base) {
  return path.starts_with('/') ? path : base + "/" + path;
}

Result<Items> items_of_lines(const std::vector<std::string>& lines, std::size_t chunk) {
  Items items{job::ItemForm::text, {}, (lines.size() + chunk - 1) / chunk};
  if (items.count > static_cast<std::uint64_t>(job::k_tasks_max)) return make_error(Code::usage, "more than 10,000,000 tasks");
  std::size_t begun = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\0') != std::string::npos) return make_error(Code::usage, "an item contains a NUL character");
    if (!is_utf8(lines[i])) return make_error(Code::usage, "item " + std::to_string(i / chunk) + " is not UTF-8 text");
    items.texts += lines[i];
    const bool ends = (i + 1) % chunk == 0 || i + 1 == lines.size();
    if (items.texts.size() - begun > k_item_bytes_max)
      return make_error(Code::usage, "item " + std::to_string(i / chunk) + " is longer than 64 KiB" + (chunk > 1 ? ": use a smaller chunk" : ""));
    items.texts += ends ? '\0' : '\n';
    if (ends) begun = items.texts.size();
  }
  return items;
}

Result<double> parse_raise(std::string_view text) {
  if (text.starts_with('x')) text.remove_prefix(1);
  else if (text.ends_with('x')) text.remove_suffix(1);
  const Result<double> factor = parse_decimal(text, {job::k_raise_min, job::k_raise_max});
  return factor ? factor : make_error(Code::usage, "a factor from x1.1 to x16");
}

Result<ArraySpec> parse_array(std::string_view text) {
  const auto bad = [] { return make_error(Code::usage, "indices such as 0-999, 1-99:2, 1,3,7 or 0-999%50"); };
  ArraySpec array;
  if (const std::size_t percent = text.find('%'); percent != std::string_view::npos) {
    if (!parse_into(text.substr(percent + 1), array.at_once) || array.at_once < 1) return bad();
    text = text.substr(0, percent);
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  for (const std::string& part : split(std::string(text), ',')) {
    std::string_view rest = part;
    const auto first = take_number<std::int64_t>(rest);
    std::optional<std::int64_t> last = first, step = 1;
    if (first && rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_number<std::int64_t>(rest);
      if (last && rest.starts_with(':')) {
        rest.remove_prefix(1);
        step = take_number<std::int64_t>(rest);
      }
    }
    if (!first || !last || !step || !rest.empty() || *first < 0 || *last < *first || *step < 1) return bad();
    if ((*last - *first) / *step + static_cast<std::int64_t>(array.numbers.size()) >= job::k_tasks_max) return bad();
    for (std::int64_t number = *first; number <= *last; number += *step) array.numbers.push_back(number);
  }
  std::ranges::sort(array.numbers);
  array.numbers.erase(std::ranges::unique(array.numbers).begin(), array.numbers.end());
  return array;
}

Result<void> set_array(const ArraySpec& array, ParsedJob& job) {
  const std::vector<std::int64_t>& numbers = array.numbers;
  job::Tasks tasks = job.spec.tasks.value_or(job::Tasks{});
  tasks.items = job::ItemForm::none;
  job.items.clear();
  tasks.max_parallel = std::min(array.at_once, job::k_bag_workers_max);
  tasks.array_first = numbers.front();
  tasks.array_step = numbers.size() > 1 ? numbers[1] - numbers[0] : 1;
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
    if (numbers[i + 1] - numbers[i] != tasks.array_step || tasks.array_step < 1) tasks.items = job::ItemForm::variables;
  if (tasks.items == job::ItemForm::variables)
    for (const std::int64_t number : numbers) job.items += "SLURM_ARRAY_TASK_ID=" + std::to_string(number) + '\0';
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  job.spec.envs[k_array_count_name] = std::to_string(numbers.size());
  job.spec.envs["SLURM_ARRAY_TASK_MIN"] = std::to_string(*least);
  job.spec.envs["SLURM_ARRAY_TASK_MAX"] = std::to_string(*most);
  job.spec.envs["SLURM_ARRAY_TASK_STEP"] = std::to_string(tasks.array_step);
  job.spec.workload.tasks = static_cast<int>(numbers.size());
  job.spec.tasks = tasks;
  return {};
}

Result<void> read_tasks(const Fields& root, const Context& context, ParsedJob& job) {
  const Node* node = root.find("tasks");
  const bool ranked = root.find("num_jobs") != nullptr;
  if (node == nullptr && !ranked)
    return root.find("finally") == nullptr ? Result<void>{} : root.error("finally", "requires tasks");
  if (node != nullptr && ranked) return root.error("num_jobs", "means the same as 'tasks': give one of them");
  job::Tasks tasks;
  Items items;
  if (ranked) {
    TRY_ASSIGN(items, num_jobs_items(root, job.spec));
  } else if (node->kind == Node::Kind::map) {
    TRY_ASSIGN(const Fields fields, Fields::open(root.source(), *node, "tasks",
                                                 {"count", "from", "chunk", "matrix", "array", "retries", "timeout", "max_parallel",
                                                  "max_fails", "stdin", "folder", "mode", "window", "json", "retry"}));
    TRY_ASSIGN(items, read_items(fields, context));
    if (fields.find("array") != nullptr) {
      ArraySpec array;
      TRY(fields.value("array", array, parse_array));
      TRY(set_array(array, job));
      tasks = *job.spec.tasks;
      items = {tasks.items, std::move(job.items), array.numbers.size()};
    }
    const auto ends = static_cast<std::uint64_t>(std::ranges::count(items.texts, '\0'));  // one for each task
    if (!items.texts.empty() && (ends != items.count || !is_utf8(items.texts)))
      return root.error("tasks", "an item contains a NUL character or is not UTF-8 text");
    TRY(fields.integer("retries", 0, job::k_task_retries_max, tasks.retries));
    TRY(fields.duration("timeout", 1s, k_task_timeout_max, tasks.timeout));
    TRY(fields.integer("max_parallel", 1, job::k_bag_workers_max, tasks.max_parallel));
    TRY(fields.integer("max_fails", 0, job::k_tasks_max, tasks.max_fails));
    TRY(fields.text("stdin", tasks.stdin_from));
    TRY(fields.boolean("folder", tasks.folder));
    TRY(read_stream(fields, tasks));
    TRY(read_raise(fields, job.spec.resources, tasks));
  } else {
    int count = 0;
    TRY(root.integer("tasks", 1, job::k_tasks_max, count));
    items.count = static_cast<std::uint64_t>(count);
  }
  for (const job::Output& output : job.spec.outputs) {
    if (output.sync > Duration{} || output.when != job::OutputWhen::always)
      return root.error("outputs", "of a bag are fetched when each task ends: omit sync and when");
    tasks.outputs.push_back(output.from);
  }
  if (tasks.stream_window > 0 && !tasks.outputs.empty())
    return root.error("outputs", "cannot be combined with mode: stream: there, a task's result is its answer");
  TRY(root.text("finally", tasks.finally_run));
  if (tasks.finally_run.empty() && root.find("finally") != nullptr) return root.expected("finally", "a command");
  job.spec.outputs.clear();
  tasks.items = items.form;
  job.items = std::move(items.texts);
  job.spec.workload.tasks = static_cast<int>(items.count);
  job.spec.tasks = tasks;
  return {};
}

}  // namespace gridctl::config
