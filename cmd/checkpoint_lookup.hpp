// SPDX-License-Identifier: Apache-2.0
// Resolves what a user types to a checkpoint and its tree.
#pragma once

#include <string>

#include "base/result.hpp"
#include "registry/job_records.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::cmd {

// Parses "JOB[@NUMBER]": without a number, the job's newest (head). not_found lists the existing ones.
[[nodiscard]] Result<registry::Checkpoint> find_checkpoint(registry::JobRecords& registry, const std::string& text);
// Finds the same, except that without a number it finds what the last attempt of a job that has ended left, if that is newer.
[[nodiscard]] Result<registry::Checkpoint> find_last(registry::JobRecords& registry, const std::string& text);
// Returns the checkpoint's tree; checkpoint_damaged if its manifest is damaged or missing.
[[nodiscard]] Result<store::Tree> tree_of(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint);

}  // namespace gridctl::cmd
