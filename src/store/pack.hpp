// SPDX-License-Identifier: Apache-2.0
// Reads and writes the bytes of a pack around its blobs: header, index, trailer; gridctl-store(5). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/cipher.hpp"
#include "store/codec.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::uint64_t k_pack_bytes_max = 64ull << 20;  // of blobs; then the pack is closed
inline constexpr std::uint32_t k_pack_blobs_max = 1u << 20;
inline constexpr std::uint64_t k_pack_header_bytes = 16;
inline constexpr std::uint64_t k_pack_entry_bytes = 64;
inline constexpr std::uint64_t k_pack_trailer_bytes = 96;

// Holds the first bytes of the storage id of a difference's base; zero: not a difference.
struct BaseId {
  std::array<std::byte, 12> bytes{};
  auto operator<=>(const BaseId&) const = default;
  explicit operator bool() const { return *this != BaseId{}; }
};
[[nodiscard]] BaseId base_id(const Digest& storage_id);

struct PackEntry {
  Digest id;  // storage id: the digest itself in a pack without a key
  std::uint64_t offset = 0;
  std::uint32_t length = 0;        // bytes in the pack
  std::uint32_t plain_length = 0;  // bytes of the blob, 1..k_blob_max; not less than `length` but for the sealing
  Encoding encoding;
  BaseId base = {};
  bool operator==(const PackEntry&) const = default;
};

struct PackIndex {
  Digest id;  // names the file
  KeyId key;  // zero: nothing in it is encrypted; else everything is
  std::vector<PackEntry> entries;
};

// Returns the data that a blob is sealed with besides its content: the blob cannot stand for another one, or have
// another length.
[[nodiscard]] Bytes sealing_context(const Digest& storage_id, std::uint32_t plain_length);

// States which features a reader of such blobs needs.
[[nodiscard]] Bytes pack_header(const std::vector<PackEntry>& entries, const KeyId& key = {});
// Holds index and trailer for blobs that follow the header without gaps. REQUIRES: 1..k_pack_blobs_max entries.
struct PackEnd {
  Digest id;
  Bytes bytes;
};
[[nodiscard]] PackEnd pack_end(const std::vector<PackEntry>& entries, const KeyId& key = {});

// Reads and checks everything in a pack except its blobs. checkpoint_damaged, or unsupported for a newer version.
[[nodiscard]] Result<PackIndex> read_pack_index(std::uint64_t file_size, const ReadAt& read);

[[nodiscard]] std::string pack_name(const Digest& id);  // "HEX.pack"

}  // namespace gridctl::store
