// SPDX-License-Identifier: Apache-2.0
// Gives the daemon its view of services' gateways: processes, and their reports in files. An interface, because the
// simulator has its own gateways.
#pragma once

#include <optional>

#include "control/serve/gateway_files.hpp"

namespace gridctl::control {

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
