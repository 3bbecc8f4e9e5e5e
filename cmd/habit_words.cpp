// SPDX-License-Identifier: Apache-2.0
// Translates a complete line of another tool into our words.
#include "cmd/habit_words.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
using Words = std::vector<std::string>;

bool one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}
constexpr std::array<std::string_view, 12> k_tools{"sky",    "dstack", "vastai", "kubectl", "docker", "podman",
                                                   "nerdctl", "slurm",  "oc",     "modal",   "runpodctl", "k9s"};
constexpr std::array<std::string_view, 13> k_job_nouns{"pod", "pods", "po", "job", "jobs", "deployment", "deployments",
                                                      "instance", "instances", "run", "runs", "container", "cluster"};
constexpr std::array<std::string_view, 10> k_host_nouns{"node", "nodes", "no", "host", "hosts", "offers", "offer",
                                                       "machines", "machine", "gpus"};
constexpr std::array<std::string_view, 4> k_kube_verbs{"get", "describe", "delete", "destroy"};
// Lists options with a value, from sbatch, srun, sky and docker, that do not affect the program.
constexpr std::array<std::string_view, 18> k_with_value{"-f", "--file", "--filename", "-c", "--cluster", "-n", "-N", "-p",
                                                       "-t", "-J", "-o", "-e", "-A", "-v", "--volume", "-w", "-u", "--name"};

std::string quoted(const Words& words, std::size_t from = 0) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (text.empty() ? "" : " ") + shell_quote(words[i]);
  return text;
}

bool is_job_file(std::string_view word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

// Returns the value for --gpu from "gpu:a100:2", "gpu:2", "all", "a100:2".
std::string gpu_of(std::string_view text) {
  if (text.starts_with("gpu:")) text.remove_prefix(4);
  if (text.empty() || text == "gpu" || text == "all") return "1";
  return std::string(text);
}

// Holds the words before the program: our options for known ones; the rest is dropped.
struct ForeignLine {
  Words options;
  std::string image;  // of docker run
  Words program;
};
ForeignLine read_line(const Words& words, bool with_image) {
  ForeignLine line;
  std::size_t at = 0;
  for (; at < words.size() && words[at].starts_with('-') && words[at] != "--"; ++at) {
    std::string name = words[at], value;
    const std::size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const bool gpus = name == "--gpus" || name == "--gres" || name == "-G" || name == "--accelerators";
    const bool env = with_image && (name == "-e" || name == "--env");
    const bool array = !with_image && (name == "-a" || name == "--array");
    if (!joined && (gpus || env || array || one_of(name, k_with_value)) && at + 1 < words.size()) value = words[++at];
    if (gpus) line.options.insert(line.options.end(), {"--gpu", gpu_of(value)});
    if (array) line.options.insert(line.options.end(), {"--array", value});
    if (env) line.options.insert(line.options.end(), {"--env", value});
    if ((name == "-f" || name == "--file" || name == "--filename") && is_job_file(value)) line.program.push_back(value);
  }
  if (at < words.size() && words[at] == "--") ++at;
  if (with_image && at < words.size()) line.image = words[at++];
  line.program.insert(line.program.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return line;
}

// `batch`: the program is a script with directives, which is a job file here.
std::string submission(const Words& words, bool with_image = false, bool batch = false) {
  const bool file = !words.empty() && is_job_file(words[0]);
  ForeignLine line = read_line(words, with_image && !file);
  std::string text = "gridctl job submit";
  if (!line.options.empty()) text += " " + quoted(line.options);
  if (!line.image.empty()) text += " --image " + shell_quote(line.image);
  Words& program = line.program;
  if (program.empty()) return text + (line.options.empty() && line.image.empty() ? " FILE.yaml" : " -- COMMAND");
  const std::string first = program[0];
  const bool script = first.ends_with(".sh") || first.ends_with(".slurm") || first.ends_with(".sbatch") || first.ends_with(".job");
  if (batch && script && program.size() > 1) program.insert(program.begin() + 1, "--");
  if (is_job_file(program[0]) || (batch && script)) return text + " " + quoted(program);
  if (first.ends_with(".py")) program.insert(program.begin(), "python3");
  else if (script) program.insert(program.begin(), "bash");
  return text + " -- " + quoted(program);
}

// Handles `get pods`, `describe job X`, `delete -f FILE`, `destroy instance 42`.
std::string by_noun(const Words& words) {
  const std::string &verb = words[0], noun = words.size() > 1 ? words[1] : "", name = words.size() > 2 ? words[2] : "";
  const bool host = one_of(noun, k_host_nouns);
  if (!host && !one_of(noun, k_job_nouns)) return verb == "get" ? "gridctl job ls" : "";
  if (name.empty() || name.starts_with('-')) return host ? "gridctl provider ls" : "gridctl job ls";
  const bool away = verb == "delete" || verb == "destroy";
  return std::string("gridctl ") + (host ? "provider " : "job ") + (away ? (host ? "rm " : "cancel ") : "show ") +
         shell_quote(name);
}

std::string copy(const Words& words) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (const std::size_t colon = words[i].find(':'); colon != std::string::npos && colon > 0) {
      const std::string to = i + 1 < words.size() ? " " + shell_quote(words[i + 1]) : "";
      return "gridctl job pull " + shell_quote(words[i].substr(0, colon)) + to;
    }
  return "gridctl job pull JOB";
}
}  // namespace

bool is_other_tool(std::string_view word) { return one_of(word, k_tools); }

std::string said_here(const std::vector<std::string>& words, bool of_a_tool) {
  if (words.empty()) return "";
  const std::string& word = words[0];
  const Words rest(words.begin() + 1, words.end());
  const bool launches = word == "run" || word == "launch" || word == "apply" || word == "create" || word == "sbatch" ||
                        word == "srun" || word == "start";
  if (one_of(word, k_tools) && !of_a_tool && !rest.empty()) {
    if (const std::string said = said_here(rest, true); !said.empty())
      return word == "docker" || word == "podman" || word == "nerdctl"
                 ? (rest[0] == "run" ? submission({rest.begin() + 1, rest.end()}, true) : said)
                 : said;
    return "";
  }
  if (word == "create" && !rest.empty() && one_of(rest[0], k_job_nouns)) return "gridctl job submit FILE.yaml";
  if (word == "start" && rest.empty()) return "";
  if (launches) return submission(rest, word == "run" && !rest.empty() && rest[0].starts_with('-'), word == "sbatch");
  if (word == "salloc") {
    const std::string said = submission(rest);
    return said.ends_with("COMMAND") ? said : "gridctl job submit -- COMMAND";
  }
  if (word == "exec" && !rest.empty() && is_job_file(rest.back())) return "gridctl job submit " + shell_quote(rest.back());
  if (word == "stop" && !rest.empty()) return "gridctl job cancel " + quoted(rest);
  if (word == "show" && rest.size() == 1 && one_of(rest[0], k_job_nouns)) return "gridctl job ls";
  if (word == "search" || (word == "show" && rest.size() == 1 && one_of(rest[0], k_host_nouns))) return "gridctl provider ls";
  if (one_of(word, k_kube_verbs)) return by_noun(words);
  if (word == "cp" || word == "scp" || word == "rsync" || word == "download") return copy(words);
  if (word == "ssh") return rest.empty() ? "gridctl provider ls" : "gridctl provider show " + shell_quote(rest[0]);
  if (word == "top" || word == "htop" || word == "dashboard") return "gridctl job ls";
  if (word == "nvidia-smi") return "gridctl provider ls";
  if (of_a_tool && word == "logs") return "gridctl job logs " + quoted(rest);
  return "";
}

}  // namespace gridctl::cmd
