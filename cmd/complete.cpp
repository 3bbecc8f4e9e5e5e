// SPDX-License-Identifier: Apache-2.0
#include "cmd/complete.hpp"

#include <utility>

#include "base/text.hpp"
#include "cmd/commands.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_jobs_max = 200;  // newest jobs offered; more is no help to a person

using Candidates = std::vector<std::pair<std::string, std::string>>;

// Holds the command line as far as it is understood.
struct Typed {
  std::vector<std::string> words;  // noun and verb
  const Command* command = nullptr;
  std::size_t positionals = 0;     // given before the current one
  const Option* awaits = nullptr;  // the option whose value is being typed
  std::optional<std::string> state;
  bool after_dashes = false;
};

const Option* find_option(const Command* command, std::string_view name) {
  for (const Option* option : options_of(command))
    if (name == "--" + std::string(option->name) || (option->letter != 0 && name == std::string("-") + option->letter))
      return option;
  return nullptr;
}

void take_word(Typed& typed, const std::string& word) {
  if (typed.command != nullptr) {
    ++typed.positionals;
    return;
  }
  typed.words.push_back(word);
  typed.command = find_command(typed.words[0], typed.words.size() > 1 ? typed.words[1] : "");
}

Typed understand(const std::vector<std::string>& words) {
  Typed typed;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") typed.after_dashes = true;
    if (typed.after_dashes) continue;
    if (!word.starts_with('-') || word == "-") {
      take_word(typed, word);
      continue;
    }
    if (word.starts_with("--state=")) typed.state = word.substr(8);
    const Option* option = find_option(typed.command, word);
    if (option == nullptr || option->value.empty()) continue;
    if (i + 2 == words.size()) typed.awaits = option;
    else if (option->name == "state") typed.state = words[i + 1];
    ++i;
  }
  return typed;
}

// Returns states of jobs that the command applies to; empty: all.
std::vector<job::JobState> fitting_states(const Command* command) {
  using enum job::JobState;
  if (command == nullptr || command->noun() != "job") return {};
  if (command->verb() == "cancel") return {pending, starting, running, recovering};
  if (command->verb() == "resume") return {succeeded, failed, cancelled};
  return {};
}

Candidates jobs(registry::JobRecords& registry, const Command* command, bool with_checkpoints,
                const std::string& typed) {
  Candidates found;
  if (const std::size_t at = typed.find('@'); with_checkpoints && at != std::string::npos && at > 0) {
    const Result<JobId> id = registry.resolve(typed.substr(0, at));
    if (!id) return {};
    Result<std::vector<registry::Checkpoint>> list = registry.checkpoints(*id);
    if (!list) return {};
    for (const registry::Checkpoint& checkpoint : *list)
      found.emplace_back(typed.substr(0, at + 1) + std::to_string(checkpoint.seq.value), format_size(checkpoint.bytes));
    return found;
  }
  found.emplace_back("@last", "the job submitted last");
  Result<std::vector<registry::JobRow>> list =
      registry.jobs({.states = fitting_states(command), .active_only = false, .limit = k_jobs_max});
  if (!list) return {};
  std::set<std::string> names;  // one name stands for the newest job of it; ids are for those who begin to type one
  for (const registry::JobRow& job : *list) {
    const std::string state(job::state_name(job.state));
    const bool newest = names.insert(job.name).second;
    if (newest) found.emplace_back(job.name, state);
    if (!newest || !typed.empty()) found.emplace_back(job.id.value, job.name + " " + state);
  }
  return found;
}

Candidates remotes(registry::CopyRecords& registry) {
  Candidates found;
  Result<std::vector<registry::Remote>> list = registry.remotes();
  if (!list) return {};
  for (const registry::Remote& remote : *list) found.emplace_back(remote.name, remote.url);
  return found;
}

Candidates offered(Context& context, const Typed& typed, Completion offer, std::string_view choices,
                   const std::string& current) {
  Candidates found;
  if (offer == Completion::file) return {{":file", ""}};
  if (offer == Completion::directory) return {{":directory", ""}};
  if (offer == Completion::choices)
    for (const std::string& choice : split(choices, '|')) found.emplace_back(choice, "");
  const bool from_state = offer == Completion::job || offer == Completion::checkpoint ||
                          offer == Completion::provider || offer == Completion::remote;
  if (!from_state) return found;
  context.state = state_directory(typed.state);
  Result<registry::Registry> registry = context.open_for_reading();
  if (!registry) return {};
  if (offer == Completion::remote) return remotes(*registry);
  if (offer != Completion::provider) return jobs(*registry, typed.command, offer == Completion::checkpoint, current);
  Result<std::vector<registry::Provider>> providers = registry->rows([](registry::Provider&) { return true; });
  if (!providers) return {};
  for (const registry::Provider& provider : *providers) found.emplace_back(provider.name.value, provider.address);
  return found;
}

Candidates options(const Command* command) {
  Candidates found;
  for (const Option* option : options_of(command)) found.emplace_back("--" + std::string(option->name), option->help);
  return found;
}

Candidates command_words(const Typed& typed) {
  Candidates found;
  if (typed.words.empty()) {
    for (const NounText& noun : nouns()) found.emplace_back(noun.noun, noun.summary);
    found.emplace_back("help", "help of a command");
  } else if (typed.words.size() == 1) {
    for (const Command* command : all_commands())
      if (command->noun() == typed.words[0] && !command->hidden) found.emplace_back(command->verb(), command->summary);
  }
  return found;
}

Candidates candidates(Context& context, const Typed& typed, const std::string& current) {
  if (typed.after_dashes) return {{":file", ""}};
  if (typed.awaits != nullptr) return offered(context, typed, typed.awaits->offer, typed.awaits->choices, current);
  if (current.starts_with("--") && current.find('=') != std::string::npos) {
    const std::size_t equals = current.find('=');
    const Option* option = find_option(typed.command, current.substr(0, equals));
    if (option == nullptr) return {};
    Candidates found = offered(context, typed, option->offer, option->choices, current.substr(equals + 1));
    for (auto& [candidate, text] : found)
      if (!candidate.starts_with(':')) candidate.insert(0, current.substr(0, equals + 1));
    return found;
  }
  if (current.starts_with('-')) return options(typed.command);
  if (typed.command == nullptr) return command_words(typed);
  const std::span<const Positional> known = typed.command->positionals;
  if (known.empty() || (typed.positionals >= known.size() && !known.back().many)) return {};
  const Positional& positional = known[std::min(typed.positionals, known.size() - 1)];
  return offered(context, typed, positional.choices.empty() ? positional.offer : Completion::choices,
                 positional.choices, current);
}
}  // namespace

int complete(Context& context, const std::vector<std::string>& words) {
  const std::string current = words.empty() ? std::string{} : words.back();
  for (const auto& [candidate, text] : candidates(context, understand(words), current))
    if (candidate.starts_with(':') || candidate.starts_with(current))
      context.print_line(sanitize(candidate) + (text.empty() ? "" : "\t" + sanitize(text)));
  return 0;
}

}  // namespace gridctl::cmd
