// SPDX-License-Identifier: Apache-2.0
// Uses NVIDIA's own matrix library, if the host has it: its kernels support generations that ours do not. The answers
// of the challenge are checked nevertheless.
#include "gpubench/cublas.hpp"

#include <array>
#include <string>
#include <vector>

#include "gpubench/library.hpp"

namespace gridctl::gpubench {
namespace {

using Handle = struct HandleTag*;
constexpr int k_transposed = 1, k_plain = 0, k_bf16 = 14, k_fp32 = 0, k_compute_fp32 = 68, k_default = -1;

struct CublasApi {
  int (*create)(Handle*) = nullptr;
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
              void*, int, int, int, int) = nullptr;
};

Result<CublasApi> open_library() {
  const std::array names{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"};
  const std::array folders{"", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/", "/usr/lib/x86_64-linux-gnu/"};
  CublasApi api;
  const std::array entries{Entry{"cublasCreate_v2", static_cast<void*>(&api.create)},
                           Entry{"cublasGemmEx", static_cast<void*>(&api.gemm)}};
  std::vector<std::string> paths;
  for (const char* folder : folders)
    for (const char* name : names) paths.push_back(std::string(folder) + name);
  for (const std::string& path : paths) {
    // The library's other half lies beside it, where the loader does not look automatically.
    std::string other = path;
    other.insert(other.find("libcublas") + 9, "Lt");
    (void)load({other.c_str()}, {});
    if (load({path.c_str()}, entries)) return api;
  }
  return make_error(Code::unsupported, "cuBLAS is not on this host");
}

}  // namespace

Result<void> multiply_by_library(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint32_t rows,
                                 std::uint32_t columns, std::uint32_t inner) {
  static const Result<CublasApi> api = open_library();
  if (!api) return api.error();
  static Handle handle = nullptr;
  if (handle == nullptr && api->create(&handle) != 0) return make_error(Code::unsupported, "cuBLAS does not start");
  const float one = 1, none = 0;
  const auto at = [](std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); };
  const auto whole = [](std::uint32_t value) { return static_cast<int>(value); };
  // The library counts by columns: C^T = B A^T.
  const int status = api->gemm(handle, k_transposed, k_plain, whole(columns), whole(rows), whole(inner), &one, at(b),
                               k_bf16, whole(inner), at(a), k_bf16, whole(inner), &none, at(c), k_fp32, whole(columns),
                               k_compute_fp32, k_default);
  return status == 0 ? Result<void>{} : make_error(Code::io, "cuBLAS failed: status " + std::to_string(status));
}

}  // namespace gridctl::gpubench
