// SPDX-License-Identifier: Apache-2.0
#include "sched/coupling_table.hpp"

#include <array>
#include <ranges>

#include "base/check.hpp"

namespace gridctl::sched {

namespace {
using job::JobClass;

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
}  // namespace

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
std::span<const KindRule> kind_rules() { return k_rules; }

}  // namespace gridctl::sched
