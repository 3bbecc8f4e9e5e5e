// SPDX-License-Identifier: Apache-2.0
// Asks the user's own ssh about a host's key: known_hosts (hashed or not), certificates and their authorities.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/clock.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// Returns the fingerprint of the key by which the user's ssh recognises the host now; nullopt if it does not, or there
// is no ssh program. No login is made and nothing is written.
[[nodiscard]] std::optional<std::string> key_known_to_user(const Target& target, BootTime deadline, os::Clock& clock);

// Parses the output of `ssh -v`.
[[nodiscard]] std::optional<std::string> parse_recognised_key(std::string_view words);

}  // namespace gridctl::ssh
