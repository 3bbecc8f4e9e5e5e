// SPDX-License-Identifier: Apache-2.0
// The tests that only this machine's clock times. What they say is believed as far as the challenges bear it out.
#include <algorithm>
#include <array>

#include "gpubench/gemm.hpp"
#include "gpubench/stopwatch.hpp"
#include "gpubench/work.hpp"
#include "os/random.hpp"

namespace gridctl::gpubench {
namespace {

constexpr double k_launch_seconds = 0.05;            // of one launch: far above the cost of starting it
constexpr std::uint32_t k_groups_per_unit = 32;      // keeps every unit busy whatever the scheduler does
constexpr std::uint64_t k_traffic_gpu = 1ull << 30;  // bytes: far beyond any cache of a GPU
constexpr std::uint64_t k_traffic_cpu = 128ull << 20;
constexpr std::uint64_t k_copy_bytes = 128ull << 20;
constexpr std::uint32_t k_copy_times = 8;
constexpr std::uint32_t k_series_max = 600;  // values of the sustained run's series

double share(const Parameters& parameters) { return static_cast<double>(parameters.number("part_ms", 600)) / 1000; }

// The best rate of `kernel`, in multiply-adds of `width` a lane. Turns are raised until a launch is long enough.
Result<double> rate(Device& device, const std::string& kernel, std::uint32_t width, std::uint32_t bytes,
                    double seconds) {
  const std::uint32_t groups = std::max(1u, device.facts().units) * k_groups_per_unit;
  TRY_ASSIGN(const BufferPtr out, device.allocate(std::uint64_t{groups} * 256 * bytes));
  std::uint32_t turns = 8;
  const Work work = [&] { return device.launch(kernel, groups, 1, {out.get(), 1.3f, turns}); };
  TRY_ASSIGN(double time, settle(device, work, seconds));
  while (time < k_launch_seconds && turns < 1u << 20) {
    turns *= 2;
    TRY_ASSIGN(time, time_of(device, work));
  }
  TRY_ASSIGN(const double best, best_of(device, work, seconds));
  return 2.0 * 64 * turns * width * groups * 256 / best * 1e-9;
}

Result<void> vector_rates(Device& device, const Parameters& parameters, const char* type, std::uint32_t bytes,
                          const char* name) {
  double best = 0;
  for (const std::uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
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
  if (device.facts().backend == "cuda") {
    const auto vectors = static_cast<std::uint32_t>(bytes / 16);
    const std::uint32_t groups = vectors / (256 * 16);
    TRY_ASSIGN(const BufferPtr out, device.allocate(groups * 4ull));
    const Work work = [&] { return device.launch("read_memory", groups, 1, {&from, out.get(), vectors}); };
    TRY(settle(device, work, seconds));
    TRY_ASSIGN(const double time, best_of(device, work, seconds));
    return static_cast<double>(bytes) / time * 1e-9;
  }
  for (const std::uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
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

Result<double> transfer_rate(Device& device, Buffer& buffer, std::uint64_t bytes, Direction direction, bool pinned) {
  const Work work = [&] { return device.transfer(buffer, bytes, direction, pinned, k_copy_times); };
  TRY_ASSIGN(const double time, best_of(device, work, 0.3));
  return static_cast<double>(bytes) * k_copy_times / time * 1e-9;
}

}  // namespace

Result<void> test_rates(Device& device, const Parameters& parameters) {
  TRY(hear_seed());
  if (device.facts().backend == "cuda") {
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
  // Not zeros: some memories and caches compress them.
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

Result<void> test_copies(Device& device, const Parameters& parameters) {
  TRY(hear_seed());
  const std::uint64_t bytes = std::min(k_copy_bytes, device.facts().allocation_bytes_max);
  TRY_ASSIGN(const BufferPtr buffer, device.allocate(bytes));
  struct Way {
    const char* name;
    Direction direction;
    bool pinned;
  };
  static constexpr std::array k_ways{
      Way{"h2d_gbs", Direction::to_device, true}, Way{"d2h_gbs", Direction::to_host, true},
      Way{"h2d_pageable_gbs", Direction::to_device, false}, Way{"d2h_pageable_gbs", Direction::to_host, false}};
  for (const Way& way : k_ways) {
    TRY_ASSIGN(const double gbs, transfer_rate(device, *buffer, bytes, way.direction, way.pinned));
    say_number(way.name, gbs);
  }
  for (std::uint64_t other = 0; other < parameters.number("devices", 0); ++other) {
    const Result<double> time = device.peer_copy(static_cast<std::uint32_t>(other), bytes, k_copy_times);
    if (time)
      say_number("peer_" + std::to_string(other) + "_gbs", static_cast<double>(bytes) * k_copy_times / *time * 1e-9);
  }
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
