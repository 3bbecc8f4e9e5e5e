// SPDX-License-Identifier: Apache-2.0
// What a backlog costs the daemon: 10,000 jobs wait, on 20 hosts that do not answer. Prints the share of a core that the
// controller takes when nothing happens, and what it takes on top for each commit of another process.
// `ninja backlog_bench`, then backlog_bench [JOBS].
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include "sim/folders.hpp"
#include "control/daemon/controller.hpp"
#include "os/loop_executor.hpp"
#include "os/random.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {
namespace {

constexpr int k_hosts = 20, k_commits = 40;
constexpr Duration k_look = std::chrono::seconds{1}, k_warm_up = std::chrono::seconds{8}, k_idle = std::chrono::seconds{20},
                   k_between = std::chrono::milliseconds{500};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Error nobody() { return make_error(Code::host_unreachable, "nobody is there"); }

class NoNetwork : public AgentNetwork {
 public:
  Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider&, BootTime) override { return nobody(); }
  Result<transfer::BulkLink> open(const registry::Provider&, BootTime) override { return nobody(); }
};

class NoFreight : public Freight {
 public:
  Result<transfer::BulkLink> reach(const HostReach&, Duration) override { return nobody(); }
  Result<std::uint64_t> push(const HostReach&, const transfer::BulkLink&, const Digest&) override { return nobody(); }
  Result<Pulled> pull(const HostReach&, const JobId&, Epoch, const wire::HostCheckpoint&,
                      const std::optional<Digest>&) override {
    return nobody();
  }
  Result<MergedParts> merge(const std::vector<std::vector<CheckpointPart>>&) override { return nobody(); }
  Result<PortProof> prove_port(const HostReach&, const HostReach&, std::uint16_t, std::uint64_t) override {
    return nobody();
  }
  Result<CopiesOf> copies_of(const JobId&, CheckpointSeq) override { return CopiesOf{}; }
  Result<std::string> heal(const CopiesOf&, const Digest&) override { return nobody(); }
};

registry::Provider provider(int number) {
  registry::Provider one;
  one.name = {"host" + std::to_string(number)};
  one.inventory.edit().cpus = 64;
  one.inventory.edit().memory_bytes = 256ull << 30;
  one.inventory.edit().disk_free_bytes = 1ull << 40;
  one.inventory.edit().engines.push_back({EngineKind::process, "1", false, true, ""});
  for (int i = 0; i < 8; ++i) {
    Gpu gpu;
    gpu.name = "NVIDIA A100-SXM4-80GB";
    gpu.uuid = "GPU-" + std::to_string(number) + "-" + std::to_string(i);
    gpu.memory_bytes = 80ull << 30;
    one.inventory.edit().gpus.push_back(gpu);
  }
  return one;
}

Result<void> fill(registry::Registry& registry, int jobs) {
  for (int i = 0; i < k_hosts; ++i) TRY(registry.add_provider(provider(i)));
  return registry.together([&]() -> Result<void> {
    for (int i = 0; i < jobs; ++i) {
      job::Spec spec;
      spec.name = "train-" + std::to_string(i);
      spec.run = "python train.py";
      job::GpuRequest gpu;
      gpu.count_min = gpu.count_max = 1;
      spec.resources.gpus.push_back(gpu);
      spec.owner = i % 3 == 0 ? "ada" : "bob";
      TRY(registry.submit({os::random_id(12)}, spec, {1'800'000'000'000 + i}, {}));
    }
    return {};
  });
}

Result<void> run(const os::Path& state, int jobs) {
  TRY_ASSIGN(registry::Registry ours, registry::Registry::open(state));
  TRY_ASSIGN(registry::Registry theirs, registry::Registry::open(state));
  TRY(fill(ours, jobs));
  os::Loop loop;
  os::LoopExecutor run(loop);
  NoNetwork network;
  NoFreight freight;
  sim::SimFolders folders;
  Controller controller({os::system_clock(), run, network, ours, freight, folders}, {});
  const double before = processor_seconds();
  TRY(controller.start());
  std::printf("%d jobs on %d hosts: read in %.2f s of a core\n", jobs, k_hosts, processor_seconds() - before);
  double began = 0, share = 0, committing = 0;
  int commits = 0;
  os::Loop::Timer timer, commit;
  const auto end = [&] {
    const double took = processor_seconds() - began - committing;
    const double extra = took - share * seconds(k_between) * k_commits;
    std::printf("idle: %.1f %% of a core; a commit of another process: %.1f ms on top\n", 100 * share,
                1e3 * extra / k_commits);
    loop.stop();
  };
  const auto disturb = [&] {
    share = (processor_seconds() - began) / seconds(k_idle);
    began = processor_seconds();
    commit = loop.every(k_between, [&] {
      if (commits++ == k_commits) return end();
      const double start = processor_seconds();
      registry::Provider changed = provider(commits % k_hosts);
      changed.price_per_hour = commits;
      if (const Result<void> written = theirs.update_provider(changed); !written)
        std::printf("%s\n", written.error().one_line().c_str());
      committing += processor_seconds() - start;
    });
  };
  // When each has been asked for.
  timer = loop.every(k_look, [&] {
    for (const auto& [id, job] : controller.book().all())
      if (job->state().reason != "waiting_for_provider") return;
    std::printf("all were asked for in %.2f s of a core\n", processor_seconds() - before);
    std::fflush(stdout);
    timer = loop.after(k_warm_up, [&] {
      began = processor_seconds();
      timer = loop.after(k_idle, disturb);
    });
  });
  loop.run();
  return {};
}

}  // namespace
}  // namespace gridctl::control

int main(int argc, char** argv) {
  using namespace gridctl;
  const os::Path state = os::temporary_directory() / ("gridctl-backlog-" + os::random_id(10));
  const Result<void> done = control::run(state, argc > 1 ? std::atoi(argv[1]) : 10'000);
  if (!done) std::printf("%s\n", done.error().one_line().c_str());
  std::fflush(stdout);
  (void)os::remove_tree(state);
  std::quick_exit(done ? 0 : 1);
}
