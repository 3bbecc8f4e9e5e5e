// SPDX-License-Identifier: Apache-2.0
// Runs HAProxy as a child of the gateway: keeps it running, and its servers in their wanted states. Its working
// directory is ours.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/serve/balancer_text.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Returns the program, or an error that names the package.
[[nodiscard]] Result<os::Path> find_balancer();
// Sends one command, or several separated by ';', to the HAProxy of this folder.
[[nodiscard]] Result<std::string> ask_balancer(const os::Path& socket, const std::string& command, os::Clock& clock);

class Balancer {
 public:
  // `listen_fd` stays open here: clients that connect while HAProxy restarts wait in the socket's queue.
  Balancer(os::Clock& clock, os::Path program, job::Service service, int replicas, int listen_fd);
  Balancer(const Balancer&) = delete;
  Balancer& operator=(const Balancer&) = delete;
  ~Balancer();

  // Starts HAProxy if it is not running, and sets its servers as wanted. `refuses`: refuse new requests.
  void keep(std::span<const ServerState> wanted, bool refuses);
  // Sends the server no more requests until its probes pass again.
  void distrust(const std::string& server);
  // Returns true if at least one replica gets requests.
  [[nodiscard]] bool any_up() const;
  [[nodiscard]] bool is_up(int replica) const;
  [[nodiscard]] bool is_drained(int replica) const;  // it gets no requests, and has none
  [[nodiscard]] std::uint64_t under_way() const;     // requests of all replicas, and those that wait for one
  [[nodiscard]] std::uint64_t requests() const;      // that came since HAProxy began
  [[nodiscard]] const std::vector<ServerLine>& lines() const { return lines_; }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }  // why it does not run; empty: it does

 private:
  [[nodiscard]] Result<void> write_files();
  [[nodiscard]] const ServerLine* line(const std::string& name) const;  // or nullptr
  void start(BootTime now);
  void ended(BootTime now);

  os::Clock& clock_;
  const os::Path program_;
  const job::Service service_;
  const int replicas_, listen_fd_;
  const bool has_exporter_;
  int pid_ = -1;
  BootTime started_{}, not_before_{};
  Duration pause_{};
  std::vector<ServerLine> lines_;
  std::set<std::string> trusted_;  // were up when it ended
  std::string trouble_;
};

}  // namespace gridctl::control
