// SPDX-License-Identifier: Apache-2.0
// One GPU as the tests see it, whatever the driver behind it. One thread, one device, one in-order queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace gridctl::gpubench {

// What the driver says of a device.
struct DeviceFacts {
  std::string backend;  // "cuda" or "opencl"
  std::string kind;     // "gpu", "cpu", "other"
  std::string name, vendor, driver;
  std::string uuid;  // as the vendor's tools write it, empty when the driver does not tell
  std::string pci;   // "00000000:01:00.0", likewise
  std::string isa;   // "sm_90"
  std::uint64_t memory_bytes = 0;
  std::uint64_t allocation_bytes_max = 0;  // of one buffer
  std::uint32_t units = 0;                 // multiprocessors, compute units
  std::uint32_t clock_mhz = 0;
  bool half = false;    // arithmetic in 16 bits (OpenCL)
  bool tensor = false;  // matrix units in 16 bits that our kernels use
  bool bf16 = false;    // also in bfloat16
};

// A buffer in the device's memory; freed with it.
class Buffer {
 public:
  virtual ~Buffer() = default;
};
using BufferPtr = std::unique_ptr<Buffer>;

using Argument = std::variant<std::uint32_t, float, Buffer*>;

enum class Direction : std::uint8_t { to_device, to_host };

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  [[nodiscard]] virtual Result<BufferPtr> allocate(std::uint64_t bytes) = 0;
  // Bytes that may be allocated now; the driver's word where it has one.
  [[nodiscard]] virtual std::uint64_t free_bytes() = 0;
  // Queues `kernel` on columns x rows groups of 256 lanes.
  [[nodiscard]] virtual Result<void> launch(const std::string& kernel, std::uint32_t columns, std::uint32_t rows,
                                            const std::vector<Argument>& arguments) = 0;
  [[nodiscard]] virtual Result<void> finish() = 0;
  [[nodiscard]] virtual Result<void> clear(Buffer& buffer, std::uint64_t bytes) = 0;             // zeros, queued
  [[nodiscard]] virtual Result<void> read(Buffer& buffer, void* into, std::uint64_t bytes) = 0;  // waits
  // Copies `bytes` between the buffer and the host `times` times and waits; from page-locked memory or not.
  [[nodiscard]] virtual Result<void> transfer(Buffer& buffer, std::uint64_t bytes, Direction direction, bool pinned,
                                              std::uint32_t times) = 0;
  // Seconds for `times` copies of `bytes` to another device; unsupported where there is none.
  [[nodiscard]] virtual Result<double> peer_copy(std::uint32_t other, std::uint64_t bytes, std::uint32_t times) = 0;
};

// Every device of a driver's library. unsupported when the library is not there.
[[nodiscard]] Result<std::vector<DeviceFacts>> list_cuda();
[[nodiscard]] Result<std::vector<DeviceFacts>> list_opencl();
// The device at that place of the list.
[[nodiscard]] Result<std::unique_ptr<Device>> open_cuda(std::uint32_t index);
[[nodiscard]] Result<std::unique_ptr<Device>> open_opencl(std::uint32_t index);

}  // namespace gridctl::gpubench
