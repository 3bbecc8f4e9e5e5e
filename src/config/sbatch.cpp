// SPDX-License-Identifier: Apache-2.0
// Reads a Slurm batch script as the equivalent job file: `#SBATCH --array` makes a bag. Each option is supported,
// ignored with a warning that says why, or refused with what to write instead.
#include <algorithm>
#include <map>
#include <optional>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {

struct SbatchOption {
  char letter;
  std::string_view name;
  std::string_view ignored, refused;  // why
  bool has_value = true;
};
constexpr std::string_view k_gpus_elsewhere = "is not supported: write --gres=gpu:N";
constexpr std::string_view k_of_cluster = "gridctl chooses hosts by the job's needs; see constraints in gridctl-job(5)";
constexpr std::string_view k_output_kept = "gridctl keeps the output: gridctl job logs --task N";
constexpr std::string_view k_nobody_told = "gridctl sends no mail here; see notify in gridctl-job(5)";
constexpr int k_processes_max = 4096;
constexpr std::string_view k_one_process = "of more than 1 is not supported in a script: write 'num_nodes' and 'launcher' in a job file";
constexpr SbatchOption k_sbatch_options[] = {
    {'J', "job-name", "", ""},
    {'a', "array", "", ""},
    {'c', "cpus-per-task", "", ""},
    {0, "mem", "", ""},
    {0, "mem-per-cpu", "", ""},
    {0, "tmp", "", ""},
    {0, "gres", "", ""},
    {'G', "gpus", "", ""},
    {0, "gpus-per-node", "", ""},
    {0, "gpus-per-task", "", ""},
    {'t', "time", "", ""},
    {'D', "chdir", "", ""},
    {0, "export", "", ""},
    {'N', "nodes", "", ""},
    {'n', "ntasks", "", ""},
    {0, "ntasks-per-node", "", ""},
    {'o', "output", k_output_kept, ""},
    {'e', "error", k_output_kept, ""},
    {0, "open-mode", k_output_kept, ""},
    {0, "mail-type", k_nobody_told, ""},
    {0, "mail-user", k_nobody_told, ""},
    {'p', "partition", k_of_cluster, ""},
    {'q', "qos", k_of_cluster, ""},
    {'M', "clusters", k_of_cluster, ""},
    {'A', "account", "see owner in gridctl-job(5)", ""},
    {0, "comment", "gridctl does not use comments", ""},
    {'Q', "quiet", "gridctl prints only important messages", "", false},
    {0, "requeue", "a task whose host is lost always runs again", "", false},
    {0, "no-requeue", "a task whose host is lost always runs again", "", false},
    {0, "exclusive", "a task gets the processors, memory and GPUs that it requests", "", false},
    {'s', "oversubscribe", "a task gets the processors, memory and GPUs that it requests", "", false},
    {0, "nice", "see priority in gridctl-job(5)", "", false},
    {0, "priority", "see priority in gridctl-job(5)", ""},
    {'d', "dependency", "", "is not supported: submit the job after the other one has ended"},
    {'C', "constraint", "", "is not supported: write it under 'constraints' in a job file"},
    {'w', "nodelist", k_of_cluster, ""},
    {'x', "exclude", k_of_cluster, ""},
    {0, "gpus-per-socket", "", k_gpus_elsewhere},
    {0, "mem-per-gpu", "", "is not supported: write --mem"},
    {0, "cpus-per-gpu", "", "is not supported: write --cpus-per-task"},
    {'i', "input", "", "is not supported: let the program open the file"},
    {'L', "licenses", "", "is not supported"},
    {'b', "begin", "", "is not supported: submit the job when it should start"},
    {0, "wrap", "", "is not supported: write the command into the script"}};

struct SbatchAlias {
  std::string_view other, name;
};
constexpr SbatchAlias k_sbatch_aliases[] = {{"tasks", "ntasks"}, {"tasks-per-node", "ntasks-per-node"}, {"workdir", "chdir"}};

// Defines `module` for a script that loads modules, because hosts may have everything it needs without any.
constexpr std::string_view k_module = R"(command -v module > /dev/null || module() {
  echo "gridctl: this host has no environment modules: module $*" >&2
}
)";
// The program `srun` starts one process, as this function does; its own options add nothing.
constexpr std::string_view k_srun = R"(srun() {
  while case "$1" in -*) ;; *) false ;; esac; do
    case "$1" in
      --) shift; break ;;
      --*=*|--exclusive|--exact|--overlap|--unbuffered|--label|--verbose|--quiet|--pty|-[luvQKs]|-[A-Za-z]?*) shift ;;
      *) shift; [ $# = 0 ] || shift ;;
    esac
  done
  "$@"
}
)";

struct Given {
  std::string text;
  Position at;
};

// Parses "1-02:30:00", "02:30:00", "30:00", "90" (minutes), "2-12" (days and hours) into seconds.
std::optional<std::int64_t> seconds_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t days = 0;
  if (has_days && !parse_into(text.substr(0, dash), days)) return std::nullopt;
  std::vector<std::int64_t> parts;
  for (const std::string& part : split(std::string(has_days ? text.substr(dash + 1) : text), ':')) {
    std::int64_t number = 0;
    if (!all_digits(part) || part.size() > 9 || !parse_into(part, number)) return std::nullopt;
    parts.push_back(number);
  }
  if (parts.empty() || parts.size() > 3 || days < 0 || days > 100'000) return std::nullopt;
  // With days, the first number counts hours; without days, a single one counts minutes, and two are minutes and
  // seconds.
  static constexpr std::int64_t k_units[] = {3600, 60, 1};
  std::size_t unit = has_days || parts.size() == 3 ? 0 : 1;
  std::int64_t seconds = days * 86'400;
  for (const std::int64_t part : parts) seconds += part * k_units[unit++];
  return seconds;
}

class Sbatch {
 public:
  Sbatch(SourceFile& source, std::string_view text) : source_(source), text_(text), lines_(split_lines(text)) {}

  Result<Node> job() {
    TRY(check_shell());
    TRY(read());
    TRY(check_processes());
    Node job, resources, tasks;
    resources.at = tasks.at = job.at = {1, 1};
    if (const Given* name = find("job-name")) put(job, "name", text_node(to_name(name->text), name->at));
    TRY(put_amounts(resources));
    TRY(put_gpus(resources));
    if (!resources.keys.empty()) put(job, "resources", std::move(resources));
    const Given* array = find("array");
    if (array != nullptr) put(tasks, "array", text_node(array->text, array->at));
    TRY(put_time(array != nullptr ? tasks : job, array != nullptr ? "timeout" : "max_duration"));
    if (array != nullptr) put(job, "tasks", std::move(tasks));
    put_export(job);
    const Given* folder = find("chdir");
    put(job, "workdir", text_node(folder == nullptr ? "." : folder->text, folder == nullptr ? Position{} : folder->at));
    warn_of_modules();
    put(job, "run", text_node(script(), {1, 1}));
    return job;
  }

 private:
  [[nodiscard]] Error wrong(const Given& given, std::string_view name, const std::string& expected) const {
    return error_at(source_.file, given.at, "--" + std::string(name) + ": expected " + expected + ", got '" + excerpt(given.text) + "'");
  }
  [[nodiscard]] const Given* find(std::string_view name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
  }

  Result<void> check_shell() {
    const std::string first(trim(std::string_view(lines_[0]).substr(2)));
    const std::vector<std::string> words = split(first, ' ');
    std::string shell = words[0].substr(words[0].find_last_of('/') + 1);
    if (shell == "env" && words.size() > 1) shell = words[1];
    if (shell == "bash" || shell == "sh") return {};
    return error_at(source_.file, {1, 1}, "only scripts for sh and bash are supported, got '" + excerpt(first) +
                                              "': gridctl job submit --array LIST -- " + source_.file);
  }

  // Several processes mean more processors for the script, as long as nothing in it asks Slurm to start them.
  Result<void> check_processes() {
    for (const char* name : {"nodes", "ntasks", "ntasks-per-node"}) {
      const Given* given = find(name);
      if (given == nullptr || given->text == "1-1") continue;
      int count = 0;
      if (!all_digits(given->text) || !parse_into(given->text, count) || count < 1 || count > k_processes_max)
        return wrong(*given, name, "a number");
      if (count > 1 && (std::string_view(name) == "nodes" || text_.find("srun") != std::string_view::npos))
        return error_at(source_.file, given->at, "--" + std::string(name) + " " + std::string(k_one_process));
      processes_ = std::max(processes_, count);
    }
    return {};
  }

  // Like sbatch, reads options only before the first command.
  Result<void> read() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string line(trim(lines_[i]));
      if (line.empty()) continue;
      if (!line.starts_with('#')) {
        warn_of_late(i);
        break;
      }
      if (!line.starts_with("#SBATCH") || (line.size() > 7 && line[7] != ' ' && line[7] != '\t')) continue;
      TRY(read_options(line.substr(7), {static_cast<int>(i) + 1, 1}));
    }
    return {};
  }
  void warn_of_late(std::size_t from) {
    for (std::size_t i = from; i < lines_.size(); ++i)
      if (lines_[i].starts_with("#SBATCH "))
        source_.warn({static_cast<int>(i) + 1, 1},
                     "this line is ignored, as sbatch does: it comes after the first command");
  }

  Result<void> read_options(const std::string& line, Position here) {
    std::vector<std::string> words;
    for (std::string& word : split(line, ' ')) {
      for (const char quote : {'"', '\'', '\t'}) std::erase(word, quote);
      if (word.starts_with('#')) break;
      if (!word.empty()) words.push_back(std::move(word));
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool is_long = word.starts_with("--");
      const std::size_t equals = is_long ? word.find('=') : std::string::npos;
      std::string name = is_long ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : word.substr(0, 2);
      for (const SbatchAlias& alias : k_sbatch_aliases)
        if (is_long && name == alias.other) name = alias.name;
      const auto option = std::ranges::find_if(k_sbatch_options, [&](const SbatchOption& one) {
        return is_long ? one.name == name : word.size() > 1 && word[0] == '-' && one.letter == word[1];
      });
      if (option == std::end(k_sbatch_options)) {
        source_.warn(here, excerpt(word) + " is ignored: it has no meaning in gridctl");
        while (i + 1 < words.size() && !words[i + 1].starts_with('-')) ++i;
        continue;
      }
      std::string value;
      if (equals != std::string::npos) value = word.substr(equals + 1);
      else if (!is_long && word.size() > 2) value = word.substr(word[2] == '=' ? 3 : 2);
      else if (option->has_value && i + 1 < words.size()) value = words[++i];
      TRY(take(*option, {value, here}));
    }
    return {};
  }

  Result<void> take(const SbatchOption& option, Given given) {
    const std::string name = "--" + std::string(option.name);
    if (!option.refused.empty()) return error_at(source_.file, given.at, name + " " + std::string(option.refused));
    if (!option.ignored.empty()) source_.warn(given.at, name + " is ignored: " + std::string(option.ignored));
    else if (given.text.empty()) return wrong(given, option.name, "a value");
    else given_[std::string(option.name)] = std::move(given);
    return {};
  }

  // Slurm counts in MiB if there is no unit.
  Result<void> put_amounts(Node& resources) {
    const Given* cpus = find("cpus-per-task");
    int each = 1;
    if (cpus != nullptr && (!all_digits(cpus->text) || !parse_into(cpus->text, each) || each > k_processes_max))
      return wrong(*cpus, "cpus-per-task", "a number");
    each *= processes_;
    if (cpus != nullptr || processes_ > 1)
      put(resources, "cpus", text_node(std::to_string(each), cpus != nullptr ? cpus->at : Position{}));
    for (const auto& [name, key] : {std::pair{"mem", "memory"}, std::pair{"mem-per-cpu", "memory"}, std::pair{"tmp", "disk"}}) {
      const Given* given = find(name);
      if (given == nullptr || (given->text == "0" && std::string_view(name) == "mem")) continue;
      std::string_view text = given->text;
      if (text.ends_with('B') || text.ends_with('b')) text.remove_suffix(1);
      const char unit = text.empty() || is_digit(text.back()) ? 'M' : lower(text.substr(text.size() - 1))[0];
      if (!text.empty() && !is_digit(text.back())) text.remove_suffix(1);
      std::int64_t number = 0;
      const std::size_t power = std::string_view("kmgt").find(lower(std::string(1, unit))[0]);
      if (!all_digits(text) || text.size() > 9 || !parse_into(text, number) || power == std::string_view::npos)
        return wrong(*given, name, "a size such as 16G");
      if (std::string_view(name) == "mem-per-cpu") number *= each;
      put(resources, key, text_node(std::to_string(number) + (power == 0 ? "KiB" : power == 1 ? "MiB" : power == 2 ? "GiB" : "TiB"), given->at));
    }
    return {};
  }

  Result<void> put_gpus(Node& resources) {
    for (const char* name : {"gres", "gpus", "gpus-per-node", "gpus-per-task"}) {
      const Given* given = find(name);
      if (given == nullptr) continue;
      std::string text = given->text;
      if (std::string_view(name) == "gres") {
        if (text == "none") continue;
        if (text != "gpu" && !text.starts_with("gpu:")) return wrong(*given, name, "gpu:N or gpu:MODEL:N");
        text = text == "gpu" ? "1" : text.substr(4);
      }
      std::ranges::replace(text, '_', ' ');  // rtx_6000_ada
      put(resources, "accelerators", text_node(text, given->at));
      break;
    }
    return {};
  }

  Result<void> put_time(Node& into, const char* key) {
    const Given* given = find("time");
    if (given == nullptr || given->text == "0" || lower(given->text) == "infinite" || lower(given->text) == "unlimited") return {};
    const auto seconds = seconds_of(given->text);
    if (!seconds || *seconds < 1) return wrong(*given, "time", "a time such as 02:30:00 or 1-12:00:00");
    put(into, key, text_node(std::to_string(*seconds) + "s", given->at));
    return {};
  }

  void put_export(Node& job) {
    const Given* given = find("export");
    if (given == nullptr) return;
    Node envs;
    envs.at = given->at;
    for (const std::string& one : split(given->text, ',')) {
      const std::size_t equals = one.find('=');
      if (one == "NONE" || one == "NIL") continue;
      if (equals == std::string::npos)
        source_.warn(given->at, "--export=" + excerpt(one) + " is ignored: use --env NAME when you submit");
      else put(envs, one.substr(0, equals), text_node(one.substr(equals + 1), given->at));
    }
    if (!envs.keys.empty()) put(job, "envs", std::move(envs));
  }

  [[nodiscard]] bool loads_modules() const {
    return std::ranges::any_of(lines_, [](const std::string& line) { return trim(line).starts_with("module "); });
  }
  void warn_of_modules() {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (trim(lines_[i]).starts_with("module "))
        return source_.warn({static_cast<int>(i) + 1, 1},
                            "hosts may not have environment modules: provide missing software with --image, or with "
                            "setup in a job file");
  }

  [[nodiscard]] std::string script() const {
    std::string text = "export SLURM_SUBMIT_DIR=\"$PWD\" SLURM_JOB_ID=\"$GRIDCTL_JOB_ID\" SLURM_JOBID=\"$GRIDCTL_JOB_ID\" SLURM_NTASKS=" +
                       std::to_string(processes_);
    if (const Given* name = find("job-name")) text += " SLURM_JOB_NAME=" + shell_quote(name->text);
    if (const Given* cpus = find("cpus-per-task")) text += " SLURM_CPUS_PER_TASK=" + shell_quote(cpus->text);
    text += "\n";
    if (text_.find("srun") != std::string_view::npos) text += k_srun;
    if (loads_modules()) text += k_module;
    return text + std::string(text_);
  }

  SourceFile& source_;
  const std::string_view text_;
  const std::vector<std::string> lines_;
  std::map<std::string, Given, std::less<>> given_;
  int processes_ = 1;
};

}  // namespace

bool is_sbatch(std::string_view text) {
  return text.starts_with("#!") && (text.find("\n#SBATCH ") != std::string_view::npos || text.find("\n#SBATCH\t") != std::string_view::npos);
}

Result<Node> job_of_sbatch(SourceFile& source, std::string_view text) { return Sbatch(source, text).job(); }

}  // namespace gridctl::config
