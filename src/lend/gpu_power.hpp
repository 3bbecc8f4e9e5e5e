// SPDX-License-Identifier: Apache-2.0
// The power limit of NVIDIA's GPUs while jobs of guests hold them. The driver lets root set it, and whomever root allows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::lend {

inline constexpr std::string_view k_gpu_power_file = "gpu_power";  // below lend_home(): the limits that were there before

struct PowerLimit {
  std::string gpu;  // UUID
  double now = 0, least = 0, most = 0;  // watts
};
// The text of `nvidia-smi --query-gpu=uuid,power.limit,power.min_limit,power.max_limit --format=csv,noheader,nounits`. Pure.
[[nodiscard]] std::vector<PowerLimit> parse_power_limits(std::string_view text);

// Sets every GPU's limit to what it is. unsupported: that is not permitted, or there is no GPU of NVIDIA's.
[[nodiscard]] Result<std::vector<PowerLimit>> try_power_limits();

// Remembers, in a file, which limits were there before. All of the calls may come from several processes in turn.
class GpuPower {
 public:
  explicit GpuPower(os::Path file) : file_(std::move(file)) {}
  // Limits the GPUs to `watts`; nullopt puts the old limits back. Returns whether something was changed. Asks no tool when
  // nothing is to be done.
  [[nodiscard]] Result<bool> keep(std::optional<int> watts);

 private:
  [[nodiscard]] Result<void> put_back();

  const os::Path file_;
  std::optional<int> set_;
};

}  // namespace gridctl::lend
