// SPDX-License-Identifier: Apache-2.0
// Who holds what on this machine, as heartbeats tell it: a controller need not try in order to learn that a resource is
// taken.
#pragma once

#include <optional>
#include <vector>

#include "agent/ledger.hpp"
#include "base/ids.hpp"
#include "wire/held.hpp"

namespace gridctl::agent {

// Every valid lease; nullopt when the ledger cannot be read or holds more than fits into a reply.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> held_shares(Ledger& ledger, const ControllerId& asking);
// The same of leases that are known. Pure.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> shares_of(const std::vector<Lease>& leases,
                                                                    const ControllerId& asking);

}  // namespace gridctl::agent
