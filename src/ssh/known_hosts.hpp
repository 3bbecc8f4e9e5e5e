// SPDX-License-Identifier: Apache-2.0
// Reads known_hosts lines and describes host keys; shared by both transports. Asks the user's own ssh about a host's
// key: known_hosts (hashed or not), certificates and their authorities.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "os/clock.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// Returns nullopt if the blob is not base64 or does not have this type.
[[nodiscard]] std::optional<HostKey> make_host_key(std::string_view type, std::string_view blob_base64);
// Returns keys of the lines that name `name` literally, Ed25519 first; skips markers (@revoked) and comments.
[[nodiscard]] std::vector<HostKey> parse_known_hosts(std::string_view text, const std::string& name);
// Returns "ssh-ed25519 SHA256:…, …", or "none".
[[nodiscard]] std::string describe(std::span<const HostKey> keys);
// Returns host_key_mismatch for a changed or, with no pins, an unknown key; `shown` is "TYPE SHA256:…".
[[nodiscard]] Error mismatch_error(const Target& target, std::span<const HostKey> pins, const std::string& shown);

// Returns the fingerprint of the key by which the user's ssh recognises the host now; nullopt if it does not, or there
// is no ssh program. No login is made and nothing is written.
[[nodiscard]] std::optional<std::string> key_known_to_user(const Target& target, BootTime deadline, os::Clock& clock);

// Parses the output of `ssh -v`.
[[nodiscard]] std::optional<std::string> parse_recognised_key(std::string_view words);

}  // namespace gridctl::ssh
