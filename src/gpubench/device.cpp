// SPDX-License-Identifier: Apache-2.0
#include "gpubench/device.hpp"

#include "base/formatted.hpp"

namespace gridctl::gpubench {

Result<void> read(Device& device, Buffer& buffer, void* into, std::uint64_t bytes) {
  TRY(device.copy(buffer, into, bytes, Direction::to_host));
  return device.finish();
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
