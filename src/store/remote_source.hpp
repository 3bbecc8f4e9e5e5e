// SPDX-License-Identifier: Apache-2.0
// Reads blobs from the packs at a remote. Every index is checked against the name of its pack, every blob against its
// own name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "os/mutex.hpp"
#include "store/chunk_store.hpp"
#include "store/record.hpp"

namespace gridctl::store {

class RemoteSource final : public ChunkReader {
 public:
  // Reads the indexes of these packs. Missing or damaged packs are reported in problems(), because others may hold what
  // is wanted; only a remote that does not answer is an error. Remote and key must outlive the result.
  [[nodiscard]] static Result<RemoteSource> open(Backend& remote, const StoreKey& key,
                                                const std::vector<NeededPack>& packs);

  // Fails with not_found if no intact pack lists it; checkpoint_damaged if its bytes are wrong. Threads may share it.
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override;

  struct Problem {
    Digest pack;
    std::string why;
  };
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
  // Reads every blob of one of the packs; returns the problem, or an empty text. `read_bytes` counts.
  [[nodiscard]] Result<std::string> check(const Digest& pack, std::uint64_t& read_bytes);

 private:
  struct Pack {
    NeededPack file;
    std::vector<PackEntry> entries;
  };
  struct Where {
    std::uint32_t pack = 0, entry = 0;
  };
  struct Window {  // of a pack's bytes
    std::uint32_t pack = 0;
    std::uint64_t offset = 0;
    Bytes bytes;
  };

  RemoteSource(Backend& remote, const StoreKey& key) : remote_(&remote), key_(&key) {}
  [[nodiscard]] Result<void> load(const NeededPack& file);
  [[nodiscard]] Result<Bytes> stored_bytes(const Where& where) GRIDCTL_REQUIRES(*mutex_);
  [[nodiscard]] Result<Bytes> blob_at(const Where& where, bool may_differ) GRIDCTL_REQUIRES(*mutex_);
  [[nodiscard]] Result<Bytes> read_base(const BaseId& base) GRIDCTL_REQUIRES(*mutex_);

  Backend* remote_;
  const StoreKey* key_;
  std::vector<Pack> packs_;
  std::map<Digest, Where> index_;  // by storage id
  std::vector<Problem> problems_;
  std::unique_ptr<os::Mutex> mutex_ = std::make_unique<os::Mutex>();
  std::vector<Window> windows_ GRIDCTL_GUARDED_BY(*mutex_);  // newest last
};

}  // namespace gridctl::store
