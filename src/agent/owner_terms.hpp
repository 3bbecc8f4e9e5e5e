// SPDX-License-Identifier: Apache-2.0
// Tells every process of the agent what the owner of this machine allows the jobs of one controller.
#pragma once

#include <optional>

#include "agent/ledger.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/files.hpp"
#include "wire/guest.hpp"

namespace gridctl::agent {

struct OwnerTerms {
  wire::GuestTerms terms;
  os::Path folder;  // of the invitation
};
// Returns nullopt if the controller is the owner's own. refused: it is a guest whose terms cannot be read.
[[nodiscard]] Result<std::optional<OwnerTerms>> owner_terms(const os::Path& agent_home, const ControllerId& controller);

// Returns the part of this machine that jobs of that controller may lease: all of it, or the part that its owner lends.
[[nodiscard]] Capacity capacity_for(const os::Path& agent_home, const ControllerId& controller);

// Adds a line with the time to the owner's log of an invitation. Errors do not concern the caller.
void tell_owner(const os::Path& folder, const std::string& line, WallTime now);

}  // namespace gridctl::agent
