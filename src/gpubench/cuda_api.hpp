// SPDX-License-Identifier: Apache-2.0
// Declares the few functions of the CUDA driver API that are used, so that building needs no CUDA. Values: its
// reference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridctl::gpubench::cuda {

using Result = int;  // 0 = success
using DeviceNumber = int;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Pointer = std::uint64_t;  // into a device's memory

inline constexpr Result k_success = 0, k_out_of_memory = 2;
inline constexpr int k_max_dynamic_shared_bytes = 8;  // of a function
enum Attribute : int {
  k_clock_khz = 13,
  k_multiprocessors = 16,
  k_memory_bus_bits = 37,
  k_capability_major = 75,
  k_capability_minor = 76,
};

// Holds the entry points, filled by name; all exist since CUDA 9, otherwise the library is refused.
struct Api {
  Result (*cuInit)(unsigned);
  Result (*cuDriverGetVersion)(int*);
  Result (*cuGetErrorString)(Result, const char**);
  Result (*cuDeviceGetCount)(int*);
  Result (*cuDeviceGet)(DeviceNumber*, int);
  Result (*cuDeviceGetName)(char*, int, DeviceNumber);
  Result (*cuDeviceGetUuid)(unsigned char*, DeviceNumber);
  Result (*cuDeviceGetPCIBusId)(char*, int, DeviceNumber);
  Result (*cuDeviceGetAttribute)(int*, int, DeviceNumber);
  Result (*cuDeviceTotalMem_v2)(std::size_t*, DeviceNumber);
  Result (*cuDevicePrimaryCtxRetain)(Context*, DeviceNumber);
  Result (*cuDevicePrimaryCtxRelease)(DeviceNumber);
  Result (*cuCtxSetCurrent)(Context);
  Result (*cuCtxSynchronize)();
  Result (*cuModuleLoadData)(Module*, const void*);
  Result (*cuModuleUnload)(Module);
  Result (*cuModuleGetFunction)(Function*, Module, const char*);
  Result (*cuLaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                           void**, void**);
  Result (*cuFuncSetAttribute)(Function, int, int);
  Result (*cuMemGetInfo_v2)(std::size_t*, std::size_t*);
  Result (*cuMemAlloc_v2)(Pointer*, std::size_t);
  Result (*cuMemFree_v2)(Pointer);
  Result (*cuMemAllocHost_v2)(void**, std::size_t);
  Result (*cuMemFreeHost)(void*);
  Result (*cuMemsetD8_v2)(Pointer, unsigned char, std::size_t);
  Result (*cuMemcpyDtoHAsync_v2)(void*, Pointer, std::size_t, Stream);
  Result (*cuMemcpyHtoDAsync_v2)(Pointer, const void*, std::size_t, Stream);
  Result (*cuDeviceCanAccessPeer)(int*, DeviceNumber, DeviceNumber);
  Result (*cuCtxEnablePeerAccess)(Context, unsigned);
  Result (*cuMemcpyPeerAsync)(Pointer, Context, Pointer, Context, std::size_t, Stream);
};

}  // namespace gridctl::gpubench::cuda
