// SPDX-License-Identifier: Apache-2.0
#include "sched/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/gang.hpp"
#include "sched/ranks.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::fabric_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four GPUs: 0 and 1, 2 and 3 joined by NVLink, the rest by PCIe.
HostFacts four(const char* name, bool pairs = true) {
  HostFacts host = AHost(name).with_gpus(4, "NVIDIA A40", 46068).at(4);
  for (std::uint32_t a = 0; a < 4; ++a)
    for (std::uint32_t b = a + 1; b < 4; ++b)
      host.inventory.edit().links.push_back({a, b, pairs && a / 2 == b / 2 ? LinkKind::nvlink : LinkKind::sys, 4});
  host.inventory.edit().nvswitch = 0;
  host.site = "hpc";
  return host;
}
job::Spec wants(int gpus, int nodes = 1, job::JobClass job_class = job::JobClass::tight) {
  job::Spec spec;
  spec.name = "lora";
  spec.run = "python train.py";
  spec.num_nodes = nodes;
  spec.workload.job_class = job_class;
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, gpus, gpus}};
  return spec;
}
std::vector<std::string> placed(const job::Spec& spec, const HostFacts& host) {
  const Decision decision = place(spec, {host}, {});
  if (!decision.placement) return {decision.rejections.at(0).code + ": " + decision.rejections.at(0).detail};
  return decision.placement->gpu_uuids;
}

TEST(Fabric, OfTheFreeGpusThoseAreTakenThatAreJoinedBest) {
  HostFacts host = four("ada");
  EXPECT_THAT(placed(wants(2), host), ElementsAre("ada-gpu0", "ada-gpu1"));
  host.busy_gpus = {"ada-gpu0"};
  EXPECT_THAT(placed(wants(2), host), ElementsAre("ada-gpu2", "ada-gpu3"));
  EXPECT_THAT(placed(wants(2, 1, job::JobClass::medium), host), ElementsAre("ada-gpu2", "ada-gpu3"));
}

TEST(Fabric, ATightJobRefusesGpusThatAreJoinedByPcie) {
  const HostFacts host = four("ada");
  EXPECT_THAT(placed(wants(4), host), ElementsAre(HasSubstr("fabric: its GPUs are joined by PCIe (sys)")));
  EXPECT_EQ(placed(wants(4, 1, job::JobClass::medium), host).size(), 4u);
  auto relaxed = wants(4);
  relaxed.constraints.any_interconnect = true;
  EXPECT_EQ(placed(relaxed, host).size(), 4u);
}

TEST(Fabric, AnNvswitchJoinsAllAndWhatIsNotKnownForbidsNothing) {
  HostFacts host = four("ada", false);
  host.inventory.edit().nvswitch = 2;
  EXPECT_EQ(placed(wants(4), host).size(), 4u);
  host.inventory.edit().nvswitch = 0;
  host.inventory.edit().links.clear();
  EXPECT_EQ(placed(wants(4), host).size(), 4u);
}

GangDecision gang(const job::Spec& spec, const std::vector<HostFacts>& hosts, const std::vector<PairLink>& links) {
  return place_gang(spec, wish_of(spec, classify(spec)), hosts, topology_of(hosts, links), links, {},
                    knowledge_of(spec));
}
std::vector<PairLink> both_ways(double bits_per_second) {
  const Duration rtt = std::chrono::microseconds{200};
  return {{"ada", "bob", rtt, bits_per_second}, {"bob", "ada", rtt, bits_per_second}};
}

TEST(Fabric, MembersOfATightGangHaveTheirGpusJoined) {
  const std::vector<HostFacts> hosts{four("ada"), four("bob", false)};
  EXPECT_TRUE(gang(wants(2, 2), {four("ada"), four("bob")}, {}).plan);
  const GangDecision decision = gang(wants(2, 2), hosts, {});
  EXPECT_FALSE(decision.plan);
  ASSERT_EQ(decision.rejections.size(), 1u);
  EXPECT_EQ(decision.rejections[0].code, "fabric");
  auto relaxed = wants(2, 2);
  relaxed.constraints.any_interconnect = true;
  EXPECT_TRUE(gang(relaxed, hosts, {}).plan);
}

TEST(Fabric, ASlowLinkBindsUnlessTheHostsHaveRdmaOrTheJobNeedsLess) {
  std::vector<HostFacts> hosts{four("ada"), four("bob")};
  auto large = wants(2, 2);
  large.workload.params = 7e9;
  large.workload.step = std::chrono::seconds{1};
  EXPECT_FALSE(gang(large, hosts, both_ways(1e9)).plan);
  EXPECT_TRUE(gang(wants(2, 2), hosts, both_ways(1e9)).plan) << "it does not say what it exchanges";
  // A small model in slow steps: its exchanges need far less than a gigabit.
  auto small = wants(2, 2);
  small.workload.params = 1e6;
  small.workload.step = std::chrono::seconds{1};
  EXPECT_TRUE(gang(small, hosts, both_ways(1e9)).plan);
  for (HostFacts& host : hosts) {
    Nic nic;
    nic.device = "mlx5_0";
    nic.interface = "ib0";
    nic.kind = NicKind::infiniband;
    nic.up = true;
    host.inventory.edit().nics = {nic};
  }
  EXPECT_TRUE(gang(large, hosts, both_ways(1e9)).plan);
  hosts[1].inventory.edit().nics[0].up = false;
  EXPECT_FALSE(gang(large, hosts, both_ways(1e9)).plan);
  auto relaxed = large;
  relaxed.constraints.any_interconnect = true;
  EXPECT_TRUE(gang(relaxed, hosts, both_ways(1e9)).plan);
}

TEST(RanksOnHost, FollowTheJobFileThenTheLauncher) {
  auto spec = wants(4);
  EXPECT_EQ(ranks_on_host(spec, 4), 1);
  spec.launcher = job::Launcher::torchrun;
  EXPECT_EQ(ranks_on_host(spec, 4), 4);
  EXPECT_EQ(ranks_on_host(spec, 0), 1);
  spec.gang.ranks_per_node = 2;
  EXPECT_EQ(ranks_on_host(spec, 4), 2);
}

TEST(RanksOnHost, ACommandThatStartsRanksItselfIsKnownByItsProgram) {
  for (const char* run : {"torchrun --nproc-per-node 4 train.py", "python3 -m torch.distributed.run train.py",
                          "accelerate launch train.py", "OMP_NUM_THREADS=1 mpirun -np 4 ./a", "srun ./a",
                          "deepspeed train.py", "cd src && ray start --head --port 6379"})
    EXPECT_TRUE(starts_ranks_itself(run)) << run;
  for (const char* run : {"python train.py", "pip install torchrun", "accelerate config", "ray job ls", "echo mpirun",
                          "python mpirun_plot.py"})
    EXPECT_FALSE(starts_ranks_itself(run)) << run;
}

TEST(Ranks, ProgramsThatReachOtherHostsBySshAreToldOf) {
  job::Spec spec;
  spec.num_nodes = 2;
  for (const auto& [run, launcher] : {std::pair{"if true; then\n  mpirun -np 2 -H $IPS hostname\nfi", "mpi"},
                                      std::pair{"mpiexec --hostfile=$GRIDCTL_HOSTFILE ./a", "mpi"},
                                      std::pair{"deepspeed --hostfile $HOSTFILE_PATH main.py", "deepspeed"},
                                      std::pair{"horovodrun -H a:1,b:1 python train.py", "mpi"}}) {
    spec.run = run;
    EXPECT_THAT(ssh_doubt(spec), HasSubstr(std::string("with 'launcher: ") + launcher + "' it needs none")) << run;
  }
  for (const char* run : {"mpirun -np 4 ./a", "deepspeed main.py", "echo mpirun -H a", "torchrun --nnodes=2 a.py"}) {
    spec.run = run;
    EXPECT_EQ(ssh_doubt(spec), "") << run;
  }
  spec.run = "mpirun -H $IPS hostname";
  spec.launcher = job::Launcher::mpi;
  EXPECT_EQ(ssh_doubt(spec), "");
  spec.launcher = job::Launcher::plain;
  spec.num_nodes = 1;
  EXPECT_EQ(ssh_doubt(spec), "");
}

}  // namespace
}  // namespace gridctl::sched::fabric_test
