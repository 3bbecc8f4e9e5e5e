// SPDX-License-Identifier: Apache-2.0
// HDF5 stores in its superblock where the file ends, and writes that when the file is flushed or closed.

#include "store/formats.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_superblock_bytes = 96;  // of the longest version
// Offset of the end-of-file address by superblock version, for addresses of 8 bytes (the only ones in use).
constexpr std::size_t k_end_in_version_0 = 40, k_end_in_version_1 = 44, k_end_in_version_2 = 28;
constexpr std::size_t k_flags_in_version_3 = 11;
constexpr unsigned k_open_for_writing = 1;

unsigned byte_at(ByteView bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

std::uint64_t little_endian(ByteView bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i > 0; --i) value = value << 8 | byte_at(bytes, at + i - 1);
  return value;
}

Error torn_hdf5(const char* why) { return make_error(Code::checkpoint_damaged, why); }

}  // namespace

Result<void> check_hdf5(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Bytes head, read(0, k_superblock_bytes));
  if (head.size() < k_superblock_bytes || !as_text(head).starts_with(k_hdf5_begins))
    return torn_hdf5("HDF5 superblock is missing");
  const unsigned version = byte_at(head, k_hdf5_begins.size());
  if (version > 3) return torn_hdf5("HDF5 superblock has an unknown version");
  const std::size_t width_at = version < 2 ? 13 : 9;
  if (byte_at(head, width_at) != 8) return torn_hdf5("HDF5 addresses have an unknown width");
  if (version == 3 && (byte_at(head, k_flags_in_version_3) & k_open_for_writing) != 0)
    return torn_hdf5("HDF5 file is open for writing");
  const std::size_t at = version == 0 ? k_end_in_version_0 : version == 1 ? k_end_in_version_1 : k_end_in_version_2;
  if (little_endian(head, at) != file_size) return torn_hdf5("HDF5 file is not as long as it says");
  return {};
}

}  // namespace gridctl::store
