// SPDX-License-Identifier: Apache-2.0
// GPUs as the kernel's DRM drivers show them in /sys/class/drm.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/host_files.hpp"

namespace gridctl::probe {

inline constexpr std::string_view k_drm_amd = "0x1002", k_drm_intel = "0x8086";

struct DrmCard {
  std::string path;  // "/sys/class/drm/card0/device"
  std::string pci;   // "0000:c3:00.0"
};
// Returns the cards of a vendor that have a PCI address, at most wire::k_health_gpus_max.
[[nodiscard]] std::vector<DrmCard> drm_cards(const HostFiles& files, std::string_view vendor);
// Returns the first temperature of the card's sensors in degrees Celsius.
[[nodiscard]] std::optional<int> temperature(const HostFiles& files, const DrmCard& card);

}  // namespace gridctl::probe
