// SPDX-License-Identifier: Apache-2.0
// A real sshd on a loopback port for tests: own keys, own configuration, as the current user.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/files.hpp"
#include "os/process.hpp"
#include "ssh/target.hpp"

namespace gridctl::test {

// A directory that goes when the test does.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const os::Path& path() const { return path_; }

 private:
  os::Path path_;
};

// Makes the key pair DIR/NAME when it is not there yet: "ed25519", "ecdsa" or "rsa".
os::Path make_key(const os::Path& dir, const std::string& name, const std::string& type,
                  const std::string& passphrase = {});

struct ServerOptions {
  std::vector<std::string> host_keys = {"ed25519", "ecdsa"};
  std::vector<std::string> accepted = {};  // names of user keys in the directory; default {"user"} (ed25519)
  std::string config = {};                 // more lines of sshd_config
};

class SshServer {
 public:
  // Null with a reason when there is no sshd.
  static std::unique_ptr<SshServer> start(const os::Path& dir, const std::string& name, ServerOptions options = {});
  ~SshServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] os::ProcessId process() const { return process_; }
  [[nodiscard]] ssh::HostKey host_key(const std::string& type) const;
  // With the key "user", pinned in DIR/known_hosts, the given transport, no agent, an empty ssh configuration.
  [[nodiscard]] ssh::Target target(ssh::TransportKind transport) const;
  void stop();

 private:
  os::Path dir_;
  std::string name_;
  std::uint16_t port_ = 0;
  os::ProcessId process_;
};

[[nodiscard]] std::string current_user();

// An ssh-agent that holds the given key.
class SshAgent {
 public:
  SshAgent(const os::Path& dir, const os::Path& key);
  ~SshAgent();
  [[nodiscard]] const os::Path& socket() const { return socket_; }

 private:
  os::Path socket_;
  os::ProcessId process_;
};

}  // namespace gridctl::test
