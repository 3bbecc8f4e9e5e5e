// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "store/formats.hpp"

namespace gridctl::store {
namespace {

constexpr std::uint32_t k_local_signature = 0x04034b50, k_central_signature = 0x02014b50, k_end_signature = 0x06054b50;
constexpr std::uint32_t k_end64_signature = 0x06064b50, k_locator_signature = 0x07064b50;
constexpr std::size_t k_local_bytes = 30, k_central_bytes = 46, k_end_bytes = 22, k_end64_bytes = 56,
                      k_locator_bytes = 20;
constexpr std::uint16_t k_extra_zip64 = 1;
constexpr std::size_t k_name_max = 4096;

Error torn_archive(std::string why) { return make_error(Code::checkpoint_damaged, "zip: " + std::move(why)); }

// Reads a little-endian field; REQUIRES: it is inside.
template <class T>
T field(ByteView bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(bytes[offset + i]);
  return static_cast<T>(value);
}

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

struct Member {
  std::uint64_t header = 0, stored = 0, size = 0;
  std::string name;
};

// The end record is where its comment reaches exactly to the end of the file.
std::optional<std::size_t> find_end(ByteView tail) {
  if (tail.size() < k_end_bytes) return std::nullopt;
  for (std::size_t at = tail.size() - k_end_bytes + 1; at-- > 0;) {
    if (field<std::uint32_t>(tail, at) == k_end_signature &&
        field<std::uint16_t>(tail, at + 20) == tail.size() - at - k_end_bytes)
      return at;
  }
  return std::nullopt;
}

Result<Directory> read_end64(ByteView tail, std::size_t end, std::uint64_t tail_offset, const ReadAt& read) {
  const std::size_t locator = end - k_locator_bytes;
  const auto offset = field<std::uint64_t>(tail, locator + 8);
  const std::uint64_t locator_offset = tail_offset + locator;
  if (offset > locator_offset || locator_offset - offset < k_end64_bytes)
    return torn_archive("zip64 locator points outside the archive");
  TRY_ASSIGN(const Bytes record, read(offset, k_end64_bytes));
  if (record.size() != k_end64_bytes || field<std::uint32_t>(record, 0) != k_end64_signature)
    return torn_archive("zip64 end record is missing");
  if (field<std::uint64_t>(record, 4) != locator_offset - offset - 12)
    return torn_archive("zip64 end record has a wrong length");
  const Directory directory{field<std::uint64_t>(record, 48), field<std::uint64_t>(record, 40),
                            field<std::uint64_t>(record, 32)};
  if (directory.size > offset || directory.offset != offset - directory.size)
    return torn_archive("central directory does not end at the zip64 end record");
  return directory;
}

Result<Directory> find_directory(std::uint64_t file_size, const ReadAt& read) {
  const auto tail_size = static_cast<std::size_t>(std::min<std::uint64_t>(file_size, k_zip_end_max));
  const std::uint64_t tail_offset = file_size - tail_size;
  TRY_ASSIGN(const Bytes tail, read(tail_offset, tail_size));
  if (tail.size() != tail_size) return torn_archive("file became shorter");
  const auto end = find_end(tail);
  if (!end) return torn_archive("no end record: the file is torn or unfinished");
  if (*end >= k_locator_bytes && field<std::uint32_t>(tail, *end - k_locator_bytes) == k_locator_signature)
    return read_end64(tail, *end, tail_offset, read);
  const Directory directory{field<std::uint32_t>(tail, *end + 16), field<std::uint32_t>(tail, *end + 12),
                            field<std::uint16_t>(tail, *end + 10)};
  if (field<std::uint16_t>(tail, *end + 8) != directory.count) return torn_archive("archive spans several disks");
  if (directory.offset + directory.size != tail_offset + *end)
    return torn_archive("central directory does not end at the end record");
  return directory;
}

// Replaces the fields that say "see zip64" in the order that the format fixes.
bool apply_zip64(ByteView extra, Member& member) {
  while (extra.size() >= 4) {
    const auto id = field<std::uint16_t>(extra, 0), length = field<std::uint16_t>(extra, 2);
    if (extra.size() - 4 < length) return false;
    ByteView body = extra.subspan(4, length);
    if (id == k_extra_zip64) {
      for (std::uint64_t* value : {&member.size, &member.stored, &member.header}) {
        if (*value != UINT32_MAX) continue;
        if (body.size() < 8) return false;
        *value = field<std::uint64_t>(body, 0);
        body = body.subspan(8);
      }
    }
    extra = extra.subspan(4 + length);
  }
  return true;
}

Result<std::vector<Member>> read_members(ByteView bytes, const Directory& directory) {
  std::vector<Member> members;
  members.reserve(static_cast<std::size_t>(directory.count));
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() < k_central_bytes || field<std::uint32_t>(bytes, 0) != k_central_signature)
      return torn_archive("central directory has fewer entries than it says");
    Member member;
    member.stored = field<std::uint32_t>(bytes, 20);
    member.size = field<std::uint32_t>(bytes, 24);
    member.header = field<std::uint32_t>(bytes, 42);
    const std::size_t name = field<std::uint16_t>(bytes, 28);
    const std::size_t extra = field<std::uint16_t>(bytes, 30), comment = field<std::uint16_t>(bytes, 32);
    if (name > k_name_max || bytes.size() - k_central_bytes < name + extra + comment)
      return torn_archive("central directory ends within an entry");
    member.name = as_text(bytes.subspan(k_central_bytes, name));
    if (!apply_zip64(bytes.subspan(k_central_bytes + name, extra), member))
      return torn_archive("zip64 fields are inconsistent");
    members.push_back(std::move(member));
    bytes = bytes.subspan(k_central_bytes + name + extra + comment);
  }
  if (!bytes.empty()) return torn_archive("central directory is longer than its entries");
  return members;
}

Result<Extent> locate(const Member& member, std::uint64_t directory_offset, const ReadAt& read) {
  if (member.header > directory_offset || directory_offset - member.header < k_local_bytes)
    return torn_archive("local header is outside the archive");
  TRY_ASSIGN(const Bytes local, read(member.header, k_local_bytes));
  if (local.size() != k_local_bytes || field<std::uint32_t>(local, 0) != k_local_signature)
    return torn_archive("local header is missing");
  if (field<std::uint16_t>(local, 26) != member.name.size()) return torn_archive("local header has another name");
  const std::uint64_t begin =
      member.header + k_local_bytes + field<std::uint16_t>(local, 26) + field<std::uint16_t>(local, 28);
  if (begin > directory_offset || member.stored > directory_offset - begin)
    return torn_archive("entry extends beyond the archive");
  return Extent{begin, begin + member.stored};
}

}  // namespace

Result<std::vector<Tensor>> zip_entries(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Directory directory, find_directory(file_size, read));
  if (directory.size > k_zip_directory_max || directory.count > directory.size / k_central_bytes)
    return torn_archive("implausible central directory");
  TRY_ASSIGN(const Bytes bytes, read(directory.offset, static_cast<std::size_t>(directory.size)));
  if (bytes.size() != directory.size) return torn_archive("central directory is truncated");
  TRY_ASSIGN(std::vector<Member> members, read_members(bytes, directory));
  std::vector<Tensor> entries;
  entries.reserve(members.size());
  for (Member& member : members) {
    TRY_ASSIGN(const Extent extent, locate(member, directory.offset, read));
    entries.push_back({std::move(member.name), {}, extent});
  }
  sort_by_place(entries);
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].at.begin < entries[i - 1].at.end) return torn_archive("entries overlap");
  }
  return entries;
}

}  // namespace gridctl::store
