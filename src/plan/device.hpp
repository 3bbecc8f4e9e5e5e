// SPDX-License-Identifier: Apache-2.0
// Describes the machines of a plan: the speed of their GPUs, and of the links between them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "plan/parallelism.hpp"
#include "sched/catalogue/catalogue.hpp"

namespace gridctl::plan {

// Names the class of GPU, which selects the shipped coefficients.
enum class GpuClass : std::uint8_t { ampere, hopper, blackwell, other, cpu };
[[nodiscard]] std::string_view text_of(GpuClass value);

struct Device {
  std::string name;
  GpuClass gpu_class = GpuClass::other;
  double memory = 0;      // bytes a program can have
  double flops_bf16 = 0;  // peak, dense, a second
  double flops_fp8 = 0, flops_fp4 = 0, flops_fp32 = 0;
  double memory_rate = 0;  // bytes a second
  [[nodiscard]] double peak(Precision precision) const;
};

struct Cluster {
  Device device;
  int gpus_per_node = 8;
  int fast_domain = 8;    // GPUs that the fast link joins; more than a node where racks are wired so
  double node_link = 0;   // bytes a second each GPU sends to its peers in the domain
  double inter_link = 0;  // bytes a second each GPU sends to other nodes
  double host_memory = 0;  // bytes of a node's own memory; 0: not known, and nothing is refused for it
  double host_link = 12e9;  // bytes a second between a GPU and its node's memory, as copies of trainers reach
};

// Returns whether the model is sold for data centres, not for desktops and workstations.
[[nodiscard]] bool data_centre(const sched::GpuModel& model);
// Converts a catalogue row. GB of an estimate are 1e9 bytes; the part of the nominal memory that drivers leave counts
// as all of it.
[[nodiscard]] Device device_of(const sched::GpuModel& model);
[[nodiscard]] Device device_of_figures(double memory_gb, double tflops);
// Describes a cluster with the model's own links, and a network card for each GPU, as such machines are sold.
[[nodiscard]] Cluster cluster_of(const Device& device, const sched::GpuModel* model, int gpus_per_node);
// Parses "1Gbps", "400 Gbit/s", "100Mbit/s" into bytes a second.
[[nodiscard]] std::optional<double> bytes_per_second_of(std::string_view text);
// Parses "8x200Gb/s HDR IB per node", "400 Gb/s per GPU" into bytes a second for each GPU; nullopt if it states none.
[[nodiscard]] std::optional<double> inter_link_of(std::string_view text, int gpus_per_node);
// Returns the catalogue's row, also for the longer names that people write ("H100-SXM5-80GB", "A100 40GB").
[[nodiscard]] Result<const sched::GpuModel*> gpu_named(std::string_view name);

}  // namespace gridctl::plan
