// SPDX-License-Identifier: Apache-2.0
// Separate from what hosts do with a recipe: the store key needs EVP, which the agent does without.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "crypto/sha256.hpp"
#include "store/big_endian.hpp"
#include "store/recipe.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_step = 1u << 20;   // bytes that are hashed at once
constexpr std::uint64_t k_share_max = 16;  // a recipe may be this part of its pack

Result<Digest> hash_of(const ReadAt& read, std::uint64_t size) {
  crypto::Sha256 hash;
  for (std::uint64_t at = 0; at < size;) {
    TRY_ASSIGN(const Bytes part, read(at, static_cast<std::size_t>(std::min<std::uint64_t>(k_step, size - at))));
    if (part.empty()) return make_error(Code::checkpoint_damaged, "a pack became shorter while it was read");
    hash.update(part);
    at += part.size();
  }
  return hash.finish();
}

}  // namespace

Result<std::optional<PackRecipe>> recipe_of(const PackFile& pack, const StoreKey& key, const KnownBlobs& known,
                                            const NameBase& name_base) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(pack.path, O_RDONLY));
  const ReadAt read = reader_of(fd.get());
  TRY_ASSIGN(const PackIndex index, read_pack_index(pack.size, read));
  const std::uint64_t recipe_bytes = index.entries.size() * k_recipe_blob_bytes;
  const bool all_known =
      std::ranges::all_of(index.entries, [&](const PackEntry& entry) { return known.contains(entry.id); });
  if (!all_known || index.key != key.id() || pack.size > k_recipe_pack_max ||
      recipe_bytes > std::min<std::uint64_t>(pack.size / k_share_max, k_recipe_bytes_max / 2))
    return std::optional<PackRecipe>();
  PackRecipe recipe{index.key, pack.size, {}, {}};
  for (const PackEntry& entry : index.entries) {
    RecipeBlob blob{entry, known.at(entry.id), std::nullopt, key.blob_key(entry.id), {}};
    if (entry.base) {
      TRY_ASSIGN(blob.base, name_base(entry.base));
    }
    TRY_ASSIGN(const Bytes nonce, read(entry.offset, blob.nonce.size()));
    if (nonce.size() != blob.nonce.size()) return make_error(Code::checkpoint_damaged, "a pack became shorter");
    blob.nonce = first_bytes<12>(nonce);
    recipe.blobs.push_back(std::move(blob));
  }
  TRY_ASSIGN(recipe.content, hash_of(read, pack.size));
  return std::optional(std::move(recipe));
}

}  // namespace gridctl::store
