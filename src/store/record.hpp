// SPDX-License-Identifier: Apache-2.0
// Implements the record of a checkpoint on a remote, written after all its packs are there: gridctl-store(5),
// "REMOTES". Encrypted and authenticated with the store key; bound to its name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "store/backend.hpp"
#include "store/store_key.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_record_max = k_object_read_max;  // bytes
inline constexpr std::uint32_t k_record_packs_max = 200'000;    // 12 TiB of full packs
inline constexpr std::size_t k_record_text_max = 256;           // bytes of a name in it
inline constexpr std::string_view k_record_prefix = "checkpoints/";
inline constexpr std::string_view k_pack_prefix = "packs/";

struct NeededPack {
  Digest id;
  std::uint64_t size = 0;  // bytes of the file
  auto operator<=>(const NeededPack&) const = default;
};

struct CopyRecord {
  JobId job;
  CheckpointSeq seq;
  Epoch epoch;
  AttemptNumber attempt;
  Digest root;
  WallTime created_at;
  std::uint64_t bytes = 0, files = 0;
  std::string job_name, how;
  std::vector<NeededPack> packs;  // ascending by id; they hold every blob of the tree, and what differences need
  bool operator==(const CopyRecord&) const = default;
};

// Names a record: "checkpoints/JOB/SEQ".
struct RecordName {
  JobId job;
  CheckpointSeq seq;
  auto operator<=>(const RecordName&) const = default;
};
[[nodiscard]] std::string object_name(const RecordName& name);
[[nodiscard]] std::optional<RecordName> parse_record_name(std::string_view object);
// Returns "packs/HEX.pack".
[[nodiscard]] std::string object_name(const NeededPack& pack);
[[nodiscard]] std::optional<Digest> parse_pack_object(std::string_view object);

// REQUIRES: at most k_record_packs_max packs, texts of at most k_record_text_max bytes.
[[nodiscard]] Bytes seal_record(const CopyRecord& record, const StoreKey& key);
// Fails with checkpoint_damaged unless it was sealed with this key and this name; unsupported for a newer version.
[[nodiscard]] Result<CopyRecord> open_record(const RecordName& name, ByteView sealed, const StoreKey& key);

}  // namespace gridctl::store
