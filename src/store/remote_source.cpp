// SPDX-License-Identifier: Apache-2.0
#include "store/remote_source.hpp"

#include <algorithm>
#include <utility>

#include "store/big_endian.hpp"
#include "store/pack.hpp"
#include "store/remote.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_windows_max = 3;  // of k_object_read_max bytes: a blob, its base, and the next

// Returns true only for errors that mean that the object is bad; other errors say nothing about it.
bool is_no_good(Code code) {
  return code == Code::checkpoint_damaged || code == Code::not_found || code == Code::unsupported;
}

}  // namespace

Result<RemoteSource> RemoteSource::open(Backend& remote, const StoreKey& key, const std::vector<NeededPack>& packs) {
  RemoteSource source(remote, key);
  for (const NeededPack& pack : packs) {
    const Result<void> loaded = source.load(pack);
    if (loaded) continue;
    if (!is_no_good(loaded.error().code)) return loaded.error();
    source.problems_.push_back({pack.id, loaded.error().one_line()});
  }
  return source;
}

Result<void> RemoteSource::load(const NeededPack& file) {
  const std::string name = object_name(file);
  const auto read = [&](std::uint64_t offset, std::size_t size) { return read_object(*remote_, name, offset, size); };
  TRY_ASSIGN(PackIndex index, read_pack_index(file.size, read));
  if (index.id != file.id) return make_error(Code::checkpoint_damaged, "pack's name is not its index digest");
  if (index.key != key_->id()) return make_error(Code::checkpoint_damaged, "pack does not have this store's key");
  const auto number = static_cast<std::uint32_t>(packs_.size());
  for (std::uint32_t i = 0; i < index.entries.size(); ++i) index_.try_emplace(index.entries[i].id, Where{number, i});
  packs_.push_back({file, std::move(index.entries)});
  return {};
}

// Blobs are mostly read in the order of the pack, so the following bytes are read too.
Result<Bytes> RemoteSource::stored_bytes(const Where& where) {
  const Pack& pack = packs_[where.pack];
  const PackEntry& entry = pack.entries[where.entry];
  for (const Window& window : windows_) {
    if (window.pack != where.pack || entry.offset < window.offset ||
        entry.offset + entry.length > window.offset + window.bytes.size())
      continue;
    const auto from = window.bytes.begin() + static_cast<std::ptrdiff_t>(entry.offset - window.offset);
    return Bytes(from, from + entry.length);
  }
  Window window{where.pack, entry.offset, {}};
  const std::size_t reads = (entry.length + k_object_read_max - 1) / k_object_read_max;
  TRY_ASSIGN(window.bytes, read_object(*remote_, object_name(pack.file), entry.offset, reads * k_object_read_max));
  Bytes stored(window.bytes.begin(), window.bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                                window.bytes.size(), entry.length)));
  if (window.bytes.size() <= k_object_read_max) {  // a large manifest is not kept
    if (windows_.size() == k_windows_max) windows_.erase(windows_.begin());
    windows_.push_back(std::move(window));
  }
  return stored;
}

Result<Bytes> RemoteSource::blob_at(const Where& where, bool may_differ) {
  const Pack& pack = packs_[where.pack];
  const PackEntry& entry = pack.entries[where.entry];
  if (entry.base && !may_differ)
    return make_error(Code::checkpoint_damaged, "a difference is based on another difference");
  TRY_ASSIGN(Bytes stored, stored_bytes(where));
  return decode_blob(std::move(stored), pack_name(pack.file.id), {entry.id, {0, entry, true}}, key_,
                     [this](const BaseId& base) {
                       mutex_->assert_held();
                       return read_base(base);
                     });
}

Result<Bytes> RemoteSource::read_base(const BaseId& base) {
  const auto found = index_.lower_bound({first_bytes<32>(base.bytes)});
  if (found == index_.end() || base_id(found->first) != base)
    return make_error(Code::not_found, "the base of a difference is missing");
  return blob_at(found->second, false);
}

Result<Bytes> RemoteSource::read(const Digest& digest) {
  const os::MutexLock lock(*mutex_);
  const auto found = index_.find(key_->storage_id(digest));
  if (found == index_.end()) return make_error(Code::not_found, "chunk " + to_hex(digest) + " is missing");
  Result<Bytes> content = blob_at(found->second, true);
  // The object has gone since its index was read.
  if (!content && content.error().code == Code::not_found) content.error().code = Code::checkpoint_damaged;
  return content;
}

Result<std::string> RemoteSource::check(const Digest& id, std::uint64_t& read_bytes) {
  const os::MutexLock lock(*mutex_);
  for (std::uint32_t number = 0; number < packs_.size(); ++number) {
    if (packs_[number].file.id != id) continue;
    for (std::uint32_t i = 0; i < packs_[number].entries.size(); ++i) {
      const Result<Bytes> content = blob_at({number, i}, true);
      if (!content && is_no_good(content.error().code)) return content.error().one_line();
      TRY(content);
      read_bytes += packs_[number].entries[i].length;
    }
    return std::string();
  }
  for (const Problem& problem : problems_)
    if (problem.pack == id) return problem.why;
  return std::string("it was not read");
}

}  // namespace gridctl::store
