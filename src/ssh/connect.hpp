// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "ssh/channel.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// Limits this process to 8 simultaneous logins to one host: sshd drops more (MaxStartups 10:30:100).
class LoginSlot {
 public:
  // Waits for a free slot; timed_out at the deadline.
  [[nodiscard]] static Result<LoginSlot> acquire(const std::string& address, BootTime deadline, os::Clock& clock);
  LoginSlot(LoginSlot&& other) noexcept;
  LoginSlot& operator=(LoginSlot&&) = delete;
  ~LoginSlot();

 private:
  explicit LoginSlot(std::string address) : address_(std::move(address)) {}
  std::string address_;  // empty when moved from
};

inline constexpr int k_logins_per_host_max = 8;

// Logs in and starts `command` (no terminal). Blocks, until `deadline` at most: for threads of a pool, because
// libssh2's login, the name lookup and ssh-agent block anyway; an established channel does not, and is for a loop. At
// most 8 logins to one host are under way at once in this process; a host that is busy with logins (MaxStartups) is
// retried with growing pauses until the deadline. With TransportKind::automatic, libssh2 is tried first and the `ssh`
// program if libssh2 cannot; Channel::transport() returns which one it was, to be pinned in Target::transport.
//
// Errors: host_unreachable (no such name, refused, no route, not an SSH server, link broke), timed_out,
// host_key_mismatch (changed or not pinned; both fingerprints in the message), auth_refused (with the keys tried),
// unsupported (the pinned transport cannot do it).
[[nodiscard]] Result<std::unique_ptr<Channel>> connect(const Target& target, const std::string& command,
                                                       BootTime deadline, os::Clock& clock);

}  // namespace gridctl::ssh
