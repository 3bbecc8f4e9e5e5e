// SPDX-License-Identifier: Apache-2.0
// Lists the holders of resources on this machine, as heartbeats report them: a controller need not try to lease a
// resource to learn that it is taken.
#pragma once

#include <optional>
#include <vector>

#include "agent/ledger.hpp"
#include "base/ids.hpp"
#include "wire/held.hpp"

namespace gridctl::agent {

// Returns every valid lease; nullopt if the ledger cannot be read or holds more than fits into a reply.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> held_shares(Ledger& ledger, const ControllerId& asking);
// Computes the shares from known leases. Pure.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> shares_of(const std::vector<Lease>& leases,
                                                                    const ControllerId& asking);

}  // namespace gridctl::agent
