// SPDX-License-Identifier: Apache-2.0
// A state directory's chunk store and the key it is encrypted with.
#pragma once

#include <memory>
#include <optional>

#include "control/reach/paths.hpp"
#include "store/chunk_store.hpp"
#include "store/store_key.hpp"

namespace gridctl::control {

// With its key, which is made, durable and readable by its owner alone, when neither store nor key are there.
// state_unreadable, with the command that mends it, when the key is missing or another one's.
[[nodiscard]] Result<store::ChunkStore> open_chunks(const Paths& paths);

// nullopt when there is none yet.
[[nodiscard]] Result<std::optional<store::StoreKey>> load_key(const Paths& paths);
// Makes it the key of this state directory. usage when the store is encrypted with another one; exists when there is
// another key and no store says which is right. A key that does not fit the store is kept beside it, as store.key.ID.
[[nodiscard]] Result<void> install_key(const Paths& paths, const store::StoreKey& key);

}  // namespace gridctl::control
