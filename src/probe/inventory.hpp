// SPDX-License-Identifier: Apache-2.0
// Takes the inventory of this machine. It never fails: a fact that could not be read is a note.
#pragma once

#include <span>

#include "base/inventory.hpp"
#include "os/clock.hpp"
#include "probe/tools.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {

struct ProbeOptions {
  os::Path home;        // where the agent keeps its data; empty = ~/.gridctl
  os::Path root = "/";  // where /proc, /sys and /etc are; tests have their own
  Toolbox toolbox;
  std::span<const VendorPlugin> plugins;  // empty = vendors()
};

// Asks all tools at once. If none hangs, this takes as long as the slowest (docker or podman, some 100 ms); a hanging
// tool costs its deadline, nothing more.
[[nodiscard]] Inventory take_inventory(os::Clock& clock, const ProbeOptions& options);

// Asks one vendor's tools, in at most two rounds.
[[nodiscard]] VendorReading read_vendor(const VendorPlugin& vendor, const Toolbox& toolbox);

}  // namespace gridctl::probe
