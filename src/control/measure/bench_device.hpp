// SPDX-License-Identifier: Apache-2.0
// Runs the tests of one device over a connection and gathers the results for the verdict. Internal to control.
#pragma once

#include "control/measure/bench.hpp"

namespace gridctl::control {

// Arguments of the program that tests GPUs.
inline constexpr std::string_view k_cuda = "cuda", k_opencl = "opencl", k_gpu_kind = "gpu";

// Sends requests over one connection, one after another.
class BenchConversation {
 public:
  explicit BenchConversation(const BenchTalk& talk) : talk_(talk) {}
  // Returns the payload of the reply; an error reply becomes that error. `fatal` says whether the link itself is at
  // fault.
  [[nodiscard]] Result<std::string> ask(const std::string& payload, Duration patience);
  [[nodiscard]] Result<void> send(const std::string& payload);
  [[nodiscard]] Result<std::string> receive(Duration patience);
  [[nodiscard]] bool broken() const { return broken_; }
  // Returns the shortest of a few exchanges that cost the host nothing.
  [[nodiscard]] Result<Duration> round_trip();
  [[nodiscard]] const BenchTalk& talk() const { return talk_; }

 private:
  const BenchTalk& talk_;
  std::uint32_t stream_ = 100;
  bool broken_ = false;
};

// Describes a device as the host's driver shows it, and the GPU of the inventory that it is.
struct BenchTarget {
  // Describes another device of the same backend.
  struct Neighbour {
    std::string uuid, name;
    std::uint32_t index = 0;  // as the driver counts
    std::size_t place = 0;    // in the inventory
    bool linked = false;      // by NVLink or the like, not by way of PCIe
  };
  Gpu gpu;
  std::string backend;  // empty: no driver shows it
  std::uint32_t index = 0;
  std::string missing;               // then: why
  bool unproven = false;             // then: there is no driver's library that could show it
  std::uint64_t foreign_memory = 0;  // bytes of it that other programs hold, by the host's tools
  std::vector<Neighbour> neighbours;
};
[[nodiscard]] std::vector<BenchTarget> targets_of(const Inventory& inventory, const wire::BenchDevices& devices);

// Runs the tests and judges. Errors are the link's.
[[nodiscard]] Result<GpuBench> bench_device(BenchConversation& conversation, const BenchTarget& target,
                                            const BenchOptions& options, Duration round_trip);

}  // namespace gridctl::control
