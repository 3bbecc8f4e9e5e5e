// SPDX-License-Identifier: Apache-2.0
// Jobs of a guest reach what the owner of this machine lets them: not his home network, and not this machine.
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
// The network for a job of this controller. `agent`: the program that the hook runs. Where the filter cannot be had, or
// the terms of a guest cannot be read, there is an error, and no job.
[[nodiscard]] Result<GuestNetwork> guest_network(const os::Path& agent_home, const ControllerId& controller,
                                                 EngineKind engine, const os::Path& agent);

// Asks the kernel, inside a container, for ways to the addresses that are closed; nothing is sent. Returns what is open
// in words, or nothing.
[[nodiscard]] std::string open_network();

// Whether an address is one of this machine's own, or lies in a network that it reaches other than by its default route.
[[nodiscard]] bool is_near(const std::string& address);

// `gridctl-agent egress-hook`, which the OCI runtime calls before a container's first instruction, with the container's
// state on stdin: adds routes that refuse private, shared and local addresses, the networks and addresses of this machine,
// and all of IPv6, to the container's network. Exit status 0 only when it has seen them refused; else the container does not start.
// With a number, what the container sends is held to so many bytes a second from its first packet; `open` after it closes nothing.
[[nodiscard]] int egress_hook(std::span<char* const> arguments);

}  // namespace gridctl::agent
