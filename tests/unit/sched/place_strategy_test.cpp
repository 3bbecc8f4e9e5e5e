// SPDX-License-Identifier: Apache-2.0
// The strategy table, row by row, on a registry of 45 hosts of all kinds: what a job file of such work is taken for,
// where it would go, by which library its parts talk, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "sched/gang.hpp"
#include "sched/outline.hpp"
#include "sched/place.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::place_strategy_test {
namespace {
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* k_h100 = "NVIDIA H100 80GB HBM3";
constexpr const char* k_a100 = "NVIDIA A100-SXM4-80GB";
constexpr const char* k_4090 = "NVIDIA GeForce RTX 4090";
constexpr const char* k_mi300x = "AMD Instinct MI300X";
constexpr const char* k_max = "Intel(R) Data Center GPU Max 1550";

HostFacts a_host(const std::string& name, const char* host_class, const std::string& site, int count, const char* gpu,
                 std::uint64_t mib, double price, Vendor vendor = Vendor::nvidia) {
  HostFacts host = count > 0 ? HostFacts(AHost(name).with_gpus(count, gpu, mib, vendor).at(price))
                             : HostFacts(AHost(name).at(price));
  host.host_class = host_class;
  host.site = site;
  host.inventory.edit().machine_id = name;
  host.inventory.edit().cpus = 64;
  host.inventory.edit().memory_bytes = 512ull << 30;
  return host;
}

// Two clusters, one with InfiniBand and one with 1 Gbit/s, AMD and Intel boxes, a market and homes, and CPU servers.
struct Registry {
  std::vector<HostFacts> hosts;
  std::vector<PairLink> links;
  Registry() {
    const auto add = [&](HostFacts host) { hosts.push_back(std::move(host)); };
    for (int i = 0; i < 8; ++i) add(a_host("hpc-" + std::to_string(i), "datacenter", "hpc", 8, k_h100, 81559, 18));
    for (int i = 0; i < 6; ++i) add(a_host("old-" + std::to_string(i), "datacenter", "uni", 8, k_a100, 81920, 9));
    for (int i = 0; i < 4; ++i)
      add(a_host("amd-" + std::to_string(i), "cloud", "amd", 8, k_mi300x, 196592, 14, Vendor::amd));
    for (int i = 0; i < 3; ++i)
      add(a_host("xe-" + std::to_string(i), "cloud", "xe", 4, k_max, 131072, 6, Vendor::intel));
    for (int i = 0; i < 10; ++i) add(a_host("rent-" + std::to_string(i), "market", "", 1 + i % 2, k_4090, 24564, 0.45));
    for (int i = 0; i < 8; ++i) add(a_host("home-" + std::to_string(i), "home", "", 1, k_4090, 24564, 0.25));
    for (int i = 0; i < 6; ++i) add(a_host("cpu-" + std::to_string(i), "datacenter", "uni", 0, "", 0, 0.5));
    cable("hpc-", 8, 390, 0.01);
    cable("amd-", 4, 390, 0.02);
    cable("xe-", 3, 98, 0.05);
    cable("old-", 6, 0.94, 0.2);
  }
  void cable(const std::string& prefix, int count, double gbit, double rtt_ms) {
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < count; ++j)
        if (i != j)
          links.push_back({prefix + std::to_string(i), prefix + std::to_string(j),
                           std::chrono::microseconds{static_cast<int>(rtt_ms * 1000)}, gbit * 1e9});
  }
};

job::Spec a_spec(std::string run, int nodes = 1, int gpus = 0, std::vector<std::string> names = {}) {
  job::Spec spec;
  spec.name = "x";
  spec.run = std::move(run);
  spec.num_nodes = nodes;
  if (gpus > 0) spec.resources.gpus = {{std::nullopt, std::move(names), std::nullopt, std::nullopt, gpus, gpus}};
  return spec;
}

// What is told of a job and where its members would be.
struct Told {
  Outline outline;
  std::vector<std::string> hosts;
  std::string text;
};

Told tell(const job::Spec& spec) {
  const Registry registry;
  EXPECT_GE(registry.hosts.size(), 40u);
  Told told;
  std::vector<Chosen> chosen;
  std::vector<std::string> lines;
  const auto choose = [&](const Placement& placement) {
    told.hosts.push_back(placement.host.value);
    for (const HostFacts& host : registry.hosts)
      if (host.name == placement.host) chosen.push_back({&host, placement.gpu_uuids});
  };
  if (spec.num_nodes > 1) {
    const GangWish wish = wish_of(spec, classify(spec));
    const GangDecision decision = place_gang(spec, wish, registry.hosts, topology_of(registry.hosts, registry.links),
                                             registry.links, {}, knowledge_of(spec));
    if (decision.plan)
      for (const Placement& member : decision.plan->members) choose(member);
    lines = explain(decision, wish);
  } else {
    const Decision decision = place(spec, registry.hosts, {});
    if (decision.placement) choose(*decision.placement);
    lines = explain(decision);
  }
  told.outline = outline(spec, chosen, registry.hosts, registry.links);
  std::vector<std::string> all = explain(told.outline);
  all.insert(all.end(), lines.begin(), lines.end());
  told.text = join(all, "\n");
  return told;
}

TEST(Strategy, PretrainingIsAGangOfIdenticalGpusInOneIsland) {
  const Told told = tell(a_spec("torchrun --nnodes 4 pretrain_gpt.py", 4, 8, {"H100", "A100"}));
  EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::tight);
  EXPECT_EQ(told.outline.backend.backend, job::Backend::nccl);
  EXPECT_THAT(told.hosts, AllOf(::testing::SizeIs(4), Each(StartsWith("hpc-"))));  // the A100s' cables are too thin
  EXPECT_THAT(told.text, AllOf(HasSubstr("gang"), HasSubstr("the island of hpc-0 and 7 others")));
  EXPECT_THAT(told.text, ::testing::Not(HasSubstr("would do equally well: 4 hosts of site uni")));
}

TEST(Strategy, ADifferentVendorMeansItsOwnLibrary) {
  job::Spec amd = a_spec("torchrun train.py", 2, 8, {"MI300X"});
  EXPECT_THAT(tell(amd).hosts, AllOf(::testing::SizeIs(2), Each(StartsWith("amd-"))));
  EXPECT_EQ(tell(amd).outline.backend.backend, job::Backend::rccl);
  job::Spec intel = a_spec("torchrun train.py", 2, 4);
  intel.resources.gpus[0].vendor = Vendor::intel;
  EXPECT_THAT(tell(intel).hosts, AllOf(::testing::SizeIs(2), Each(StartsWith("xe-"))));
  EXPECT_EQ(tell(intel).outline.backend.backend, job::Backend::oneccl);
}

TEST(Strategy, SimulationsTalkByMpiWhenAsked) {
  job::Spec spec = a_spec("mpirun -n 16 gmx_mpi mdrun", 2, 8);
  spec.workload.backend = job::Backend::mpi;
  const Told told = tell(spec);
  EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::tight);
  EXPECT_EQ(told.outline.backend.backend, job::Backend::mpi);
  EXPECT_EQ(told.hosts.size(), 2u);
}

TEST(Strategy, FineTuningStaysOnOneHost) {
  job::Spec spec = a_spec("accelerate launch finetune_lora.py", 1, 8);
  const Told told = tell(spec);
  EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::medium);
  EXPECT_EQ(told.hosts.size(), 1u);
  EXPECT_NE(told.outline.backend.backend, job::Backend::gloo);
}

TEST(Strategy, RenderingInferenceAndSearchGoAnywhere) {
  for (const char* run : {"blender -b scene.blend -f $TASK", "python infer.py --batch $TASK", "python trial.py"}) {
    job::Spec spec = a_spec(run, 1, 1);
    spec.workload.tasks = 5000;
    if (std::string_view(run).find("trial") != std::string_view::npos) spec.run = "wandb agent me/sweep";
    const Told told = tell(spec);
    EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::loose) << run;
    EXPECT_TRUE(told.outline.coupling.mixed_vendors) << run;
    EXPECT_EQ(told.outline.backend.backend, job::Backend::none) << run;
    EXPECT_THAT(told.text, HasSubstr("loose")) << run;
    // Any host that has a GPU would do, of every vendor.
    const Registry all;
    std::set<Vendor> vendors;
    std::size_t with_gpu = 0;
    for (const HostFacts& host : all.hosts) {
      with_gpu += host.inventory->gpus.empty() ? 0 : 1;
      for (const Gpu& gpu : host.inventory->gpus) vendors.insert(gpu.vendor);
    }
    EXPECT_EQ(vendors.size(), 3u);
    spec.workload.tasks = 0;
    EXPECT_EQ(place(spec, all.hosts, {}, knowledge_of(spec)).fitting, with_gpu) << run;
  }
}

TEST(Strategy, FederatedTrainingSpansTheWanByGloo) {
  const Told told = tell(a_spec("flwr run .", 6, 1));
  EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::federated);
  EXPECT_EQ(told.outline.backend.backend, job::Backend::gloo);
  EXPECT_EQ(told.hosts.size(), 6u);
  EXPECT_THAT(told.text, HasSubstr("all hosts"));
}

TEST(Strategy, AServiceRunsWhereItIsCheapest) {
  const Told told = tell(a_spec("vllm serve meta-llama/Llama-3.1-8B", 1, 1));
  EXPECT_EQ(told.outline.coupling.job_class, job::JobClass::service);
  EXPECT_EQ(told.hosts.size(), 1u);
}

}  // namespace
}  // namespace gridctl::sched::place_strategy_test
