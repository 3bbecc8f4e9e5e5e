// SPDX-License-Identifier: Apache-2.0
// Makes a state directory as years of use leave it, for tests/bench/commands.py and tests/cli/plan_islands.py.
//   full_state DIR JOBS HOSTS [GPU_NAME:GIB:COUNT,... [MBIT_OF_LINKS [HOSTS_OF_A_SITE]]]
// Nine jobs of ten have ended, one of twelve of those after a failover; the others run or wait. Hosts have the kinds of
// machine in turns.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "os/random.hpp"
#include "registry/registry.hpp"
#include "sched/catalogue/catalogue.hpp"

namespace {
using namespace gridctl;

constexpr std::int64_t k_began = 1'780'000'000'000, k_apart = 60'000;
constexpr int k_events_of_host = 20, k_spans_of_host = 10, k_links_of_host = 8;

struct Kind {
  std::string gpu = "NVIDIA GeForce RTX 4090";
  std::uint64_t gib = 24;
  int count = 8;
};

struct Wires {
  double mbit = 9400;
  int hosts_of_site = 64;
};

int number_of(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

HostName host_name(int number) { return {"host" + std::to_string(number)}; }

registry::Provider provider(int number, const Kind& kind, const Wires& wires) {
  registry::Provider one;
  one.name = host_name(number);
  one.address = "me@10.0." + std::to_string(number / 256) + "." + std::to_string(number % 256) + ":22";
  one.user = "me";
  one.host = one.address.substr(3, one.address.size() - 6);
  one.price_per_hour = kind.count * (0.3 + number % 7 * 0.05);
  one.region = number % 3 == 0 ? "DE" : "FI";
  one.site = "hall" + std::to_string(number / wires.hosts_of_site);
  one.host_class = "datacenter";
  one.liveness = "answering";
  one.registered_at = {k_began};
  one.last_seen_at = WallTime{k_began + k_apart};
  one.inventory.edit().cpus = 64;
  one.inventory.edit().memory_bytes = 512ull << 30;
  one.inventory.edit().disk_free_bytes = 1ull << 40;
  one.inventory.edit().engines.push_back({EngineKind::process, "1", false, true, ""});
  for (int i = 0; i < kind.count; ++i) {
    Gpu gpu;
    gpu.name = kind.gpu;
    gpu.uuid = "GPU-" + std::to_string(number) + "-" + std::to_string(i);
    gpu.memory_bytes = kind.gib << 30;
    one.inventory.edit().gpus.push_back(gpu);
  }
  sched::name_models(one.inventory.edit());
  return one;
}

Result<void> add_host(registry::Registry& registry, int number, int hosts, const Kind& kind, const Wires& wires) {
  TRY(registry.add_provider(provider(number, kind, wires)));
  const HostName name = host_name(number);
  for (int i = 0; i < k_events_of_host; ++i)
    TRY(registry.add_host_event({0, name, {k_began + i * k_apart}, i % 2 == 0 ? "lost" : "returned", "silent for 30 s"}));
  for (int i = 0; i < k_spans_of_host; ++i)
    TRY(registry.save_host_span({name, "", {k_began + 2 * i * k_apart}, {k_began + (2 * i + 1) * k_apart}, ""}));
  for (int i = 1; i <= k_links_of_host && i < hosts; ++i)
    TRY(registry.save_link({name.value, host_name((number + i) % hosts).value, {k_began}, 300, wires.mbit * 1e6}));
  return registry.save_figures(name, {{"inet_up", 940}, {"inet_down", 940}, {"reliability", 0.99}});
}

Result<void> save(registry::Registry& registry, const JobId& id, Epoch epoch, std::uint64_t number, std::int64_t at) {
  registry::Checkpoint one;
  one.job = id;
  one.epoch = epoch;
  one.host_number = number;
  one.root.bytes[0] = static_cast<std::byte>(number);
  one.created_at = {at};
  one.bytes = 1 << 30;
  one.files = 3;
  one.how = "format";
  TRY_ASSIGN(const auto commit, registry.commit_checkpoint(one));
  TRY(registry.apply(id, {{at}, job::CheckpointCommitted{epoch, commit.checkpoint.seq, "1 GiB", number}}));
  return {};
}

// Places it, lets it run and save; the next number of checkpoint.
Result<Epoch> run(registry::Registry& registry, const JobId& id, int host, const Kind& kind, std::int64_t at) {
  job::Member member;
  member.host = host_name(host);
  member.gpu_uuids = {"GPU-" + std::to_string(host) + "-" + std::to_string(host % kind.count)};
  member.cpus = 4;
  member.price_per_hour = 0.5;
  TRY(registry.apply(id, {{at}, job::Placed{{member}, "cheapest of 3"}}));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY(registry.apply(id, {{at + 1000}, job::LaunchAccepted{job.machine.epoch}}));
  TRY(registry.apply(id, {{at + 2000}, job::PayloadStarted{job.machine.epoch}}));
  for (std::uint64_t i = 1; i <= 2; ++i) TRY(save(registry, id, job.machine.epoch, i, at + 3000 * static_cast<int>(i)));
  return job.machine.epoch;
}

Result<void> add_job(registry::Registry& registry, int number, int jobs, int hosts, const std::vector<Kind>& kinds) {
  job::Spec spec;
  spec.name = "train-" + std::to_string(number % 97);
  spec.run = "python train.py --lr 1e-4";
  job::GpuRequest gpu;
  gpu.names = {"RTX_4090"};
  spec.resources.gpus.push_back(gpu);
  spec.owner = number % 3 == 0 ? "ada" : "bob";
  const JobId id{os::random_id(12)};
  const std::int64_t at = k_began + number * k_apart;
  const int host = number % hosts;
  const auto kind_of = [&](int of) { return kinds[static_cast<std::size_t>(of) % kinds.size()]; };
  TRY(registry.submit(id, spec, {at}, {{"workdir", "", Digest{}, 5000}}));
  TRY(registry.save_explanation(id, {"host1: chosen", "host2: dearer", "host3: busy"}));
  if (number >= jobs - jobs / 50) return {};
  TRY_ASSIGN(Epoch epoch, run(registry, id, host, kind_of(host), at));
  HostName last = host_name(host);
  if (number >= jobs - jobs / 10) return {};
  if (number % 12 == 0) {
    TRY(registry.apply(id, {{at + 20'000}, job::HostLost{epoch, std::chrono::seconds{30}}}));
    TRY(registry.apply(id, {{at + 21'000}, job::CleanedUp{host_name(host), epoch}}));
    const int other = (host + 1) % hosts;
    TRY_ASSIGN(epoch, run(registry, id, other, kind_of(other), at + 25'000));
    last = host_name(other);
  }
  TRY(registry.apply(id, {{at + 50'000}, job::AttemptEnded{epoch, {job::EndKind::exited, number % 20 == 0 ? 1 : 0, 0, ""}}}));
  TRY(registry.apply(id, {{at + 55'000}, job::Collected{epoch, ""}}));
  TRY(registry.apply(id, {{at + 56'000}, job::CleanedUp{last, epoch}}));
  return {};
}

std::vector<Kind> read_kinds(std::string_view text) {
  std::vector<Kind> kinds;
  for (const std::string& one : split(text, ',')) {
    const std::vector<std::string> parts = split(one, ':');
    if (parts.size() == 3)
      kinds.push_back({parts[0], static_cast<std::uint64_t>(number_of(parts[1], 24)), number_of(parts[2], 8)});
  }
  if (kinds.empty()) kinds.emplace_back();
  return kinds;
}

constexpr int k_together = 500;  // of jobs in a transaction

Result<void> make(const os::Path& state, int jobs, int hosts, const std::vector<Kind>& kinds,
                  const Wires& wires) {
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(state));
  const auto each = [&](int from, int to, const std::function<Result<void>(int)>& add) {
    return registry.together([&]() -> Result<void> {
      for (int i = from; i < to; ++i)
        if (Result<void> added = add(i); !added) return added;
      return {};
    });
  };
  TRY(each(0, hosts, [&](int i) {
    return add_host(registry, i, hosts, kinds[static_cast<std::size_t>(i) % kinds.size()], wires);
  }));
  for (int from = 0; from < jobs; from += k_together)
    TRY(each(from, std::min(jobs, from + k_together), [&](int i) { return add_job(registry, i, jobs, hosts, kinds); }));
  return {};
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: full_state DIR JOBS HOSTS [GPU_NAME:GIB:COUNT,... [MBIT_OF_LINKS [HOSTS_OF_A_SITE]]]\n", stderr);
    return 2;
  }
  Wires wires;
  if (argc > 5) wires.mbit = number_of(argv[5], 9400);
  if (argc > 6) wires.hosts_of_site = std::max(number_of(argv[6], 64), 1);
  const Result<void> made =
      make(argv[1], number_of(argv[2], 0), number_of(argv[3], 1), read_kinds(argc > 4 ? argv[4] : ""), wires);
  if (!made) std::fprintf(stderr, "%s\n", made.error().one_line().c_str());
  return made ? 0 : 1;
}
