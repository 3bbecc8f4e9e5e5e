// SPDX-License-Identifier: Apache-2.0
#include "cmd/habits.hpp"

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_script_read_max = 1 << 20;  // bytes of a script that is looked at
struct Alias {
  std::string_view noun, word, verb;  // noun empty: of every noun that has the verb
};
constexpr Alias k_aliases[] = {
    {"", "list", "ls"},          {"", "remove", "rm"},         {"", "delete", "rm"},        {"", "get", "show"},
    {"", "describe", "show"},    {"", "info", "show"},         {"job", "status", "show"},   {"job", "stop", "cancel"},
    {"job", "kill", "cancel"},   {"job", "run", "submit"},     {"job", "create", "submit"}, {"job", "launch", "submit"},
    {"job", "attach", "watch"},  {"job", "log", "logs"},      {"job", "download", "pull"},  {"job", "queue", "ls"},      {"job", "describe", "show"},
    {"job", "ssh", "shell"},
    {"provider", "add", "register"}, {"provider", "create", "register"}, {"provider", "test", "check"},
};

// Maps foreign words; {rest}: what follows the word.
struct Foreign {
  std::string_view word, instead;
};
constexpr Foreign k_commands[] = {
    {"queue", "gridctl job ls"},
    {"jobs", "gridctl job ls"},                 {"ps", "gridctl job ls"},
    {"squeue", "gridctl job ls"},               {"sacct", "gridctl job ls --all"},
    {"status", "gridctl job ls"},               {"scancel", "gridctl job cancel {rest}"},
    {"kill", "gridctl job cancel {rest}"},      {"cancel", "gridctl job cancel {rest}"},
    {"down", "gridctl job cancel {rest}"},      {"attach", "gridctl job watch {rest}"},
    {"tail", "gridctl job logs -f {rest}"},     {"sinfo", "gridctl provider ls"},
    {"offers", "gridctl provider ls"},          {"offer", "gridctl provider ls"},
    {"hosts", "gridctl provider ls"},           {"nodes", "gridctl provider ls"},
    {"gpus", "gridctl provider ls"},            {"providers", "gridctl provider ls"},
    {"host", "gridctl provider {rest}"},        {"node", "gridctl provider {rest}"},
    {"machine", "gridctl provider {rest}"},     {"fleet", "gridctl provider {rest}"},
    {"scontrol", "gridctl job show"},           {"checkpoints", "gridctl checkpoint ls {rest}"},
    {"serve", "gridctl daemon start"},          {"server", "gridctl daemon start"},
    {"list", "gridctl job ls"},                 {"ls", "gridctl job ls"},
};

struct ForeignOption {
  std::string_view option, instead;
};
constexpr ForeignOption k_options[] = {
    {"--time", "write max_duration: TIME in the job file"},
    {"--gres", "--gpu 2 for gres=gpu:2, --gpu A100:2 for gpu:a100:2"},
    {"--gpus", "--gpu SPEC"},
    {"--gpus-per-node", "--gpu SPEC"},
    {"--accelerators", "--gpu SPEC"},
    {"--partition", "--provider NAME, or constraints: in the job file"},
    {"--nodelist", "--provider NAME"},
    {"--exclude", "constraints: 'name notin [NAME]' in the job file"},
    {"--nodes", "num_nodes: N in the job file"},
    {"--num-nodes", "num_nodes: N in the job file"},
    {"--num-jobs", "num_jobs: N in the job file"},
    {"--ntasks", "tasks: N in the job file"},
    {"--cpus-per-task", "--cpus N"},
    {"--mem", "--memory GIB"},
    {"--job-name", "--name NAME"},
    {"--output", "gridctl job logs NAME shows the output of all attempts"},
    {"--error", "gridctl job logs NAME shows the output of all attempts"},
    {"--chdir", "--workdir DIR"},
    {"--requeue", "gridctl restarts a lost job automatically"},
    {"--account", "owner: NAME in the job file"},
    {"--qos", "--priority N"},
    {"--export", "--env K=V"},
    {"--infra", "--provider NAME, or constraints: in the job file"},
    {"--cloud", "--provider NAME, or constraints: in the job file"},
    {"--region", "constraints: {region: DE} in the job file"},
    {"--use-spot", "constraints: {class: market} in the job file"},
    {"--image-id", "--image IMAGE"},
    {"--volume", "file_mounts: in the job file"},
    {"--mount", "file_mounts: in the job file"},
    {"--follow", "this is the default without -d"},
    {"--namespace", "--state DIR keeps projects apart"},
};

std::string joined(const std::vector<std::string>& words, std::size_t from = 0) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (text.empty() ? "" : " ") + shell_quote(words[i]);
  return text;
}

std::string filled(std::string_view pattern, const std::string& rest) {
  std::string text(pattern);
  const std::size_t at = text.find("{rest}");
  if (at != std::string::npos) text.replace(at, 6, rest);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}
}  // namespace

const Command* command_by_habit(std::string_view noun, std::string_view verb) {
  if (const Command* command = find_command(noun, verb)) return command;
  for (const Alias& alias : k_aliases)
    if (alias.word == verb && (alias.noun.empty() || alias.noun == noun))
      if (const Command* command = find_command(noun, alias.verb)) return command;
  return nullptr;
}

namespace {
// Translates complete lines of Slurm, SkyPilot, dstack, Vast.ai, kubectl and docker into our words.
using Words = std::vector<std::string>;

const std::initializer_list<std::string_view> k_tools{"sky",    "dstack", "vastai", "kubectl", "docker", "podman",
                                                   "nerdctl", "slurm",  "oc",     "modal",   "runpodctl", "k9s"};
const std::initializer_list<std::string_view> k_job_nouns{"pod", "pods", "po", "job", "jobs", "deployment",
                                                            "deployments", "instance", "instances", "run", "runs",
                                                            "container", "cluster"};
const std::initializer_list<std::string_view> k_host_nouns{"node", "nodes", "no", "host", "hosts", "offers",
                                                             "offer", "machines", "machine", "gpus"};
const std::initializer_list<std::string_view> k_kube_verbs{"get", "describe", "delete", "destroy"};
// Lists options with a value, from sbatch, srun, sky and docker, that do not affect the program.
const std::initializer_list<std::string_view> k_with_value{
    "-f", "--file", "--filename", "-c", "--cluster", "-n", "-N", "-p", "-t", "-J", "-o", "-e", "-A", "-v",
    "--volume", "-w", "-u", "--name"};

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
    if (!joined && (gpus || env || array || is_one_of(name, k_with_value)) && at + 1 < words.size())
      value = words[++at];
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
  if (!line.options.empty()) text += " " + joined(line.options);
  if (!line.image.empty()) text += " --image " + shell_quote(line.image);
  Words& program = line.program;
  if (program.empty()) return text + (line.options.empty() && line.image.empty() ? " FILE.yaml" : " -- COMMAND");
  const std::string first = program[0];
  const bool script = first.ends_with(".sh") || first.ends_with(".slurm") || first.ends_with(".sbatch") || first.ends_with(".job");
  if (batch && script && program.size() > 1) program.insert(program.begin() + 1, "--");
  if (is_job_file(program[0]) || (batch && script)) return text + " " + joined(program);
  if (first.ends_with(".py")) program.insert(program.begin(), "python3");
  else if (script) program.insert(program.begin(), "bash");
  return text + " -- " + joined(program);
}

// Handles `get pods`, `describe job X`, `delete -f FILE`, `destroy instance 42`.
std::string by_noun(const Words& words) {
  const std::string &verb = words[0], noun = words.size() > 1 ? words[1] : "", name = words.size() > 2 ? words[2] : "";
  const bool host = is_one_of(noun, k_host_nouns);
  if (!host && !is_one_of(noun, k_job_nouns)) return verb == "get" ? "gridctl job ls" : "";
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
// `words`: what was typed after gridctl, from the first unknown word on. Returns the line to type instead, or empty.
// `of_a_tool`: the tool's own name came before it.
std::string said_here(const Words& words, bool of_a_tool = false) {
  if (words.empty()) return "";
  const std::string& word = words[0];
  const Words rest(words.begin() + 1, words.end());
  const bool launches = word == "run" || word == "launch" || word == "apply" || word == "create" || word == "sbatch" ||
                        word == "srun" || word == "start";
  if (is_one_of(word, k_tools) && !of_a_tool && !rest.empty()) {
    if (const std::string said = said_here(rest, true); !said.empty())
      return word == "docker" || word == "podman" || word == "nerdctl"
                 ? (rest[0] == "run" ? submission({rest.begin() + 1, rest.end()}, true) : said)
                 : said;
    return "";
  }
  if (word == "create" && !rest.empty() && is_one_of(rest[0], k_job_nouns)) return "gridctl job submit FILE.yaml";
  if (word == "start" && rest.empty()) return "";
  if (launches) return submission(rest, word == "run" && !rest.empty() && rest[0].starts_with('-'), word == "sbatch");
  if (word == "salloc") {
    const std::string said = submission(rest);
    return said.ends_with("COMMAND") ? said : "gridctl job submit -- COMMAND";
  }
  if (word == "exec" && !rest.empty() && is_job_file(rest.back())) return "gridctl job submit " + shell_quote(rest.back());
  if (word == "stop" && !rest.empty()) return "gridctl job cancel " + joined(rest);
  if (word == "show" && rest.size() == 1 && is_one_of(rest[0], k_job_nouns)) return "gridctl job ls";
  if (word == "search" || (word == "show" && rest.size() == 1 && is_one_of(rest[0], k_host_nouns)))
    return "gridctl provider ls";
  if (is_one_of(word, k_kube_verbs)) return by_noun(words);
  if (word == "cp" || word == "scp" || word == "rsync" || word == "download") return copy(words);
  if (word == "ssh") return rest.empty() ? "gridctl provider ls" : "gridctl provider show " + shell_quote(rest[0]);
  if (word == "top" || word == "htop" || word == "dashboard") return "gridctl job ls";
  if (word == "nvidia-smi") return "gridctl provider ls";
  if (of_a_tool && word == "logs") return "gridctl job logs " + joined(rest);
  return "";
}

// Handles `docker exec -it train bash`, `kubectl exec train -- nvidia-smi`.
std::string entering(std::vector<std::string> words) {
  std::erase(words, "--");
  words.erase(words.begin(), std::find_if(words.begin() + 1, words.end(), [](const auto& w) { return !w.starts_with('-'); }));
  if (words.empty()) return "gridctl job shell JOB";
  const bool shell = words.size() == 1 || (words.size() == 2 && (words[1].ends_with("bash") || words[1].ends_with("sh")));
  return "gridctl job " + (shell ? "shell " + shell_quote(words[0])
                                 : "exec " + shell_quote(words[0]) + " -- " + joined(words, 1));
}

std::optional<Error> meant_by(const std::vector<std::string>& arguments, bool of_a_tool) {
  if (arguments.empty()) return std::nullopt;
  const std::string& word = arguments[0];
  const std::string shown = "no command '" + sanitize(word) + "'";
  if (const std::string said = said_here(arguments); !said.empty())
    return make_error(Code::usage, shown + " here", said);
  if (is_one_of(word, k_tools) && arguments.size() > 1)
    if (auto meant = meant_by({arguments.begin() + 1, arguments.end()}, true))
      return make_error(Code::usage, shown + " here", meant->hint);
  if (word == "exec" || word == "shell") return make_error(Code::usage, shown + " here", entering(arguments));
  if (of_a_tool)
    for (const Foreign& foreign : k_commands)
      if (foreign.word == word)
        return make_error(Code::usage, shown + " here", filled(foreign.instead, joined(arguments, 1)));
  // A verb without its noun means jobs if several nouns have it.
  for (const std::string_view noun : {"job", "provider", "checkpoint", "daemon"})
    if (const Command* command = find_command(noun, word); command != nullptr && !command->hidden && word != "ls")
      return make_error(Code::usage, shown + ": the noun is missing",
                        filled("gridctl " + std::string(command->name) + " {rest}", joined(arguments, 1)));
  for (const Foreign& foreign : k_commands)
    if (foreign.word == word)
      return make_error(Code::usage, shown + " here", filled(foreign.instead, joined(arguments, 1)));
  return std::nullopt;
}

}  // namespace

std::optional<Error> foreign_command(const std::vector<std::string>& arguments) { return meant_by(arguments, false); }

std::string foreign_option(const Command& command, std::string_view option) {
  if (command.noun() != "job") return {};
  for (const ForeignOption& foreign : k_options)
    if (foreign.option == option) return std::string(foreign.instead);
  return {};
}

std::optional<Error> missing_dashes(const Command& command, const Parsed& parsed,
                                    const std::vector<std::string>& arguments) {
  if (command.tail.empty() || parsed.has_command || parsed.positionals.size() <= command.positionals.size())
    return std::nullopt;
  const auto first = std::ranges::find(arguments, parsed.positionals[0]);
  std::vector<std::string> options, words(first, arguments.end());
  for (auto at = arguments.begin(); at != first; ++at)
    if (*at != command.noun() && *at != command.verb()) options.push_back(*at);
  std::string line = "gridctl " + std::string(command.name);
  if (!options.empty()) line += " " + joined(options);
  for (const Positional& needed : command.positionals) {
    if (!needed.required) continue;
    line += " " + shell_quote(words[0]);
    words.erase(words.begin());
  }
  if (const auto script = os::read_file(words[0], k_script_read_max); script && script->find("\n#SBATCH") != std::string::npos)
    return make_error(Code::usage, "put the arguments of a batch script after --",
                      line + " " + shell_quote(words[0]) + " -- " + joined(words, 1));
  return make_error(Code::usage, "put the command to run after --", line + " -- " + joined(words));
}

}  // namespace gridctl::cmd
