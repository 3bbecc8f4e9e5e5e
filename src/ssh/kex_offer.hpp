// SPDX-License-Identifier: Apache-2.0
// Parses the offer that a server sends unencrypted before keys are exchanged.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::ssh {

// Returns the line "SSH-…" among the server's first bytes, without its end; empty if there is none.
[[nodiscard]] std::string banner_of(std::string_view first_bytes);

struct KexOffer {
  std::vector<std::string> kex, host_keys, ciphers, macs;
  // States why nothing matches, for people: "it offers only host keys rsa-sha2-512".
  [[nodiscard]] std::string difference(std::span<const std::string> key_types) const;
  [[nodiscard]] bool offers_any(std::span<const std::string> key_types) const;
};
// Parses the banner and the KEXINIT packet after it.
[[nodiscard]] std::optional<KexOffer> parse_kex_offer(std::string_view first_bytes);

}  // namespace gridctl::ssh
