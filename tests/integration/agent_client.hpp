// SPDX-License-Identifier: Apache-2.0
// Drives a real `gridctl-agent connect` over pipes, as a controller does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "transfer/fd_link.hpp"
#include "wire/messages.hpp"

namespace gridctl::testing {

// A host's folders, and how every agent on it is run.
struct AgentHost {
  os::Path home, leases;
  std::map<std::string, std::string> environment;  // added to ours
  std::vector<std::string> command{std::string(GRIDCTL_BINARY_DIR) + "/bin/gridctl-agent"};
};

class AgentClient {
 public:
  AgentClient(const AgentHost& host, ControllerId controller, std::vector<std::string> features = {"events"});
  ~AgentClient();  // ends the connection, as a broken SSH link does
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  [[nodiscard]] const wire::AgentHello& hello() const { return hello_; }
  [[nodiscard]] int pid() const { return pid_; }
  void kill();  // SIGKILL
  [[nodiscard]] wire::Link& link() { return *link_; }

  // The payload of the reply; an error reply or a broken link is an error.
  [[nodiscard]] Result<std::string> call(const std::string& payload);
  // Prepare, then start with this lease.
  [[nodiscard]] Result<wire::StartReply> start(const wire::AttemptSpec& spec, Duration lease = std::chrono::hours{1},
                                               const std::map<std::string, std::string>& secrets = {},
                                               const std::string& op = "op");
  [[nodiscard]] Result<wire::PollReply> poll(const wire::AttemptSpec& spec, Duration lease = std::chrono::hours{1},
                                             std::uint64_t kept_from = 0);
  [[nodiscard]] Result<void> stop(const wire::AttemptSpec& spec, Duration grace);
  [[nodiscard]] Result<void> clean(const wire::AttemptSpec& spec);
  [[nodiscard]] std::string log(const wire::AttemptSpec& spec);  // everything that the host still has
  // The first status that fulfils the condition, from events and, in between, polls. The last one seen when it never
  // does.
  wire::AttemptStatus await(const wire::AttemptSpec& spec,
                            const std::function<bool(const wire::AttemptStatus&)>& condition,
                            Duration timeout = std::chrono::seconds{30});
  wire::AttemptStatus await_end(const wire::AttemptSpec& spec, Duration timeout = std::chrono::seconds{30});

  // The next frame that is no event; events may come between any two frames of an answer.
  [[nodiscard]] Result<wire::Frame> receive(BootTime deadline);

 private:
  [[nodiscard]] BootTime now() const { return os::system_clock().boot(); }

  int pid_ = -1;
  os::Fd to_agent_, from_agent_;
  std::unique_ptr<transfer::FdLink> link_;
  wire::AgentHello hello_;
  std::uint32_t stream_ = 0;
  std::vector<wire::AttemptStatus> events_;
};

}  // namespace gridctl::testing
