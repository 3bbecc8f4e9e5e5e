// SPDX-License-Identifier: Apache-2.0
// Implements the second transport: the user's own `ssh` program, with the user's configuration and our pins.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "ssh/channel.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// Works like connect(), without retries; Code::busy: the server accepts no more logins now.
[[nodiscard]] Result<std::unique_ptr<Channel>> connect_system(const Target& target, std::span<const HostKey> pins,
                                                              const std::string& command, BootTime deadline,
                                                              os::Clock& clock);

// Returns the key that the host shows to ssh; reaches hosts behind jump hosts, and RSA keys.
[[nodiscard]] Result<std::vector<HostKey>> scan_with_system(const Target& target, BootTime deadline, os::Clock& clock);

[[nodiscard]] Error missing_program();

// Classifies ssh's words if it ended before it logged in.
[[nodiscard]] Error classify_ssh_error(const Target& target, std::span<const HostKey> pins, std::string_view words);

// Returns whether the ssh of this version ("OpenSSH_9.2p1 Debian-2, …") has KnownHostsCommand; an unknown version
// counts as new.
[[nodiscard]] bool knows_host_key_commands(const std::string& version);

}  // namespace gridctl::ssh
