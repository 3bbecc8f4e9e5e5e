// SPDX-License-Identifier: Apache-2.0
#include "store/pack.hpp"

#include <algorithm>
#include <string_view>

#include "base/check.hpp"
#include "crypto/sha256.hpp"
#include "store/big_endian.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_pack_magic = "GRIDPACK", k_end_magic = "GRIDPEND";
constexpr std::uint16_t k_pack_version = 1;
constexpr std::uint16_t k_feature_codecs = 1;       // some blob is encoded
constexpr std::uint16_t k_feature_encryption = 2;   // all are encrypted
constexpr std::uint16_t k_feature_differences = 4;  // some blob is a difference
constexpr std::uint16_t k_features = k_feature_codecs | k_feature_encryption | k_feature_differences;
constexpr std::size_t k_covered = 56;  // bytes of the trailer in front of the index digest

void put_zeros(Bytes& out, std::size_t count) { out.insert(out.end(), count, std::byte{0}); }

std::uint16_t features_of(const std::vector<PackEntry>& entries, const KeyId& key) {
  const bool encoded =
      std::ranges::any_of(entries, [](const PackEntry& entry) { return entry.encoding.codec != Codec::raw; });
  const bool differs =
      std::ranges::any_of(entries, [](const PackEntry& entry) { return is_difference(entry.encoding.codec); });
  return static_cast<std::uint16_t>((encoded ? k_feature_codecs : 0) | (key ? k_feature_encryption : 0) |
                                    (differs ? k_feature_differences : 0));
}

std::uint16_t features_in(ByteView header) {
  return Reader(header.subspan(k_pack_magic.size() + sizeof k_pack_version)).number<std::uint16_t>();
}

Result<void> check_header(ByteView header) {
  Reader in(header);
  if (as_text(in.bytes(k_pack_magic.size())) != k_pack_magic) return damaged("file does not begin like a pack");
  const auto version = in.number<std::uint16_t>(), features = in.number<std::uint16_t>();
  if (version != k_pack_version || (features & ~k_features) != 0) {
    return make_error(Code::unsupported,
                      "pack has version " + std::to_string(version) + " and features " + std::to_string(features) +
                          "; this gridctl knows version 1 with features up to " + std::to_string(k_features));
  }
  return all_zero(in.bytes(4)) ? Result<void>() : damaged("reserved bytes in the header are not zero");
}

Result<PackEntry> read_entry(Reader& in, std::uint64_t expected_offset, bool sealed) {
  PackEntry entry;
  entry.id = in.digest();
  entry.offset = in.number<std::uint64_t>();
  entry.length = in.number<std::uint32_t>();
  entry.plain_length = in.number<std::uint32_t>();
  entry.encoding.codec = static_cast<Codec>(in.number<std::uint8_t>());
  const auto cipher = in.number<std::uint8_t>();
  entry.encoding.parameter = in.number<std::uint16_t>();
  entry.base = {first_bytes<12>(in.bytes(12))};
  if (entry.encoding.codec > Codec::difference_planes || cipher != (sealed ? 1 : 0))
    return make_error(Code::unsupported, "pack uses a codec or cipher this gridctl does not know");
  if (is_difference(entry.encoding.codec) != static_cast<bool>(entry.base))
    return damaged("index entry is inconsistent");
  const bool raw = entry.encoding.codec == Codec::raw;
  const std::uint32_t added = sealed ? k_sealing_bytes : 0, encoded = entry.length - added;
  if (entry.offset != expected_offset || entry.length <= added || entry.plain_length > k_blob_max ||
      (raw ? encoded != entry.plain_length : encoded >= entry.plain_length))
    return damaged("index entry is inconsistent");
  return entry;
}

}  // namespace

Bytes sealing_context(const Digest& storage_id, std::uint32_t plain_length) {
  Bytes context;
  put_bytes(context, as_bytes(k_blob_label));
  put_bytes(context, storage_id.bytes);
  put_big_endian(context, plain_length);
  return context;
}

Bytes pack_header(const std::vector<PackEntry>& entries, const KeyId& key) {
  Bytes out;
  put_bytes(out, as_bytes(k_pack_magic));
  put_big_endian(out, k_pack_version);
  put_big_endian(out, features_of(entries, key));
  put_zeros(out, 4);
  return out;
}

PackEnd pack_end(const std::vector<PackEntry>& entries, const KeyId& key) {
  GRIDCTL_CHECK(!entries.empty() && entries.size() <= k_pack_blobs_max);
  PackEnd end;
  for (const PackEntry& entry : entries) {
    put_bytes(end.bytes, entry.id.bytes);
    put_big_endian(end.bytes, entry.offset);
    put_big_endian(end.bytes, entry.length);
    put_big_endian(end.bytes, entry.plain_length);
    put_big_endian(end.bytes, static_cast<std::uint8_t>(entry.encoding.codec));
    put_big_endian(end.bytes, static_cast<std::uint8_t>(key ? 1 : 0));
    put_big_endian(end.bytes, entry.encoding.parameter);
    put_bytes(end.bytes, entry.base.bytes);
  }
  put_big_endian(end.bytes, entries.back().offset + entries.back().length);
  put_big_endian(end.bytes, static_cast<std::uint32_t>(entries.size()));
  put_zeros(end.bytes, 4);
  put_bytes(end.bytes, key.bytes);
  put_zeros(end.bytes, 24);
  crypto::Sha256 hash;
  hash.update(pack_header(entries, key));
  hash.update(end.bytes);
  end.id = hash.finish();
  put_bytes(end.bytes, end.id.bytes);
  put_bytes(end.bytes, as_bytes(k_end_magic));
  return end;
}

Result<PackIndex> read_pack_index(std::uint64_t file_size, const ReadAt& read) {
  if (file_size < k_pack_header_bytes + 1 + k_pack_entry_bytes + k_pack_trailer_bytes)
    return damaged("file is too short for a pack");
  TRY_ASSIGN(const Bytes header, read(0, k_pack_header_bytes));
  if (header.size() != k_pack_header_bytes) return damaged("file became shorter");
  TRY(check_header(header));
  TRY_ASSIGN(const Bytes trailer, read(file_size - k_pack_trailer_bytes, k_pack_trailer_bytes));
  if (trailer.size() != k_pack_trailer_bytes) return damaged("file became shorter");
  Reader in(trailer);
  const auto index_offset = in.number<std::uint64_t>();
  const auto count = in.number<std::uint32_t>();
  bool reserved_zero = all_zero(in.bytes(4));
  const KeyId key{first_bytes<16>(in.bytes(16))};
  reserved_zero = all_zero(in.bytes(24)) && reserved_zero;
  const Digest told = in.digest();
  if (as_text(in.bytes(k_end_magic.size())) != k_end_magic) return damaged("file does not end like a pack");
  const std::uint64_t index_bytes = std::uint64_t{count} * k_pack_entry_bytes;
  if (count == 0 || count > k_pack_blobs_max || index_offset < k_pack_header_bytes || index_offset > file_size ||
      file_size - index_offset != index_bytes + k_pack_trailer_bytes)
    return damaged("index does not fit the file");
  TRY_ASSIGN(const Bytes index, read(index_offset, static_cast<std::size_t>(index_bytes)));
  crypto::Sha256 hash;
  hash.update(header);
  hash.update(index);
  hash.update(ByteView(trailer).first(k_covered));
  if (hash.finish() != told) return damaged("index digest does not match");
  const bool sealed = (features_in(header) & k_feature_encryption) != 0;
  if (!reserved_zero || sealed != static_cast<bool>(key)) return damaged("trailer is inconsistent");
  PackIndex result{told, key, {}};
  result.entries.reserve(count);
  Reader entries(index);
  std::uint64_t offset = k_pack_header_bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    TRY_ASSIGN(const PackEntry entry, read_entry(entries, offset, sealed));
    offset += entry.length;
    result.entries.push_back(entry);
  }
  if (offset != index_offset) return damaged("blobs do not end at the index");
  return result;
}

BaseId base_id(const Digest& storage_id) { return {first_bytes<12>(storage_id.bytes)}; }

std::string pack_name(const Digest& id) { return to_hex(id) + ".pack"; }

}  // namespace gridctl::store
