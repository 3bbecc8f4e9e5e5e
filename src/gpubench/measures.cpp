// SPDX-License-Identifier: Apache-2.0
// Implements the tests that only this machine's clock times. Their results are believed as far as the challenges
// confirm them.
#include <algorithm>
#include <cstring>

#include "gpubench/gemm.hpp"
#include "gpubench/stopwatch.hpp"
#include "gpubench/work.hpp"
#include "os/random.hpp"

namespace gridctl::gpubench {
namespace {

constexpr double k_launch_seconds = 0.05;        // of one launch: far above the cost of starting it
constexpr std::uint32_t k_groups_per_unit = 32;  // keeps every unit busy whatever the scheduler does
constexpr std::uint32_t k_turn_steps = 64;       // multiply-adds of a turn, in rates.cl
constexpr std::uint32_t k_lane_steps = 2048;     // of a lane, over all entries of its vectors
constexpr std::uint32_t k_rate_groups_max = 1u << 16;
constexpr std::uint64_t k_traffic_gpu = 1ull << 30;    // bytes: far beyond any cache of a GPU
constexpr std::uint64_t k_traffic_cpu = 512ull << 20;  // the caches of servers have hundreds of MiB
// Defines the size of a copy between host and device. It exceeds the size that C libraries copy by way of the caches
// (with glibc, a part of the largest one), because a data set is longer than that. With 128 MiB, a processor as device
// showed 0.6 of the rate.
constexpr std::uint64_t k_copy_bytes = 512ull << 20;
constexpr std::uint64_t k_memory_share = 8;   // a copy takes at most one part in so many of the memory
constexpr double k_copy_seconds = 0.5;        // for each way
constexpr double k_copy_turn_seconds = 0.01;  // of one timed turn: far above the cost of starting it
constexpr std::uint32_t k_peer_times = 8;
constexpr std::uint32_t k_series_max = 600;  // values of the sustained run's series

double share(const Parameters& parameters) { return static_cast<double>(parameters.number("part_ms", 600)) / 1000; }

// Finds the best rate of `kernel`, in multiply-adds of `width` a lane. Groups are added, then turns, until a launch is
// long enough. Lanes are short as long as there can be more of them: a processor then works on the end of one and on
// the beginning of the next at once, as it does in programs, and does not wait for each single result.
Result<double> rate(Device& device, const std::string& kernel, std::uint32_t width, std::uint32_t bytes,
                    double seconds) {
  std::uint32_t groups = std::max(1u, device.facts().units) * k_groups_per_unit;
  const std::uint32_t groups_max = std::max(groups, k_rate_groups_max);
  TRY_ASSIGN(const BufferPtr out, device.allocate(std::uint64_t{groups_max} * 256 * bytes));
  std::uint32_t turns = k_lane_steps / k_turn_steps / width;
  const Work work = [&] { return device.launch(kernel, groups, 1, {out.get(), 1.3f, turns}); };
  TRY_ASSIGN(double time, settle(device, work, seconds));
  while (time < k_launch_seconds && turns < 1u << 20) {
    if (groups <= groups_max / 2) groups *= 2;
    else turns *= 2;
    TRY_ASSIGN(time, time_of(device, work));
  }
  TRY_ASSIGN(const double best, best_of(device, work, seconds));
  return 2.0 * k_turn_steps * turns * width * groups * 256 / best * 1e-9;
}

Result<void> vector_rates(Device& device, const Parameters& parameters, const char* type, std::uint32_t bytes,
                          const char* name) {
  double best = 0;
  for (std::uint32_t width = 1; width <= device.facts().vector_width_max; width *= 2) {
    TRY_ASSIGN(const double gflops, rate(device, "rate_" + std::string(type) + "_" + std::to_string(width), width,
                                         bytes, share(parameters) / 2));
    best = std::max(best, gflops);
  }
  say_number(name, best);
  return {};
}

Result<double> fma_rate(Device& device, double seconds) {
  const std::uint32_t groups = std::max(1u, device.facts().units) * k_groups_per_unit, steps = 4096;
  TRY_ASSIGN(const BufferPtr out, device.allocate(groups * 4ull));
  const std::uint64_t seed = os::random_u64();
  const Work work = [&] {
    return device.launch(
        "fma_f32", groups, 1,
        {out.get(), static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0u, steps});
  };
  TRY(settle(device, work, seconds));
  TRY_ASSIGN(const double best, best_of(device, work, seconds));
  return probe::FmaChallenge{0, groups, steps}.flops() / best * 1e-9;
}

std::uint64_t traffic_bytes(Device& device) {
  const DeviceFacts& facts = device.facts();
  const std::uint64_t wanted = facts.kind == "cpu" ? k_traffic_cpu : k_traffic_gpu;
  return std::min({wanted, facts.allocation_bytes_max, device.free_bytes() / 4}) / (1u << 20) * (1u << 20);
}

Result<double> read_rate(Device& device, const Parameters& parameters, Buffer& from, std::uint64_t bytes) {
  const double seconds = share(parameters) / 2;
  double best = 0;
  if (device.facts().vector_width_max == 1) {
    const auto vectors = static_cast<std::uint32_t>(bytes / 16);
    const std::uint32_t groups = vectors / (256 * 16);
    TRY_ASSIGN(const BufferPtr out, device.allocate(groups * 4ull));
    const Work work = [&] { return device.launch("read_memory", groups, 1, {&from, out.get(), vectors}); };
    TRY(settle(device, work, seconds));
    TRY_ASSIGN(const double time, best_of(device, work, seconds));
    return static_cast<double>(bytes) / time * 1e-9;
  }
  for (std::uint32_t width = 1; width <= device.facts().vector_width_max; width *= 2) {
    const std::uint64_t group_bytes = std::uint64_t{256} * 16 * width * 4;
    const auto groups = static_cast<std::uint32_t>(bytes / group_bytes);
    TRY_ASSIGN(const BufferPtr out, device.allocate(groups * 256ull * 4));
    const Work work = [&] { return device.launch("read_" + std::to_string(width), groups, 1, {&from, out.get()}); };
    TRY(settle(device, work, seconds));
    TRY_ASSIGN(const double time, best_of(device, work, seconds));
    best = std::max(best, static_cast<double>(groups * group_bytes) / time * 1e-9);
  }
  return best;
}

// The first turn is not timed, because untouched memory is only allocated then. Turns are as short as can be timed, so
// that some are free of the host's other work.
Result<double> copy_rate(Device& device, Buffer& buffer, void* host, std::uint64_t bytes, Direction direction) {
  std::uint32_t times = 1;
  const Work work = [&]() -> Result<void> {
    for (std::uint32_t i = 0; i < times; ++i) TRY(device.copy(buffer, host, bytes, direction));
    return {};
  };
  TRY(time_of(device, work));
  TRY_ASSIGN(const double once, time_of(device, work));
  times = static_cast<std::uint32_t>(std::clamp(k_copy_turn_seconds / once, 1.0, 64.0));
  TRY_ASSIGN(const double time, best_of(device, work, k_copy_seconds));
  return static_cast<double>(bytes) * times / time * 1e-9;
}

Result<void> copy_rates(Device& device, Buffer& buffer, void* host, std::uint64_t bytes, const std::string& how) {
  std::memset(host, 1, bytes);
  TRY_ASSIGN(const double there, copy_rate(device, buffer, host, bytes, Direction::to_device));
  say_number("h2d" + how + "_gbs", there);
  TRY_ASSIGN(const double back, copy_rate(device, buffer, host, bytes, Direction::to_host));
  say_number("d2h" + how + "_gbs", back);
  return {};
}

std::uint64_t copied_bytes(Device& device) {
  return std::min({k_copy_bytes, device.facts().allocation_bytes_max, device.free_bytes() / k_memory_share}) &
         ~((1ull << 20) - 1);
}

}  // namespace

Result<void> test_rates(Device& device, const Parameters& parameters) {
  TRY(hear_seed());
  if (device.facts().vector_width_max == 1) {
    TRY_ASSIGN(const double gflops, fma_rate(device, share(parameters)));
    say_number("fp32_gflops", gflops);
    return {};
  }
  TRY(vector_rates(device, parameters, "f32", 4, "fp32_gflops"));
  if (device.facts().half) TRY(vector_rates(device, parameters, "f16", 2, "fp16_gflops"));
  return {};
}

Result<void> test_memory(Device& device, const Parameters& parameters) {
  TRY(hear_seed());
  const std::uint64_t bytes = traffic_bytes(device);
  TRY_ASSIGN(const BufferPtr from, device.allocate(bytes));
  TRY_ASSIGN(const BufferPtr to, device.allocate(bytes));
  // Fills with other values than zeros, because some memories and caches compress zeros.
  TRY(device.launch("fill_memory", static_cast<std::uint32_t>(bytes >> 20), 1, {from.get(), 1u, 2u, 0u, 1u << 18}));
  TRY_ASSIGN(const double read, read_rate(device, parameters, *from, bytes));
  say_number("read_gbs", read);
  const auto vectors = static_cast<std::uint32_t>(bytes / 16);
  const Work copy = [&] {
    return device.launch("copy_memory", vectors / (256 * 16), 1, {from.get(), to.get(), vectors});
  };
  TRY(settle(device, copy, share(parameters)));
  TRY_ASSIGN(const double time, best_of(device, copy, share(parameters)));
  say_number("copy_gbs", 2.0 * static_cast<double>(bytes) / time * 1e-9);
  return {};
}

Result<void> test_copies(Device& device, const Parameters&) {
  TRY(hear_seed());
  const std::uint64_t bytes = copied_bytes(device);
  TRY_ASSIGN(const BufferPtr buffer, device.allocate(bytes));
  {
    TRY_ASSIGN(const LockedMemoryPtr locked, device.lock_memory(bytes));
    TRY(copy_rates(device, *buffer, locked->bytes(), bytes, ""));
  }
  {
    std::vector<std::byte> pageable(bytes);
    TRY(copy_rates(device, *buffer, pageable.data(), bytes, "_pageable"));
  }
  return {};
}

Result<void> test_peer(Device& device, const Parameters& parameters) {
  TRY(hear_seed());
  const std::uint64_t bytes = copied_bytes(device);
  const auto other = static_cast<std::uint32_t>(parameters.number("peer", 0));
  TRY_ASSIGN(const double time, device.peer_copy(other, bytes, k_peer_times));
  say_number("peer_gbs", static_cast<double>(bytes) * k_peer_times / time * 1e-9);
  return {};
}

Result<void> test_sustain(Device& device, const Parameters& parameters) {
  const double seconds = static_cast<double>(std::min<std::uint64_t>(parameters.number("seconds", 60), k_series_max));
  TRY_ASSIGN(Gemm gemm, Gemm::make(device, parameters));
  TRY(hear_seed());
  std::string series;
  const double began = now_seconds();
  double first = 0, worst = 0, last = 0;
  for (int second = 0; now_seconds() - began < seconds; ++second) {
    double flops = 0;
    const double start = now_seconds();
    while (now_seconds() - start < 1.0) {
      if (flops == 0 || gemm.done()) TRY(gemm.begin(os::random_u64()));
      TRY(gemm.run_batch());
      TRY(device.finish());
      flops += gemm.batch_flops();
    }
    last = flops / (now_seconds() - start) * 1e-9;
    first = std::max(first, second < 5 ? last : 0);  // the clocks may still rise in the first seconds
    worst = worst == 0 ? last : std::min(worst, last);
    series += (series.empty() ? "" : " ") + std::to_string(static_cast<std::uint64_t>(last));
  }
  say_number("first_gflops", first);
  say_number("worst_gflops", worst);
  say_number("last_gflops", last);
  say_text("series_gflops", series);
  return {};
}

}  // namespace gridctl::gpubench
