// SPDX-License-Identifier: Apache-2.0
// Provides the network of an engine that pulls a guest's image. An image names other addresses (layers elsewhere), a
// registry answers with redirects, and a name may resolve differently each time. So the engine runs in a network
// namespace that contains only our proxy, and the proxy connects only to public addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "os/clock.hpp"

namespace gridctl::agent {

inline constexpr const char* k_gated_command = "gated";

struct GateTarget {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const GateTarget&) const = default;
};
// Reads the head of a request for a tunnel, "CONNECT host:port HTTP/1.1". nullopt: it asks for something else. Pure.
[[nodiscard]] std::optional<GateTarget> parse_tunnel_request(std::string_view head);

// Implements `gridctl-agent gated COMMAND...`: runs the command in a network with only the proxy. The user must be root
// of its user namespace (`podman unshare` does that). Returns an exit status only if the command could not be started.
[[nodiscard]] int run_gated(std::span<char* const> command, os::Clock& clock);

}  // namespace gridctl::agent
