// SPDX-License-Identifier: Apache-2.0
// Gangs as hosts see them: several ranks of one host, and several hosts (agents with folders of their own) that meet at
// a rendezvous. What needs PyTorch or MPI is skipped where the machine has none; $GRIDCTL_TEST_PYTHON names a Python
// with PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/text.hpp"
#include "integration/agent_client.hpp"
#include "integration/engine_here.hpp"
#include "job/rank_start.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/insight.hpp"

namespace gridctl::testing::ranks_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using wire::AttemptPhase;
using wire::EndReason;

// A host of its own: folders, ledger, agent.
struct GangHost {
  explicit GangHost(const EngineHere& engine) {
    host.home = folder / "home";
    host.leases = folder / "leases";
    host.environment = engine.environment;
  }
  TempDir folder;
  AgentHost host;
  std::unique_ptr<AgentClient> agent;
};

class Ranks : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (!engine_here(GetParam()).problem.empty()) GTEST_SKIP() << engine_here(GetParam()).problem;
    for (int i = 0; i < 2; ++i) {
      hosts_.push_back(std::make_unique<GangHost>(engine_here(GetParam())));
      hosts_.back()->agent = std::make_unique<AgentClient>(hosts_.back()->host, controller_);
    }
  }
  void TearDown() override {
    for (const auto& [host, spec] : started_) {
      (void)hosts_[host]->agent->stop(spec, {});
      (void)hosts_[host]->agent->await_end(spec);
      EXPECT_THAT(hosts_[host]->agent->clean(spec), IsOk());
    }
  }

  [[nodiscard]] wire::AttemptSpec spec(const std::string& launcher, const std::string& run, std::size_t hosts,
                                       std::uint32_t ranks) const {
    wire::AttemptSpec spec;
    spec.job = {"job" + id_};
    spec.job_name = "train";
    spec.epoch = Epoch{1};
    spec.engine = GetParam();
    if (GetParam() != EngineKind::process) spec.image = "gridctl-test:1";
    spec.run = run;
    spec.checkpoints = false;
    spec.stop_grace = std::chrono::seconds{5};
    spec.gang.emplace();
    spec.gang->launcher = launcher;
    spec.gang->port = static_cast<std::uint16_t>(job::gang_port(spec.job, spec.epoch));
    spec.gang->ports = job::k_gang_ports;
    spec.gang->token.bytes.fill(std::byte{7});
    const char* names[] = {"ada", "bob"};
    for (std::size_t i = 0; i < hosts; ++i)
      spec.gang->members.push_back({names[i], "127.0.0." + std::to_string(i + 1), ranks});
    return spec;
  }
  void start(std::size_t host, const wire::AttemptSpec& spec) {
    started_.emplace_back(host, spec);
    ASSERT_THAT(hosts_[host]->agent->start(spec), IsOk());
  }
  // On as many hosts as the gang has; the statuses in the order of the hosts.
  std::vector<wire::AttemptStatus> run_gang(wire::AttemptSpec spec, Duration timeout = std::chrono::seconds{60}) {
    for (std::uint32_t i = 0; i < spec.gang->members.size(); ++i) {
      spec.gang->node_rank = i;
      start(i, spec);
    }
    std::vector<wire::AttemptStatus> statuses;
    for (std::size_t i = 0; i < spec.gang->members.size(); ++i)
      statuses.push_back(hosts_[i]->agent->await_end(spec, timeout));
    return statuses;
  }
  [[nodiscard]] std::string log(std::size_t host, const wire::AttemptSpec& spec) {
    return hosts_[host]->agent->log(spec);
  }

  std::string id_ = os::random_id(10);
  ControllerId controller_{os::random_id(26)};
  std::vector<std::unique_ptr<GangHost>> hosts_;
  std::vector<std::pair<std::size_t, wire::AttemptSpec>> started_;
};

const auto k_engine_of = [](const auto& test) { return std::string(engine_name(test.param)); };

std::multiset<std::string> lines_of(const std::string& text) {
  const auto lines = split_lines(text);
  return {lines.begin(), lines.end()};
}

TEST_P(Ranks, OfOneHostEachHaveTheirOwnVariablesAndTheirLinesALabel) {
  auto job = spec("torchrun", "echo $RANK/$WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE at $MASTER_ADDR", 1, 3);
  EXPECT_EQ(run_gang(job)[0].exit_code, 0);
  EXPECT_EQ(lines_of(log(0, job)), (std::multiset<std::string>{"[rank 0] 0/3 local 0 of 3 at 127.0.0.1",
                                                               "[rank 1] 1/3 local 1 of 3 at 127.0.0.1",
                                                               "[rank 2] 2/3 local 2 of 3 at 127.0.0.1"}));
}

TEST_P(Ranks, OfSeveralHostsAreCountedThrough) {
  auto job = spec("torchrun", "echo $RANK of node $GRIDCTL_NODE_RANK", 2, 2);
  const auto ends = run_gang(job);
  EXPECT_EQ(ends[0].exit_code, 0) << ends[0].detail;
  EXPECT_EQ(ends[1].exit_code, 0) << ends[1].detail;
  EXPECT_EQ(lines_of(log(0, job)), (std::multiset<std::string>{"[rank 0] 0 of node 0", "[rank 1] 1 of node 0"}));
  EXPECT_EQ(lines_of(log(1, job)), (std::multiset<std::string>{"[rank 2] 2 of node 1", "[rank 3] 3 of node 1"}));
}

TEST_P(Ranks, OneThatFailsEndsTheOthersOfItsHostAndIsNamed) {
  auto job = spec("torchrun", "[ $RANK = 2 ] && { sleep 0.3; exit 7; }; sleep 600", 1, 4);
  const auto end = run_gang(job)[0];
  EXPECT_EQ(end.end, EndReason::exited);
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(end.detail, "rank 2 failed first");
}

TEST_P(Ranks, OneThatIgnoresTermIsKilledWhenAnotherHasFailed) {
  auto job = spec("torchrun", "[ $RANK = 1 ] && { sleep 0.3; exit 3; }; trap '' TERM; while :; do sleep 1; done", 1, 2);
  EXPECT_EQ(run_gang(job, std::chrono::seconds{30})[0].exit_code, 3);
}

TEST_P(Ranks, ThatEndWellWaitForEachOther) {
  auto job = spec("torchrun", "sleep 0.$RANK; echo end $RANK", 1, 3);
  EXPECT_EQ(run_gang(job)[0].exit_code, 0);
  EXPECT_EQ(lines_of(log(0, job)).size(), 3u);
}

TEST_P(Ranks, ThatAreStoppedGetTheirGrace) {
  auto job = spec("torchrun", "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done", 1, 2);
  start(0, job);
  hosts_[0]->agent->await(job, [&](const wire::AttemptStatus&) {
    return lines_of(log(0, job)).count("[rank 0] ready") + lines_of(log(0, job)).count("[rank 1] ready") == 2;
  });
  ASSERT_THAT(hosts_[0]->agent->stop(job, std::chrono::seconds{5}), IsOk());
  EXPECT_EQ(hosts_[0]->agent->await_end(job).end, EndReason::stopped);
  EXPECT_THAT(log(0, job), HasSubstr("[rank 0] saved"));
  EXPECT_THAT(log(0, job), HasSubstr("[rank 1] saved"));
}

TEST_P(Ranks, MuchOutputOfAllRanksArrivesWholeAndInOrder) {
  auto job = spec("torchrun", "for i in $(seq 20000); do echo line $i of $RANK; done", 1, 3);
  EXPECT_EQ(run_gang(job)[0].exit_code, 0);
  std::map<std::string, int> next;
  for (const std::string& line : split_lines(log(0, job))) {
    const std::string label = line.substr(0, line.find(']') + 1);
    EXPECT_EQ(line, label + " line " + std::to_string(++next[label]) + " of " + label.substr(6, 1));
  }
  EXPECT_EQ(next, (std::map<std::string, int>{{"[rank 0]", 20000}, {"[rank 1]", 20000}, {"[rank 2]", 20000}}));
}

TEST_P(Ranks, APlainJobOfSeveralHostsSeesTheGangAndNoLauncher) {
  auto job = spec("plain",
                  "env | grep -E '^(RANK|WORLD_SIZE|MASTER_ADDR|SLURM_|OMPI_COMM)'; "
                  "echo $GRIDCTL_NODE_RANK of $GRIDCTL_NUM_NODES; echo $GRIDCTL_NODE_IPS; hostname",
                  2, 1);
  const auto ends = run_gang(job);
  EXPECT_EQ(ends[1].exit_code, GetParam() == EngineKind::process ? 0 : ends[1].exit_code);
  EXPECT_THAT(log(1, job), HasSubstr("[rank 1] 1 of 2\n[rank 1] 127.0.0.1 127.0.0.2\n"));
  EXPECT_THAT(log(1, job), Not(HasSubstr("SLURM_")));
}

TEST_P(Ranks, WhereEachOneStandsIsTold) {
  auto job = spec("torchrun", "exec sleep 600", 1, 2);
  start(0, job);
  hosts_[0]->agent->await(job, [](const wire::AttemptStatus& status) { return status.phase == AttemptPhase::running; });
  AgentClient& agent = *hosts_[0]->agent;
  const BootTime deadline = os::system_clock().boot() + std::chrono::seconds{30};
  std::string text;
  const auto lacks = [&text](const char* words) { return text.find(words) == std::string::npos; };
  // A process that is becoming another program shows its environment, and thus its rank, a moment later.
  for (int tries = 0; tries < 100 && (lacks("rank 0, process") || lacks("rank 1, process") || lacks("state S")); ++tries) {
    ASSERT_THAT(agent.call(wire::encode(wire::StacksRequest{job.job, job.epoch})), IsOk());
    const auto data = agent.receive(deadline);
    ASSERT_THAT(data, IsOk());
    text = data->payload;
    ASSERT_THAT(agent.receive(deadline), IsOk());  // the end record
    os::pause_for(std::chrono::milliseconds{100});  // the shell becomes sleep
  }
  EXPECT_THAT(text, HasSubstr("rank 0, process"));
  EXPECT_THAT(text, HasSubstr("sleep 600"));
  EXPECT_THAT(text, HasSubstr("state S (sleeping)"));
}

INSTANTIATE_TEST_SUITE_P(Engines, Ranks, ::testing::Values(EngineKind::process, EngineKind::podman, EngineKind::docker),
                         k_engine_of);

// --- Real frameworks, as plain processes ---------------------------------------------------------------------------

class Frameworks : public Ranks {
 protected:
  [[nodiscard]] static std::string python() { return os::environment("GRIDCTL_TEST_PYTHON").value_or("python3"); }
  static bool works(const std::string& command) {
    os::RunOptions options;
    options.timeout = std::chrono::seconds{60};
    const auto outcome = os::run({"sh", "-c", command}, options);
    return outcome && outcome->status.success();
  }
  std::string write(const std::string& name, const std::string& text) {
    const os::Path file = hosts_[0]->folder / name;
    std::ofstream(file) << text;
    return file.string();
  }
};

constexpr const char* k_ddp = R"(
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(rank)
for step in range(20):
    x = torch.randn(16, 8, generator=generator)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print("sum %d/%d %.6f" % (rank, world, sum(p.sum().item() for p in model.parameters())), flush=True)
)";

// "sum 0/4 1.234567" of each rank.
std::set<std::string> sums_in(const std::string& log) {
  std::set<std::string> sums;
  for (const std::string& line : split_lines(log))
    if (const auto at = line.find("sum "); at != std::string::npos) sums.insert(line.substr(line.rfind(' ') + 1));
  return sums;
}

TEST_P(Frameworks, PytorchTrainsWithFourRanksOnTwoHosts) {
  if (!works(python() + " -c 'import torch.distributed'")) GTEST_SKIP() << python() << " has no PyTorch";
  auto job = spec("torchrun", python() + " " + write("ddp.py", k_ddp), 2, 2);
  const auto ends = run_gang(job, std::chrono::minutes{3});
  const std::string all = log(0, job) + log(1, job);
  EXPECT_EQ(ends[0].exit_code, 0) << all;
  EXPECT_EQ(ends[1].exit_code, 0) << all;
  for (const char* rank : {"[rank 0] sum 0/4", "[rank 1] sum 1/4", "[rank 2] sum 2/4", "[rank 3] sum 3/4"})
    EXPECT_THAT(all, HasSubstr(rank));
  EXPECT_EQ(sums_in(all).size(), 1u) << all;  // all have the same model
}

TEST_P(Frameworks, TheUsersOwnTorchrunLineWorksAsInSkyPilot) {
  if (!works(python() + " -c 'import torch.distributed.run'")) GTEST_SKIP() << python() << " has no PyTorch";
  auto job = spec("plain",
                  python() +
                      " -m torch.distributed.run --nnodes=$GRIDCTL_NUM_NODES --node_rank=$GRIDCTL_NODE_RANK "
                      "--nproc_per_node=2 --master_addr=$GRIDCTL_MASTER_ADDR "
                      "--master_port=$GRIDCTL_MASTER_PORT " +
                      write("ddp.py", k_ddp),
                  2, 1);
  const auto ends = run_gang(job, std::chrono::minutes{4});
  const std::string all = log(0, job) + log(1, job);
  EXPECT_EQ(ends[0].exit_code, 0) << all;
  EXPECT_THAT(all, HasSubstr("sum 3/4"));
  EXPECT_EQ(sums_in(all).size(), 1u) << all;
}

constexpr const char* k_mpi = R"(
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int n, char** v) {
  int rank, size, sum;
  MPI_Init(&n, &v);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d/%d sum %d on node %s\n", rank, size, sum, getenv("GRIDCTL_NODE_RANK"));
  MPI_Finalize();
  return argc_status;
}
)";

class Mpi : public Frameworks {
 protected:
  std::string program(const std::string& status) {
    const std::string source = write("mpi.c", k_mpi), binary = (hosts_[0]->folder / "mpi").string();
    if (!works("mpicc -Dargc_status=" + status + " -o " + binary + " " + source)) return "";
    return binary;
  }
};

TEST_P(Mpi, RanksOfOtherHostsAreStartedThroughTheAgentWithoutSsh) {
  const std::string binary = program("0");
  if (binary.empty()) GTEST_SKIP() << "no MPI compiler here";
  // The ranks compute rightly; the second host's end is told as -1, and nobody knows why yet.
  auto job = spec("mpi", binary, 2, 2);
  job.envs["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  job.envs["OMPI_MCA_btl"] = "tcp,self";  // both hosts are one machine: no shared memory between them
  const auto ends = run_gang(job, std::chrono::minutes{2});
  const std::string all = log(0, job) + log(1, job);
  EXPECT_EQ(ends[0].exit_code, 0) << all;
  EXPECT_EQ(ends[1].exit_code, 0) << all;
  EXPECT_THAT(all, HasSubstr("rank 0/4 sum 6 on node 0"));
  EXPECT_THAT(all, HasSubstr("rank 3/4 sum 6 on node 1"));
}

TEST_P(Mpi, TheUsersOwnMpirunLineWorksAndItsStatusIsThatOfAllHosts) {
  const std::string binary = program("5");
  if (binary.empty()) GTEST_SKIP() << "no MPI compiler here";
  // The ranks compute rightly; the second host's end is told as -1, and nobody knows why yet.
  auto job = spec("mpi", "mpirun -np $GRIDCTL_WORLD_SIZE " + binary, 2, 1);
  job.gang->self_starting = true;
  job.envs["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  job.envs["OMPI_MCA_btl"] = "tcp,self";  // both hosts are one machine: no shared memory between them
  const auto ends = run_gang(job, std::chrono::minutes{2});
  EXPECT_EQ(ends[0].exit_code, 5) << log(0, job) << log(1, job);
  EXPECT_EQ(ends[1].exit_code, 5) << log(0, job) << log(1, job);
}

INSTANTIATE_TEST_SUITE_P(Engines, Frameworks, ::testing::Values(EngineKind::process), k_engine_of);
INSTANTIATE_TEST_SUITE_P(Engines, Mpi, ::testing::Values(EngineKind::process), k_engine_of);

}  // namespace
}  // namespace gridctl::testing::ranks_test
