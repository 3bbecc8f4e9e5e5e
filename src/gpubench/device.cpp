// SPDX-License-Identifier: Apache-2.0
#include "gpubench/device.hpp"

#include <cstdio>

namespace gridctl::gpubench {

Result<void> read(Device& device, Buffer& buffer, void* into, std::uint64_t bytes) {
  TRY(device.copy(buffer, into, bytes, Direction::to_host));
  return device.finish();
}

std::string uuid_digits(const std::array<unsigned char, 16>& id) {
  std::string text;
  for (std::size_t i = 0; i < id.size(); ++i) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", id[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits.data();
  }
  return text;
}

}  // namespace gridctl::gpubench
