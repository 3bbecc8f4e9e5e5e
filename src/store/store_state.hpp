// SPDX-License-Identifier: Apache-2.0
// Holds the state of an open ChunkStore. Private to the room.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "os/mutex.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::store {

struct BlobPlace {
  static constexpr std::uint32_t k_unpublished = 1u << 31;  // from here on: numbers of unpublished packs
  std::uint32_t pack = 0;                                   // index into packs
  std::uint32_t length = 0, plain_length = 0;               // bytes in the pack, and of the blob
  std::uint64_t offset = 0;
  Encoding encoding;
  BaseId base;
  bool sealed = false;  // encrypted
  BlobPlace() = default;
  BlobPlace(std::uint32_t number, const PackEntry& entry, bool is_sealed)
      : pack(number),
        length(entry.length),
        plain_length(entry.plain_length),
        offset(entry.offset),
        encoding(entry.encoding),
        base(entry.base),
        sealed(is_sealed) {}
};
// Locates a blob under the storage id of one pack.
struct FoundBlob {
  Digest id;
  BlobPlace place;
};

struct PublishedPack {
  std::string name;
  BootTime claimed_at{INT64_MIN / 2};  // when this instance last touched it
};

using SharedFd = std::shared_ptr<os::Fd>;

struct UnpublishedPack {
  std::uint32_t number = 0;
  os::Path path;
  SharedFd fd;
  std::uint64_t end = k_pack_header_bytes;
  std::vector<PackEntry> entries;
  unsigned writing = 0;  // threads that are writing what they have reserved
  bool failed = false;   // some byte of it could not be written
  bool gone = false;     // published, or given up
};
using UnpublishedPtr = std::shared_ptr<UnpublishedPack>;

// Holds a blob that can be the base of a difference.
struct Base {
  BaseId id;
  Bytes content;
};

// Proves that a blob is the one that was put: by its hash, or, for content sealed with the store's key, by the tag. A
// tag leaves only the encoder's work unchecked, which is enough for content that is hashed later.
enum class Proof : std::uint8_t { hash, tag };

struct ChunkStore::State {
  static constexpr int k_retries_max = 3;  // a collection may replace packs under a reader; not so often

  os::Path directory;
  StoreOptions options;
  os::Mutex mutex;

  std::vector<PublishedPack> packs GRIDCTL_GUARDED_BY(mutex);
  std::set<std::string> known_names GRIDCTL_GUARDED_BY(mutex);  // also of packs that cannot be read
  // Pack and offset of blobs that did not match their hash.
  std::set<std::pair<std::string, std::uint64_t>> distrusted GRIDCTL_GUARDED_BY(mutex);
  std::unordered_map<Digest, BlobPlace> index GRIDCTL_GUARDED_BY(mutex);  // by storage id
  std::vector<UnpublishedPtr> unpublished GRIDCTL_GUARDED_BY(mutex);      // what they hold needs the mutex, too
  UnpublishedPtr open GRIDCTL_GUARDED_BY(mutex);  // the one of them that takes what is put; null: none does
  std::uint32_t next_number GRIDCTL_GUARDED_BY(mutex) = BlobPlace::k_unpublished;
  std::optional<Error> lost GRIDCTL_GUARDED_BY(mutex);  // what was put could not be kept; seal() has not told yet
  os::Condition changed;                                // a thread has written, or a pack is gone
  std::vector<std::pair<std::string, SharedFd>> open_packs GRIDCTL_GUARDED_BY(mutex);  // a few, newest last
  // The mtime of packs/ when it was listed; -1: never, or not settled.
  std::int64_t listed_mtime_ns GRIDCTL_GUARDED_BY(mutex) = -1;
  bool loaded GRIDCTL_GUARDED_BY(mutex) = false;  // listed at least once
  std::uint64_t put_blobs GRIDCTL_GUARDED_BY(mutex) = 0, put_bytes GRIDCTL_GUARDED_BY(mutex) = 0;

  [[nodiscard]] const os::Clock& clock() const;
  [[nodiscard]] os::Path packs_directory() const { return directory / "packs"; }
  [[nodiscard]] os::Path pack_path(const std::string& name) const { return packs_directory() / name; }
  [[nodiscard]] Result<os::FileLock> lock_pack_set() const { return os::FileLock::acquire(directory / "write.lock"); }

  [[nodiscard]] bool sealing() const { return options.cipher != nullptr; }
  [[nodiscard]] KeyId key() const { return sealing() ? options.cipher->id() : KeyId{}; }
  [[nodiscard]] bool has_key_of(const PackIndex& pack) const { return !pack.key || pack.key == key(); }
  [[nodiscard]] Digest id_of(const Digest& digest) const;
  // Looks up the index, by the id of this store or of packs older than its key.
  [[nodiscard]] std::optional<FoundBlob> known(const Digest& digest) const GRIDCTL_REQUIRES(mutex);

  Result<void> refresh(bool force) GRIDCTL_REQUIRES(mutex);
  Result<void> load(const std::string& name) GRIDCTL_REQUIRES(mutex);
  void forget_all() GRIDCTL_REQUIRES(mutex);
  // Finds a blob by the beginning of its storage id.
  [[nodiscard]] std::optional<FoundBlob> known(const BaseId& base) const GRIDCTL_REQUIRES(mutex);
  // If the digest belongs to a difference, returns its base: bases are always complete blobs.
  [[nodiscard]] Result<std::optional<FoundBlob>> keep_base(const Digest& digest) GRIDCTL_REQUIRES(mutex);
  // Works like known(), after a look for new packs.
  [[nodiscard]] Result<std::optional<FoundBlob>> find(const Digest& digest) GRIDCTL_REQUIRES(mutex);
  // Looks up the index after waiting for the writer of that blob.
  [[nodiscard]] Result<std::optional<FoundBlob>> find_written(const Digest& digest) GRIDCTL_REQUIRES(mutex);
  // Returns true if the blob is here, and claims it.
  Result<bool> keep(const Digest& digest) GRIDCTL_REQUIRES(mutex);
  Result<bool> keep_locked(const Digest& digest) GRIDCTL_EXCLUDES(mutex);
  // Returns false if the pack is gone.
  Result<bool> claim(std::uint32_t pack) GRIDCTL_REQUIRES(mutex);
  Result<SharedFd> open_pack(const std::string& name) GRIDCTL_REQUIRES(mutex);

  // Reads the blob that `find` returns; `find` is called with the mutex held; not_found if it returns nothing. Looks
  // for another copy if one is damaged.
  using Find = std::function<Result<std::optional<FoundBlob>>()>;
  [[nodiscard]] Result<Bytes> read(const Find& find, Proof proof = Proof::hash) GRIDCTL_EXCLUDES(mutex);
  [[nodiscard]] Result<Bytes> read_base(const BaseId& base) GRIDCTL_EXCLUDES(mutex);
  // Returns nullopt if there is none with that size.
  [[nodiscard]] Result<std::optional<Base>> base_for(ByteView content, const Digest& before) GRIDCTL_EXCLUDES(mutex);

  Result<void> begin_pack() GRIDCTL_REQUIRES(mutex);
  [[nodiscard]] UnpublishedPack* unpublished_with(std::uint32_t number) GRIDCTL_REQUIRES(mutex);
  [[nodiscard]] BlobPlace place_in(const UnpublishedPack& pack, const PackEntry& entry) const;
  // Append a blob; they release the mutex while a disk works. `entry`: without its offset, which is the end of the open
  // pack, and its length. Closes the pack when it is full.
  Result<void> append(PackEntry entry, ByteView stored) GRIDCTL_REQUIRES(mutex);
  // Makes and publishes encrypted copies of open blobs in a store with a key.
  Result<void> encrypt_open(std::span<const Digest> digests) GRIDCTL_REQUIRES(mutex);
  // Publishes open packs, and waits for those that others are publishing.
  Result<void> publish_all() GRIDCTL_REQUIRES(mutex);
  Result<void> publish() GRIDCTL_REQUIRES(mutex);
  // Appends the wanted blobs of a pack to the unfinished one. With check_first, returns false and copies nothing if one
  // of them is damaged; with skip, leaves out damaged ones.
  enum class OnDamage : std::uint8_t { check_first, skip };
  Result<bool> copy_out(const std::string& name, const PackIndex& pack,
                        const std::function<bool(const Digest&)>& wanted, OnDamage on_damage) GRIDCTL_REQUIRES(mutex);
  Result<void> append_copy(PackEntry entry, const PackIndex& from, ByteView plain, ByteView stored)
      GRIDCTL_REQUIRES(mutex);
  // Returns the packs that hold these blobs and their bases, claimed; nullopt if one was collected in the meantime.
  [[nodiscard]] Result<std::optional<std::set<std::uint32_t>>> claim_packs_of(std::span<const Digest> digests)
      GRIDCTL_REQUIRES(mutex);
  void give_up(UnpublishedPack& pack, const Error& why) GRIDCTL_REQUIRES(mutex);
  void discard_unpublished() GRIDCTL_REQUIRES(mutex);
  // Returns the ids under which packs may keep these blobs.
  [[nodiscard]] std::unordered_set<Digest> ids_of(const std::unordered_set<Digest>& digests) const;
};

[[nodiscard]] ReadAt reader_of(int fd);
[[nodiscard]] Result<PackIndex> read_pack(int fd, const std::string& name);  // also checks the name
// Returns the content of a difference's base.
using ReadBase = std::function<Result<Bytes>(const BaseId&)>;
// Opens, decodes and (for Proof::hash, or if not sealed) hashes a blob's bytes from a pack.
[[nodiscard]] Result<Bytes> decode_blob(Bytes stored, const std::string& pack, const FoundBlob& blob,
                                        const Cipher* cipher, const ReadBase& read_base, Proof proof = Proof::hash);
// Reads a blob, then does the same. No state. `stored`, unless null, gets its bytes as they are in the pack.
[[nodiscard]] Result<Bytes> read_blob(int fd, const std::string& pack, const FoundBlob& blob, const Cipher* cipher,
                                      const ReadBase& read_base, Proof proof = Proof::hash, Bytes* stored = nullptr);

}  // namespace gridctl::store
