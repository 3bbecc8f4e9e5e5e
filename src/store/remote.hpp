// SPDX-License-Identifier: Apache-2.0
// Describes a remote of any kind that keeps copies: its owner and its contents. gridctl-store(5), "PLACES".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "store/backend.hpp"
#include "store/record.hpp"

namespace gridctl::store {

inline constexpr std::string_view k_mark_name = "place";

// States which store is copied there, and by which state directory.
struct RemoteMark {
  KeyId key;
  ControllerId keeper;
  bool operator==(const RemoteMark&) const = default;
};
[[nodiscard]] std::string to_text(const RemoteMark& mark);
[[nodiscard]] Result<RemoteMark> parse_mark(std::string_view text);  // state_unreadable when it is none

[[nodiscard]] Result<std::optional<RemoteMark>> read_mark(Backend& remote);  // nullopt: it is nobody's
// Returns false if another writer was first.
[[nodiscard]] Result<bool> write_mark(Backend& remote, const RemoteMark& mark);
// Fails with refused, and the remote's own mark, unless it carries this mark.
[[nodiscard]] Result<void> check_mark(Backend& remote, const RemoteMark& ours);

// Writes, lists, reads and removes an object with a random name, and checks that a taken name is refused.
[[nodiscard]] Result<void> try_remote(Backend& remote);

struct RemoteListing {
  std::map<Digest, std::uint64_t> packs;  // id -> bytes
  std::vector<RecordName> records;        // by job and number
  std::uint64_t pack_bytes = 0, others = 0;
};
[[nodiscard]] Result<RemoteListing> list_remote(Backend& remote);

// Fails with not_found if the record does not exist; otherwise like open_record.
[[nodiscard]] Result<CopyRecord> read_record(Backend& remote, const RecordName& name, const StoreKey& key);
// Reads in pieces, because one read may be too small; fewer bytes only at the object's end.
[[nodiscard]] Result<Bytes> read_object(Backend& remote, std::string_view name, std::uint64_t offset,
                                        std::size_t size);
// Reads the complete content; io if it is larger.
[[nodiscard]] Result<Bytes> read_object(Backend& remote, std::string_view name, std::size_t bytes_max);

}  // namespace gridctl::store
