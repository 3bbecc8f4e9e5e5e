// SPDX-License-Identifier: Apache-2.0
// Reads and writes the files of a gateway in the state directory, for the daemon and for commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "job/service.hpp"
#include "os/files.hpp"

namespace gridctl::control {

// Holds a gateway's verdict on a replica's attempt; the daemon acts on it.
struct ReplicaTold {
  Epoch epoch{};         // 0: it has none
  bool ready = false;    // its server was ready at some time
  bool late = false;     // it has not been ready for too long
  bool drained = false;  // it gets no new requests, and has none under way
  std::string unfit{};   // why the probe's command says no, for people; empty: it passes, or there is none
  bool operator==(const ReplicaTold&) const = default;
};

// Returns how long a server that was ready may fail its probe before it is restarted. A server that was never ready has
// `initial_delay`.
[[nodiscard]] Duration patience_with_server(const job::Service& service, bool was_ready);

// Judges whether the server of a replica becomes ready in time, as its gateway sees it. Pure.
class ReadyClock {
 public:
  // Time counts only while the replica's host answers: a broken network is not the server's fault.
  void see(Epoch epoch, bool reachable, bool up, Duration passed, const job::Service& service);
  void drained(bool is) { told_.drained = is; }
  void unfit(const std::string& why) { told_.unfit = why; }
  [[nodiscard]] const ReplicaTold& told() const { return told_; }

 private:
  ReplicaTold told_;
  Duration unready_{};
};

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

// Gives the daemon its view of services' gateways: processes, and their reports in files. An interface, because the
// simulator has its own gateways.
class GatewayAccess {
 public:
  virtual ~GatewayAccess() = default;
  [[nodiscard]] virtual bool lives(const JobId& service) = 0;
  // Starts the process; it may not be alive yet when this returns.
  [[nodiscard]] virtual Result<void> start(const JobId& service) = 0;
  // Returns the gateway's last report; nullopt means that there never was one.
  [[nodiscard]] virtual std::optional<GatewayInfo> told(const JobId& service) = 0;
  // Sends the replica no new requests for k_leave from now on.
  [[nodiscard]] virtual Result<void> let_leave(const JobId& service, int replica, WallTime now) = 0;
};

// Starts and queries the gateways of a state directory.
class LocalGateways : public GatewayAccess {
 public:
  explicit LocalGateways(Paths paths) : paths_(std::move(paths)) {}
  [[nodiscard]] bool lives(const JobId& service) override { return gateway_lives(gateway_files(paths_, service)); }
  [[nodiscard]] Result<void> start(const JobId& service) override { return start_gateway(paths_, service); }
  [[nodiscard]] std::optional<GatewayInfo> told(const JobId& service) override {
    return read_gateway(gateway_files(paths_, service));
  }
  [[nodiscard]] Result<void> let_leave(const JobId& service, int replica, WallTime now) override {
    return control::let_leave(gateway_files(paths_, service), replica, now);
  }

 private:
  const Paths paths_;
};

}  // namespace gridctl::control
