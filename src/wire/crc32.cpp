// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "wire/frame.hpp"

namespace gridctl::wire {

namespace {
using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// Eight tables process eight bytes at a time: one table would be slower than the network.
constexpr Table make_tables() {
  Table tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
    tables[0][i] = value;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  return tables;
}
constexpr Table k_tables = make_tables();
}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    const std::uint32_t low = crc ^ (std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
                                     std::uint32_t{at[3]} << 24);
    crc = k_tables[7][low & 0xFF] ^ k_tables[6][low >> 8 & 0xFF] ^ k_tables[5][low >> 16 & 0xFF] ^
          k_tables[4][low >> 24] ^ k_tables[3][at[4]] ^ k_tables[2][at[5]] ^ k_tables[1][at[6]] ^ k_tables[0][at[7]];
  }
  for (; left > 0; ++at, --left) crc = (crc >> 8) ^ k_tables[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

}  // namespace gridctl::wire
