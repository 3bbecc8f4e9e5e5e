// SPDX-License-Identifier: Apache-2.0
#include "agent/self.hpp"

#include "crypto/sha256.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

std::string self_hash() {
  constexpr std::uint64_t k_binary_max = 64u << 20;
  const auto binary = os::read_file("/proc/self/exe", k_binary_max);
  return binary ? to_hex(crypto::sha256(as_bytes(*binary))) : std::string{};
}

}  // namespace gridctl::agent
