// SPDX-License-Identifier: Apache-2.0
// Declares the few functions of OpenCL 1.2 that are used, so that building needs no OpenCL. Values: the Khronos
// specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridctl::gpubench::cl {

using Platform = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Mem = struct MemTag*;
using Program = struct ProgramTag*;
using Kernel = struct KernelTag*;
using Event = struct EventTag*;
using Int = std::int32_t;
using Uint = std::uint32_t;
using Flags = std::uint64_t;

inline constexpr Int k_success = 0;
inline constexpr Flags k_any_device = 0xffffffffu;
inline constexpr Flags k_type_cpu = 1u << 1, k_type_gpu = 1u << 2;
inline constexpr Flags k_read_write = 1u << 0, k_alloc_host = 1u << 4;
inline constexpr Flags k_map_read = 1u << 0, k_map_write = 1u << 1;
enum DeviceInfo : Uint {
  k_device_type = 0x1000,
  k_device_units = 0x1002,
  k_device_clock = 0x100c,
  k_device_allocation_max = 0x1010,
  k_device_memory = 0x101f,
  k_device_name = 0x102b,
  k_device_vendor = 0x102c,
  k_driver_version = 0x102d,
  k_device_extensions = 0x1030,
  k_device_topology_amd = 0x4037,
  k_device_board_name_amd = 0x4038,
  k_device_uuid_khr = 0x106a,
  k_device_pci_khr = 0x410f,
};
inline constexpr Uint k_build_log = 0x1183;

// Holds the entry points, in the library's calling convention, filled by name; all exist, otherwise the library is
// refused.
struct Api {
  Int (*clGetPlatformIDs)(Uint, Platform*, Uint*);
  Int (*clGetDeviceIDs)(Platform, Flags, Uint, DeviceId*, Uint*);
  Int (*clGetDeviceInfo)(DeviceId, Uint, std::size_t, void*, std::size_t*);
  Context (*clCreateContext)(const std::intptr_t*, Uint, const DeviceId*, void*, void*, Int*);
  Int (*clReleaseContext)(Context);
  Queue (*clCreateCommandQueue)(Context, DeviceId, Flags, Int*);
  Int (*clReleaseCommandQueue)(Queue);
  Mem (*clCreateBuffer)(Context, Flags, std::size_t, void*, Int*);
  Int (*clReleaseMemObject)(Mem);
  Program (*clCreateProgramWithSource)(Context, Uint, const char**, const std::size_t*, Int*);
  Int (*clBuildProgram)(Program, Uint, const DeviceId*, const char*, void*, void*);
  Int (*clGetProgramBuildInfo)(Program, DeviceId, Uint, std::size_t, void*, std::size_t*);
  Int (*clReleaseProgram)(Program);
  Kernel (*clCreateKernel)(Program, const char*, Int*);
  Int (*clReleaseKernel)(Kernel);
  Int (*clSetKernelArg)(Kernel, Uint, std::size_t, const void*);
  Int (*clEnqueueNDRangeKernel)(Queue, Kernel, Uint, const std::size_t*, const std::size_t*, const std::size_t*, Uint,
                                const Event*, Event*);
  Int (*clEnqueueFillBuffer)(Queue, Mem, const void*, std::size_t, std::size_t, std::size_t, Uint, const Event*,
                             Event*);
  Int (*clEnqueueReadBuffer)(Queue, Mem, Uint, std::size_t, std::size_t, void*, Uint, const Event*, Event*);
  Int (*clEnqueueWriteBuffer)(Queue, Mem, Uint, std::size_t, std::size_t, const void*, Uint, const Event*, Event*);
  void* (*clEnqueueMapBuffer)(Queue, Mem, Uint, Flags, std::size_t, std::size_t, Uint, const Event*, Event*, Int*);
  Int (*clEnqueueUnmapMemObject)(Queue, Mem, void*, Uint, const Event*, Event*);
  Int (*clFinish)(Queue);
};

}  // namespace gridctl::gpubench::cl
