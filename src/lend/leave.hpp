// SPDX-License-Identifier: Apache-2.0
// The end of an invitation on a lent machine. Its folder is renamed first: nothing of ours that still runs finds it, so
// nothing writes into what is being removed.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "lend/lent.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::lend {

// Puts the folder out of reach and ends every process that serves this invitation. Returns the invitation at its new
// place, which withdrawn() lists until it is removed. timed_out: a process does not end.
[[nodiscard]] Result<Lent> withdraw(const Lent& lent, const ControllerId& controller, os::Clock& clock);

// Lists the invitations that are withdrawn and not removed yet: a `lend leave` was interrupted.
[[nodiscard]] std::vector<Lent> withdrawn();

// Removes a tree into which a process may still have put a file at this moment. Tries for a bounded time; the error then
// names what stays.
[[nodiscard]] Result<void> remove_for_good(const os::Path& path, os::Clock& clock);

}  // namespace gridctl::lend
