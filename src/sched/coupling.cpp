// SPDX-License-Identifier: Apache-2.0
#include "sched/coupling.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "sched/coupling_table.hpp"
#include "sched/shell_words.hpp"

namespace gridctl::sched {

namespace {
using job::Backend;
using job::JobClass;

constexpr std::size_t k_commands_max = 1000;   // looked at of each text: the first ones say what a job is
constexpr std::size_t k_launched_within = 64;  // words after a launcher
constexpr std::array<std::string_view, 5> k_script_endings{".py", ".sh", ".ipynb", ".jl", ".R"};
constexpr std::array<std::string_view, 6> k_installers{"pip", "pip3", "uv", "conda", "mamba", "pixi"};
// Maps variables of the libraries themselves, by their prefixes.
constexpr std::array<std::pair<std::string_view, Backend>, 4> k_prefixes{
    {{"NCCL_", Backend::nccl}, {"GLOO_", Backend::gloo}, {"CCL_", Backend::oneccl}, {"OMPI_", Backend::mpi}}};

struct Evidence {
  std::uint32_t clues = 0;
  std::map<std::uint32_t, std::string> texts;  // of each clue, the first that was found
  Backend named = Backend::automatic;

  void add(std::uint32_t clue, const std::string& text) {
    clues |= clue;
    texts.emplace(clue, text);
  }
};

template <class List>
bool among(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool is_script(std::string_view word) {
  return std::ranges::any_of(k_script_endings, [&](std::string_view ending) { return word.ends_with(ending); });
}

// Lists names within a command that identify it, each made of parts.
struct Names {
  std::vector<std::string> scripts, options, packages;
};

void add_parts(std::vector<std::string>& to, std::string_view word) {
  for (std::string& part : name_parts(word)) to.push_back(std::move(part));
}

// "flwr[simulation]>=1.9" -> "flwr[simulation]", "flwr".
void add_package(std::vector<std::string>& to, const std::string& word) {
  const std::string named = lower(word.substr(0, word.find_first_of("=<>!~ ;@")));
  to.push_back(named);
  if (const std::size_t extra = named.find('['); extra != std::string::npos) to.push_back(named.substr(0, extra));
}

Names names_of(const ShellCommand& command) {
  Names names;
  if (is_script(command.program)) add_parts(names.scripts, command.program);
  const bool installs = among(k_installers, command.program) && among(command.arguments, "install");
  for (const std::string& word : command.arguments) {
    if (installs) add_package(names.packages, word);
    else if (is_script(word)) add_parts(names.scripts, word);
    else if (word.starts_with("--")) add_parts(names.options, word);
  }
  return names;
}

// Returns whether `word` is one of the arguments, or a part of one that is a plain name ("finetune_lora").
bool has_argument(const ShellCommand& command, std::string_view word) {
  return std::ranges::any_of(command.arguments, [&](const std::string& argument) {
    return argument == word || (!argument.starts_with('-') && among(name_parts(argument), word));
  });
}

bool runs(const ShellCommand& command, std::string_view words) {
  const std::vector<std::string> wanted = split(words, ' ');
  return command.program == wanted[0] && std::all_of(wanted.begin() + 1, wanted.end(), [&](const std::string& word) {
           return has_argument(command, word);
         });
}

bool shows(const ClueWord& word, const ShellCommand& command, const Names& names) {
  switch (word.where) {
    case Where::program: return runs(command, word.words);
    case Where::script: return among(names.scripts, word.words);
    case Where::name: return among(names.scripts, word.words) || among(names.options, word.words);
    case Where::package: return among(names.packages, word.words);
  }
  return false;
}

std::optional<Backend> backend_word(std::string_view word) {
  const auto backend = job::parse_backend(lower(word));
  if (!backend || *backend == Backend::automatic || *backend == Backend::none) return std::nullopt;
  return *backend;
}

void name_backend(Evidence& evidence, Backend backend, const std::string& where) {
  if (evidence.named == Backend::automatic) evidence.named = backend;
  evidence.add(clue_collective, std::string(job::backend_name(backend)) + " in " + where);
}

void look_at_variable(Evidence& evidence, const std::string& name, const std::string& value, const std::string& where) {
  for (const auto& [prefix, backend] : k_prefixes)
    if (name.starts_with(prefix)) name_backend(evidence, backend, where);
  if (const auto backend = backend_word(value)) name_backend(evidence, *backend, where);
}

// A launcher's program is among its arguments, after options whose meaning is unknown here.
void look_behind_launcher(Evidence& evidence, const ShellCommand& launcher, const std::string& where) {
  const std::size_t count = std::min(launcher.arguments.size(), k_launched_within);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& word = launcher.arguments[i];
    const auto after = launcher.arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto end = launcher.arguments.begin() + static_cast<std::ptrdiff_t>(count);
    const ShellCommand behind{{}, word.substr(word.find_last_of('/') + 1), {after, end}};
    for (const ClueWord& known : clue_words())
      if (known.where == Where::program && runs(behind, known.words))
        evidence.add(known.clue, std::string(known.words) + " in " + where);
  }
}

void look_at_command(Evidence& evidence, const ShellCommand& command, const std::string& where) {
  for (const auto& [name, value] : command.variables) look_at_variable(evidence, name, value, where);
  const Names names = names_of(command);
  bool launches = false;
  for (const ClueWord& word : clue_words()) {
    if (!shows(word, command, names)) continue;
    evidence.add(word.clue, std::string(word.words) + " in " + where);
    launches = launches || word.clue == clue_launcher;
  }
  if (launches) look_behind_launcher(evidence, command, where);
  for (const std::string& argument : command.arguments)
    if (const auto backend = backend_word(argument.substr(argument.find('=') + 1)))
      name_backend(evidence, *backend, where);
}

void look_at_text(Evidence& evidence, const std::string& text, const std::string& where) {
  std::size_t looked_at = 0;
  for (const ShellCommand& command : shell_commands(text)) {
    if (++looked_at > k_commands_max) return;
    look_at_command(evidence, command, where);
  }
}

int gpus_of_host(const job::Resources& resources) {
  int count = 0;
  for (const job::GpuRequest& gpu : resources.gpus) count = std::max(count, gpu.count_max);
  return count;
}

Evidence evidence_of(const job::Spec& spec) {
  Evidence evidence;
  const job::Workload& workload = spec.workload;
  if (workload.tasks > 0) evidence.add(clue_tasks, "tasks is " + std::to_string(workload.tasks));
  if (workload.sync_every > 1) evidence.add(clue_rare, "workload.sync_every is " + std::to_string(workload.sync_every));
  if (spec.num_nodes > 1) evidence.add(clue_nodes, "num_nodes is " + std::to_string(spec.num_nodes));
  if (const int gpus = gpus_of_host(spec.resources); gpus > 1)
    evidence.add(clue_gpus, std::to_string(gpus) + " GPUs of a host");
  look_at_text(evidence, spec.run, "run");
  look_at_text(evidence, spec.setup, "setup");
  for (const auto& [name, value] : spec.envs) look_at_variable(evidence, name, value, "envs");
  return evidence;
}

WorkKind kind_of(const Evidence& evidence) {
  for (const KindRule& rule : kind_rules())
    if ((evidence.clues & rule.clues) == rule.clues) return rule.kind;
  return WorkKind::single;
}

// Returns the texts of the clues that the rule of this kind needed, and of the launcher, which readers look for.
std::string why_of(const Evidence& evidence, WorkKind kind) {
  std::uint32_t decided = 0;
  for (const KindRule& rule : kind_rules())
    if (rule.kind == kind && (evidence.clues & rule.clues) == rule.clues) {
      decided = rule.clues;
      break;
    }
  if ((decided & (clue_nodes | clue_gpus)) != 0) decided |= evidence.clues & clue_launcher;
  std::vector<std::string> parts;
  for (const auto& [clue, text] : evidence.texts)
    if ((decided & clue) != 0) parts.push_back(text);
  if (parts.empty()) parts.emplace_back("one host, at most one GPU, nothing in the command suggests another class");
  return join(parts, ", ");
}

// Returns the kind of work that a class alone implies.
WorkKind kind_of(JobClass job_class, const Evidence& evidence) {
  switch (job_class) {
    case JobClass::tight: return WorkKind::gang;
    case JobClass::medium: return WorkKind::one_host;
    case JobClass::service: return WorkKind::service;
    case JobClass::federated: return WorkKind::federated;
    case JobClass::automatic:
    case JobClass::loose: break;
  }
  return (evidence.clues & clue_tasks) != 0 ? WorkKind::bag : WorkKind::single;
}
}  // namespace

Coupling classify(const job::Spec& spec) {
  const Evidence evidence = evidence_of(spec);
  const JobClass said = spec.workload.job_class;
  WorkKind kind = kind_of(evidence);
  std::string why = why_of(evidence, kind);
  if (said != JobClass::automatic) {
    const JobClass told = strategy_of(kind).job_class;
    why = told == said ? "class set in the job file; the command agrees: " + why
                       : "class set in the job file; the command alone suggests " + std::string(job::class_name(told)) +
                             ": " + why;
    if (told != said) kind = kind_of(said, evidence);
  }
  const Strategy& row = strategy_of(kind);
  return {kind,
          row.job_class,
          std::string(row.what),
          std::move(why),
          std::string(row.needs),
          row.mixed_vendors,
          std::string(row.strategy),
          evidence.named};
}

std::vector<std::string> explain(const Coupling& coupling) {
  std::string needs = "needs: " + coupling.needs;
  if (coupling.kind != WorkKind::single)
    needs += coupling.mixed_vendors ? "; GPUs of different vendors may be mixed" : "; GPUs of one vendor";
  return {
      "class " + std::string(job::class_name(coupling.job_class)) + ": " + coupling.what + " (" + coupling.why + ")",
      std::move(needs), "strategy: " + coupling.strategy};
}

}  // namespace gridctl::sched
