// SPDX-License-Identifier: Apache-2.0
#include "probe/drm_cards.hpp"

#include "base/text.hpp"
#include "probe/tool_text.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

std::vector<DrmCard> drm_cards(const HostFiles& files, std::string_view vendor) {
  std::vector<DrmCard> cards;
  for (const std::string& name : files.list("/sys/class/drm")) {
    if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;  // "card0-HDMI-A-1" is a socket
    const std::string device = "/sys/class/drm/" + name + "/device";
    if (files.read_line(device + "/vendor") != vendor) continue;
    const std::string pci = pci_address(line_value(files.read(device + "/uevent").value_or(""), "PCI_SLOT_NAME="));
    if (!pci.empty() && cards.size() < wire::k_health_gpus_max) cards.push_back({device, pci});
  }
  return cards;
}

std::optional<int> temperature(const HostFiles& files, const DrmCard& card) {
  for (const std::string& name : files.list(card.path + "/hwmon"))
    if (const auto milli = files.read_number(card.path + "/hwmon/" + name + "/temp1_input"); milli && *milli < 1'000'000)
      return static_cast<int>(*milli / 1000);
  return std::nullopt;
}

}  // namespace gridctl::probe
