// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/text.hpp"
#include "sched/standing/verdict.hpp"

namespace gridctl::sched {
namespace {

constexpr double k_slack = 1.03;              // clocks and roundings; a GEMM of zeros reads 13 % too high
constexpr Band k_gemm_untold{0.3, 1.25};      // of families without matrix units
constexpr Band k_host_copy{0.75, 1.0};        // page-locked copies reach 0.82 to 0.90 of the bus
constexpr Band k_host_copy_shared{0.5, 1.0};  // 0.59 in each direction at once
constexpr Band k_host_copy_pageable{0.4, 1.0};
constexpr Band k_peer_copy{0.7, 1.05};
constexpr Band k_collective{0.6, 1.15};  // in-switch reductions read above one: bus bandwidth assumes a ring
// 16 MiB messages reach an eighth of the line rate, badly tuned fabrics less: no device is judged by these alone.
constexpr Band k_collective_message{0.04, 1.1};
constexpr Band k_network{0.6, 1.02};
constexpr double k_fill_low = 0.25;        // launches, the controller's round trip and a first touch are in that time
constexpr double k_short_accumulator = 2;  // GeForce runs fp8 at twice the rate when it accumulates in fp16

std::array<std::string_view, 16> const k_metric_names{"fp32",         "gemm_fp32",  "gemm_tf32",          "gemm16",
                                               "gemm16_short", "gemm8",      "memory_read",        "memory_copy",
                                               "memory_fill",  "host_copy",  "host_copy_pageable", "host_copy_shared",
                                               "peer_copy",    "collective", "collective_message", "network"};

// Returns the bands of a family, from any row of the catalogue that has them.
const GpuModel* example_of(std::string_view family) {
  for (const GpuModel& model : catalogue())
    if (model.family == family && model.memory_band) return &model;
  return nullptr;
}

// Our vector and copy kernels are slower than the makers' tools: these are the fractions that a genuine H200 reached
// with them (driver 580, November 2026); for a chip without such a measurement, the catalogue's band minus the H200's
// shortfall.
struct Reached {
  std::string_view isa;
  Metric metric;
  double fraction;
};
constexpr Reached k_reached[] = {{"sm_90", Metric::gemm16, 0.314},
                                 {"sm_90", Metric::fp32, 0.884},
                                 {"sm_90", Metric::memory_copy, 0.837},
                                 {"sm_90", Metric::memory_read, 0.946}};
constexpr double k_below_reached = 0.92;  // clocks, heat and boards differ by less
constexpr double k_below_tools = 0.93;

double low_of_our_kernels(const GpuModel* model, Metric metric, double low) {
  for (const Reached& one : k_reached)
    if (model != nullptr && model->isa == one.isa && one.metric == metric)
      return std::min(low, one.fraction * k_below_reached);
  return low * k_below_tools;
}

// Our matrix kernels use the instructions that every chip since its generation has. Newer chips reach their peak only
// with newer ones: mma.sync reaches at most 0.63 of Hopper's (wgmma), and an unknown part of Blackwell's (tcgen05).
double portable_part(const GpuModel* model) {
  if (model == nullptr) return 0.5;
  if (is_one_of(model->isa, {"sm_90"})) return 0.5;
  if (is_one_of(model->isa, {"sm_100", "sm_103"})) return 0.1;
  return 0.6;
}

Band gemm_band(const GpuModel* model, Metric metric, Tool tool, std::string_view family) {
  Band band = model != nullptr && model->gemm_band ? *model->gemm_band : k_gemm_untold;
  if (tool == Tool::gridctl_cuda) band.low = low_of_our_kernels(model, metric, band.low * portable_part(model));
  if (tool == Tool::gridctl_opencl) band.low *= 0.15;  // a plain tiled kernel
  if (metric == Metric::gemm8 && family == k_geforce_family) band.high *= k_short_accumulator;
  return band;
}

}  // namespace

std::string_view metric_name(Metric metric) { return k_metric_names[static_cast<std::size_t>(metric)]; }

std::optional<double> nominal(const GpuModel& model, Metric metric) {
  switch (metric) {
    case Metric::fp32:
    case Metric::gemm_fp32: return model.fp32;
    case Metric::gemm_tf32: return model.tf32;
    case Metric::gemm16: return model.bf16 ? model.bf16 : model.fp16;
    case Metric::gemm16_short: return model.fp16_short ? model.fp16_short : model.fp16;
    case Metric::gemm8: return model.fp8;
    case Metric::memory_read:
    case Metric::memory_copy:
    case Metric::memory_fill: return model.memory_gbs;
    case Metric::peer_copy:
    case Metric::collective:
    case Metric::collective_message:
      return model.link_gbs && *model.link_gbs > 0 ? std::optional(*model.link_gbs / 2) : std::nullopt;
    case Metric::host_copy:
    case Metric::host_copy_pageable:
    case Metric::host_copy_shared:
    case Metric::network: return std::nullopt;  // of the machine, not of the model
  }
  return std::nullopt;
}

Band band_of(Metric metric, Tool tool, std::string_view family, const GpuModel* model) {
  const GpuModel* row = model != nullptr ? model : example_of(family);
  Band band;
  switch (metric) {
    case Metric::fp32:
      band = row != nullptr && row->fp32_band ? *row->fp32_band : k_gemm_untold;
      if (tool == Tool::gridctl_cuda) band.low = low_of_our_kernels(row, metric, band.low);
      break;
    case Metric::gemm_fp32:
    case Metric::gemm_tf32:
    case Metric::gemm16:
    case Metric::gemm16_short:
    case Metric::gemm8: band = gemm_band(row, metric, tool, family); break;
    case Metric::memory_read:
    case Metric::memory_copy:
    case Metric::memory_fill:
      band = row != nullptr && row->memory_band ? *row->memory_band : Band{0.6, 0.97};
      if (metric == Metric::memory_fill) band.low = k_fill_low;
      else if (tool == Tool::gridctl_cuda) band.low = low_of_our_kernels(row, metric, band.low);
      if (tool == Tool::gridctl_opencl) band.low *= 0.9;  // OpenCL reads 10 to 15 points below the makers' tools
      break;
    case Metric::host_copy: band = k_host_copy; break;
    case Metric::host_copy_pageable: band = k_host_copy_pageable; break;
    case Metric::host_copy_shared: band = k_host_copy_shared; break;
    case Metric::peer_copy: band = k_peer_copy; break;
    case Metric::collective: band = k_collective; break;
    case Metric::collective_message: band = k_collective_message; break;
    case Metric::network: band = k_network; break;
  }
  band.high *= k_slack;
  return band;
}

}  // namespace gridctl::sched
