// SPDX-License-Identifier: Apache-2.0
// The lent machine's side of one connection: it dials the relay, waits there for a call, and lets an agent answer it.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "lend/lent.hpp"
#include "os/clock.hpp"

namespace gridctl::lend {

enum class DialNews : std::uint8_t { ready, called };

// Blocks until the call is over. Errors: as ssh::connect; refused (the relay does not let this machine in: the
// invitation has expired, was used or withdrawn), host_unreachable (the relay went silent), auth_refused (the caller
// does not have the key).
[[nodiscard]] Result<void> dial(const Lent& lent, const std::function<void(DialNews)>& tell, os::Clock& clock);

// Logs in to the relay once, without waiting for a call: `provider join` shows so that the invitation is good.
[[nodiscard]] Result<void> try_relay(const Lent& lent, BootTime deadline, os::Clock& clock);

}  // namespace gridctl::lend
