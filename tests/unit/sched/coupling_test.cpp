// SPDX-License-Identifier: Apache-2.0
#include "sched/coupling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sched/shell_words.hpp"

namespace gridctl::sched::coupling_test {
namespace {
using job::Backend;
using job::JobClass;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

job::Spec a_job(std::string run, int nodes = 1, int gpus = 0) {
  job::Spec spec;
  spec.name = "job";
  spec.run = std::move(run);
  spec.num_nodes = nodes;
  if (gpus > 0) spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, gpus, gpus}};
  return spec;
}
job::Spec a_bag(std::string run, int tasks) {
  job::Spec spec = a_job(std::move(run), 1, 1);
  spec.workload.tasks = tasks;
  return spec;
}
std::string told(const job::Spec& spec) {
  const Coupling coupling = classify(spec);
  return std::string(job::class_name(coupling.job_class)) + ": " + coupling.what + " (" + coupling.why + ")";
}

// The strategy table, row by row.

TEST(StrategyTable, PretrainingOfALargeModelIsTight) {
  const Coupling coupling = classify(a_job("torchrun --nproc-per-node 8 pretrain_gpt.py", 16, 8));
  EXPECT_EQ(coupling.kind, WorkKind::pretraining);
  EXPECT_EQ(coupling.job_class, JobClass::tight);
  EXPECT_FALSE(coupling.mixed_vendors);
  EXPECT_THAT(explain(coupling),
              ElementsAre("class tight: LLM pre-training (num_nodes is 16, torchrun in run, pretrain in run)",
                          "needs: NVLink or NVSwitch in the hosts, InfiniBand or RoCE between them; GPUs of one vendor",
                          "strategy: a gang of identical GPUs at one site, all or nothing"));
}

TEST(StrategyTable, CfdAndMolecularDynamicsAreTight) {
  EXPECT_EQ(told(a_job("mpirun -np 32 gmx_mpi mdrun -s run.tpr", 4, 8)),
            "tight: a simulation (CFD, molecular dynamics) (num_nodes is 4, mpirun in run, gmx_mpi mdrun in run)");
  EXPECT_EQ(told(a_job("simpleFoam -parallel", 4)),
            "tight: a simulation (CFD, molecular dynamics) (num_nodes is 4, simpleFoam in run)");
  EXPECT_EQ(told(a_job("gmx mdrun -ntmpi 4 -s run.tpr", 1, 4)),
            "tight: a simulation (CFD, molecular dynamics) (4 GPUs of a host, gmx mdrun in run)");
}

TEST(StrategyTable, FineTuningIsMediumAndStaysInOneHost) {
  const Coupling coupling = classify(a_job("accelerate launch finetune_lora.py --rank 8", 1, 4));
  EXPECT_EQ(coupling.kind, WorkKind::fine_tuning);
  EXPECT_EQ(coupling.job_class, JobClass::medium);
  EXPECT_THAT(explain(coupling), ElementsAre("class medium: fine-tuning (lora in run)",
                                             "needs: NVLink or PCIe between its GPUs; GPUs of one vendor",
                                             "strategy: 2 to 8 GPUs of one host"));
}

TEST(StrategyTable, BatchInferenceIsLoose) {
  EXPECT_EQ(told(a_bag("vllm run-batch -i in.jsonl -o out.jsonl --model m", 1'000'000)),
            "loose: batch inference (tasks is 1000000, vllm run-batch in run)");
  EXPECT_TRUE(classify(a_bag("python predict.py", 1000)).mixed_vendors);
}

TEST(StrategyTable, RenderingIsLooseWithATaskPerFrame) {
  const Coupling coupling = classify(a_bag("blender -b scene.blend -f $FRAME", 5000));
  EXPECT_EQ(coupling.job_class, JobClass::loose);
  EXPECT_EQ(coupling.strategy, "a task per frame");
  EXPECT_TRUE(coupling.mixed_vendors);
  EXPECT_EQ(coupling.why, "tasks is 5000, blender -b in run");
}

TEST(StrategyTable, HyperParameterSearchIsLoose) {
  EXPECT_EQ(told(a_bag("wandb agent lab/sweep/x1", 64)),
            "loose: hyper-parameter search (tasks is 64, wandb agent in run)");
  EXPECT_EQ(told(a_job("optuna create-study", 1, 1)), "loose: hyper-parameter search (optuna in run)");
  job::Spec spec = a_job("python search.py", 1, 1);
  spec.setup = "pip install -q 'ray[tune]==2.9' torch";
  EXPECT_EQ(told(spec), "loose: hyper-parameter search (ray[tune] in setup)");
}

TEST(StrategyTable, FederatedAndWanTrainingCoordinateRarely) {
  EXPECT_EQ(told(a_job("flwr run .", 1, 1)), "federated: federated or WAN training (flwr in run)");
  job::Spec spec = a_job("torchrun train.py", 4, 8);
  spec.workload.sync_every = 500;
  const Coupling coupling = classify(spec);
  EXPECT_EQ(coupling.job_class, JobClass::federated);
  EXPECT_TRUE(coupling.mixed_vendors);
  EXPECT_EQ(coupling.why, "workload.sync_every is 500");
  EXPECT_THAT(coupling.strategy, HasSubstr("rare coordination"));
}

TEST(StrategyTable, ServingIsAService) {
  EXPECT_EQ(told(a_job("vllm serve meta-llama/Llama-3-8B --port 8000", 1, 1)),
            "service: a service (vllm serve in run)");
  EXPECT_EQ(told(a_job("python -m uvicorn app:app", 1)), "service: a service (uvicorn in run)");
  EXPECT_EQ(told(a_job("text-generation-launcher --model-id x", 1, 2)),
            "service: a service (text-generation-launcher in run)");
}

// What the file says beats what its words say.

TEST(Classify, ObeysTheClassOfTheJobFile) {
  job::Spec spec = a_job("python train.py", 1, 8);
  EXPECT_EQ(told(spec), "medium: a job over several GPUs (8 GPUs of a host)");
  spec.workload.job_class = JobClass::tight;
  EXPECT_EQ(
      told(spec),
      "tight: a synchronous job over several hosts (class set in the job file; the command alone suggests medium: 8 GPUs of a "
      "host)");
  spec.workload.job_class = JobClass::medium;
  EXPECT_EQ(told(spec), "medium: a job over several GPUs (class set in the job file; the command agrees: 8 GPUs of a host)");
  spec.workload.job_class = JobClass::loose;
  EXPECT_EQ(classify(spec).kind, WorkKind::single);
  spec.workload.job_class = JobClass::service;
  EXPECT_EQ(classify(spec).kind, WorkKind::service);
  spec.workload.job_class = JobClass::federated;
  EXPECT_EQ(classify(spec).kind, WorkKind::federated);
  job::Spec bag = a_bag("./piece $N", 10);
  bag.workload.job_class = JobClass::loose;
  EXPECT_EQ(classify(bag).kind, WorkKind::bag);
}

TEST(Classify, KeepsTheKindWhenTheClassAgrees) {
  job::Spec spec = a_job("torchrun pretrain.py", 2, 8);
  spec.workload.job_class = JobClass::tight;
  EXPECT_EQ(classify(spec).kind, WorkKind::pretraining);
}

// Words are words, not letters in a row.

TEST(Classify, MatchesWordsNotSubstrings) {
  EXPECT_EQ(told(a_job("python exploration.py --colorado", 1, 1)),
            "loose: one process (one host, at most one GPU, nothing in the command suggests another class)");
  EXPECT_EQ(classify(a_job("./mytorchrun", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("echo torchrun vllm serve", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("# torchrun pretrain.py\npython a.py", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("python rerender.py", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("blender scene.blend", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("vllm bench latency", 1, 1)).kind, WorkKind::single);
}

TEST(Classify, TakesInstallingALauncherForNoLaunch) {
  job::Spec spec = a_job("python train.py", 1, 1);
  spec.setup = "pip install deepspeed vllm torchrun";
  EXPECT_EQ(classify(spec).kind, WorkKind::single);
  spec.setup = "pip install flwr==1.9";
  EXPECT_EQ(told(spec), "federated: federated or WAN training (flwr in setup)");
}

TEST(Classify, FindsLaunchersBehindWrappersAndInShells) {
  for (const char* run :
       {"torchrun train.py", "OMP_NUM_THREADS=8 torchrun train.py", "exec nohup /opt/venv/bin/torchrun train.py",
        "cd /x && torchrun train.py", "python3 -u -m torch.distributed.run train.py",
        "bash -c 'cd x; deepspeed train.py'", "timeout -k 5 1h srun python train.py",
        "uv run accelerate launch train.py", "set -e\ntime mpirun -np 8 ./a.out", "horovodrun -np 8 python train.py",
        "if true; then torchrun train.py; fi", "ray start --head"}) {
    EXPECT_EQ(classify(a_job(run, 1, 8)).kind, WorkKind::one_host) << run;
    EXPECT_THAT(classify(a_job(run, 1, 8)).why, MatchesRegex("8 GPUs of a host, [a-z. ]+ in run")) << run;
  }
}

// What could be one thing or another.

TEST(Classify, TakesWordsOfLooseWorkOnSeveralHostsForALaunchedGang) {
  EXPECT_EQ(classify(a_job("torchrun infer.py", 4, 8)).job_class, JobClass::tight);
  EXPECT_EQ(classify(a_job("torchrun --nnodes 4 train.py --lora", 4, 8)).kind, WorkKind::gang);
  EXPECT_EQ(classify(a_job("python infer.py", 4, 1)).kind, WorkKind::inference);
  EXPECT_EQ(classify(a_job("ray start --head; ray tune run", 4, 1)).kind, WorkKind::search);
  EXPECT_EQ(classify(a_job("ray start --head; vllm serve m", 2, 8)).kind, WorkKind::service);
}

TEST(Classify, TakesTasksForABagWhateverElseIsSaid) {
  EXPECT_EQ(told(a_bag("torchrun train.py", 10)), "loose: independent tasks (tasks is 10)");
  EXPECT_EQ(told(a_bag("flwr run .", 10)), "loose: independent tasks (tasks is 10)");
}

TEST(Classify, TakesOneProcessForLooseWhateverItTrains) {
  EXPECT_EQ(classify(a_job("python pretrain.py", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("gmx mdrun", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("torchrun train.py", 1, 1)).kind, WorkKind::single);
  EXPECT_EQ(classify(a_job("", 1, 0)).kind, WorkKind::single);
}

TEST(Classify, SeesWhichBackendTheWordsName) {
  EXPECT_EQ(classify(a_job("torchrun train.py --backend gloo", 2, 8)).named, Backend::gloo);
  EXPECT_EQ(classify(a_job("torchrun train.py --dist-backend=nccl", 2, 8)).named, Backend::nccl);
  EXPECT_EQ(classify(a_job("export NCCL_DEBUG=INFO; python train.py", 1, 2)).named, Backend::nccl);
  EXPECT_EQ(classify(a_job("python train.py --mpi=pmix", 1, 2)).named, Backend::automatic);
  job::Spec spec = a_job("python train.py", 1, 2);
  spec.envs = {{"BACKEND", "mpi"}};
  EXPECT_EQ(classify(spec).named, Backend::mpi);
  EXPECT_EQ(told(spec), "medium: a job over several GPUs (2 GPUs of a host, mpi in envs)");
}

TEST(ShellCommands, AreCutAsAShellWould) {
  const auto commands = shell_commands("A=1 B='x y' python -u \"my script.py\" a\\ b # no\n ls|wc -l;(true)");
  ASSERT_EQ(commands.size(), 4u);
  EXPECT_EQ(commands[0].program, "my script.py");
  EXPECT_THAT(commands[0].arguments, ElementsAre("a b"));
  EXPECT_EQ(commands[0].variables.at(1), (std::pair<std::string, std::string>{"B", "x y"}));
  EXPECT_EQ(commands[1].program, "ls");
  EXPECT_EQ(commands[2].program, "wc");
  EXPECT_EQ(commands[3].program, "true");
}

TEST(ShellCommands, SurviveAnyText) {
  for (const char* text : {"", "'", "\"\\", "\\", "((((", "bash -c", "bash -c 'bash -c torchrun'", "python",
                           "python -m", "= =a", "env", "export", "timeout", "\xff\xfe", "$(torchrun)"})
    for (const ShellCommand& command : shell_commands(text))
      EXPECT_TRUE(!command.program.empty() || !command.variables.empty()) << text;
}

TEST(Classify, SurvivesRandomTexts) {
  std::mt19937 random(2026);
  const std::vector<std::string> pieces{
      "torchrun ", "'",  "\"", "\\", "\n",          ";",       "|", "$(", ")", "bash -c ", "python -m ",
      "=",         "A=", "--", "-",  "vllm serve ", "export ", "#", " ",  "x", "\xff",     std::string(1, '\0')};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (unsigned n = random() % 40; n > 0; --n) text += pieces[random() % pieces.size()];
    EXPECT_FALSE(classify(a_job(text, 1 + static_cast<int>(random() % 2), 2)).why.empty()) << text;
  }
}

TEST(Classify, IsQuickOnLongTexts) {
  std::string text = "torchrun";
  while (text.size() < 250'000) text += " gmx mdrun";
  EXPECT_EQ(classify(a_job(text, 2)).kind, WorkKind::simulation);
  text.clear();
  while (text.size() < 250'000) text += "torchrun;";
  EXPECT_EQ(classify(a_job(text, 2)).kind, WorkKind::gang);
}

TEST(NameParts, AreWordsInLowerCase) {
  EXPECT_THAT(name_parts("/a/b/FineTune_LoRA-7b.py"), ElementsAre("finetune", "lora", "7b", "py"));
  EXPECT_THAT(name_parts("--use-lora=8"), ElementsAre("use", "lora"));
  EXPECT_TRUE(name_parts("--").empty());
  EXPECT_TRUE(name_parts("").empty());
}
}  // namespace
}  // namespace gridctl::sched::coupling_test
