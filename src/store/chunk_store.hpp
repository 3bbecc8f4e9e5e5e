// SPDX-License-Identifier: Apache-2.0
// Stores blobs under their digests, in packs: gridctl-store(5). Several processes may use one directory. Within a
// process, several threads may use one instance; they encode and write side by side. A blob that one of them cannot
// write or seal costs all of them what they have put since the last seal(), so users of a shared instance call
// missing() at the end. Every read is hashed again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "store/cipher.hpp"
#include "store/gc.hpp"
#include "store/pack.hpp"

namespace gridctl::store {

// Provides chunks: from a store, or from files of a directory. Implementations verify what they return.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;
  [[nodiscard]] virtual Result<Bytes> read(const Digest& digest) = 0;
};

struct StoreOptions {
  const os::Clock* clock = nullptr;  // nullptr = the system's
  std::uint64_t pack_bytes_max = k_pack_bytes_max;
  bool encode = true;  // keep blobs compressed where it pays; what is there may be either way
  // New content is encrypted, and the store is marked with the id of this key; existing open content stays readable. A
  // pack is either open or encrypted: an older store stays in use, and collections encrypt it.
  std::shared_ptr<const Cipher> cipher = nullptr;
};

struct StoreStats {
  std::uint64_t packs = 0;
  std::uint64_t blobs = 0, blob_bytes = 0;     // published, each digest once; bytes as stored
  std::uint64_t unsealed_blobs = 0;            // put here and not sealed yet
  std::uint64_t put_blobs = 0, put_bytes = 0;  // written by this instance; bytes as stored
};

struct Damage {
  std::string pack;
  std::uint64_t offset = 0;  // 0 with a whole pack
  Digest digest;             // zero with a whole pack
  std::string why;
};
struct VerifyReport {
  std::uint64_t damages_total = 0;
  std::vector<Damage> damages;  // the first 1,000
};

struct GcReport {
  std::uint64_t packs_kept = 0, packs_removed = 0, packs_rewritten = 0, unfinished_removed = 0;
  std::uint64_t bytes_freed = 0, bytes_copied = 0;
};

// Represents a published pack as a file.
struct PackFile {
  Digest id;
  os::Path path;
  std::uint64_t size = 0;  // bytes
};

class ChunkStore : public ChunkReader {
 public:
  // Creates the directory if it is missing. state_unreadable when it is not a store or has another version, or when it
  // is encrypted and the cipher does not have its key.
  [[nodiscard]] static Result<ChunkStore> open(const os::Path& directory, const StoreOptions& options = {});
  ChunkStore(ChunkStore&&) noexcept;
  ChunkStore& operator=(ChunkStore&&) noexcept;
  ~ChunkStore() override;  // drops what was not sealed

  [[nodiscard]] Result<bool> has(const Digest& digest);
  // Returns the indices of missing blobs. The others are claimed: no collection removes them for GcPolicy::age_min.
  [[nodiscard]] Result<std::vector<std::uint32_t>> missing(std::span<const Digest> digests);
  // Returns the length of each blob as it was put; nullopt for missing ones.
  [[nodiscard]] Result<std::vector<std::optional<std::uint32_t>>> lengths(std::span<const Digest> digests);
  // Fails with not_found if the blob is missing; checkpoint_damaged, naming pack and offset, when its bytes have
  // changed.
  [[nodiscard]] Result<Bytes> get(const Digest& digest);
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override { return get(digest); }
  // Returns the base that a difference in a pack was made from.
  [[nodiscard]] Result<Bytes> get_base(const BaseId& base);

  // Refuses content that does not hash to the digest (checkpoint_damaged). Content that is already here costs nothing.
  // Not durable and not visible to other processes before seal(). `before`: the chunk at the same place in an earlier
  // checkpoint, if any; if the two differ little, only the difference is stored. It need not be here. Only stores with
  // a key keep differences.
  [[nodiscard]] Result<void> put(const Digest& digest, ByteView content, const Digest* before = nullptr);
  // Puts content that the caller has just hashed: it is not hashed again.
  [[nodiscard]] Result<void> put_hashed(const Digest& digest, ByteView content, const Digest* before = nullptr);
  // Everything put before is durable and visible to all when this returns success. After an error, everything put since
  // the last success is gone and must be put again.
  [[nodiscard]] Result<void> seal();

  // Removes what is not live: see GcPolicy. `live` must hold every digest that any manifest in use needs, and the
  // roots; a caller that could not list them all must not call. busy when another process collects.
  [[nodiscard]] Result<GcReport> collect(const std::unordered_set<Digest>& live, const GcPolicy& policy = {});

  // Repairs by copying: intact blobs of the reported packs are written into new packs, then the old packs are moved to
  // `damaged/`. The damaged blobs are missing from then on, so that the next transfer fetches them again. Returns the
  // number of packs set aside.
  [[nodiscard]] Result<std::uint64_t> set_aside(const VerifyReport& report);
  // Returns the published packs, each once and by id, that hold these blobs and the bases of differences among them.
  // They are claimed; if the store has a key, open content is copied into encrypted packs first. not_found names a
  // missing blob.
  [[nodiscard]] Result<std::vector<PackFile>> packs_of(std::span<const Digest> digests);
  // Reads one pack completely. not_found if there is no such pack.
  [[nodiscard]] Result<VerifyReport> verify_pack(const Digest& id);
  [[nodiscard]] Result<StoreStats> stats();
  // Returns the id of the key that encrypts the store in this directory; zero if there is no key or no store.
  [[nodiscard]] static Result<KeyId> key_of(const os::Path& directory);
  [[nodiscard]] const os::Path& directory() const;
  [[nodiscard]] const Cipher* cipher() const;  // nullptr without a key

 private:
  struct State;
  explicit ChunkStore(std::unique_ptr<State> state);
  void discard();  // what was not sealed
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::store
