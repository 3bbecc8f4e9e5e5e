// SPDX-License-Identifier: Apache-2.0
#include "gpubench/device.hpp"

#include <fstream>

#include "base/formatted.hpp"
#include "base/text.hpp"

namespace gridctl::gpubench {

Result<void> read(Device& device, Buffer& buffer, void* into, std::uint64_t bytes) {
  TRY(device.copy(buffer, into, bytes, Direction::to_host));
  return device.finish();
}

std::string pci_device_at(std::string_view address) {
  // Drivers write the domain with four or eight digits, the kernel with four.
  const std::string text = lower(address);
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon < 4 || text.find('/') != std::string::npos) return {};
  const std::string folder = "/sys/bus/pci/devices/" + text.substr(colon - 4);
  const auto id = [&](const char* name) {
    std::string word;
    std::ifstream(folder + "/" + name) >> word;
    return word.size() == 6 && word.starts_with("0x") ? word.substr(2) : std::string();
  };
  const std::string vendor = id("vendor"), device = id("device");
  return vendor.empty() || device.empty() ? std::string() : vendor + ":" + device;
}

std::string uuid_digits(const std::array<unsigned char, 16>& id) {
  std::string text;
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += formatted("%02x", id[i]);
  }
  return text;
}

}  // namespace gridctl::gpubench
