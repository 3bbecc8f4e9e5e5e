// SPDX-License-Identifier: Apache-2.0
// Compares a new inventory with the recorded one and stores it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/inventory.hpp"
#include "control/fleet/register_host.hpp"
#include "registry/host_records.hpp"

namespace gridctl::control {

struct InventoryChange {
  std::string what;           // "gpu GPU-1a… pcie.width", "disk /data", "kernel"
  std::string before, after;  // as JSON writes them; empty = it was not there
  bool operator==(const InventoryChange&) const = default;
};

// Returns the changes that interest a person: parts that were added or removed and facts that changed, but not facts
// that change on their own (clocks, free space, temperatures). Facts that an older agent did not report do not count as
// changes.
[[nodiscard]] std::vector<InventoryChange> inventory_changes(const Inventory& before, const Inventory& after);
// Returns "gpu GPU-1a… pcie.width: 16 -> 8; 2 more".
[[nodiscard]] std::string summary(std::span<const InventoryChange> changes);
// Returns "16 -> 8", "new: …" or "gone: …".
[[nodiscard]] std::string describe(const InventoryChange& change);

// Merges the examined facts into the provider's present row (it may have been drained in the meantime), and adds each
// kind of difference to the host's history: "rebooted", "machine_replaced", "inventory_changed".
[[nodiscard]] Result<std::vector<InventoryChange>> keep_examined(registry::HostRecords& registry,
                                                                 const registry::Provider& found, WallTime now);

// Returns the contradictions between the owner's statements and the machine, one line each.
[[nodiscard]] std::vector<std::string> contradictions(const registry::Provider& provider);

}  // namespace gridctl::control
