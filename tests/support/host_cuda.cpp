// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that runs on processors, for tests: two devices of 512 MiB whose memory is the host's and whose
// kernels are src/gpubench/kernels.cl, compiled here as CUDA C and run a group at a time, each lane on a stack of its
// own. Built from NVIDIA's description of the driver API and from no declaration of ours. Strict where a driver is: a
// call without a context, an address or size outside an allocation, a module that is no PTX, a wrong launch give its
// error codes.
//   HOST_CUDA_FAIL=NAME:N:CODE  the N-th call of that entry point since this was said fails so
#include <ucontext.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// --- kernels.cl, as nvcc would see it --------------------------------------------------------------------------------

namespace lanes {

struct Index {
  unsigned x = 0, y = 0;
};
Index thread_index, block_index, grid_size;
ucontext_t scheduler;
ucontext_t* running = nullptr;
void wait_for_the_group() { swapcontext(running, &scheduler); }

}  // namespace lanes

namespace kernels {

struct float4 {
  float x, y, z, w;
};
struct uint4 {
  unsigned x, y, z, w;
};
static_assert(sizeof(float4) == 16 && sizeof(uint4) == 16);
inline unsigned bits_of(float value) {
  unsigned bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float float_of(unsigned bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline void add(unsigned* to, unsigned value) { *to += value; }  // one lane runs at a time

#define __CUDACC__
#define __global__
#define __launch_bounds__(lanes)
#define __device__
#define __forceinline__ inline
#define __shared__ static  // one group runs at a time
#define threadIdx lanes::thread_index
#define blockIdx lanes::block_index
#define gridDim lanes::grid_size
#define __syncthreads lanes::wait_for_the_group
#define atomicAdd kernels::add
#define __fmaf_rn std::fmaf
#define __float_as_uint kernels::bits_of
#define __uint_as_float kernels::float_of
#include "gpubench/kernels.cl"

}  // namespace kernels

namespace {

constexpr int k_invalid_value = 1, k_out_of_memory = 2, k_not_initialized = 3, k_no_device = 101, k_bad_image = 200,
              k_invalid_context = 201, k_no_peer = 217, k_invalid_handle = 400, k_not_found = 500, k_peer_twice = 704;
constexpr int k_devices = 2, k_lanes = 256;
constexpr std::size_t k_memory = 512u << 20, k_stack = 64u << 10;

struct Kernel {
  std::function<void(void**)> run;
};
template <class... Arguments>
Kernel kernel(void (*entry)(Arguments...)) {
  return {[entry](void** at) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { entry(*static_cast<Arguments*>(at[I])...); }
    (std::index_sequence_for<Arguments...>{});
  }};
}
std::map<std::string, Kernel, std::less<>>& table() {
  static std::map<std::string, Kernel, std::less<>> all{
      {"make_f32", kernel(kernels::make_f32)},       {"gemm_f32", kernel(kernels::gemm_f32)},
      {"fma_f32", kernel(kernels::fma_f32)},         {"fill_memory", kernel(kernels::fill_memory)},
      {"hash_memory", kernel(kernels::hash_memory)}, {"read_memory", kernel(kernels::read_memory)},
      {"copy_memory", kernel(kernels::copy_memory)}};
  return all;
}

struct Context {
  int device = 0, retained = 0;
  std::set<Context*> peers;
};
struct Module {};
std::array<Context, k_devices> contexts;
Context* current = nullptr;
bool initialized = false;
std::map<std::uintptr_t, std::pair<std::size_t, int>> memory;  // address -> bytes, device
std::set<void*> locked;
std::set<Module*> modules;

int failure(const char* name) {
  static std::map<std::string, int> calls;
  static std::string former;
  const char* wanted = std::getenv("HOST_CUDA_FAIL");
  if (wanted != nullptr && former != wanted) calls.clear(), former = wanted;
  const int number = ++calls[name];
  const std::string start = std::string(name) + ":" + std::to_string(number) + ":";
  return wanted != nullptr && std::string_view(wanted).starts_with(start) ? std::atoi(wanted + start.size()) : 0;
}
#define MAY_FAIL() \
  if (const int code = failure(__func__); code != 0) return code
#define NEEDS_CONTEXT() \
  MAY_FAIL();           \
  if (current == nullptr || current->retained == 0) return k_invalid_context

// Of a device whose memory holds the whole range; -1 otherwise.
int owner_of(unsigned long long address, std::size_t bytes) {
  const auto after = memory.upper_bound(address);
  if (after == memory.begin()) return -1;
  const auto& [start, what] = *std::prev(after);
  return address - start <= what.first && bytes <= what.first - (address - start) ? what.second : -1;
}
bool is_device(int device) { return device >= 0 && device < k_devices; }
std::size_t used(int device) {
  std::size_t sum = 0;
  for (const auto& [start, what] : memory) sum += what.second == device ? what.first : 0;
  return sum;
}

const Kernel* launched = nullptr;
void** launched_with = nullptr;
bool lane_ended = false;
void lane_main() {
  launched->run(launched_with);
  lane_ended = true;
  lanes::wait_for_the_group();  // for ever
}

void run_group(unsigned x, unsigned y) {
  static std::vector<std::vector<char>> stacks(k_lanes, std::vector<char>(k_stack));
  static std::vector<ucontext_t> states(k_lanes);
  lanes::block_index = {x, y};
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < states.size(); ++i) {
    getcontext(&states[i]);
    states[i].uc_stack.ss_sp = stacks[i].data();
    states[i].uc_stack.ss_size = k_stack;
    states[i].uc_link = nullptr;
    makecontext(&states[i], lane_main, 0);
    left.push_back(i);
  }
  while (!left.empty())
    std::erase_if(left, [](std::size_t i) {
      lane_ended = false;
      lanes::running = &states[i];
      lanes::thread_index.x = static_cast<unsigned>(i);
      swapcontext(&lanes::scheduler, &states[i]);
      return lane_ended;
    });
}

}  // namespace

// --- the driver's interface ------------------------------------------------------------------------------------------

extern "C" {

int cuInit(unsigned flags) {
  MAY_FAIL();
  initialized = true;
  return flags == 0 ? 0 : k_invalid_value;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == k_out_of_memory ? "out of memory" : "an error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  MAY_FAIL();
  *count = k_devices;
  return initialized ? 0 : k_not_initialized;
}
int cuDeviceGet(int* device, int ordinal) {
  MAY_FAIL();
  *device = ordinal;
  return is_device(ordinal) ? 0 : k_no_device;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::strncpy(name, "Host CUDA", static_cast<std::size_t>(length));
  return is_device(device) ? 0 : k_no_device;
}
int cuDeviceGetUuid(char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<char>(0xa0 + i);
  uuid[15] = static_cast<char>(device);
  return is_device(device) ? 0 : k_no_device;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  constexpr std::string_view k_address = "0000:01:00.0";
  if (length <= static_cast<int>(k_address.size()) || !is_device(device)) return k_invalid_value;
  std::strcpy(text, k_address.data());
  text[6] = static_cast<char>('1' + device);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  static const std::map<int, int> known{{13, 1'500'000}, {16, 2}, {37, 384}, {75, 7}, {76, 5}};
  const auto found = known.find(attribute);
  if (found == known.end() || !is_device(device)) return k_invalid_value;
  *value = found->second;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = k_memory;
  return is_device(device) ? 0 : k_no_device;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  MAY_FAIL();
  if (!is_device(device)) return k_no_device;
  contexts[static_cast<std::size_t>(device)].device = device;
  ++contexts[static_cast<std::size_t>(device)].retained;
  *context = &contexts[static_cast<std::size_t>(device)];
  return 0;
}
int cuDevicePrimaryCtxRelease(int device) {
  if (!is_device(device) || contexts[static_cast<std::size_t>(device)].retained == 0) return k_invalid_context;
  --contexts[static_cast<std::size_t>(device)].retained;
  return 0;
}
int cuCtxSetCurrent(Context* context) {
  MAY_FAIL();
  current = context;
  return 0;
}
int cuCtxSynchronize() {
  NEEDS_CONTEXT();
  return 0;
}
int cuModuleLoadData(Module** module, const void* image) {
  NEEDS_CONTEXT();
  const std::string_view text(static_cast<const char*>(image));  // ends with its NUL, or a sanitizer says so
  if (text.find(".version") == text.npos || text.find(".target sm_70") == text.npos) return k_bad_image;
  modules.insert(*module = new Module);
  return 0;
}
int cuModuleUnload(Module* module) {
  NEEDS_CONTEXT();
  if (modules.erase(module) == 0) return k_invalid_handle;
  delete module;
  return 0;
}
int cuModuleGetFunction(const Kernel** function, Module* module, const char* name) {
  NEEDS_CONTEXT();
  if (!modules.contains(module)) return k_invalid_handle;
  const auto found = table().find(name);
  if (found == table().end()) return k_not_found;
  *function = &found->second;
  return 0;
}
int cuFuncSetAttribute(const Kernel* function, int attribute, int value) {
  NEEDS_CONTEXT();
  return function != nullptr && attribute == 8 && value >= 0 ? 0 : k_invalid_value;
}
int cuLaunchKernel(const Kernel* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                   void** extra) {
  NEEDS_CONTEXT();
  if (grid_x == 0 || grid_y == 0 || grid_y > 65535 || grid_z != 1 || block_x != k_lanes || block_y != 1 ||
      block_z != 1 || shared_bytes != 0 || stream != nullptr || extra != nullptr)
    return k_invalid_value;
  launched = function;
  launched_with = parameters;
  lanes::grid_size = {grid_x, grid_y};
  for (unsigned y = 0; y < grid_y; ++y)
    for (unsigned x = 0; x < grid_x; ++x) run_group(x, y);
  return 0;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  NEEDS_CONTEXT();
  *total = k_memory;
  *free = k_memory - used(current->device);
  return 0;
}
int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  NEEDS_CONTEXT();
  if (bytes == 0) return k_invalid_value;
  if (bytes > k_memory - used(current->device)) return k_out_of_memory;
  void* const got = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (got == nullptr) return k_out_of_memory;
  *pointer = reinterpret_cast<std::uintptr_t>(got);
  memory[*pointer] = {bytes, current->device};
  return 0;
}
int cuMemFree_v2(unsigned long long pointer) {
  NEEDS_CONTEXT();
  if (memory.erase(pointer) == 0) return k_invalid_value;
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}
int cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  NEEDS_CONTEXT();
  *pointer = std::malloc(bytes);
  locked.insert(*pointer);
  return 0;
}
int cuMemFreeHost(void* pointer) {
  NEEDS_CONTEXT();
  if (locked.erase(pointer) == 0) return k_invalid_value;
  std::free(pointer);
  return 0;
}
int cuMemsetD8_v2(unsigned long long to, unsigned char value, std::size_t bytes) {
  NEEDS_CONTEXT();
  if (owner_of(to, bytes) < 0) return k_invalid_value;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT();
  if (owner_of(from, bytes) < 0 || stream != nullptr) return k_invalid_value;
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT();
  if (owner_of(to, bytes) < 0 || stream != nullptr) return k_invalid_value;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuDeviceCanAccessPeer(int* possible, int device, int peer) {
  MAY_FAIL();
  *possible = device != peer ? 1 : 0;
  return is_device(device) && is_device(peer) ? 0 : k_no_device;
}
int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
  NEEDS_CONTEXT();
  if (flags != 0) return k_invalid_value;
  if (peer == current || peer->retained == 0) return k_no_peer;
  return current->peers.insert(peer).second ? 0 : k_peer_twice;
}
int cuMemcpyPeerAsync(unsigned long long to, Context* to_context, unsigned long long from, Context* from_context,
                      std::size_t bytes, void* stream) {
  NEEDS_CONTEXT();
  if (owner_of(to, bytes) != to_context->device || owner_of(from, bytes) != from_context->device || stream != nullptr)
    return k_invalid_value;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}

// For tests: what has not been given back.
int host_cuda_leftovers() {
  return static_cast<int>(memory.size() + locked.size() + modules.size()) + contexts[0].retained + contexts[1].retained;
}
}
