// SPDX-License-Identifier: Apache-2.0
// From what a user types to a checkpoint and its tree.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "registry/registry.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::cmd {

// "JOB[@NUMBER]": without a number, the job's newest (head). not_found names what there is.
[[nodiscard]] Result<registry::Checkpoint> find_checkpoint(registry::Registry& registry, const std::string& text);
// The checkpoint's tree; checkpoint_damaged when its manifest is damaged or not there.
// Finds the same; without a number, for a job that has ended, what its last attempt left, when that is newer.
[[nodiscard]] Result<registry::Checkpoint> find_last(registry::Registry& registry, const std::string& text);
[[nodiscard]] Result<store::Tree> tree_of(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint);

}  // namespace gridctl::cmd
