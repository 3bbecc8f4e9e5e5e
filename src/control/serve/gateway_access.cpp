// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_access.hpp"

#include "os/process.hpp"

namespace gridctl::control {

bool LocalGateways::lives(const JobId& service) { return gateway_lives(gateway_files(paths_, service)); }

Result<void> LocalGateways::start(const JobId& service) {
  TRY_ASSIGN(const os::Path self, os::executable_path());
  os::SpawnOptions options;
  options.detach = true;
  options.new_session = true;
  TRY(os::spawn({self.string(), "__gateway", service.value, "--state", paths_.root.string()}, options));
  return {};
}

std::optional<GatewayInfo> LocalGateways::told(const JobId& service) {
  return read_gateway(gateway_files(paths_, service));
}

Result<void> LocalGateways::let_leave(const JobId& service, int replica, WallTime now) {
  return control::let_leave(gateway_files(paths_, service), replica, now);
}

}  // namespace gridctl::control
