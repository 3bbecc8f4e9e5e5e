// SPDX-License-Identifier: Apache-2.0
// Limits the network of a guest's jobs to what the owner of this machine allows: not the home network, and not this
// machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

struct GuestNetwork {
  std::vector<std::string> arguments;  // of the engine; none for the owner's own jobs, and for a guest without limits
  bool closed = false;                 // init looks once more, and begins nothing where it finds a way
};
// Returns the network for a job of this controller. `agent`: the program that the hook runs. If the filter is not
// available, or a guest's terms cannot be read, returns an error, and the job does not run.
[[nodiscard]] Result<GuestNetwork> guest_network(const os::Path& agent_home, const ControllerId& controller,
                                                 EngineKind engine, const os::Path& agent);

// Asks the kernel, inside a container, for routes to the blocked addresses; nothing is sent. Returns what is open in
// words, or nothing.
[[nodiscard]] std::string open_network();

// Returns whether an address belongs to this machine, or to a network that it reaches other than by its default route.
[[nodiscard]] bool is_near(const std::string& address);

// Implements `gridctl-agent egress-hook`, which the OCI runtime calls before a container's first instruction, with the
// container's state on stdin: adds routes that refuse private, shared and local addresses, the networks and addresses
// of this machine, and all of IPv6, to the container's network. Exits with 0 only if it has seen them refused;
// otherwise the container does not start. A number limits what the container sends to that many bytes a second, from
// its first packet on; `open` after the number blocks no address.
[[nodiscard]] int egress_hook(std::span<char* const> arguments);

}  // namespace gridctl::agent
