// SPDX-License-Identifier: Apache-2.0
// Numbers the entries of a tree in the order of their last changes: gridctl-store(5), MANIFEST. Programs that look for
// the newest file or directory by its time find the right one in a restored checkpoint, whatever the clocks of the
// hosts show. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// Sets Entry::written of files and directories from the times of their last changes, in any unit.
void number_writes(std::vector<Entry>& entries, const std::function<std::int64_t(const Entry&)>& changed_at);
// Closes gaps in the numbers. Where some entries of a kind have numbers, those without count as the oldest.
void renumber_writes(std::vector<Entry>& entries);

[[nodiscard]] bool has_write_order(const Tree& tree);
// Fails with checkpoint_damaged unless the numbers are what renumber_writes makes of them.
[[nodiscard]] Result<void> check_write_order(const std::vector<Entry>& entries);

// Returns the greatest number among the entries of that kind; 0 if they have none.
[[nodiscard]] std::uint32_t last_write(const std::vector<Entry>& entries, EntryKind kind);

}  // namespace gridctl::store
