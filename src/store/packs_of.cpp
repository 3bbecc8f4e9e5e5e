// SPDX-License-Identifier: Apache-2.0
// Finds the packs that a checkpoint needs, for copying them elsewhere.
#include <algorithm>
#include <map>
#include <utility>

#include "os/entries.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

Error missing_blob(const Digest& digest, const os::Path& directory) {
  return make_error(Code::not_found, "chunk " + to_hex(digest) + " is not in the store '" + directory.native() + "'");
}

}  // namespace

Result<void> ChunkStore::State::encrypt_open(std::span<const Digest> digests) {
  std::map<std::string, std::unordered_set<Digest>> open_in;  // pack -> what is wanted of it
  for (const Digest& digest : digests) {
    const std::optional<FoundBlob> blob = sealing() ? known(digest) : std::nullopt;
    if (blob && !blob->place.sealed && blob->place.pack < BlobPlace::k_unpublished)
      open_in[packs[blob->place.pack].name].insert(blob->id);
  }
  for (const auto& [name, wanted] : open_in) {
    TRY_ASSIGN(const SharedFd fd, open_pack(name));
    TRY_ASSIGN(const PackIndex pack, read_pack(fd->get(), name));
    const auto is_wanted = [&ids = wanted](const Digest& id) { return ids.contains(id); };
    TRY(copy_out(name, pack, is_wanted, OnDamage::skip));
  }
  return publish_all();
}

Result<std::optional<std::set<std::uint32_t>>> ChunkStore::State::claim_packs_of(std::span<const Digest> digests) {
  std::set<std::uint32_t> numbers;
  for (const Digest& digest : digests) {
    const std::optional<FoundBlob> blob = known(digest);
    if (!blob) return missing_blob(digest, directory);
    if (sealing() && !blob->place.sealed)
      return make_error(Code::checkpoint_damaged,
                        "chunk " + to_hex(digest) + " is in an unsealed pack here and is damaged");
    numbers.insert(blob->place.pack);
    if (!blob->place.base) continue;
    const std::optional<FoundBlob> base = known(blob->place.base);
    if (!base) return make_error(Code::checkpoint_damaged, "the base of chunk " + to_hex(digest) + " is missing");
    numbers.insert(base->place.pack);
  }
  for (const std::uint32_t number : numbers) {
    TRY_ASSIGN(const bool claimed, claim(number));
    if (!claimed) return std::optional<std::set<std::uint32_t>>();
  }
  return std::optional(std::move(numbers));
}

Result<std::vector<PackFile>> ChunkStore::packs_of(std::span<const Digest> digests) {
  const os::MutexLock lock(state_->mutex);
  TRY(state_->refresh(false));
  std::optional<std::set<std::uint32_t>> numbers;
  for (int round = 0; !numbers; ++round) {
    if (round == State::k_retries_max)
      return make_error(Code::busy, "packs of '" + directory().native() + "' keep disappearing while they are claimed");
    if (round > 0) TRY(state_->refresh(true));
    TRY(state_->encrypt_open(digests));
    TRY_ASSIGN(numbers, state_->claim_packs_of(digests));
  }
  std::vector<PackFile> files;
  for (const std::uint32_t number : *numbers) {
    const std::string& name = state_->packs[number].name;
    const os::Path path = state_->pack_path(name);
    TRY_ASSIGN(const auto status, os::status_of(path));
    if (!status) return make_error(Code::busy, "pack " + name + " disappeared while it was claimed");
    TRY_ASSIGN(const Digest id, parse_digest(name.substr(0, 2 * sizeof(Digest))));
    files.push_back({id, path, status->size});
  }
  std::ranges::sort(files, {}, &PackFile::id);
  return files;
}

}  // namespace gridctl::store
