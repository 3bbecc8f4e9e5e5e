// SPDX-License-Identifier: Apache-2.0
// Implements `job submit --append BAG`: more tasks for a bag that runs, or that continues with them.
#pragma once

#include "cmd/commands.hpp"
#include "cmd/context.hpp"

namespace gridctl::cmd {

[[nodiscard]] Result<int> append_to_bag(Context& context, const Parsed& parsed);

}  // namespace gridctl::cmd
