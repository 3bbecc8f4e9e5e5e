// SPDX-License-Identifier: Apache-2.0
// A store of blobs under their digests, in packs: gridctl-store(5). Several processes may use one directory; within a
// process an instance may be used by several threads; a failed seal() of one loses what all have put since the last
// one, so whoever shares an instance asks missing() at its end. Every read is hashed again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "store/gc.hpp"
#include "store/pack.hpp"

namespace gridctl::store {

// Where chunks come from: a store, or files of a directory. Implementations verify what they give.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;
  [[nodiscard]] virtual Result<Bytes> read(const Digest& digest) = 0;
};

struct StoreOptions {
  const os::Clock* clock = nullptr;  // nullptr = the system's
  std::uint64_t pack_bytes_max = k_pack_bytes_max;
  bool encode = true;  // keep blobs compressed where it pays; what is there may be either way
};

struct StoreStats {
  std::uint64_t packs = 0, damaged_packs = 0;
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
  std::uint64_t packs = 0, blobs = 0, bytes = 0;
  std::uint64_t damages_total = 0;
  std::vector<Damage> damages;  // the first 1,000
};

struct GcReport {
  std::uint64_t packs_kept = 0, packs_removed = 0, packs_rewritten = 0, unfinished_removed = 0;
  std::uint64_t bytes_freed = 0, bytes_copied = 0;
};

class ChunkStore : public ChunkReader {
 public:
  // Makes the directory when it is missing. state_unreadable when it is another version's or no store.
  [[nodiscard]] static Result<ChunkStore> open(const os::Path& directory, const StoreOptions& options = {});
  ChunkStore(ChunkStore&&) noexcept;
  ChunkStore& operator=(ChunkStore&&) noexcept;
  ~ChunkStore() override;  // drops what was not sealed

  [[nodiscard]] Result<bool> has(const Digest& digest);
  // Indices of those that are not here. The others are claimed: no collection removes them for GcPolicy::age_min.
  [[nodiscard]] Result<std::vector<std::uint32_t>> missing(std::span<const Digest> digests);
  // not_found when it is not here; checkpoint_damaged, naming pack and offset, when the bytes are not those put.
  [[nodiscard]] Result<Bytes> get(const Digest& digest);
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override { return get(digest); }

  // Refuses content that does not hash to the digest (checkpoint_damaged). What is here already costs nothing.
  // Not durable and not visible to other processes before seal().
  [[nodiscard]] Result<void> put(const Digest& digest, ByteView content);
  // Everything put before is durable and visible to all when this returns success. After an error, what was put since
  // the last success is gone and must be put again.
  [[nodiscard]] Result<void> seal();

  // Removes what is not live: see GcPolicy. `live` must know every digest that any manifest in use needs, and the
  // roots; a caller that could not list them all must not call. busy when another process collects.
  [[nodiscard]] Result<GcReport> collect(const std::function<bool(const Digest&)>& live, const GcPolicy& policy = {});

  // Reads everything. `progress` gets bytes done and in all; false stops (cancelled).
  using VerifyProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;
  [[nodiscard]] Result<VerifyReport> verify(const VerifyProgress& progress = {});
  // Repair, by copying out: what is sound in the reported packs is written into new ones, then the packs are moved to
  // `damaged/`. The damaged blobs are missing from then on, so that the next transfer brings them again. Returns the
  // number of packs set aside.
  [[nodiscard]] Result<std::uint64_t> set_aside(const VerifyReport& report);
  [[nodiscard]] Result<StoreStats> stats();
  [[nodiscard]] const os::Path& directory() const;

 private:
  struct State;
  explicit ChunkStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::store
