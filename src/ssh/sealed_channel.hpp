// SPDX-License-Identifier: Apache-2.0
// Encrypts a channel so that only its two ends can read it, over a channel through someone else's machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crypto/tls_stream.hpp"
#include "os/clock.hpp"
#include "ssh/channel.hpp"

namespace gridctl::ssh {

struct SealedWith {
  crypto::TlsSide side;
  Digest key;
  std::string identity;  // names the key, in clear
  struct Other {
    Digest key;
    std::string identity;
  };
  std::vector<Other> others{};                           // of a server: the other end may have one of these instead
  std::function<void(const std::string&)> agreed = {};  // is told the identity of the key that was used
};

// Agrees with the other end, until `deadline` at most. Errors: auth_refused (the other end does not have the key),
// timed_out, and those of the channel.
[[nodiscard]] Result<std::unique_ptr<Channel>> seal(std::unique_ptr<Channel> carrier, const SealedWith& with,
                                                    BootTime deadline, os::Clock& clock);

}  // namespace gridctl::ssh
