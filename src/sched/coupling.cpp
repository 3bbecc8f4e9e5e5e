// SPDX-License-Identifier: Apache-2.0
#include "sched/coupling.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sched/shell_words.hpp"

namespace gridctl::sched {

namespace {
using job::Backend;
using job::JobClass;

// Defines the strategy table.
struct Strategy {
  WorkKind kind;
  job::JobClass job_class;
  std::string_view what, needs;
  bool mixed_vendors;
  std::string_view strategy;
};

// Lists the clues in a job file. Several at once form a set of bits.
enum Clue : std::uint32_t {
  clue_tasks = 1 << 0,       // tasks: N
  clue_rare = 1 << 1,        // workload.sync_every > 1
  clue_nodes = 1 << 2,       // num_nodes > 1
  clue_gpus = 1 << 3,        // several GPUs of a host
  clue_launcher = 1 << 4,    // of processes that talk to each other
  clue_collective = 1 << 5,  // a library of collectives is named
  clue_federated = 1 << 6,
  clue_service = 1 << 7,
  clue_rendering = 1 << 8,
  clue_search = 1 << 9,
  clue_inference = 1 << 10,
  clue_simulation = 1 << 11,
  clue_pretraining = 1 << 12,
  clue_fine_tuning = 1 << 13,
};

// States where a word is searched for: as the program of a command (with more words among its arguments), as a part of
// a script's name, as a part of that or of an option's name, or among what a package manager installs.
enum class Where : std::uint8_t { program, script, name, package };

struct ClueWord {
  Clue clue;
  Where where;
  std::string_view words;  // of a program: "vllm serve"
};

// The first rule whose clues are all present determines the kind. The last has none.
struct KindRule {
  std::uint32_t clues;
  WorkKind kind;
};

constexpr std::string_view k_fabric = "NVLink or NVSwitch in the hosts, InfiniBand or RoCE between them";
constexpr std::string_view k_bus = "NVLink or PCIe between its GPUs";
constexpr std::string_view k_wan = "any link (WAN)";

constexpr std::array<Strategy, 12> k_strategies{{
    {WorkKind::pretraining, JobClass::tight, "LLM pre-training", k_fabric, false,
     "a gang of identical GPUs at one site, all or nothing"},
    {WorkKind::simulation, JobClass::tight, "a simulation (CFD, molecular dynamics)", k_fabric, false,
     "a gang of identical GPUs at one site, all or nothing"},
    {WorkKind::gang, JobClass::tight, "a synchronous job over several hosts", k_fabric, false,
     "a gang of identical GPUs at one site, all or nothing"},
    {WorkKind::fine_tuning, JobClass::medium, "fine-tuning", k_bus, false, "2 to 8 GPUs of one host"},
    {WorkKind::one_host, JobClass::medium, "a job over several GPUs", k_bus, false, "all its GPUs in one host"},
    {WorkKind::inference, JobClass::loose, "batch inference", k_wan, true, "tasks over any GPUs that are large enough"},
    {WorkKind::rendering, JobClass::loose, "rendering", k_wan, true, "a task per frame"},
    {WorkKind::search, JobClass::loose, "hyper-parameter search", k_wan, true, "trials as tasks, stopped early"},
    {WorkKind::bag, JobClass::loose, "independent tasks", k_wan, true, "each task on any GPU that is free"},
    {WorkKind::federated, JobClass::federated, "federated or WAN training", k_wan, true,
     "rare coordination: members compute alone and exchange data every few steps"},
    {WorkKind::service, JobClass::service, "a service", k_wan, true, "replicas behind one address"},
    {WorkKind::single, JobClass::loose, "one process", "no link to others", true, "any suitable host"},
}};

// The words of a row are separated by ", ".
constexpr ClueWord k_rows[] = {
    {clue_launcher, Where::program,
     "torchrun, torch.distributed.run, torch.distributed.launch, deepspeed, accelerate launch, mpirun, mpiexec, "
     "srun, horovodrun, colossalai run, composer, ray start, ray job"},
    {clue_pretraining, Where::script, "pretrain, pretraining"},
    {clue_pretraining, Where::program, "litgpt pretrain"},
    {clue_simulation, Where::program,
     "gmx mdrun, gmx_mpi mdrun, lmp, lmp_mpi, namd2, namd3, pmemd.cuda, pmemd.cuda.MPI, cp2k.psmp, pw.x, "
     "simpleFoam, pimpleFoam, interFoam, SU2_CFD, nekrs"},
    {clue_fine_tuning, Where::name, "lora, qlora, peft"},
    {clue_fine_tuning, Where::script, "sft, dpo, finetune, finetuning"},
    {clue_fine_tuning, Where::program,
     "litgpt finetune, tune run, llamafactory-cli train, axolotl train, axolotl.cli.train"},
    {clue_inference, Where::program, "vllm run-batch, vllm.entrypoints.openai.run_batch"},
    {clue_inference, Where::script, "inference, infer, predict, embed, transcribe"},
    {clue_rendering, Where::program,
     "blender -b, blender --background, kick, husk, mantra, redshiftCmdLine, povray, luxcoreconsole, aerender"},
    {clue_rendering, Where::script, "render"},
    {clue_search, Where::program, "optuna, wandb agent, ray tune, nnictl"},
    {clue_search, Where::package, "optuna, ray[tune], nni"},
    {clue_search, Where::script, "optuna, hpo"},
    {clue_service, Where::program,
     "vllm serve, vllm.entrypoints.openai.api_server, uvicorn, gunicorn, hypercorn, tritonserver, "
     "text-generation-launcher, sglang.launch_server, llama-server, ollama serve, torchserve, bentoml serve, "
     "serve run, trtllm-serve"},
    {clue_federated, Where::program,
     "flwr, flower-supernode, flower-superlink, flower-client-app, fedml, fx, nvflare, hivemind-server, hivemind-dht"},
    {clue_federated, Where::package, "flwr, fedml, hivemind, openfl, nvflare"},
    {clue_federated, Where::name, "diloco"},
    {clue_federated, Where::script, "hivemind, flwr, fedavg, federated"},
};

constexpr KindRule k_rules[] = {
    {clue_tasks | clue_rendering, WorkKind::rendering},
    {clue_tasks | clue_search, WorkKind::search},
    {clue_tasks | clue_inference, WorkKind::inference},
    {clue_tasks, WorkKind::bag},
    {clue_federated, WorkKind::federated},
    {clue_rare, WorkKind::federated},
    {clue_service, WorkKind::service},
    {clue_nodes | clue_search, WorkKind::search},
    {clue_nodes | clue_simulation, WorkKind::simulation},
    {clue_nodes | clue_pretraining, WorkKind::pretraining},
    {clue_nodes | clue_launcher, WorkKind::gang},
    {clue_rendering, WorkKind::rendering},
    {clue_search, WorkKind::search},
    {clue_nodes | clue_inference, WorkKind::inference},
    {clue_nodes, WorkKind::gang},
    {clue_gpus | clue_simulation, WorkKind::simulation},
    {clue_gpus | clue_pretraining, WorkKind::pretraining},
    {clue_fine_tuning, WorkKind::fine_tuning},
    {clue_gpus | clue_launcher, WorkKind::one_host},
    {clue_gpus | clue_collective, WorkKind::one_host},
    {clue_inference, WorkKind::inference},
    {clue_gpus, WorkKind::one_host},
    {0, WorkKind::single},
};
const Strategy& strategy_of(WorkKind kind) {
  const Strategy& found = k_strategies.at(static_cast<std::size_t>(kind));
  GRIDCTL_CHECK(found.kind == kind);  // in the order of the enum
  return found;
}

const std::vector<ClueWord>& clue_words() {
  static const std::vector<ClueWord> words = [] {
    std::vector<ClueWord> all;
    for (const ClueWord& row : k_rows)
      for (const auto word : std::views::split(row.words, std::string_view{", "}))
        all.push_back({row.clue, row.where, {word.begin(), word.end()}});
    return all;
  }();
  return words;
}

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

Evidence evidence_of(const job::Spec& spec) {
  Evidence evidence;
  const job::Workload& workload = spec.workload;
  if (workload.tasks > 0) evidence.add(clue_tasks, "tasks is " + std::to_string(workload.tasks));
  if (workload.sync_every > 1) evidence.add(clue_rare, "workload.sync_every is " + std::to_string(workload.sync_every));
  if (spec.num_nodes > 1) evidence.add(clue_nodes, "num_nodes is " + std::to_string(spec.num_nodes));
  if (const int gpus = job::gpus_most(spec); gpus > 1)
    evidence.add(clue_gpus, std::to_string(gpus) + " GPUs of a host");
  look_at_text(evidence, spec.run, "run");
  look_at_text(evidence, spec.setup, "setup");
  for (const auto& [name, value] : spec.envs) look_at_variable(evidence, name, value, "envs");
  return evidence;
}

const KindRule& rule_of(const Evidence& evidence) {
  return *std::ranges::find_if(k_rules, [&](const KindRule& rule) { return (evidence.clues & rule.clues) == rule.clues; });
}

// Returns the texts of the clues that decided, and of the launcher, which readers look for.
std::string why_of(const Evidence& evidence, std::uint32_t decided) {
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
  const KindRule& rule = rule_of(evidence);
  WorkKind kind = rule.kind;
  std::string why = why_of(evidence, rule.clues);
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
