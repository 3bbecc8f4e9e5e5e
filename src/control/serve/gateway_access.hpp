// SPDX-License-Identifier: Apache-2.0
// The gateways of services as the daemon sees them: processes, and what they tell in files. An interface, for the
// simulator has gateways of its own.
#pragma once

#include <optional>

#include "control/serve/gateway_files.hpp"

namespace gridctl::control {

class GatewayAccess {
 public:
  virtual ~GatewayAccess() = default;
  [[nodiscard]] virtual bool lives(const JobId& service) = 0;
  // Starts the process; nobody has seen it live yet when this returns.
  [[nodiscard]] virtual Result<void> start(const JobId& service) = 0;
  // Returns what the gateway told last; nullopt means that none was ever there.
  [[nodiscard]] virtual std::optional<GatewayInfo> told(const JobId& service) = 0;
  // The replica gets no new requests for k_leave from now on.
  [[nodiscard]] virtual Result<void> let_leave(const JobId& service, int replica, WallTime now) = 0;
};

// Starts and asks the gateways of a state directory.
class LocalGateways : public GatewayAccess {
 public:
  explicit LocalGateways(Paths paths) : paths_(std::move(paths)) {}
  [[nodiscard]] bool lives(const JobId& service) override;
  [[nodiscard]] Result<void> start(const JobId& service) override;
  [[nodiscard]] std::optional<GatewayInfo> told(const JobId& service) override;
  [[nodiscard]] Result<void> let_leave(const JobId& service, int replica, WallTime now) override;

 private:
  const Paths paths_;
};

}  // namespace gridctl::control
