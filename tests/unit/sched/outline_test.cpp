// SPDX-License-Identifier: Apache-2.0
#include "sched/outline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_spec.hpp"
#include "sched/catalogue/list_price.hpp"

namespace gridctl::sched::outline_test {
namespace {
using namespace std::chrono_literals;
using job::Backend;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

HostFacts a_host(const std::string& name, int gpus, Vendor vendor = Vendor::nvidia) {
  HostFacts host;
  host.name = {name};
  host.inventory.edit().cpus = 8;
  host.inventory.edit().engines = {{EngineKind::process, "", false, false, ""}};
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu{vendor, "NVIDIA GeForce RTX 4090", name + std::to_string(i), 24'000'000'000, "", "", {}};
    gpu.model = "RTX 4090";
    host.inventory.edit().gpus.push_back(gpu);
  }
  return host;
}
job::Spec a_job(const std::string& gpu = "", int nodes = 1) {
  job::Spec spec;
  spec.name = "job";
  spec.run = "python train.py";
  spec.num_nodes = nodes;
  if (!gpu.empty()) spec.resources.gpus = {*parse_gpu_spec(gpu)};
  return spec;
}
std::vector<PairLink> between(const char* a, const char* b, Duration rtt, double bits) {
  return {{a, b, rtt, bits}, {b, a, rtt, bits}};
}

TEST(Outline, OfOneProcessNeedsNothing) {
  EXPECT_THAT(explain(outline(a_job(), {}, {}, {})),
              ElementsAre("class loose: one process (one host, at most one GPU, nothing in the command suggests another class)",
                          "needs: no link to others", "backend: none (the job is a single process)",
                          "strategy: any suitable host"));
}

TEST(Outline, TakesTheBackendOfTheGpusThatAreChosenElseWanted) {
  const auto backend = [](const job::Spec& spec, const std::vector<Chosen>& chosen = {}) {
    return outline(spec, chosen, {}, {}).backend;
  };
  const HostFacts amd = a_host("ada", 2, Vendor::amd);
  EXPECT_EQ(backend(a_job("2"), {{&amd, {"ada0", "ada1"}}}).backend, Backend::rccl);
  EXPECT_EQ(backend(a_job("H100:2")), (BackendChoice{Backend::nccl, "GPUs of NVIDIA alone"}));
  EXPECT_EQ(backend(a_job("2")), (BackendChoice{Backend::automatic, "the library of the vendor whose GPUs it gets"}));
  job::Spec named = a_job("H100:2");
  named.run = "torchrun train.py --backend gloo";
  EXPECT_EQ(backend(named), (BackendChoice{Backend::gloo, "its command names it"}));
  named.workload.backend = Backend::mpi;
  EXPECT_EQ(backend(named), (BackendChoice{Backend::mpi, "asked for"}));
  job::Spec service = a_job("H100:4");
  service.run = "vllm serve m";
  EXPECT_EQ(backend(service).backend, Backend::nccl) << "its own GPUs talk";
  service.workload.tasks = 5;
  EXPECT_EQ(backend(service).backend, Backend::none);
}

TEST(Outline, TellsHowLongTheGpusOfAGangWouldIdle) {
  const std::vector<HostFacts> hosts{a_host("ada", 1), a_host("bob", 1)};
  job::Spec spec = a_job("RTX_4090:1", 2);
  EXPECT_THAT(outline(spec, {}, hosts, {}).notes,
              ElementsAre("link: not measured between the suitable hosts, so the idle time of the GPUs is unknown"));
  const auto fast = between("ada", "bob", 200us, 10e9);
  EXPECT_THAT(outline(spec, {}, hosts, fast).notes,
              ElementsAre("link: at best 1.25 GB/s and 0.2 ms between its hosts; the amount that they exchange is unknown "
                          "(workload.params)"));
  spec.workload.params = 1e9;
  spec.workload.step = 4s;
  EXPECT_THAT(
      outline(spec, {}, hosts, fast).notes,
      ElementsAre("link: at best 2 GB of gradients a step over 1.25 GB/s take 2.29 s between 2 hosts, computing 4 "
                  "s: GPUs idle 36.4 %"));
}

TEST(Outline, TellsTheSlowestLinkOfTheGangThatWasChosen) {
  const std::vector<HostFacts> hosts{a_host("ada", 1), a_host("bob", 1), a_host("cyd", 1)};
  std::vector<PairLink> links = between("ada", "bob", 200us, 80e9);
  for (const char* other : {"ada", "bob"})
    for (const PairLink& one : between(other, "cyd", 1ms, 16e9)) links.push_back(one);
  job::Spec spec = a_job("RTX_4090:1", 2);
  spec.workload.params = 1e9;
  spec.workload.step = 4s;
  EXPECT_THAT(
      outline(spec, {{&hosts[0], {"ada0"}}, {&hosts[2], {"cyd0"}}}, hosts, links).notes,
      ElementsAre("link: 2 GB of gradients a step over 2 GB/s take 1.43 s between 2 hosts, computing 4 s: GPUs idle "
                  "26.3 %"));
}

TEST(Outline, AnswersWhoWantsToJoinCardsOverTheInternet) {
  const std::vector<HostFacts> hosts{a_host("ada", 1), a_host("bob", 1)};
  const auto notes = outline(a_job("RTX_4090:1", 2), {{&hosts[0], {"ada0"}}, {&hosts[1], {"bob0"}}}, hosts,
                             between("ada", "bob", 40ms, 100e6))
                         .notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[1],
              ::testing::StartsWith("GPUs of two hosts cannot act as one: the data that RTX 4090 reads from its own memory in "
                                    "0.99 ms (1 GB at 1010 GB/s) takes 80 s over a link of 0.0125 GB/s"));
}

TEST(Outline, TellsWhatTheSameOrItsLikeCostsByTheList) {
  HostFacts host = a_host("ada", 2);
  host.price_per_hour = 0.7;
  const auto note = [&](std::vector<std::string> uuids) {
    return outline(a_job("RTX4090:1"), {{&host, std::move(uuids)}}, {host}, {}).list_price;
  };
  EXPECT_EQ(note({"ada0"}),
            "list price: 1.86 USD/h on demand (comparable to an L40S, at AWS g6e.xlarge (us-east-1), 2026-01); here 0.70 "
            "USD/h, 38 % of that");
  for (Gpu& gpu : host.inventory.edit().gpus) gpu.model = "H100 SXM5 80GB";
  host.price_per_hour = 0;
  EXPECT_EQ(note({"ada0", "ada1"}),
            "list price: 13.76 USD/h on demand (H100 SXM5 80GB, at AWS p5.48xlarge (us-east-1), 2026-01); here free");
  EXPECT_EQ(note({}), "");
  host.inventory.edit().gpus[1].model = "";
  EXPECT_EQ(note({"ada0", "ada1"}), "") << "nobody knows what that one is";
}

TEST(ListPrice, IsOfModelsOfTheCatalogue) {
  for (const char* model : {"B300 SXM", "H100 NVL 94GB", "A10G", "K80 (per GPU of 2)", "T4"}) {
    ASSERT_NE(model_by_key(model), nullptr) << model;
    EXPECT_EQ(list_price(*model_by_key(model))->model, model);
  }
  for (const GpuModel& model : catalogue())
    if (const auto price = list_price(model)) {
      ASSERT_NE(model_by_key(price->model), nullptr) << price->model;
      EXPECT_GE(model_by_key(price->model)->memory_gb, model.memory_gb) << model.key;
    }
}

TEST(Outline, AnswersWhoWantsTheMemoryReplicated) {
  HostFacts host = a_host("ada", 1);
  host.figures["inet_up"] = 100;  // Mbit/s
  job::Spec spec = a_job("RTX_4090:1");
  EXPECT_THAT(outline(spec, {{&host, {"ada0"}}}, {}, {}).notes, IsEmpty());
  spec.checkpoint.standby = true;
  EXPECT_THAT(
      outline(spec, {{&host, {"ada0"}}}, {}, {}).notes,
      ElementsAre(::testing::StartsWith("the memory of a GPU is not replicated: RTX 4090 writes up to 1010 GB/s, the "
                                        "link carries 0.0125 GB/s, 80800 times less")));
}
}  // namespace
}  // namespace gridctl::sched::outline_test
