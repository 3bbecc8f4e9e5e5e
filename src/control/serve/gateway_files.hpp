// SPDX-License-Identifier: Apache-2.0
// What a gateway keeps in the state directory, for the daemon and for commands.
#pragma once

#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "os/files.hpp"

namespace gridctl::control {

struct GatewayFiles {
  os::Path folder;
  [[nodiscard]] os::Path lock() const { return folder / "gateway.lock"; }  // held while it lives
  [[nodiscard]] os::Path info() const { return folder / "gateway.json"; }
  [[nodiscard]] os::Path log() const { return folder / "gateway.log"; }
};
[[nodiscard]] GatewayFiles gateway_files(const Paths& paths, const JobId& service);

struct GatewayInfo {
  int pid = 0;
  std::uint16_t port = 0;
  std::string trouble{};  // why nothing is answered, for people; empty: nothing is wrong
  bool operator==(const GatewayInfo&) const = default;
};
[[nodiscard]] std::string gateway_url(const GatewayInfo& info);
[[nodiscard]] Result<void> save_gateway(const GatewayFiles& files, const GatewayInfo& info);
// nullopt: none was ever there.
[[nodiscard]] std::optional<GatewayInfo> read_gateway(const GatewayFiles& files);
// Somebody holds the lock.
[[nodiscard]] bool gateway_lives(const GatewayFiles& files);

}  // namespace gridctl::control
