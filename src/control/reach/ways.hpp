// SPDX-License-Identifier: Apache-2.0
// The kinds of ways to a host, as registrations tell them.
#pragma once

#include "registry/records.hpp"

namespace gridctl::control {

// Whether its owner lends it: it dials a relay, and is called there. gridctl-lend(7).
[[nodiscard]] bool is_lent(const registry::Provider& provider);

}  // namespace gridctl::control
