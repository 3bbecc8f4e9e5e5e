// SPDX-License-Identifier: Apache-2.0
// Hosts without a network: an `ssh` of our own stands first on PATH, shows each host's key, and runs commands in a home of
// that host's own, on this machine. Agents are the real ones, or play what a test has written down for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/reach/host_access.hpp"
#include "control/reach/ssh_network.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "registry/registry.hpp"
#include "ssh/target.hpp"
#include "support/temp_dir.hpp"
#include "wire/frame.hpp"

namespace gridctl::test {

class SshHosts {
 public:
  SshHosts();
  ~SshHosts();
  SshHosts(const SshHosts&) = delete;
  SshHosts& operator=(const SshHosts&) = delete;

  // Its address is me@NAME; nothing is pinned.
  registry::Provider add(const std::string& name);
  registry::Provider add_pinned(const std::string& name);
  ssh::HostKey new_key(const std::string& name);         // it shows this one from now on
  void share_key(const std::string& name, const std::string& of);
  void trust_by_ssh(const std::string& name) const;      // the user's own ssh knows its key
  void put_behind_proxy(const std::string& name) const;  // only the ssh program can ask it for its key
  void take_down(const std::string& name) const;
  void bring_up(const std::string& name) const;
  [[nodiscard]] os::Path home(const std::string& name) const;  // the user's there
  [[nodiscard]] control::HostAccess access(const registry::Provider& provider) const;
  [[nodiscard]] BootTime soon() const { return os::system_clock().boot() + std::chrono::seconds{20}; }

  // Instead of the agent: to the N-th request of each kind, counted from 1, it answers with these frames.
  struct Played {
    wire::FrameKind kind = wire::FrameKind::reply;
    std::string payload;
  };
  void play(const std::string& name, const std::string& op, int count, const std::vector<Played>& frames) const;
  // Payloads of the requests that a played agent got, in their order.
  [[nodiscard]] std::vector<std::string> asked(const std::string& name) const;

  gridctl::testing::TempDir dir;
  control::Paths paths{dir / "state"};
  const ControllerId controller{"testcontroller"};
  mutable control::SshNetwork net{os::system_clock(), paths, controller};

 private:
  [[nodiscard]] os::Path folder(const std::string& name) const { return dir / "hosts" / name; }
  std::string former_path_;
  int keys_ = 0;
};

// What main does when the ssh program starts this very program as an agent, with the host's folder.
int play_agent(const os::Path& folder);

}  // namespace gridctl::test
