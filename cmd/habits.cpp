// SPDX-License-Identifier: Apache-2.0
#include "cmd/habits.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/habit_words.hpp"
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

std::string joined(const std::vector<std::string>& words, std::size_t from) {
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
  if (is_other_tool(word) && arguments.size() > 1)
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
  if (!options.empty()) line += " " + joined(options, 0);
  for (const Positional& needed : command.positionals) {
    if (!needed.required) continue;
    line += " " + shell_quote(words[0]);
    words.erase(words.begin());
  }
  if (const auto script = os::read_file(words[0], k_script_read_max); script && script->find("\n#SBATCH") != std::string::npos)
    return make_error(Code::usage, "put the arguments of a batch script after --",
                      line + " " + shell_quote(words[0]) + " -- " + joined(words, 1));
  return make_error(Code::usage, "put the command to run after --", line + " -- " + joined(words, 0));
}

}  // namespace gridctl::cmd
