// SPDX-License-Identifier: Apache-2.0
// Reads an HTCondor submit file as the equivalent job file: its `queue` makes a bag. Each command is supported, ignored
// with a warning that says why, or refused with what to write instead. Any other name is a macro, as in condor.
#include <algorithm>
#include <map>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {

constexpr Remark k_condor_ignored[] = {
    {"output", "gridctl keeps the output: gridctl job logs --task N"},
    {"error", "gridctl keeps the output: gridctl job logs --task N"},
    {"log", "see gridctl job events"},
    {"should_transfer_files",
     "gridctl sends the directory of the submit file, and fetches what transfer_output_files names"},
    {"when_to_transfer_output", "gridctl fetches files when a task ends"},
    {"transfer_input_files", "gridctl sends the complete directory of the submit file"},
    {"transfer_executable", "gridctl sends the complete directory of the submit file"},
    {"notification", "gridctl sends no mail for tasks"},
    {"notify_user", "gridctl sends no mail for tasks"},
    {"rank", "gridctl chooses hosts by the cost of the whole job"},
    {"priority", "tasks of a bag are equal; see priority in gridctl-job(5)"},
    {"batch_name", "gridctl names the job after the file"},
    {"jobbatchname", "gridctl names the job after the file"},
    {"stream_output", "gridctl fetches output while a task runs"},
    {"stream_error", "gridctl fetches output while a task runs"},
    {"accounting_group", "see owner in gridctl-job(5)"},
    {"accounting_group_user", "see owner in gridctl-job(5)"}};
constexpr Remark k_condor_refused[] = {
    {"requirements", "is not supported: write it under 'constraints' in a job file"},
    {"getenv", "is not supported: name the variables under 'environment'"},
    {"request_gpus_memory", "is not supported: write 'resources: {accelerators: 24GB..}' in a job file"},
    {"input", "is not supported: let the program open the file"},
    {"transfer_output_remaps", "is not supported: gridctl job pull gets the files"},
    {"periodic_hold", "is not supported"},
    {"periodic_remove", "is not supported: write 'tasks: {timeout: 1h}' in a job file"},
    {"on_exit_hold", "is not supported"},
    {"on_exit_remove", "is not supported: write max_retries"},
    {"max_idle", "is not supported"},
    {"noop_job", "is not supported"}};
constexpr std::string_view k_condor_read[] = {"executable",      "arguments",      "environment",   "request_cpus",
                                              "request_memory",  "request_disk",   "request_gpus",  "initialdir",
                                              "universe",        "docker_image",   "container_image", "max_retries",
                                              "max_materialize", "transfer_output_files"};
constexpr int k_macro_depth_max = 16;
constexpr char k_value_begin = '\x01', k_value_end = '\x02';  // around what a shell fills in

std::vector<std::string> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(separators), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Splits `arguments` and `environment` into words at blanks; in the quoted form, '…' keeps blanks, and a doubled quote
// stands for itself.
std::vector<std::string> condor_words(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return words_of(text, " \t");
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> words;
  bool open = false, begun = false;
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool doubled = (c == '"' || (c == '\'' && open)) && i + 1 < text.size() && text[i + 1] == c;
    if (doubled) word += text[++i];
    else if (c == '\'') open = !open;
    else if (!open && (c == ' ' || c == '\t')) {
      if (begun) words.push_back(std::exchange(word, {}));
      begun = false;
      continue;
    } else word += c;
    begun = true;
  }
  if (begun) words.push_back(word);
  return words;
}

// Quotes a word for a shell, which fills in only the marked parts.
std::string shell_word(std::string_view word) {
  if (word.find(k_value_begin) == std::string_view::npos) return shell_quote(word);
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\' || c == '`' || c == '$') text += '\\';
    if (c == k_value_begin) text += '$';
    else if (c != k_value_end) text += c;
  }
  return text + "\"";
}

class Condor {
 public:
  Condor(SourceFile& source, std::string_view text) : source_(source), lines_(split_lines(text)) {}

  Result<Node> job() {
    TRY(read());
    if (!queued_) return error_at(source_.file, {}, "'queue' is missing");
    for (const Remark& word : k_condor_refused)
      if (const auto found = macros_.find(word.key); found != macros_.end())
        return error_at(source_.file, found->second.at, std::string(word.key) + " " + std::string(word.why));
    for (const Remark& word : k_condor_ignored)
      if (const auto found = macros_.find(word.key); found != macros_.end())
        source_.warn(found->second.at, std::string(word.key) + " is ignored: " + std::string(word.why));
    TRY(put_command());
    put_resources();
    TRY(put_universe());
    if (const auto text = value("environment"); !text.empty()) TRY(put_environment(text));
    const std::string folder = value("initialdir");
    put(job_, "workdir", text_node(folder.empty() ? "." : folder, at("initialdir")));
    if (const std::string names = value("transfer_output_files"); !names.empty()) {
      Node list;
      list.kind = Node::Kind::list;
      for (const std::string& name : words_of(names, ", \t")) list.items.push_back(text_node(name, at("transfer_output_files")));
      put(job_, "outputs", std::move(list));
    }
    if (const std::string times = value("max_retries"); !times.empty()) put(tasks_, "retries", text_node(times, at("max_retries")));
    if (const std::string most = value("max_materialize"); !most.empty()) put(tasks_, "max_parallel", text_node(most, at("max_materialize")));
    tasks_.at = queue_at_;
    put(job_, "tasks", std::move(tasks_));
    for (const auto& [name, macro] : macros_)
      if (!macro.used && std::ranges::find(k_condor_read, name) == std::end(k_condor_read) && !is_ignored(name))
        source_.warn(macro.at, name + " is ignored: it has no meaning in gridctl");
    return std::move(job_);
  }

 private:
  struct Macro {
    std::string text;
    Position at;
    bool used = false;
  };

  static bool is_ignored(std::string_view name) {
    return std::ranges::any_of(k_condor_ignored, [&](const Remark& one) { return one.key == name; });
  }

  Result<void> read() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Position here{static_cast<int>(i) + 1, 1};
      std::string line(trim(lines_[i]));
      while (line.ends_with('\\') && i + 1 < lines_.size()) line = line.substr(0, line.size() - 1) + " " + std::string(trim(lines_[++i]));
      if (line.empty() || line.starts_with('#')) continue;
      const std::string first = lower(line.substr(0, line.find_first_of(" \t=")));
      const std::size_t equals = line.find('=');
      if (first == "queue" && (equals == std::string::npos || line.find('(') < equals)) {
        if (std::exchange(queued_, true))
          return error_at(source_.file, here, "a second 'queue' is not supported: write a file for each");
        queue_at_ = here;
        TRY(read_queue(line.substr(5), i));
        continue;
      }
      if (equals == std::string::npos) return error_at(source_.file, here, "expected NAME = VALUE or queue");
      const std::string name = lower(trim(line.substr(0, equals)));
      if (name.starts_with('+') || name.starts_with("my."))
        source_.warn(here, name + " is ignored: attributes have no meaning in gridctl");
      else macros_[name] = {std::string(trim(line.substr(equals + 1))), here};
    }
    return {};
  }

  // Syntax: [COUNT] [NAMES] (in | from | matching) ITEMS
  Result<void> read_queue(std::string rest, std::size_t& line) {
    const auto no = [&](const std::string& what) { return error_at(source_.file, queue_at_, "queue: " + what); };
    std::vector<std::string> words = words_of(rest.substr(0, rest.find('(')), ", \t");
    if (!words.empty() && all_digits(words[0])) {
      const auto count = parse_number<int>(words[0]);
      if (!count || *count < 1) return no("expected a number of tasks of at least 1");
      count_ = *count;
      words.erase(words.begin());
    }
    const auto is_way = [](const std::string& word) { return lower(word) == "in" || lower(word) == "from" || lower(word) == "matching"; };
    const auto way = std::ranges::find_if(words, is_way);
    if (way == words.end()) {
      if (!words.empty()) return no("expected in, from or matching");
      put(tasks_, "count", text_node(std::to_string(count_), queue_at_));
      return {};
    }
    for (const std::string& name : std::vector<std::string>(words.begin(), way)) {
      if (!check_env_name(name)) return no("expected names of letters, digits and '_'");
      names_.push_back(lower(name));
    }
    if (names_.empty()) names_ = {"item"};
    const std::string kind = lower(*way);
    std::vector<std::string> after(way + 1, words.end());
    if (!after.empty() && (after[0] == "files" || after[0] == "dirs") && kind == "matching") after.erase(after.begin());
    const std::size_t open = rest.find('(');
    if (open == std::string::npos) {
      if (after.size() != 1 || kind == "in" || after[0] == "|") return no("expected " + std::string(kind == "matching" ? "one pattern" : kind == "in" ? "a list in parentheses" : "one file"));
      if (count_ > 1) return no("a number before " + kind + " is not supported: repeat the items");
      put(tasks_, "from", text_node(after[0], queue_at_));
      return {};
    }
    if (!after.empty() || kind == "matching") return no("slices, and patterns in parentheses, are not supported");
    std::string list = rest.substr(open + 1);
    while (list.find(')') == std::string::npos) {
      if (line + 1 >= lines_.size()) return no("expected ')'");
      list += "\n" + std::string(trim(lines_[++line]));
    }
    list.resize(list.find(')'));
    put_list(words_of(list, kind == "in" ? ", \t\n" : "\n"));
    return {};
  }

  void put_list(const std::vector<std::string>& items) {
    Node list, matrix;
    list.kind = Node::Kind::list;
    list.at = matrix.at = queue_at_;
    for (const std::string& one : items) list.items.push_back(text_node(one, queue_at_));
    put(matrix, k_item_name, std::move(list));
    if (count_ > 1) put(matrix, "CONDOR_STEP", text_node("0.." + std::to_string(count_ - 1), queue_at_));
    put(tasks_, "matrix", std::move(matrix));
    in_list_ = true;
  }

  // Replaces macros by their text, and values that differ from task to task by shell variables.
  std::string expand(std::string_view text, int depth = 0) {
    std::string out;
    while (!text.empty()) {
      const std::size_t begin = text.find("$(");
      const std::size_t end = begin == std::string_view::npos ? begin : text.find(')', begin);
      if (end == std::string_view::npos || depth > k_macro_depth_max) return out += text;
      out += text.substr(0, begin);
      const std::string_view inside = text.substr(begin + 2, end - begin - 2);
      const std::string name = lower(trim(inside.substr(0, inside.find(':'))));
      text.remove_prefix(end + 1);
      if (const std::string shell = in_shell(name); !shell.empty()) {
        out += k_value_begin + shell + k_value_end;
      } else if (const auto macro = macros_.find(name); macro != macros_.end()) {
        macro->second.used = true;
        out += expand(macro->second.text, depth + 1);
      } else if (const std::size_t colon = inside.find(':'); colon != std::string_view::npos) {
        out += expand(inside.substr(colon + 1), depth + 1);
      }
    }
    return out;
  }
  [[nodiscard]] std::string in_shell(const std::string& name) const {
    if (std::ranges::find(names_, name) != names_.end()) return "{condor_" + name + "}";
    const std::string count = std::to_string(count_);
    if (name == "process" || name == "procid") return "{GRIDCTL_TASK_INDEX}";
    if (name == "cluster" || name == "clusterid") return "{GRIDCTL_JOB_ID}";
    if (name == "step") return "((GRIDCTL_TASK_INDEX%" + count + "))";
    if (name == "itemindex" || name == "row") return "((GRIDCTL_TASK_INDEX/" + count + "))";
    return "";
  }
  std::string value(const std::string& key) {
    const auto found = macros_.find(key);
    return found == macros_.end() ? "" : expand(found->second.text);
  }
  [[nodiscard]] Position at(const std::string& key) const {
    const auto found = macros_.find(key);
    return found == macros_.end() ? queue_at_ : found->second.at;
  }

  // The last name takes the rest of the item, as in condor and `read`.
  Result<void> put_command() {
    const std::string program = value("executable");
    if (program.empty()) return error_at(source_.file, queue_at_, "'executable' is missing");
    const bool here = program.find('/') == std::string::npos || !(program.starts_with('/') || program.starts_with('.'));
    std::string run;
    const std::string item = in_list_ ? k_item_name : "GRIDCTL_TASK_ITEM";
    if (names_.size() == 1) run = "condor_" + names_[0] + "=$" + item + "\n";
    if (names_.size() > 1) {
      run = "IFS=' ,\t' read -r";
      for (const std::string& name : names_) run += " condor_" + name;
      run += " <<END_OF_ITEM\n$" + item + "\nEND_OF_ITEM\n";
    }
    run += shell_word((here ? "./" : "") + program);
    for (const std::string& word : condor_words(value("arguments"))) run += " " + shell_word(word);
    put(job_, "run", text_node(run, at("executable")));
    return {};
  }

  // Without a unit, memory is in MiB, and disk in KiB.
  void put_resources() {
    Node resources;
    resources.at = queue_at_;
    const auto amount = [&](const std::string& key, const std::string& name, std::string_view unit) {
      std::string text = value(key);
      std::erase(text, ' ');
      if (!text.empty()) put(resources, name, text_node(text + (all_digits(text) ? std::string(unit) : ""), at(key)));
    };
    amount("request_cpus", "cpus", "");
    amount("request_memory", "memory", "MiB");
    amount("request_disk", "disk", "KiB");
    amount("request_gpus", "accelerators", "");
    if (!resources.keys.empty()) put(job_, "resources", std::move(resources));
  }

  Result<void> put_universe() {
    const std::string universe = lower(value("universe"));
    std::string image = value("docker_image");
    if (image.empty()) image = value("container_image");
    if (image.starts_with("docker://")) image.erase(0, 9);
    if (!image.empty()) put(job_, "image", text_node(image, at("docker_image")));
    if (universe.empty() || universe == "vanilla" || ((universe == "docker" || universe == "container") && !image.empty())) return {};
    return error_at(source_.file, at("universe"), "universe: only vanilla, docker and container are supported, got '" + excerpt(universe) + "'");
  }

  Result<void> put_environment(const std::string& text) {
    Node envs;
    envs.at = at("environment");
    const bool old = !trim(text).starts_with('"');
    for (const std::string& one : old ? words_of(text, ";") : condor_words(text)) {
      const std::size_t equals = one.find('=');
      if (equals == std::string::npos || one.find(k_value_begin) != std::string::npos)
        return error_at(source_.file, envs.at, "environment: expected NAME=VALUE, the same for all tasks");
      put(envs, std::string(trim(one.substr(0, equals))), text_node(one.substr(equals + 1), envs.at));
    }
    if (!envs.keys.empty()) put(job_, "envs", std::move(envs));
    return {};
  }

  static constexpr const char* k_item_name = "CONDOR_ITEM";
  SourceFile& source_;
  const std::vector<std::string> lines_;
  std::map<std::string, Macro, std::less<>> macros_;  // by name in small letters
  std::vector<std::string> names_;                    // that `queue` gives to parts of an item
  bool queued_ = false, in_list_ = false;
  int count_ = 1;
  Position queue_at_;
  Node job_, tasks_;
};

}  // namespace

// Returns true if the file has a line with `queue`, and one that sets `executable`.
bool is_condor(std::string_view text) {
  bool queue = false, executable = false;
  for (const std::string& line : split_lines(text)) {
    const std::string start = lower(trim(line).substr(0, 16));
    queue = queue || start == "queue" || start.starts_with("queue ");
    executable = executable || (start.starts_with("executable") && line.find('=') != std::string::npos);
  }
  return queue && executable;
}

Result<Node> job_of_condor(SourceFile& source, std::string_view text) { return Condor(source, text).job(); }

}  // namespace gridctl::config
