// SPDX-License-Identifier: Apache-2.0
// Private to the room: what an open ChunkStore knows. All members need the mutex, unless said otherwise.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/chunk_store.hpp"

namespace gridctl::store {

struct BlobPlace {
  static constexpr std::uint32_t k_unfinished = UINT32_MAX;  // in the pack being written
  std::uint32_t pack = 0;                                    // index into packs_
  std::uint32_t length = 0, plain_length = 0;                // bytes in the pack, and of the blob
  std::uint64_t offset = 0;
  Encoding encoding;
  BlobPlace() = default;
  BlobPlace(std::uint32_t number, const PackEntry& entry)
      : pack(number),
        length(entry.length),
        plain_length(entry.plain_length),
        offset(entry.offset),
        encoding(entry.encoding) {}
};

struct PublishedPack {
  std::string name;
  BootTime claimed_at{INT64_MIN / 2};  // when this instance last touched it
};

struct UnfinishedPack {
  os::Path path;
  std::shared_ptr<os::Fd> fd;
  std::uint64_t end = k_pack_header_bytes;
  std::vector<PackEntry> entries;
};

using SharedFd = std::shared_ptr<os::Fd>;

struct ChunkStore::State {
  os::Path directory;
  StoreOptions options;
  std::mutex mutex;

  std::vector<PublishedPack> packs;
  std::set<std::string> known_names;           // of packs and damaged
  std::map<std::string, std::string> damaged;  // pack -> why
  std::set<std::pair<std::string, std::uint64_t>>
      distrusted;  // pack and offset of blobs that did not hash to their name
  std::unordered_map<Digest, BlobPlace> index;
  UnfinishedPack unfinished;
  std::vector<std::pair<std::string, SharedFd>> open_packs;  // a few, newest last
  std::int64_t listed_mtime_ns = -1;                         // of packs/ when it was listed; -1 = never, or not settled
  bool loaded = false;                                       // listed at least once
  std::uint64_t put_blobs = 0, put_bytes = 0;

  [[nodiscard]] const os::Clock& clock() const;
  [[nodiscard]] os::Path packs_directory() const { return directory / "packs"; }
  [[nodiscard]] os::Path pack_path(const std::string& name) const { return packs_directory() / name; }
  [[nodiscard]] Result<os::FileLock> lock_pack_set() const { return os::FileLock::acquire(directory / "write.lock"); }

  Result<void> refresh(bool force);
  Result<void> load(const std::string& name);
  void forget_all();
  [[nodiscard]] Result<const BlobPlace*> find(const Digest& digest);
  // True when it is here, and then claims it.
  Result<bool> keep(const Digest& digest);
  // False when the pack is gone.
  Result<bool> claim(std::uint32_t pack);
  Result<SharedFd> open_pack(const std::string& name);

  Result<void> begin_pack();
  // `entry` without its offset, which is where the unfinished pack ends.
  Result<void> append(PackEntry entry, ByteView stored);
  Result<void> publish();
  void discard_unfinished();
  // Appends the wanted blobs of a pack to the unfinished one. With check_first, false and nothing copied when one of
  // them is damaged; with skip, damaged ones are left out.
  enum class OnDamage : std::uint8_t { check_first, skip };
  Result<bool> copy_out(const std::string& name, const PackIndex& pack,
                        const std::function<bool(const Digest&)>& wanted, OnDamage on_damage);
};

[[nodiscard]] ReadAt reader_of(int fd);
[[nodiscard]] Result<PackIndex> read_pack(int fd, const std::string& name);  // also checks the name
// Reads, decodes and hashes one blob. No state. `stored`, unless null, gets its bytes as they are in the pack.
[[nodiscard]] Result<Bytes> read_blob(int fd, const std::string& pack, const BlobPlace& place, const Digest& digest,
                                      Bytes* stored = nullptr);

}  // namespace gridctl::store
