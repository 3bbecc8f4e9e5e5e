// SPDX-License-Identifier: Apache-2.0
// Rebuilds a pack byte for byte from the blobs' content, without the store key: gridctl-agent(7), UPLOADS. So a host
// that made a checkpoint can upload the packs of its copy itself, and anyone who knows the hash of a pack need not
// trust the host.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/chunk_store.hpp"
#include "store/store_key.hpp"

namespace gridctl::store {

inline constexpr std::uint64_t k_recipe_pack_max = 128ull << 20;  // bytes of a pack; larger ones are not made by hosts
inline constexpr std::size_t k_recipe_bytes_max = 8u << 20;
inline constexpr std::size_t k_recipe_blob_bytes = 163;  // of each blob

struct RecipeBlob {
  PackEntry entry;
  Digest digest;               // of the content
  std::optional<Digest> base;  // of the content that it is a difference to
  Digest key;                  // of this blob alone
  std::array<std::byte, 12> nonce{};
  bool operator==(const RecipeBlob&) const = default;
};
struct PackRecipe {
  KeyId key;               // of the store, without telling it
  std::uint64_t size = 0;  // bytes of the pack
  Digest content;          // SHA-256 of all of them
  std::vector<RecipeBlob> blobs;
  bool operator==(const PackRecipe&) const = default;
};

[[nodiscard]] Bytes encode(const PackRecipe& recipe);
// Fails with protocol_violation unless it is a complete recipe within the limits above.
[[nodiscard]] Result<PackRecipe> parse_recipe(ByteView bytes);

// Maps storage ids to the digests of blobs whose content the other side has.
using KnownBlobs = std::unordered_map<Digest, Digest>;
using NameBase = std::function<Result<Digest>(const BaseId&)>;  // what differences were made from; nobody need have it
// Returns nullopt if the pack holds an unknown blob, or is hardly longer than its recipe.
[[nodiscard]] Result<std::optional<PackRecipe>> recipe_of(const PackFile& pack, const StoreKey& key,
                                                          const KnownBlobs& known, const NameBase& name_base);

using ReadBlob = std::function<Result<Bytes>(const Digest&)>;
using WritePart = std::function<Result<void>(ByteView)>;
// Passes on the bytes of the pack in order. After an error, the bytes passed on so far are worthless; unsupported: the
// encoder here produces other bytes than the one that made the pack.
[[nodiscard]] Result<void> remake_pack(const PackRecipe& recipe, const ReadBlob& read, const WritePart& write);

}  // namespace gridctl::store
