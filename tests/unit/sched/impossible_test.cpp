// SPDX-License-Identifier: Apache-2.0
#include "sched/impossible.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::sched::impossible_test {
namespace {
using namespace std::chrono_literals;

HostFacts a_host(const std::string& name, int gpus, const std::string& model, Vendor vendor = Vendor::nvidia,
                 const std::string& site = "") {
  HostFacts host;
  host.name = {name};
  host.site = site;
  host.host_class = "datacenter";
  host.inventory.edit().cpus = 64;
  host.inventory.edit().memory_bytes = 512ull << 30;
  host.inventory.edit().engines = {{EngineKind::process, "", false, false, ""}};
  for (int i = 0; i < gpus; ++i)
    host.inventory.edit().gpus.push_back({vendor, model, name + "-" + std::to_string(i), 80ull << 30, "", "", {}});
  return host;
}
std::vector<HostFacts> three_a100() {
  return {a_host("ada", 8, "NVIDIA A100-SXM4-80GB"), a_host("bob", 8, "NVIDIA A100-SXM4-80GB"),
          a_host("cyd", 8, "NVIDIA A100-SXM4-80GB")};
}
void link(std::vector<PairLink>& links, const char* a, const char* b, Duration rtt, double bits) {
  links.push_back({a, b, rtt, bits});
  links.push_back({b, a, rtt, bits});
}
std::vector<PairLink> wan() {
  std::vector<PairLink> links;
  link(links, "ada", "bob", 40ms, 800e6);
  link(links, "bob", "cyd", 35ms, 400e6);
  link(links, "ada", "cyd", 20ms, 100e6);
  return links;
}

class AJob {
 public:
  explicit AJob(const std::string& gpu = "", int nodes = 1) {
    spec.name = "job";
    spec.run = "python train.py";
    spec.num_nodes = nodes;
    if (!gpu.empty()) spec.resources.gpus.push_back(*parse_gpu_spec(gpu));
  }
  AJob with(auto change) && {
    change(spec);
    return std::move(*this);
  }
  job::Spec spec;
};

std::string why(const AJob& job, const std::vector<HostFacts>& hosts = {}, const std::vector<PairLink>& links = {}) {
  const auto no = impossible(job.spec, classify(job.spec), hosts, links);
  if (!no) return "possible";
  EXPECT_FALSE(no->instead.empty()) << no->why;
  return no->code + ": " + no->why + "\n- " + join(no->instead, "\n- ");
}

TEST(Impossible, MoreMemoryThanAnyGpuHas) {
  EXPECT_EQ(why(AJob("400GB..:1")),
            "gpu_memory: no GPU has 400 GB of memory: the largest known, GB300, has 288 GB\n"
            "- 2 x GB300 in one host, with the model split over them");
}

TEST(Impossible, MoreMemoryThanTheNamedGpuHas) {
  EXPECT_EQ(why(AJob("A100:200GB:1")),
            "gpu_memory: A100 has at most 80 GB of memory, 200 GB wanted\n"
            "- 3 x A100 in one host, with the model split over them\n"
            "- another GPU: Instinct MI325X has 256 GB");
  EXPECT_EQ(why(AJob("A100:80GB:1")), "possible");
  EXPECT_EQ(why(AJob("A100:200GB:1").with([](job::Spec& spec) {
              spec.resources.gpus.push_back(*parse_gpu_spec("MI325X:1"));
            })),
            "possible")
      << "an alternative has it";
}

TEST(Impossible, IsNothingThatSomebodyHas) {
  HostFacts modded = a_host("ada", 1, "NVIDIA GeForce RTX 4090");
  modded.inventory.edit().gpus[0].memory_bytes = 48ull << 30;
  EXPECT_EQ(why(AJob("RTX_4090:48GB:1"), {modded}), "possible");
  EXPECT_NE(why(AJob("RTX_4090:48GB:1")), "possible");
}

TEST(Impossible, AReplicaThatFitsInNoHostThatIsWanted) {
  const auto needs_160 = [](job::Spec& spec) { spec.workload.model_memory_bytes = 160'000'000'000; };
  EXPECT_EQ(why(AJob("RTX_4090:1").with(needs_160)),
            "model_memory: a replica needs 160 GB of GPU memory (workload.model_memory), and 1 x RTX_4090 of one host "
            "have at "
            "most 24 GB\n"
            "- 7 x RTX_4090 in one host, with the model split over them\n"
            "- 1 x B200 SXM with 180 GB each");
  EXPECT_EQ(why(AJob("RTX_4090:1", 8).with(needs_160)), "possible") << "a tight gang splits it over a fabric";
  const auto rarely = [](job::Spec& spec) { spec.workload.sync_every = 500; };
  EXPECT_EQ(why(AJob("RTX_4090:1", 8).with(needs_160).with(rarely)).substr(0, 182),
            "model_memory: a replica needs 160 GB of GPU memory (workload.model_memory), and 1 x RTX_4090 of one host "
            "have at "
            "most 24 GB; without a fabric, several hosts cannot pool their memory\n");
  EXPECT_EQ(why(AJob("A100:80GB:2").with(needs_160)), "possible");
  EXPECT_EQ(why(AJob().with(needs_160)),
            "model_memory: a replica needs 160 GB of GPU memory (workload.model_memory), and the job does not request a GPU\n"
            "- resources: {accelerators: \"160 GB..\"}");
}

TEST(Impossible, TasksInGangs) {
  EXPECT_EQ(why(AJob("A100:1", 4).with([](job::Spec& spec) { spec.workload.tasks = 100; })),
            "contradiction: tasks: 100 are pieces of work for one host each, but num_nodes: 4 asks for 4 hosts for one piece\n"
            "- tasks: 100 without num_nodes: each task on any host\n"
            "- num_nodes: 4 without tasks: one job over them");
}

TEST(Impossible, ATightBag) {
  EXPECT_EQ(why(AJob("A100:1").with([](job::Spec& spec) {
              spec.workload.tasks = 100;
              spec.workload.job_class = job::JobClass::tight;
            })),
            "contradiction: class: tight couples all parts, but tasks: 100 are independent\n"
            "- class: loose with tasks: 100\n"
            "- class: tight without tasks");
}

TEST(Impossible, SeveralHostsInOneHost) {
  EXPECT_EQ(why(AJob("A100:8", 2).with([](job::Spec& spec) { spec.workload.job_class = job::JobClass::medium; })),
            "contradiction: class: medium keeps all GPUs in one host, but num_nodes: 2 asks for 2 hosts\n"
            "- class: tight with num_nodes: 2\n"
            "- class: medium with num_nodes: 1");
}

TEST(Impossible, NcclOnGpusOfOthers) {
  const auto nccl = [](job::Spec& spec) { spec.workload.backend = job::Backend::nccl; };
  EXPECT_EQ(why(AJob("intel:2").with(nccl)),
            "backend: backend nccl: NCCL runs on GPUs of NVIDIA alone, and these are of Intel\n"
            "- backend: auto (oneccl)\n"
            "- backend: gloo");
  EXPECT_EQ(why(AJob().with(nccl)),
            "backend: backend nccl: NCCL runs on GPUs of NVIDIA alone, and the job has no GPU\n"
            "- backend: gloo\n"
            "- backend: mpi");
  EXPECT_EQ(why(AJob("MI300X:2").with(nccl)), "possible") << "RCCL has its interface";
  EXPECT_EQ(why(AJob("2").with(nccl)), "possible") << "of whatever vendor they turn out to be";
}

TEST(Impossible, NcclOverTheWan) {
  EXPECT_EQ(why(AJob("A100:8", 4).with([](job::Spec& spec) {
              spec.workload.backend = job::Backend::nccl;
              spec.workload.job_class = job::JobClass::federated;
            })),
            "backend: backend nccl: NCCL can neither cross NAT nor encrypt, and a broken link ends it\n"
            "- backend: gloo\n"
            "- hosts at one site");
}

TEST(Impossible, MoreUsefulTimeThanAllowed) {
  EXPECT_EQ(why(AJob("A100:1").with([](job::Spec& spec) {
              spec.workload.work = 40h;
              spec.max_duration = 10h;
            })),
            "duration: the job needs 40 h of useful time (workload.work), but may run for 10 h (max_duration)\n"
            "- max_duration above 40 h\n"
            "- hardware more than 300 % faster than its first choice");
}

TEST(Impossible, MoreHostsThanThereAre) {
  EXPECT_EQ(why(AJob("A100:8", 5), three_a100()),
            "hosts: num_nodes: 5 needs 5 hosts at once, but only 3 are registered\n"
            "- num_nodes: 3\n"
            "- 2 hosts more: gridctl provider register NAME ssh://user@host");
  std::vector<HostFacts> hosts = three_a100();
  hosts.push_back(a_host("dan", 0, ""));
  EXPECT_EQ(why(AJob("A100:8", 4), hosts),
            "hosts: num_nodes: 4 needs 4 hosts at once, but only 3 of 4 hosts can run a part (others: 1 gpu)\n"
            "- num_nodes: 3\n"
            "- 1 host more: gridctl provider register NAME ssh://user@host");
}

TEST(Impossible, MoreGpusThanAnyHostHas) {
  EXPECT_EQ(why(AJob("A100:20"), three_a100()),
            "hosts: 20 GPUs in one host are needed, but no registered host has more than 8\n"
            "- a count of 8\n"
            "- num_nodes: 3 with 8 GPUs each, at one site");
}

TEST(Impossible, AGangOfOneVendorThatFitsOnlyAcrossVendors) {
  std::vector<HostFacts> hosts = three_a100();
  hosts[2] = a_host("cyd", 8, "AMD Instinct MI300X", Vendor::amd);
  EXPECT_EQ(why(AJob("8", 3), hosts),
            "vendors: num_nodes: 3 is possible only across vendors (2 nvidia, 1 amd), and no library synchronises GPUs of different "
            "vendors in every step at full speed\n"
            "- num_nodes: 2 of one vendor\n"
            "- class: federated with backend: gloo and workload.sync_every: any vendors");
  EXPECT_EQ(
      why(AJob("8", 3).with([](job::Spec& spec) { spec.workload.backend = job::Backend::nccl; }), hosts).substr(0, 114),
      "vendors: num_nodes: 3 is possible only across vendors (2 nvidia, 1 amd), and backend nccl runs on only one vendor\n");
  EXPECT_EQ(why(AJob("8", 2), hosts), "possible");
  EXPECT_EQ(why(AJob("8", 3).with([](job::Spec& spec) { spec.workload.sync_every = 500; }), hosts), "possible");
}

TEST(Impossible, ATightGangWhoseHostsAreAllApart) {
  EXPECT_EQ(why(AJob("A100:8", 2), three_a100(), wan()),
            "site: a tight gang of 2 hosts must be at one site, but at most 1 of the 3 suitable hosts is together; between "
            "sites at "
            "best 0.1 GB/s and 20 ms\n"
            "- num_nodes: 1\n"
            "- class: federated with workload.sync_every: 500 (DiLoCo): members exchange every 500 steps");
  const auto declared = [](job::Spec& spec) {
    spec.workload.exchange_bytes = 80'000'000'000;
    spec.workload.step = 2s;
  };
  EXPECT_EQ(
      why(AJob("A100:8", 2).with(declared), three_a100(), wan()),
      "site: a tight gang of 2 hosts must be at one site, but at most 1 of the 3 suitable hosts is together; between sites "
      "at "
      "best 0.1 GB/s and 20 ms: 80 GB of gradients a step over 0.1 GB/s take 19 min between 2 hosts, computing 2 s: "
      "GPUs idle 99.8 %\n"
      "- num_nodes: 1\n"
      "- one site with at least 229 GB/s between its hosts, as NVLink between hosts (NVL72) has: GPUs idle 20 %\n"
      "- LoRA (adapters of about 1 % of the parameters, 800 MB a step) with workload.sync_every: 23: GPUs idle 19.9 "
      "%\n"
      "- one host with 16 GPUs: nothing crosses the link");
  std::vector<HostFacts> hosts = three_a100();
  hosts[0].site = "paris", hosts[1].site = "oslo", hosts[2].site = "rome";
  EXPECT_EQ(why(AJob("A100:8", 2), hosts).substr(0, 106),
            "site: a tight gang of 2 hosts must be at one site, but at most 1 of the 3 suitable hosts is together\n- num");
}

TEST(Impossible, ASlowLinkEvenAtOneSite) {
  std::vector<PairLink> links;
  link(links, "ada", "bob", 1ms, 1e9);
  link(links, "bob", "cyd", 1ms, 1e9);
  link(links, "ada", "cyd", 1ms, 1e9);
  const auto declared = [](job::Spec& spec) {
    spec.workload.params = 7e9;
    spec.workload.step = 2s;
  };
  EXPECT_EQ(
      why(AJob("A100:8", 3).with(declared), three_a100(), links),
      "link: 14 GB of gradients a step over 0.125 GB/s take 3.56 min between 3 hosts, computing 2 s: GPUs idle 99.1 "
      "%\n"
      "- one site with at least 53.8 GB/s between its hosts, as 800 Gbit/s InfiniBand or RoCE has: GPUs idle 20 %\n"
      "- workload.sync_every: 427 (DiLoCo: exchange every 427 steps): GPUs idle 20 %\n"
      "- LoRA (adapters of about 1 % of the parameters, 140 MB a step) with workload.sync_every: 5: GPUs idle 17.6 %\n"
      "- one host: nothing crosses the link");
  EXPECT_EQ(why(AJob("A100:8", 3).with(declared).with([](job::Spec& spec) { spec.workload.sync_every = 500; }),
                three_a100(), links),
            "possible");
}

TEST(Impossible, IsNothingThatWasNotMeasured) {
  const auto declared = [](job::Spec& spec) {
    spec.workload.params = 70e9;
    spec.workload.step = 1s;
  };
  EXPECT_EQ(why(AJob("A100:8", 3).with(declared), three_a100()), "possible");
  std::vector<PairLink> some = wan();
  some.resize(2);  // ada and bob alone
  EXPECT_EQ(why(AJob("A100:8", 2).with(declared), three_a100(), some), "possible");
}

TEST(ImpossibleThere, JudgesTheVeryHostsOfAGang) {
  const std::vector<HostFacts> hosts = three_a100();
  std::vector<PairLink> links = wan();
  links[0].bits_per_second = links[1].bits_per_second = 400e9;
  job::Spec spec = AJob("A100:8", 2).spec;
  spec.workload.params = 7e9;
  spec.workload.step = 2s;
  EXPECT_EQ(impossible_there(spec, {&hosts[0], &hosts[1]}, links), std::nullopt);
  const auto no = impossible_there(spec, {&hosts[0], &hosts[2]}, links);
  ASSERT_TRUE(no);
  EXPECT_EQ(
      no->why,
      "14 GB of gradients a step over 0.0125 GB/s take 26.7 min between 2 hosts, computing 2 s: GPUs idle 99.9 %");
  links.pop_back(), links.pop_back();
  EXPECT_EQ(impossible_there(spec, {&hosts[0], &hosts[2]}, links), std::nullopt) << "not measured";
  EXPECT_EQ(impossible_there(spec, {&hosts[0]}, links), std::nullopt);
}

TEST(Impossible, TakesTheBestPairOfHostsForAGangOfTwo) {
  std::vector<PairLink> links = wan();
  links[0].rtt = links[1].rtt = 1ms;
  links[0].bits_per_second = links[1].bits_per_second = 400e9;
  const auto declared = [](job::Spec& spec) {
    spec.workload.params = 7e9;
    spec.workload.step = 2s;
  };
  EXPECT_EQ(why(AJob("A100:8", 2).with(declared), three_a100(), links), "possible");
  EXPECT_NE(why(AJob("A100:8", 3).with(declared), three_a100(), links), "possible");
}

TEST(Impossible, LeavesAnOrdinaryJobAlone) {
  EXPECT_EQ(why(AJob()), "possible");
  EXPECT_EQ(why(AJob("A100:8"), three_a100()), "possible");
  EXPECT_EQ(why(AJob("H100:8"), three_a100()), "possible") << "that no host fits is told host by host";
  EXPECT_EQ(why(AJob("A100:8", 2)), "possible") << "no provider is registered: said elsewhere";
}
}  // namespace
}  // namespace gridctl::sched::impossible_test
