// SPDX-License-Identifier: Apache-2.0
// Judges whether a GPU performs as its model should. Measured figures against the catalogue's, with a band for each
// kind
// of test and tool. Pure.
//
// A name that its own architecture, memory, units or PCI device contradict is a mismatch, and so is a driver that
// contradicts the tools. A device of no known model is unverified.
// fraction = measured / nominal. Inside the band: ok. Below it: degraded, with the cause if the host's own tools show
// it.
// Below half of it: mismatch, it is another device. Above it: suspect, because no device is faster than its model:
// wrong
// model, faked driver, wrong clock. An unconfirmed row's figures never make a verdict worse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sched/catalogue/catalogue.hpp"

namespace gridctl::sched {

enum class Metric : std::uint8_t {
  fp32,          // multiply-adds of the vector units
  gemm_fp32,     // matrix products in fp32
  gemm_tf32,     //
  gemm16,        // in fp16 or bf16, accumulated in fp32
  gemm16_short,  // accumulated in fp16
  gemm8,         // in fp8
  memory_read,
  memory_copy,         // read and written bytes
  memory_fill,         // written and read back once, by the controller's clock: a lower bound
  host_copy,           // between host and device, page-locked
  host_copy_pageable,  //
  host_copy_shared,    // one of both directions at once
  peer_copy,           // to another device, one direction
  collective,          // of several devices, bus bandwidth
  collective_message,  // the same with messages too small to fill the link
  network,             // between hosts, point to point
};
[[nodiscard]] std::string_view metric_name(Metric metric);  // "memory_read"

// Names the tool that measured: bands differ between tools.
enum class Tool : std::uint8_t {
  gridctl_cuda,    // our kernels: portable matrix instructions, which newer chips run below their peak
  gridctl_opencl,  // our kernels by OpenCL
  clpeak,          // by OpenCL
  vendor,          // the maker's own tuned libraries: cuBLAS, hipBLASLt, PyTorch, nvbandwidth, NCCL
};

// Holds one figure: TFLOPS for rates, 1e9 bytes a second for bandwidths.
struct Reading {
  Metric metric = Metric::fp32;
  Tool tool = Tool::vendor;
  double value = 0;
};

// Returns the nominal figure of a model; nullopt if the catalogue has none (the model cannot do it, or the figure is
// unknown).
[[nodiscard]] std::optional<double> nominal(const GpuModel& model, Metric metric);
// Returns the band of a test by a tool on a device of that family (GpuModel::family). `model`, if given, narrows it.
[[nodiscard]] Band band_of(Metric metric, Tool tool, std::string_view family, const GpuModel* model = nullptr);

// Lists the verdicts by severity. unverified: nothing is wrong, but no model is known for a comparison.
enum class VerdictKind : std::uint8_t { ok, unverified, degraded, suspect, mismatch };
[[nodiscard]] std::string_view verdict_name(VerdictKind kind);  // "ok"
[[nodiscard]] std::optional<VerdictKind> parse_verdict(std::string_view name);
// Returns the number that stands for a verdict among a host's figures; its meaning never changes.
[[nodiscard]] double verdict_figure(VerdictKind kind);
[[nodiscard]] std::optional<VerdictKind> verdict_of_figure(double figure);

[[nodiscard]] VerdictKind judge_fraction(double fraction, const Band& band);

struct GpuFinding {
  VerdictKind kind = VerdictKind::ok;
  // machine word: a metric's name, "name", "model", "units", "memory", "answer", "clock", "driver", "ratio", "drift"
  std::string what;
  std::string text;  // for people: measured, expected, why
  bool operator==(const GpuFinding&) const = default;
};
struct GpuVerdict {
  VerdictKind kind = VerdictKind::ok;
  std::string cause;                 // of degraded: "power cap 300 of 450 W", or empty when nothing tells it
  std::vector<GpuFinding> findings;  // all that was compared, the gravest first
  std::vector<std::string> notes;    // what could not be compared and why
  bool operator==(const GpuVerdict&) const = default;
};

// Holds what the driver reports about a device, in the process that runs the tests. Empty: it does not report that.
struct DriverFacts {
  std::string name;
  std::string uuid;
  std::string isa;         // "sm_90"
  std::string pci_device;  // "10de:2335", as the kernel has it
};

// Holds the findings of one test run of a device.
struct Examination {
  Gpu declared;                            // as the inventory has it: model, memory, units, PCIe, power
  DriverFacts driver;                      //
  std::vector<Reading> readings;           //
  std::optional<std::uint32_t> units;      // as the driver tells it
  double memory_reported = 0;              // bytes, as the driver tells it
  double memory_hashed = 0;                // bytes that were filled and came back right; 0 = not tested
  std::vector<std::string> wrong_answers;  // challenges that failed, and why
  std::vector<std::string> wrong_clocks;   // times that cannot be, by the controller's clock
  std::string no_device;                   // the driver shows no such device, or hangs: why
  std::string unproven;                    // there is no driver that could show it
  double sustained = 0;                    // last rate of the sustained run as a part of the first; 0 = not tested
  std::uint64_t foreign_memory = 0;        // bytes that other programs hold
  std::optional<Gpu> loaded;               // the inventory's view while the device was under load
};
[[nodiscard]] GpuVerdict judge(const Examination& examination);
// Slow speed counts only if two runs find it: removes from the second run's verdict what the first run did not find. A
// doubt that is not a figure (an answer, a name, the driver) needs no second run.
[[nodiscard]] GpuVerdict confirmed(const GpuVerdict& first, GpuVerdict second);
// Returns whether a second run could clear a doubt of this verdict.
[[nodiscard]] bool deserves_another_run(const GpuVerdict& verdict);

// Tracks a figure over time. The baseline is an exponentially weighted mean of medians of nine: outliers do not move
// it.
struct Trend {
  std::vector<double> last;  // at most nine, oldest first
  double baseline = 0;       // 0: nothing yet
  bool operator==(const Trend&) const = default;
};
void extend(Trend& trend, double value);
// Returns how far it has fallen: 0.15 = 15 % below the baseline; judged by the median of the last three.
[[nodiscard]] double fall_of(const Trend& trend);
inline constexpr double k_drift_alert = 0.10;

}  // namespace gridctl::sched
