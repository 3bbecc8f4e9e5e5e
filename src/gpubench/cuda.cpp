// SPDX-License-Identifier: Apache-2.0
// Uses NVIDIA's GPUs through the driver's own library; the kernels come as PTX, which the driver compiles.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "gpubench/cublas.hpp"
#include "gpubench/cuda_api.hpp"
#include "gpubench/device.hpp"
#include "gpubench/library.hpp"
#include "gpubench/stopwatch.hpp"
#include "gpubench/texts.hpp"

namespace gridctl::gpubench {
namespace {

constexpr unsigned k_lanes = 256;
// gemm_wide_bf16 needs four stages of 48 KiB, and room to begin them at a multiple of 1024.
constexpr std::string_view k_wide_kernel = "gemm_wide_bf16";
constexpr unsigned k_wide_lanes = 384, k_wide_shared_bytes = 4 * 48 * 1024 + 1024;
constexpr int k_devices_max = 64;

Result<const cuda::Api*> cuda_api() {
  static cuda::Api table;
#define ENTRY(name) \
  Entry { #name, static_cast < void*>(&table.name) }
  static const std::array entries{ENTRY(cuInit),
                                  ENTRY(cuDriverGetVersion),
                                  ENTRY(cuGetErrorString),
                                  ENTRY(cuDeviceGetCount),
                                  ENTRY(cuDeviceGet),
                                  ENTRY(cuDeviceGetName),
                                  ENTRY(cuDeviceGetUuid),
                                  ENTRY(cuDeviceGetPCIBusId),
                                  ENTRY(cuDeviceGetAttribute),
                                  ENTRY(cuDeviceTotalMem_v2),
                                  ENTRY(cuDevicePrimaryCtxRetain),
                                  ENTRY(cuDevicePrimaryCtxRelease),
                                  ENTRY(cuCtxSetCurrent),
                                  ENTRY(cuCtxSynchronize),
                                  ENTRY(cuModuleLoadData),
                                  ENTRY(cuModuleUnload),
                                  ENTRY(cuModuleGetFunction),
                                  ENTRY(cuLaunchKernel),
                                  ENTRY(cuFuncSetAttribute),
                                  ENTRY(cuMemGetInfo_v2),
                                  ENTRY(cuMemAlloc_v2),
                                  ENTRY(cuMemFree_v2),
                                  ENTRY(cuMemAllocHost_v2),
                                  ENTRY(cuMemFreeHost),
                                  ENTRY(cuMemsetD8_v2),
                                  ENTRY(cuMemcpyDtoHAsync_v2),
                                  ENTRY(cuMemcpyHtoDAsync_v2),
                                  ENTRY(cuDeviceCanAccessPeer),
                                  ENTRY(cuCtxEnablePeerAccess),
                                  ENTRY(cuMemcpyPeerAsync)};
#undef ENTRY
  TRY(load({"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}, entries));
  return &table;
}

Error failed(const cuda::Api& cuda, const char* what, cuda::Result code) {
  const char* why = nullptr;
  if (cuda.cuGetErrorString(code, &why) != cuda::k_success || why == nullptr) why = "unknown";
  return make_error(code == cuda::k_out_of_memory ? Code::no_space : Code::io,
                    std::string(what) + " failed in the CUDA driver: " + why + " (" + std::to_string(code) + ")");
}
#define CU_TRY(call, what)                                                                              \
  do {                                                                                                  \
    if (const cuda::Result code_ = (call); code_ != cuda::k_success) return failed(cuda_, what, code_); \
  } while (false)

Result<int> count_devices(const cuda::Api& cuda_) {
  CU_TRY(cuda_.cuInit(0), "starting");
  int count = 0;
  CU_TRY(cuda_.cuDeviceGetCount(&count), "counting devices");
  return std::clamp(count, 0, k_devices_max);
}

DeviceFacts facts_of(const cuda::Api& cuda, cuda::DeviceNumber device) {
  const auto attribute = [&](cuda::Attribute what) {
    int value = 0;
    (void)cuda.cuDeviceGetAttribute(&value, what, device);
    return static_cast<std::uint32_t>(std::max(value, 0));
  };
  DeviceFacts facts;
  facts.backend = "cuda";
  facts.kind = "gpu";
  facts.vendor = "NVIDIA Corporation";
  std::array<char, 256> text{};
  if (cuda.cuDeviceGetName(text.data(), text.size() - 1, device) == cuda::k_success) facts.name = text.data();
  int version = 0;
  if (cuda.cuDriverGetVersion(&version) == cuda::k_success)
    facts.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  std::array<unsigned char, 16> id{};
  if (cuda.cuDeviceGetUuid(id.data(), device) == cuda::k_success) facts.uuid = "GPU-" + uuid_digits(id);
  text.fill('\0');
  if (cuda.cuDeviceGetPCIBusId(text.data(), text.size() - 1, device) == cuda::k_success) facts.pci = text.data();
  facts.pci_device = pci_device_at(facts.pci);
  std::size_t bytes = 0;
  if (cuda.cuDeviceTotalMem_v2(&bytes, device) == cuda::k_success) facts.memory_bytes = bytes;
  facts.allocation_bytes_max = facts.memory_bytes;
  facts.units = attribute(cuda::k_multiprocessors);
  facts.clock_mhz = attribute(cuda::k_clock_khz) / 1000;
  facts.memory_bus_bits = attribute(cuda::k_memory_bus_bits);
  const std::uint32_t major = attribute(cuda::k_capability_major);
  facts.isa = "sm_" + std::to_string(major) + std::to_string(attribute(cuda::k_capability_minor));
  facts.tensor = major >= 7;
  facts.bf16 = major >= 8;
  return facts;
}

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(const cuda::Api& api, cuda::Pointer at) : cuda(api), pointer(at) {}
  ~CudaBuffer() override { (void)cuda.cuMemFree_v2(pointer); }
  const cuda::Api& cuda;
  const cuda::Pointer pointer;
};
cuda::Pointer pointer_of(Buffer& buffer) { return static_cast<CudaBuffer&>(buffer).pointer; }

class CudaLockedMemory final : public LockedMemory {
 public:
  CudaLockedMemory(const cuda::Api& api, void* bytes) : cuda_(api), bytes_(bytes) {}
  ~CudaLockedMemory() override { (void)cuda_.cuMemFreeHost(bytes_); }
  void* bytes() override { return bytes_; }

 private:
  const cuda::Api& cuda_;
  void* bytes_;
};

// Holds a device's primary context for the object's lifetime.
class CudaContext {
 public:
  CudaContext(const cuda::Api& api, cuda::DeviceNumber number) : cuda_(api), number_(number) {}
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext() {
    if (context_ != nullptr) (void)cuda_.cuDevicePrimaryCtxRelease(number_);
  }
  Result<void> take() {
    CU_TRY(cuda_.cuDevicePrimaryCtxRetain(&context_, number_), "making a context");
    return {};
  }
  Result<void> use() const {
    CU_TRY(cuda_.cuCtxSetCurrent(context_), "using a context");
    return {};
  }
  cuda::Context get() const { return context_; }

 private:
  const cuda::Api& cuda_;
  cuda::DeviceNumber number_;
  cuda::Context context_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const cuda::Api& api, cuda::DeviceNumber number)
      : cuda_(api), number_(number), facts_(facts_of(api, number)), context_(api, number) {}
  ~CudaDevice() override {
    for (const cuda::Module module : {module_, wide_module_})
      if (module != nullptr) (void)cuda_.cuModuleUnload(module);
  }
  Result<void> open() {
    if (!facts_.tensor)
      return make_error(Code::unsupported, "this GPU is older than our kernels: they need compute capability 7.0");
    TRY(context_.take());
    TRY(context_.use());
    const char* const text = (facts_.bf16 ? ptx_80() : ptx_70()).data();
    CU_TRY(cuda_.cuModuleLoadData(&module_, text), "compiling our kernels");
    // A driver that is too old for these kernels refuses them.
    facts_.wide = facts_.isa == "sm_90" && cuda_.cuModuleLoadData(&wide_module_, ptx_90().data()) == cuda::k_success;
    return {};
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::uint64_t free_bytes() override {
    std::size_t free = 0, total = 0;
    return cuda_.cuMemGetInfo_v2(&free, &total) == cuda::k_success ? free : 0;
  }
  Result<BufferPtr> allocate(std::uint64_t bytes) override {
    cuda::Pointer pointer = 0;
    CU_TRY(cuda_.cuMemAlloc_v2(&pointer, bytes), "allocating memory");
    return BufferPtr(std::make_unique<CudaBuffer>(cuda_, pointer));
  }

  Result<void> launch(const std::string& name, std::uint32_t columns, std::uint32_t rows,
                      const std::vector<Argument>& arguments) override {
    TRY_ASSIGN(const cuda::Function function, find(name));
    std::vector<std::uint64_t> values(arguments.size(), 0);
    std::vector<void*> places;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (const auto* word = std::get_if<std::uint32_t>(&arguments[i])) std::memcpy(&values[i], word, sizeof *word);
      else if (const auto* real = std::get_if<float>(&arguments[i])) std::memcpy(&values[i], real, sizeof *real);
      else values[i] = pointer_of(*std::get<Buffer*>(arguments[i]));
      places.push_back(&values[i]);
    }
    const bool wide = name == k_wide_kernel;
    CU_TRY(cuda_.cuLaunchKernel(function, columns, rows, 1, wide ? k_wide_lanes : k_lanes, 1, 1,
                                wide ? k_wide_shared_bytes : 0, nullptr, places.data(), nullptr),
           "starting a kernel");
    return {};
  }
  Result<void> multiply(Buffer& a, Buffer& b, Buffer& c, std::uint32_t rows, std::uint32_t columns,
                        std::uint32_t inner) override {
    return multiply_by_library(pointer_of(a), pointer_of(b), pointer_of(c), rows, columns, inner);
  }
  Result<void> finish() override {
    CU_TRY(cuda_.cuCtxSynchronize(), "running a kernel");
    return {};
  }
  Result<void> clear(Buffer& buffer, std::uint64_t bytes) override {
    CU_TRY(cuda_.cuMemsetD8_v2(pointer_of(buffer), 0, bytes), "clearing memory");
    return {};
  }
  Result<void> copy(Buffer& buffer, void* host, std::uint64_t bytes, Direction direction) override {
    const cuda::Pointer pointer = pointer_of(buffer);
    if (direction == Direction::to_device)
      CU_TRY(cuda_.cuMemcpyHtoDAsync_v2(pointer, host, bytes, nullptr), "writing memory");
    else CU_TRY(cuda_.cuMemcpyDtoHAsync_v2(host, pointer, bytes, nullptr), "reading memory");
    return {};
  }
  Result<LockedMemoryPtr> lock_memory(std::uint64_t bytes) override {
    void* locked = nullptr;
    CU_TRY(cuda_.cuMemAllocHost_v2(&locked, bytes), "allocating locked memory");
    return LockedMemoryPtr(std::make_unique<CudaLockedMemory>(cuda_, locked));
  }

  Result<double> peer_copy(std::uint32_t other, std::uint64_t bytes, std::uint32_t times) override {
    cuda::DeviceNumber peer = 0;
    CU_TRY(cuda_.cuDeviceGet(&peer, static_cast<int>(other)), "finding the other device");
    if (peer == number_) return make_error(Code::unsupported, "a device cannot be a peer of itself");
    CudaContext there(cuda_, peer);
    TRY(there.take());
    Result<double> time = copy_between(there, peer, bytes, times);
    TRY(context_.use());
    return time;
  }

 private:
  // Leaves either context current. Buffers may be freed under either: addresses are unified on all devices that we
  // support.
  Result<double> copy_between(const CudaContext& there, cuda::DeviceNumber peer, std::uint64_t bytes,
                              std::uint32_t times) {
    int possible = 0;
    CU_TRY(cuda_.cuDeviceCanAccessPeer(&possible, number_, peer), "asking for the way to the other device");
    // Without peer access the driver copies by way of the host, which is this pair's true rate. It may already be
    // enabled.
    if (possible != 0) (void)cuda_.cuCtxEnablePeerAccess(there.get(), 0);
    TRY_ASSIGN(const BufferPtr near, allocate(bytes));
    TRY(there.use());
    TRY_ASSIGN(const BufferPtr far, allocate(bytes));
    TRY(context_.use());
    const Work copies = [&]() -> gridctl::Result<void> {
      for (std::uint32_t i = 0; i < times; ++i)
        CU_TRY(
            cuda_.cuMemcpyPeerAsync(pointer_of(*far), there.get(), pointer_of(*near), context_.get(), bytes, nullptr),
            "copying to the other device");
      return {};
    };
    TRY(time_of(*this, copies));
    return time_of(*this, copies);
  }
  Result<cuda::Function> find(const std::string& name) {
    if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
    cuda::Function function = nullptr;
    const bool wide = name.find("_wide_") != std::string::npos;
    CU_TRY(cuda_.cuModuleGetFunction(&function, wide ? wide_module_ : module_, name.c_str()),
           ("finding the kernel " + name).c_str());
    if (name == k_wide_kernel)
      CU_TRY(cuda_.cuFuncSetAttribute(function, cuda::k_max_dynamic_shared_bytes, k_wide_shared_bytes),
             "taking shared memory");
    functions_[name] = function;
    return function;
  }

  const cuda::Api& cuda_;
  cuda::DeviceNumber number_;
  DeviceFacts facts_;
  CudaContext context_;
  cuda::Module module_ = nullptr, wide_module_ = nullptr;
  std::map<std::string, cuda::Function> functions_;
};

Result<std::vector<DeviceFacts>> list_cuda() {
  TRY_ASSIGN(const cuda::Api* cuda, cuda_api());
  TRY_ASSIGN(const int count, count_devices(*cuda));
  std::vector<DeviceFacts> all;
  for (int i = 0; i < count; ++i) {
    cuda::DeviceNumber device = 0;
    if (cuda->cuDeviceGet(&device, i) == cuda::k_success) all.push_back(facts_of(*cuda, device));
  }
  return all;
}

Result<std::unique_ptr<Device>> open_cuda(std::uint32_t index) {
  TRY_ASSIGN(const cuda::Api* cuda, cuda_api());
  TRY_ASSIGN(const int count, count_devices(*cuda));
  cuda::DeviceNumber number = 0;
  if (index >= static_cast<std::uint32_t>(count) ||
      cuda->cuDeviceGet(&number, static_cast<int>(index)) != cuda::k_success)
    return make_error(Code::not_found, "there is no such CUDA device");
  auto device = std::make_unique<CudaDevice>(*cuda, number);
  TRY(device->open());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

const Backend k_cuda{"cuda", list_cuda, open_cuda};

}  // namespace gridctl::gpubench
