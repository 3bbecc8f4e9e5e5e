// SPDX-License-Identifier: Apache-2.0
// The offer that a server sends in the clear before keys are exchanged.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::ssh {

// The line "SSH-…" among the server's first bytes, without its end; empty when there is none.
[[nodiscard]] std::string banner_of(std::string_view first_bytes);

struct KexOffer {
  std::vector<std::string> kex, host_keys, ciphers, macs;
  // Why nothing fits, for people: "it offers host keys rsa-sha2-512 only".
  [[nodiscard]] std::string difference(std::span<const std::string> key_types) const;
  [[nodiscard]] bool offers_any(std::span<const std::string> key_types) const;
};
// From the banner and the KEXINIT packet that follows it.
[[nodiscard]] std::optional<KexOffer> parse_kex_offer(std::string_view first_bytes);

}  // namespace gridctl::ssh
