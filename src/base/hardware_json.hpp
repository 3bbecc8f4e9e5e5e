// SPDX-License-Identifier: Apache-2.0
// JSON of the parts of a host, for inventory.cpp. Readers throw BadField; writers never fail.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/hardware.hpp"
#include "base/json_fields.hpp"

namespace gridctl {

inline constexpr std::size_t k_gaps_max = 64;  // there are fewer attributes

[[nodiscard]] nlohmann::json gaps_json(const std::vector<Gap>& gaps);
[[nodiscard]] std::vector<Gap> gaps_of(const JsonFields& owner);

[[nodiscard]] nlohmann::json gpu_json(const Gpu& gpu);
[[nodiscard]] Gpu gpu_of(const JsonFields& in);
[[nodiscard]] nlohmann::json link_json(const GpuLink& link);
[[nodiscard]] GpuLink link_of(const JsonFields& in, std::size_t gpus);
[[nodiscard]] nlohmann::json nic_json(const Nic& nic);
[[nodiscard]] Nic nic_of(const JsonFields& in);
[[nodiscard]] nlohmann::json disk_json(const Disk& disk);
[[nodiscard]] Disk disk_of(const JsonFields& in);
[[nodiscard]] nlohmann::json cpu_json(const CpuLayout& cpu);
[[nodiscard]] CpuLayout cpu_of(const JsonFields& in);

}  // namespace gridctl
