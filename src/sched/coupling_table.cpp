// SPDX-License-Identifier: Apache-2.0
#include "sched/coupling_table.hpp"

#include <array>

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

constexpr ClueWord k_words[] = {
    {clue_launcher, Where::program, "torchrun"},
    {clue_launcher, Where::program, "torch.distributed.run"},
    {clue_launcher, Where::program, "torch.distributed.launch"},
    {clue_launcher, Where::program, "deepspeed"},
    {clue_launcher, Where::program, "accelerate launch"},
    {clue_launcher, Where::program, "mpirun"},
    {clue_launcher, Where::program, "mpiexec"},
    {clue_launcher, Where::program, "srun"},
    {clue_launcher, Where::program, "horovodrun"},
    {clue_launcher, Where::program, "colossalai run"},
    {clue_launcher, Where::program, "composer"},
    {clue_launcher, Where::program, "ray start"},
    {clue_launcher, Where::program, "ray job"},

    {clue_pretraining, Where::script, "pretrain"},
    {clue_pretraining, Where::script, "pretraining"},
    {clue_pretraining, Where::program, "litgpt pretrain"},

    {clue_simulation, Where::program, "gmx mdrun"},
    {clue_simulation, Where::program, "gmx_mpi mdrun"},
    {clue_simulation, Where::program, "lmp"},
    {clue_simulation, Where::program, "lmp_mpi"},
    {clue_simulation, Where::program, "namd2"},
    {clue_simulation, Where::program, "namd3"},
    {clue_simulation, Where::program, "pmemd.cuda"},
    {clue_simulation, Where::program, "pmemd.cuda.MPI"},
    {clue_simulation, Where::program, "cp2k.psmp"},
    {clue_simulation, Where::program, "pw.x"},
    {clue_simulation, Where::program, "simpleFoam"},
    {clue_simulation, Where::program, "pimpleFoam"},
    {clue_simulation, Where::program, "interFoam"},
    {clue_simulation, Where::program, "SU2_CFD"},
    {clue_simulation, Where::program, "nekrs"},

    {clue_fine_tuning, Where::name, "lora"},
    {clue_fine_tuning, Where::name, "qlora"},
    {clue_fine_tuning, Where::name, "peft"},
    {clue_fine_tuning, Where::script, "sft"},
    {clue_fine_tuning, Where::script, "dpo"},
    {clue_fine_tuning, Where::script, "finetune"},
    {clue_fine_tuning, Where::script, "finetuning"},
    {clue_fine_tuning, Where::program, "litgpt finetune"},
    {clue_fine_tuning, Where::program, "tune run"},
    {clue_fine_tuning, Where::program, "llamafactory-cli train"},
    {clue_fine_tuning, Where::program, "axolotl train"},
    {clue_fine_tuning, Where::program, "axolotl.cli.train"},

    {clue_inference, Where::program, "vllm run-batch"},
    {clue_inference, Where::program, "vllm.entrypoints.openai.run_batch"},
    {clue_inference, Where::script, "inference"},
    {clue_inference, Where::script, "infer"},
    {clue_inference, Where::script, "predict"},
    {clue_inference, Where::script, "embed"},
    {clue_inference, Where::script, "transcribe"},

    {clue_rendering, Where::program, "blender -b"},
    {clue_rendering, Where::program, "blender --background"},
    {clue_rendering, Where::program, "kick"},
    {clue_rendering, Where::program, "husk"},
    {clue_rendering, Where::program, "mantra"},
    {clue_rendering, Where::program, "redshiftCmdLine"},
    {clue_rendering, Where::program, "povray"},
    {clue_rendering, Where::program, "luxcoreconsole"},
    {clue_rendering, Where::program, "aerender"},
    {clue_rendering, Where::script, "render"},

    {clue_search, Where::program, "optuna"},
    {clue_search, Where::program, "wandb agent"},
    {clue_search, Where::program, "ray tune"},
    {clue_search, Where::program, "nnictl"},
    {clue_search, Where::package, "optuna"},
    {clue_search, Where::package, "ray[tune]"},
    {clue_search, Where::package, "nni"},
    {clue_search, Where::script, "optuna"},
    {clue_search, Where::script, "hpo"},

    {clue_service, Where::program, "vllm serve"},
    {clue_service, Where::program, "vllm.entrypoints.openai.api_server"},
    {clue_service, Where::program, "uvicorn"},
    {clue_service, Where::program, "gunicorn"},
    {clue_service, Where::program, "hypercorn"},
    {clue_service, Where::program, "tritonserver"},
    {clue_service, Where::program, "text-generation-launcher"},
    {clue_service, Where::program, "sglang.launch_server"},
    {clue_service, Where::program, "llama-server"},
    {clue_service, Where::program, "ollama serve"},
    {clue_service, Where::program, "torchserve"},
    {clue_service, Where::program, "bentoml serve"},
    {clue_service, Where::program, "serve run"},
    {clue_service, Where::program, "trtllm-serve"},

    {clue_federated, Where::program, "flwr"},
    {clue_federated, Where::program, "flower-supernode"},
    {clue_federated, Where::program, "flower-superlink"},
    {clue_federated, Where::program, "flower-client-app"},
    {clue_federated, Where::program, "fedml"},
    {clue_federated, Where::program, "fx"},
    {clue_federated, Where::program, "nvflare"},
    {clue_federated, Where::program, "hivemind-server"},
    {clue_federated, Where::program, "hivemind-dht"},
    {clue_federated, Where::package, "flwr"},
    {clue_federated, Where::package, "fedml"},
    {clue_federated, Where::package, "hivemind"},
    {clue_federated, Where::package, "openfl"},
    {clue_federated, Where::package, "nvflare"},
    {clue_federated, Where::name, "diloco"},
    {clue_federated, Where::script, "hivemind"},
    {clue_federated, Where::script, "flwr"},
    {clue_federated, Where::script, "fedavg"},
    {clue_federated, Where::script, "federated"},
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

std::span<const ClueWord> clue_words() { return k_words; }
std::span<const KindRule> kind_rules() { return k_rules; }

}  // namespace gridctl::sched
