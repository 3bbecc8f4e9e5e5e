// SPDX-License-Identifier: Apache-2.0
// Implements an ssh-agent client, because libssh2's own blocks without a deadline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::ssh {

struct AgentKey {
  std::string type;  // "ssh-ed25519"
  std::string blob;  // raw public key
  std::string comment;
};

class AgentClient {
 public:
  [[nodiscard]] static Result<AgentClient> open(const os::Path& socket, BootTime deadline, os::Clock& clock);
  [[nodiscard]] Result<std::vector<AgentKey>> identities();  // at most 64
  // Returns the bare signature of `data` (without the algorithm's name).
  [[nodiscard]] Result<std::string> sign(const AgentKey& key, std::string_view data);

 private:
  AgentClient(os::Fd fd, BootTime deadline, os::Clock& clock)
      : fd_(std::move(fd)), deadline_(deadline), clock_(&clock) {}
  Result<std::string> ask(std::string_view request);
  os::Fd fd_;
  BootTime deadline_;
  os::Clock* clock_;
};

}  // namespace gridctl::ssh
