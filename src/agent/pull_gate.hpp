// SPDX-License-Identifier: Apache-2.0
// The network of an engine that pulls a guest's image. An image names further addresses (layers that lie elsewhere), a
// registry answers with redirects, and a name may lead somewhere else at each look. So the engine runs in a network
// namespace that holds nothing but a proxy of ours, and the proxy connects to public addresses only.
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

// `gridctl-agent gated COMMAND...`: runs the command in a network of the proxy alone. The user needs to be root of its
// user namespace (`podman unshare` makes that). Returns an exit status only when the command could not be started.
[[nodiscard]] int run_gated(std::span<char* const> command, os::Clock& clock);

}  // namespace gridctl::agent
