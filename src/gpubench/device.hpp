// SPDX-License-Identifier: Apache-2.0
// Represents one GPU for the tests, with any driver behind it. One thread, one device, one in-order queue. The order of
// the tests, their sizes and their clock are in challenges.cpp and measures.cpp; another driver is one more file with a
// Backend, and its row in main.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace gridctl::gpubench {

// Holds the driver's facts about a device.
struct DeviceFacts {
  std::string backend;  // "cuda" or "opencl"
  std::string kind;     // "gpu", "cpu", "other"
  std::string name, vendor, driver;
  std::string uuid;  // as the vendor's tools write it, empty when the driver does not tell
  std::string pci;   // "00000000:01:00.0", likewise
  std::string pci_device;  // "10de:2335" as the kernel has it, empty when the kernel shows no such device
  std::string isa;   // "sm_90"
  std::uint64_t memory_bytes = 0;
  std::uint64_t allocation_bytes_max = 0;  // of one buffer
  std::uint32_t units = 0;                 // multiprocessors, compute units
  std::uint32_t clock_mhz = 0;
  std::uint32_t memory_bus_bits = 0;   // 0: the driver does not tell
  std::uint32_t vector_width_max = 1;  // of the kernels that only measure (rates.cl): 1 = compiled for single lanes
  bool half = false;                   // those kernels exist in 16 bits too
  bool tensor = false;                 // matrix units in 16 bits that our kernels use
  bool bf16 = false;                   // also in bfloat16
  bool wide = false;                   // its driver has compiled the kernels for its generation's own matrix instructions
};

// Owns a buffer in the device's memory.
class Buffer {
 public:
  virtual ~Buffer() = default;
};
using BufferPtr = std::unique_ptr<Buffer>;

// Owns memory of the host that the driver has locked for copies.
class LockedMemory {
 public:
  virtual ~LockedMemory() = default;
  [[nodiscard]] virtual void* bytes() = 0;
};
using LockedMemoryPtr = std::unique_ptr<LockedMemory>;

using Argument = std::variant<std::uint32_t, float, Buffer*>;

enum class Direction : std::uint8_t { to_device, to_host };

// Represents an open device, which outlives its buffers.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  [[nodiscard]] virtual Result<BufferPtr> allocate(std::uint64_t bytes) = 0;
  // Returns the bytes that may be allocated now, according to the driver if it reports them.
  [[nodiscard]] virtual std::uint64_t free_bytes() = 0;
  // Queues `kernel` on columns x rows groups of the number of lanes for which it was written.
  [[nodiscard]] virtual Result<void> launch(const std::string& kernel, std::uint32_t columns, std::uint32_t rows,
                                            const std::vector<Argument>& arguments) = 0;
  // Queues C = A B^T with the maker's own library: rows x inner and columns x inner in bf16, C in fp32. Fails with
  // unsupported if there is none.
  [[nodiscard]] virtual Result<void> multiply(Buffer&, Buffer&, Buffer&, std::uint32_t /*rows*/,
                                              std::uint32_t /*columns*/, std::uint32_t /*inner*/) {
    return make_error(Code::unsupported, "no library multiplies matrices on this device");
  }
  [[nodiscard]] virtual Result<void> finish() = 0;
  [[nodiscard]] virtual Result<void> clear(Buffer& buffer, std::uint64_t bytes) = 0;  // zeros, queued
  // Queues a copy between the buffer and memory of the host, whether page-locked or not.
  [[nodiscard]] virtual Result<void> copy(Buffer& buffer, void* host, std::uint64_t bytes, Direction direction) = 0;
  [[nodiscard]] virtual Result<LockedMemoryPtr> lock_memory(std::uint64_t bytes) = 0;
  // Returns the seconds for `times` copies of `bytes` to another device; unsupported if there is no way.
  [[nodiscard]] virtual Result<double> peer_copy(std::uint32_t other, std::uint64_t bytes, std::uint32_t times) = 0;
};

// Copies from the device and waits.
[[nodiscard]] Result<void> read(Device& device, Buffer& buffer, void* into, std::uint64_t bytes);

// Describes a driver's library.
struct Backend {
  std::string_view name;
  // Lists its devices. unsupported: the library does not exist here.
  Result<std::vector<DeviceFacts>> (*list)();
  // Opens the device at that place in the list.
  Result<std::unique_ptr<Device>> (*open)(std::uint32_t index);
};
extern const Backend k_cuda, k_opencl;

// Returns the ids of vendor and device at a PCI address, from /sys: "10de:2335".
[[nodiscard]] std::string pci_device_at(std::string_view address);
// Writes "8d1c…" as 8-4-4-4-12 digits.
[[nodiscard]] std::string uuid_digits(const std::array<unsigned char, 16>& id);

}  // namespace gridctl::gpubench
