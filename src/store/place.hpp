// SPDX-License-Identifier: Apache-2.0
// A place that keeps copies, whatever its kind: whose it is, and what lies there. gridctl-store(5), "PLACES".
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

// Which store is copied there, and by which state directory.
struct PlaceMark {
  KeyId key;
  ControllerId keeper;
  bool operator==(const PlaceMark&) const = default;
};
[[nodiscard]] std::string to_text(const PlaceMark& mark);
[[nodiscard]] Result<PlaceMark> parse_mark(std::string_view text);  // state_unreadable when it is none

[[nodiscard]] Result<std::optional<PlaceMark>> read_mark(Backend& place);  // nullopt: it is nobody's
// False when somebody else was quicker.
[[nodiscard]] Result<bool> write_mark(Backend& place, const PlaceMark& mark);
// refused, with what it says instead, unless it carries this mark.
[[nodiscard]] Result<void> check_mark(Backend& place, const PlaceMark& ours);

// Writes, lists, reads and removes an object of a random name, and sees that a taken name is refused.
[[nodiscard]] Result<void> try_place(Backend& place);

struct PlaceListing {
  std::map<Digest, std::uint64_t> packs;  // id -> bytes
  std::vector<RecordName> records;        // by job and number
  std::uint64_t pack_bytes = 0, others = 0;
};
[[nodiscard]] Result<PlaceListing> list_place(Backend& place);

// not_found when it is not there; else as open_record.
[[nodiscard]] Result<CopyRecord> read_record(Backend& place, const RecordName& name, const StoreKey& key);
// The whole content; io when it is larger.
[[nodiscard]] Result<Bytes> read_object(Backend& place, std::string_view name, std::size_t bytes_max);

}  // namespace gridctl::store
