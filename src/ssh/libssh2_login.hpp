// SPDX-License-Identifier: Apache-2.0
// Authenticates to a server with libssh2: key files first, then the keys of ssh-agent.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "ssh/libssh2_session.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

inline constexpr std::string_view k_only_ssh = ", which libssh2 cannot use";  // said of what the ssh program could

// auth_refused with the keys that were offered and why others were not; unsupported if one of those others may be the
// right one and the `ssh` program could offer it. Offers at most 5 keys (MaxAuthTries is 6).
[[nodiscard]] Result<void> log_in(Session& session, const Target& target, BootTime deadline);

}  // namespace gridctl::ssh
