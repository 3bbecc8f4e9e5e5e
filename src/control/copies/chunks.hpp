// SPDX-License-Identifier: Apache-2.0
// Opens a state directory's chunk store with its encryption key.
#pragma once

#include <optional>

#include "control/reach/paths.hpp"
#include "store/chunk_store.hpp"
#include "store/store_key.hpp"

namespace gridctl::control {

// Opens the store with its key. If neither store nor key exists, makes a durable key that only its owner can read.
// state_unreadable, with a command that helps, when the key is missing or belongs to another store.
[[nodiscard]] Result<store::ChunkStore> open_chunks(const Paths& paths);

// Returns nullopt if there is no key yet.
[[nodiscard]] Result<std::optional<store::StoreKey>> load_key(const Paths& paths);
// Makes `key` the key of this state directory. usage when the store is encrypted with another key; exists when there is
// another key and no store to decide between them. An existing key that does not match the store is kept beside it, as
// store.key.ID.
[[nodiscard]] Result<void> install_key(const Paths& paths, const store::StoreKey& key);

}  // namespace gridctl::control
