// SPDX-License-Identifier: Apache-2.0
// Prints how long a decision takes: one job on 10,000 hosts with every reason. `ninja place_bench`.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "sched/catalogue/catalogue.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {
namespace {

constexpr int k_hosts = 10'000;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Model {
  const char* name;
  std::uint64_t mib;
  int count;
  double price;
};
constexpr Model k_models[] = {{"NVIDIA H100 80GB HBM3", 81559, 8, 16},
                              {"NVIDIA A100-SXM4-80GB", 81920, 8, 8},
                              {"NVIDIA GeForce RTX 4090", 24564, 2, 0.7},
                              {"NVIDIA GeForce RTX 3090", 24576, 1, 0.2},
                              {"NVIDIA L4", 23034, 1, 0.4},
                              {"Tesla T4", 15360, 4, 0.6},
                              {"NVIDIA GeForce RTX 3060", 12288, 1, 0.09}};

std::vector<HostFacts> make_hosts() {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* classes[] = {"datacenter", "cloud", "market", "home"};
  const char* regions[] = {"DE", "FI", "US", "JP", ""};
  std::vector<HostFacts> hosts;
  for (int i = 0; i < k_hosts; ++i) {
    const Model& model = k_models[below(7)];
    HostFacts host;
    host.name = {"host-" + std::to_string(i)};
    host.host_class = classes[below(4)];
    host.region = regions[below(5)];
    host.price_per_hour = model.price * (0.7 + 0.001 * below(600));
    host.inventory.edit().cpus = 8 + below(120);
    host.inventory.edit().memory_bytes = static_cast<std::uint64_t>(32 + below(900)) << 30;
    host.inventory.edit().disk_free_bytes = static_cast<std::uint64_t>(50 + below(2000)) << 30;
    host.inventory.edit().engines = {{EngineKind::docker, "24", false, true, ""}, {EngineKind::process, "", false, false, ""}};
    for (int gpu = 0; gpu < model.count; ++gpu) {
      Gpu one;
      one.vendor = Vendor::nvidia;
      one.name = model.name;
      one.uuid = host.name.value + "-" + std::to_string(gpu);
      one.memory_bytes = model.mib << 20;
      host.inventory.edit().gpus.push_back(std::move(one));
    }
    name_models(host.inventory);
    host.figures["mtbf"] = 20 + below(3000);
    host.figures["inet_up"] = host.figures["inet_down"] = 50 + below(900);
    host.reachable = below(20) != 0;
    hosts.push_back(std::move(host));
  }
  return hosts;
}

job::Spec make_job(int kind) {
  std::mt19937 random(static_cast<unsigned>(kind));
  job::Spec spec;
  spec.name = "job-" + std::to_string(kind);
  spec.run = "python train.py";
  spec.image = kind % 2 == 0 ? "pytorch:2.4" : "";
  if (!spec.image.empty()) spec.image_digests[spec.image] = "sha256:" + std::string(64, '0');
  job::GpuRequest gpus;
  if (kind % 4 == 1) gpus.names = {"A100", "H100"};
  if (kind % 4 == 2) gpus.memory_min = 20'000'000'000;
  gpus.count_min = gpus.count_max = kind % 3 == 0 ? 2 : 1;
  if (kind % 5 != 4) spec.resources.gpus = {gpus};
  spec.resources.cpus = 1 + static_cast<int>(random() % 4);
  spec.resources.memory_bytes = std::uint64_t{8} << 30;
  if (kind % 3 == 1) spec.constraints.region_in = {"DE", "FI"};
  if (kind % 7 == 1) spec.constraints.query = "reliability>0.9 inet_up>=100";
  return spec;
}

int run() {
  const std::vector<HostFacts> hosts = make_hosts();
  Decision decision;
  const double one = seconds_of([&] {
    for (int i = 0; i < 10; ++i) decision = place(make_job(2), hosts, {});
  });
  std::printf("one decision over %d hosts with every reason: %.1f ms (wanted: at most 20)\n", k_hosts, one / 10 * 1e3);
  std::printf("  %s\n", decision.placement ? decision.placement->reason.c_str() : "none");
  std::printf("  %zu would do too, %zu cannot\n", decision.fitting - 1, decision.rejections.size());
  return 0;
}
}  // namespace
}  // namespace gridctl::sched

int main() { return gridctl::sched::run(); }
