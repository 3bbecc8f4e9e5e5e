// SPDX-License-Identifier: Apache-2.0
// Supports AMD, Intel and every other device with an OpenCL 1.2 driver.
#include <algorithm>
#include <array>
#include <map>

#include "base/formatted.hpp"
#include "gpubench/device.hpp"
#include "gpubench/library.hpp"
#include "gpubench/opencl_api.hpp"
#include "gpubench/texts.hpp"

namespace gridctl::gpubench {
namespace {

constexpr cl::Uint k_platforms_max = 16, k_platform_devices_max = 64;
constexpr std::size_t k_group_size = 256;
constexpr cl::Uint k_true = 1, k_false = 0;
constexpr std::size_t k_log_shown = 400;  // bytes of a compiler's complaint

Error failed(const char* what, cl::Int code) {
  return make_error(code == -4 || code == -61 ? Code::no_space : Code::io,
                    std::string(what) + " failed in the OpenCL driver with code " + std::to_string(code));
}
#define CL_TRY(call, what)                                                                \
  do {                                                                                    \
    if (const cl::Int code_ = (call); code_ != cl::k_success) return failed(what, code_); \
  } while (false)

Result<const cl::Api*> opencl_api() {
  static cl::Api table;
#define ENTRY(name) \
  Entry { #name, static_cast < void*>(&table.name) }
  static const std::array entries{ENTRY(clGetPlatformIDs),
                                  ENTRY(clGetDeviceIDs),
                                  ENTRY(clGetDeviceInfo),
                                  ENTRY(clCreateContext),
                                  ENTRY(clReleaseContext),
                                  ENTRY(clCreateCommandQueue),
                                  ENTRY(clReleaseCommandQueue),
                                  ENTRY(clCreateBuffer),
                                  ENTRY(clReleaseMemObject),
                                  ENTRY(clCreateProgramWithSource),
                                  ENTRY(clBuildProgram),
                                  ENTRY(clGetProgramBuildInfo),
                                  ENTRY(clReleaseProgram),
                                  ENTRY(clCreateKernel),
                                  ENTRY(clReleaseKernel),
                                  ENTRY(clSetKernelArg),
                                  ENTRY(clEnqueueNDRangeKernel),
                                  ENTRY(clEnqueueFillBuffer),
                                  ENTRY(clEnqueueReadBuffer),
                                  ENTRY(clEnqueueWriteBuffer),
                                  ENTRY(clEnqueueMapBuffer),
                                  ENTRY(clEnqueueUnmapMemObject),
                                  ENTRY(clFinish)};
#undef ENTRY
  TRY(load({"libOpenCL.so.1", "libOpenCL.so", "/opt/rocm/lib/libOpenCL.so.1"}, entries));
  return &table;
}

std::string text_of(const cl::Api& cl, cl::DeviceId device, cl::Uint what) {
  std::array<char, 8192> text{};
  std::size_t size = 0;
  if (cl.clGetDeviceInfo(device, what, text.size() - 1, text.data(), &size) != cl::k_success) return "";
  return std::string(text.data());
}
template <class T>
T number_of(const cl::Api& cl, cl::DeviceId device, cl::Uint what) {
  T value{};
  (void)cl.clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

std::string pci_of(const cl::Api& cl, cl::DeviceId device) {
  struct {
    std::uint32_t domain, bus, device, function;
  } khr{};
  if (cl.clGetDeviceInfo(device, cl::k_device_pci_khr, sizeof khr, &khr, nullptr) == cl::k_success)
    return formatted("%08x:%02x:%02x.%x", khr.domain, khr.bus & 255u, khr.device & 255u, khr.function & 15u);
  // cl_device_topology_amd: a type word (1 = PCIe), 17 bytes unused, then bus, device, function.
  std::array<unsigned char, 24> amd{};
  if (cl.clGetDeviceInfo(device, cl::k_device_topology_amd, amd.size(), amd.data(), nullptr) != cl::k_success ||
      amd[0] != 1)
    return "";
  return formatted("00000000:%02x:%02x.%x", amd[21], amd[22], amd[23] & 15u);
}

std::string uuid_of(const cl::Api& cl, cl::DeviceId device) {
  std::array<unsigned char, 16> id{};
  const bool told = cl.clGetDeviceInfo(device, cl::k_device_uuid_khr, id.size(), id.data(), nullptr) == cl::k_success;
  return told ? uuid_digits(id) : "";
}

DeviceFacts facts_of(const cl::Api& cl, cl::DeviceId device) {
  DeviceFacts facts;
  facts.backend = "opencl";
  const auto type = number_of<cl::Flags>(cl, device, cl::k_device_type);
  facts.kind = (type & cl::k_type_gpu) != 0 ? "gpu" : (type & cl::k_type_cpu) != 0 ? "cpu" : "other";
  facts.name = text_of(cl, device, cl::k_device_board_name_amd);
  facts.isa = facts.name.empty() ? "" : text_of(cl, device, cl::k_device_name);
  if (facts.name.empty()) facts.name = text_of(cl, device, cl::k_device_name);
  facts.vendor = text_of(cl, device, cl::k_device_vendor);
  facts.driver = text_of(cl, device, cl::k_driver_version);
  facts.uuid = uuid_of(cl, device);
  facts.pci = pci_of(cl, device);
  facts.pci_device = pci_device_at(facts.pci);
  facts.memory_bytes = number_of<std::uint64_t>(cl, device, cl::k_device_memory);
  facts.allocation_bytes_max = number_of<std::uint64_t>(cl, device, cl::k_device_allocation_max);
  facts.units = number_of<cl::Uint>(cl, device, cl::k_device_units);
  facts.clock_mhz = number_of<cl::Uint>(cl, device, cl::k_device_clock);
  facts.vector_width_max = 16;
  facts.half = text_of(cl, device, cl::k_device_extensions).find("cl_khr_fp16") != std::string::npos;
  return facts;
}

Result<std::vector<cl::DeviceId>> devices_of(const cl::Api& cl) {
  std::array<cl::Platform, k_platforms_max> platforms{};
  cl::Uint platform_count = 0;
  // -1001 means that the loader found no driver.
  if (cl.clGetPlatformIDs(k_platforms_max, platforms.data(), &platform_count) != cl::k_success) platform_count = 0;
  std::vector<cl::DeviceId> all;
  for (cl::Uint i = 0; i < std::min(platform_count, k_platforms_max); ++i) {
    std::array<cl::DeviceId, k_platform_devices_max> some{};
    cl::Uint count = 0;
    if (cl.clGetDeviceIDs(platforms[i], cl::k_any_device, k_platform_devices_max, some.data(), &count) != cl::k_success)
      continue;
    all.insert(all.end(), some.begin(), some.begin() + std::min(count, k_platform_devices_max));
  }
  return all;
}

class ClBuffer final : public Buffer {
 public:
  ClBuffer(const cl::Api& api, cl::Mem memory) : cl(api), mem(memory) {}
  ~ClBuffer() override { cl.clReleaseMemObject(mem); }
  const cl::Api& cl;
  const cl::Mem mem;
};

// Owns a buffer that the driver keeps in memory of the host, mapped for the object's lifetime.
class ClLockedMemory final : public LockedMemory {
 public:
  ClLockedMemory(const cl::Api& api, cl::Queue queue, cl::Mem memory, void* mapped)
      : cl_(api), queue_(queue), memory_(api, memory), mapped_(mapped) {}
  ~ClLockedMemory() override {
    (void)cl_.clEnqueueUnmapMemObject(queue_, memory_.mem, mapped_, 0, nullptr, nullptr);
    (void)cl_.clFinish(queue_);
  }
  void* bytes() override { return mapped_; }

 private:
  const cl::Api& cl_;
  cl::Queue queue_;
  ClBuffer memory_;
  void* mapped_;
};

cl::Mem mem_of(Buffer& buffer) { return static_cast<ClBuffer&>(buffer).mem; }

class ClDevice final : public Device {
 public:
  ClDevice(const cl::Api& api, cl::DeviceId id) : cl_(api), id_(id), facts_(facts_of(api, id)) {}
  ~ClDevice() override {
    for (const auto& [name, kernel] : kernels_) cl_.clReleaseKernel(kernel);
    for (const cl::Program program : programs_) cl_.clReleaseProgram(program);
    if (queue_ != nullptr) cl_.clReleaseCommandQueue(queue_);
    if (context_ != nullptr) cl_.clReleaseContext(context_);
  }
  Result<void> open() {
    cl::Int code = 0;
    context_ = cl_.clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code);
    if (context_ == nullptr) return failed("making a context", code);
    queue_ = cl_.clCreateCommandQueue(context_, id_, 0, &code);
    if (queue_ == nullptr) return failed("making a queue", code);
    TRY(build(kernels_text(), ""));
    return build(rates_text(), facts_.half ? "-cl-mad-enable -DGRIDCTL_HALF" : "-cl-mad-enable");
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::uint64_t free_bytes() override { return facts_.memory_bytes; }

  Result<BufferPtr> allocate(std::uint64_t bytes) override {
    cl::Int code = 0;
    const cl::Mem mem = cl_.clCreateBuffer(context_, cl::k_read_write, bytes, nullptr, &code);
    if (mem == nullptr) return failed("allocating memory", code);
    return BufferPtr(std::make_unique<ClBuffer>(cl_, mem));
  }

  Result<void> launch(const std::string& name, std::uint32_t columns, std::uint32_t rows,
                      const std::vector<Argument>& arguments) override {
    TRY_ASSIGN(const cl::Kernel kernel, find(name));
    for (cl::Uint i = 0; i < arguments.size(); ++i) TRY(set(kernel, i, arguments[i]));
    const std::array<std::size_t, 2> global{columns * k_group_size, rows}, local{k_group_size, 1};
    CL_TRY(cl_.clEnqueueNDRangeKernel(queue_, kernel, 2, nullptr, global.data(), local.data(), 0, nullptr, nullptr),
           "starting a kernel");
    return {};
  }
  Result<void> finish() override {
    CL_TRY(cl_.clFinish(queue_), "running a kernel");
    return {};
  }
  Result<void> clear(Buffer& buffer, std::uint64_t bytes) override {
    const std::uint32_t zero = 0;
    CL_TRY(cl_.clEnqueueFillBuffer(queue_, mem_of(buffer), &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr),
           "clearing memory");
    return {};
  }
  Result<void> copy(Buffer& buffer, void* host, std::uint64_t bytes, Direction direction) override {
    const cl::Mem mem = mem_of(buffer);
    if (direction == Direction::to_device)
      CL_TRY(cl_.clEnqueueWriteBuffer(queue_, mem, k_false, 0, bytes, host, 0, nullptr, nullptr), "writing memory");
    else CL_TRY(cl_.clEnqueueReadBuffer(queue_, mem, k_false, 0, bytes, host, 0, nullptr, nullptr), "reading memory");
    return {};
  }
  Result<LockedMemoryPtr> lock_memory(std::uint64_t bytes) override {
    cl::Int code = 0;
    const cl::Mem mem = cl_.clCreateBuffer(context_, cl::k_read_write | cl::k_alloc_host, bytes, nullptr, &code);
    if (mem == nullptr) return failed("allocating locked memory", code);
    void* const mapped = cl_.clEnqueueMapBuffer(queue_, mem, k_true, cl::k_map_read | cl::k_map_write, 0, bytes, 0,
                                                nullptr, nullptr, &code);
    if (mapped != nullptr) return LockedMemoryPtr(std::make_unique<ClLockedMemory>(cl_, queue_, mem, mapped));
    (void)cl_.clReleaseMemObject(mem);
    return failed("mapping locked memory", code);
  }
  Result<double> peer_copy(std::uint32_t, std::uint64_t, std::uint32_t) override {
    return make_error(Code::unsupported, "OpenCL has no copies from device to device across contexts");
  }

 private:
  Result<void> build(std::string_view text, const char* options) {
    const char* source = text.data();
    const std::size_t length = text.size();
    cl::Int code = 0;
    const cl::Program program = cl_.clCreateProgramWithSource(context_, 1, &source, &length, &code);
    if (program == nullptr) return failed("taking a program", code);
    programs_.push_back(program);
    code = cl_.clBuildProgram(program, 1, &id_, options, nullptr, nullptr);
    if (code == cl::k_success) return {};
    std::vector<char> log(65536, '\0');
    (void)cl_.clGetProgramBuildInfo(program, id_, cl::k_build_log, log.size() - 1, log.data(), nullptr);
    return make_error(Code::unsupported, "the OpenCL driver cannot compile our kernels (code " + std::to_string(code) +
                                             "): " + std::string(log.data()).substr(0, k_log_shown));
  }
  Result<cl::Kernel> find(const std::string& name) {
    if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
    cl::Int code = 0;
    for (const cl::Program program : programs_)
      if (const cl::Kernel kernel = cl_.clCreateKernel(program, name.c_str(), &code); kernel != nullptr) {
        kernels_[name] = kernel;
        return kernel;
      }
    return failed(("finding the kernel " + name).c_str(), code);
  }
  Result<void> set(cl::Kernel kernel, cl::Uint at, const Argument& argument) {
    cl::Int code = 0;
    if (const auto* word = std::get_if<std::uint32_t>(&argument))
      code = cl_.clSetKernelArg(kernel, at, sizeof *word, word);
    else if (const auto* real = std::get_if<float>(&argument))
      code = cl_.clSetKernelArg(kernel, at, sizeof *real, real);
    else {
      const cl::Mem mem = mem_of(*std::get<Buffer*>(argument));
      code = cl_.clSetKernelArg(kernel, at, sizeof mem, &mem);
    }
    CL_TRY(code, "giving a kernel its arguments");
    return {};
  }

  const cl::Api& cl_;
  cl::DeviceId id_;
  DeviceFacts facts_;
  cl::Context context_ = nullptr;
  cl::Queue queue_ = nullptr;
  std::vector<cl::Program> programs_;
  std::map<std::string, cl::Kernel> kernels_;
};

Result<std::vector<DeviceFacts>> list_opencl() {
  TRY_ASSIGN(const cl::Api* cl, opencl_api());
  TRY_ASSIGN(const std::vector<cl::DeviceId> devices, devices_of(*cl));
  std::vector<DeviceFacts> all;
  for (const cl::DeviceId device : devices) all.push_back(facts_of(*cl, device));
  return all;
}

Result<std::unique_ptr<Device>> open_opencl(std::uint32_t index) {
  TRY_ASSIGN(const cl::Api* cl, opencl_api());
  TRY_ASSIGN(const std::vector<cl::DeviceId> devices, devices_of(*cl));
  if (index >= devices.size()) return make_error(Code::not_found, "there is no such OpenCL device");
  auto device = std::make_unique<ClDevice>(*cl, devices[index]);
  TRY(device->open());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

const Backend k_opencl{"opencl", list_opencl, open_opencl};

}  // namespace gridctl::gpubench
