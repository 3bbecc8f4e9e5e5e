// SPDX-License-Identifier: Apache-2.0
// The knowledge of the user's own ssh about a host's key: known_hosts (hashed or not), certificates and their
// authorities.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/clock.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// The fingerprint of the key by which the user's ssh recognises the host now; nullopt when it does not, or there is no
// ssh program. Nothing is logged in to or written.
[[nodiscard]] std::optional<std::string> key_known_to_user(const Target& target, BootTime deadline, os::Clock& clock);

// From what `ssh -v` says.
[[nodiscard]] std::optional<std::string> parse_recognised_key(std::string_view words);

}  // namespace gridctl::ssh
