// SPDX-License-Identifier: Apache-2.0
#include "control/measure/bench.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "control/measure/bench_device.hpp"
#include "os/random.hpp"
#include "wire/health.hpp"

namespace gridctl::control {
namespace {

constexpr Duration k_list_wait = std::chrono::seconds{45};
constexpr Duration k_probe_wait = std::chrono::seconds{60};
constexpr Duration k_small_wait = std::chrono::seconds{15};
constexpr Duration k_reach = std::chrono::seconds{30};
constexpr Duration k_host_part = std::chrono::milliseconds{800}, k_host_part_quick = std::chrono::milliseconds{300};
constexpr int k_round_trips = 5;
constexpr std::uint64_t k_driver_share = 1ull << 30;  // bytes in use on a GPU that nobody uses: a driver's, a screen's

std::string backend_of(Vendor vendor) { return std::string(vendor == Vendor::nvidia ? k_cuda : k_opencl); }

// "00000000:01:00.0" and "0000:01:00.0" are the same address.
std::string short_pci(const std::string& address) {
  const std::size_t colon = address.find(':');
  return colon == std::string::npos ? lower(address) : lower(address.substr(colon + 1));
}

std::string bare_uuid(const std::string& uuid) {
  std::string text = lower(uuid);
  if (text.starts_with("gpu-")) text.erase(0, 4);
  return text;
}

bool is_vendor(const wire::BenchStage& device, Vendor vendor) {
  const std::string text = lower(device.text("vendor"));
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (vendor == Vendor::nvidia) return says("nvidia");
  if (vendor == Vendor::amd) return says("advanced micro devices") || says("amd");
  if (vendor == Vendor::intel) return says("intel");
  return true;
}

// Compares by identifiers, and by order if the driver reports neither uuid nor address.
bool is_it(const Gpu& gpu, const wire::BenchStage& device) {
  if (device.text("backend") != backend_of(gpu.vendor)) return false;
  if (!device.text("uuid").empty() && bare_uuid(device.text("uuid")) == bare_uuid(gpu.uuid)) return true;
  if (!device.text("pci").empty() && !gpu.pci.empty()) return short_pci(device.text("pci")) == short_pci(gpu.pci);
  return device.text("pci").empty() && device.text("uuid").empty() && device.text("kind") == k_gpu_kind &&
         is_vendor(device, gpu.vendor);
}

std::string why_missing(const Gpu& gpu, const wire::BenchDevices& devices) {
  const std::string backend = backend_of(gpu.vendor);
  const auto problem = devices.problems.find(backend);
  const std::string driver = backend == k_cuda ? "CUDA" : "OpenCL";
  if (problem == devices.problems.end())
    return "its " + driver + " driver shows no such device, although its tools list " + sanitize(gpu.name);
  return "could not test " + sanitize(gpu.name) + ": " + sanitize(problem->second, 300);
}

Gpu undeclared(const wire::BenchStage& device) {
  Gpu gpu;
  gpu.vendor = Vendor::other;
  gpu.name = sanitize(device.text("name"), 200);
  gpu.memory_bytes = static_cast<std::uint64_t>(device.number("memory_bytes"));
  return gpu;
}

void follow_trends(GpuBench& bench, const std::optional<BenchReport>& before) {
  if (before)
    for (const GpuBench& former : before->gpus)
      if (former.gpu.uuid == bench.gpu.uuid && former.gpu.name == bench.gpu.name) bench.trends = former.trends;
  for (const char* name : {"gemm16_tflops", "gemm_fp32_tflops", "fp32_tflops", "memory_hash_gbs", "memory_read_gbs"})
    if (const auto found = bench.figures.find(name); found != bench.figures.end()) {
      sched::Trend& trend = bench.trends[name];
      sched::extend(trend, found->second);
      if (sched::fall_of(trend) <= sched::k_drift_alert) continue;
      const int percent = static_cast<int>(sched::fall_of(trend) * 100 + 0.5);
      const sched::GpuFinding fallen{
          sched::VerdictKind::degraded, "drift",
          std::string(name) + " is " + std::to_string(percent) + " % lower than usual"};
      auto& findings = bench.verdict.findings;
      findings.insert(
          std::find_if(findings.begin(), findings.end(),
                       [](const sched::GpuFinding& one) { return one.kind < sched::VerdictKind::degraded; }),
          fallen);
      bench.verdict.kind = std::max(bench.verdict.kind, sched::VerdictKind::degraded);
    }
}

// Returns the GPU memory that unknown programs hold. If this user cannot see them: the used memory beyond a driver's
// share.
std::uint64_t foreign_on(const Gpu& gpu, const wire::HealthReport& report) {
  for (const wire::GpuHealth& seen : report.gpus) {
    const bool is_it = seen.uuid.empty() ? short_pci(seen.pci) == short_pci(gpu.pci) : seen.uuid == gpu.uuid;
    if (seen.partitioned || !is_it) continue;
    if (!seen.processes) return seen.memory_used.value_or(0) > k_driver_share ? *seen.memory_used : 0;
    std::uint64_t held = 0;
    for (const wire::GpuProcess& process : *seen.processes)
      if (process.owner != wire::ProcessOwner::leased && !process.draws) held += process.memory_bytes;
    return held;
  }
  return 0;
}

// Called before anything starts, or our own tests would be seen. Without an answer, nothing is held against anyone.
Result<std::optional<wire::HealthReport>> look_at_health(BenchConversation& conversation) {
  wire::HealthRequest request;
  request.wait = wire::k_health_wait_max;
  request.gpus = true;
  const Result<std::string> payload = conversation.ask(wire::encode(request), wire::k_health_wait_max + k_small_wait);
  if (conversation.broken()) return payload.error();
  const Result<wire::HealthReply> reply =
      payload ? wire::parse_health_reply(*payload) : Result<wire::HealthReply>(payload.error());
  return reply ? reply->report : std::nullopt;
}

// Keeps the figures that a short look did not measure again.
void keep_former(BenchReport& report, const std::optional<BenchReport>& before, bool challenges_only) {
  if (!before || !challenges_only) return;
  report.host = before->host;
  report.quick = before->quick;
  for (const GpuBench& former : before->gpus) {
    const auto now = std::find_if(report.gpus.begin(), report.gpus.end(), [&](const GpuBench& one) {
      return one.gpu.uuid == former.gpu.uuid && one.gpu.name == former.gpu.name;
    });
    if (now == report.gpus.end()) report.gpus.push_back(former);
    else now->figures.insert(former.figures.begin(), former.figures.end());
  }
}

// OpenCL cannot copy between devices of different contexts.
void add_neighbours(const Inventory& inventory, std::vector<BenchTarget>& targets) {
  for (std::size_t a = 0; a < targets.size(); ++a)
    for (std::size_t b = 0; b < targets.size(); ++b) {
      if (a == b || targets[a].backend != k_cuda || targets[b].backend != k_cuda) continue;
      const bool linked = std::any_of(inventory.links.begin(), inventory.links.end(),
                                      [low = std::min(a, b), high = std::max(a, b)](const GpuLink& link) {
                                        return link.kind == LinkKind::nvlink && link.a == low && link.b == high;
                                      });
      targets[a].neighbours.push_back({targets[b].gpu.uuid, targets[b].gpu.name, targets[b].index, b, linked});
    }
}

}  // namespace

std::vector<BenchTarget> targets_of(const Inventory& inventory, const wire::BenchDevices& devices) {
  std::vector<BenchTarget> targets;
  std::set<std::size_t> taken;
  std::map<std::string, std::uint32_t> next_index;
  std::vector<std::uint32_t> indexes;  // each device's place in the list of its backend
  for (const wire::BenchStage& device : devices.devices) indexes.push_back(next_index[device.text("backend")]++);
  for (const Gpu& gpu : inventory.gpus) {
    BenchTarget target;
    target.gpu = gpu;
    for (std::size_t i = 0; i < devices.devices.size() && target.backend.empty(); ++i)
      if (!taken.contains(i) && is_it(gpu, devices.devices[i])) {
        target.backend = devices.devices[i].text("backend");
        target.index = indexes[i];
        taken.insert(i);
      }
    if (target.backend.empty()) {
      target.missing = why_missing(gpu, devices);
      // NVIDIA's tools and CUDA library come with one driver; OpenCL is a separate package.
      target.unproven = backend_of(gpu.vendor) == k_opencl && devices.problems.contains(std::string(k_opencl));
    }
    targets.push_back(std::move(target));
  }
  add_neighbours(inventory, targets);
  if (!targets.empty()) return targets;
  for (std::size_t i = 0; i < devices.devices.size(); ++i) {
    BenchTarget target;
    target.gpu = undeclared(devices.devices[i]);
    target.backend = devices.devices[i].text("backend");
    target.index = indexes[i];
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<void> BenchConversation::send(const std::string& payload) {
  Result<void> sent =
      talk_.link->send({wire::FrameKind::request, ++stream_, payload}, talk_.clock->boot() + k_small_wait);
  broken_ = broken_ || !sent;
  return sent;
}

Result<std::string> BenchConversation::receive(Duration patience) {
  for (const BootTime deadline = talk_.clock->boot() + patience;;) {
    Result<wire::Frame> frame = talk_.link->receive(deadline);
    if (!frame) {
      broken_ = true;
      return std::move(frame).error();
    }
    if (frame->stream != stream_ || frame->kind != wire::FrameKind::reply) continue;
    if (std::optional<Error> refused = wire::payload_error(frame->payload)) return *std::move(refused);
    return std::move(frame->payload);
  }
}

Result<std::string> BenchConversation::ask(const std::string& payload, Duration patience) {
  TRY(send(payload));
  return receive(patience);
}

Result<Duration> BenchConversation::round_trip() {
  Duration best = Duration::max();
  for (int i = 0; i < k_round_trips; ++i) {
    const BootTime began = talk_.clock->boot();
    const auto answered = ask(wire::encode(wire::PollRequest{}), k_small_wait);
    if (broken_) return answered.error();
    best = std::min(best, talk_.clock->boot() - began);
  }
  return best;
}

Result<BenchReport> bench(const BenchTalk& talk, const Inventory& inventory, const BenchOptions& options,
                          const std::optional<BenchReport>& before) {
  BenchConversation conversation(talk);
  BenchReport report;
  report.at = talk.clock->wall();
  report.quick = options.quick;
  TRY_ASSIGN(const Duration round_trip, conversation.round_trip());
  report.round_trip_ms = seconds(round_trip) * 1e3;
  if (!options.challenges_only) {
    if (options.progress) options.progress("processors, memory and disk");
    const wire::BenchHost request{options.quick ? k_host_part_quick : k_host_part};
    const auto payload = conversation.ask(wire::encode(request), k_probe_wait);
    if (conversation.broken()) return payload.error();
    const auto stage = payload ? wire::parse_bench_stage(*payload) : Result<wire::BenchStage>(payload.error());
    if (stage) report.host = stage->numbers;
    else report.problems.push_back(stage.error().one_line());
  }
  TRY_ASSIGN(const std::string listed, conversation.ask(wire::encode_plain(wire::k_bench_list), k_list_wait));
  TRY_ASSIGN(const wire::BenchDevices devices, wire::parse_bench_devices(listed));
  std::optional<wire::HealthReport> health;
  if (!inventory.gpus.empty()) {
    TRY_ASSIGN(health, look_at_health(conversation));
  }
  for (BenchTarget& target : targets_of(inventory, devices)) {
    if (health) target.foreign_memory = foreign_on(target.gpu, *health);
    if (!options.gpus.empty() &&
        std::find(options.gpus.begin(), options.gpus.end(), target.gpu.uuid) == options.gpus.end())
      continue;
    Result<GpuBench> one = bench_device(conversation, target, options, round_trip);
    if (one && sched::deserves_another_run(one->verdict)) {  // a passing load must not brand a host
      const sched::GpuVerdict first = one->verdict;
      one = bench_device(conversation, target, options, round_trip);
      if (one) one->verdict = sched::confirmed(first, std::move(one->verdict));
    }
    if (conversation.broken()) return one.error();
    if (!one) {
      report.problems.push_back(sanitize(target.gpu.name) + ": " + one.error().one_line());
      continue;
    }
    one->untested = target.backend.empty() && devices.problems.contains(backend_of(target.gpu.vendor));
    follow_trends(*one, before);
    report.gpus.push_back(std::move(*one));
  }
  if (inventory.gpus.empty())
    for (const auto& [backend, problem] : devices.problems)
      report.problems.push_back(backend + ": " + sanitize(problem, 300));
  keep_former(report, before, options.challenges_only);
  return report;
}

Result<BenchReport> bench_host(const HostAccess& place, const BenchOptions& options,
                               const std::optional<BenchReport>& before) {
  os::Clock& clock = *place.clock;
  TRY_ASSIGN(const auto link, place.open(k_reach));
  BenchTalk talk;
  talk.link = link.get();
  talk.clock = &clock;
  talk.draw = [] { return os::random_u64(); };
  talk.look = [&place, &clock]() -> Result<Inventory> {
    TRY_ASSIGN(const auto other, place.open(k_reach));
    BenchTalk second;
    second.link = other.get();
    second.clock = &clock;
    BenchConversation looking(second);
    TRY_ASSIGN(const std::string payload, looking.ask(wire::encode_plain("probe"), k_probe_wait));
    return parse_inventory(payload);
  };
  return bench(talk, place.provider.inventory, options, before);
}

}  // namespace gridctl::control
