// SPDX-License-Identifier: Apache-2.0
// Reads and writes the files of a gateway in the state directory, for the daemon and for commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "control/serve/readiness.hpp"
#include "os/files.hpp"

namespace gridctl::control {

struct GatewayFiles {
  os::Path folder;
  [[nodiscard]] os::Path lock() const { return folder / "gateway.lock"; }  // held while it lives
  [[nodiscard]] os::Path info() const { return folder / "gateway.json"; }
  [[nodiscard]] os::Path log() const { return folder / "gateway.log"; }
  [[nodiscard]] os::Path leave(int replica) const { return folder / ("leave-" + std::to_string(replica)); }
};
// Sends the replica no new requests for k_leave from now on; the caller repeats it to extend this. So if the command
// dies, the replica gets requests again.
inline constexpr Duration k_leave = std::chrono::seconds{5};
[[nodiscard]] Result<void> let_leave(const GatewayFiles& files, int replica, WallTime now);
[[nodiscard]] bool leaves_now(const GatewayFiles& files, int replica, WallTime now);
[[nodiscard]] GatewayFiles gateway_files(const Paths& paths, const JobId& service);

struct GatewayInfo {
  int pid = 0;
  std::uint16_t port = 0;
  std::string trouble{};  // why nothing is answered, for people; empty: nothing is wrong
  std::string version{};  // of the gridctl that it is; empty: unknown
  std::vector<ReplicaTold> replicas{};
  int wanted = 0;  // replicas, by the requests that are under way; 0: the gateway does not say
  bool asleep = false;  // nobody asks: no replica is needed
  bool operator==(const GatewayInfo&) const = default;
};
[[nodiscard]] std::string gateway_url(const GatewayInfo& info);
[[nodiscard]] Result<void> save_gateway(const GatewayFiles& files, const GatewayInfo& info);
// Returns nullopt if there never was a gateway.
[[nodiscard]] std::optional<GatewayInfo> read_gateway(const GatewayFiles& files);
// Returns true if a process holds the lock.
[[nodiscard]] bool gateway_lives(const GatewayFiles& files);
// Starts the process of the gateway; it may not hold the lock yet when this returns.
[[nodiscard]] Result<void> start_gateway(const Paths& paths, const JobId& service);

}  // namespace gridctl::control
