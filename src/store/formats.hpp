// SPDX-License-Identifier: Apache-2.0
// Derives facts about checkpoint files from lengths and offsets alone: safetensors and zip archives (torch.save).
// Nothing is unpickled or decompressed. All bytes are foreign.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_safetensors_header_max = 64u << 20;  // bytes; the format's own limit is 100 MB
inline constexpr std::size_t k_zip_directory_max = 64u << 20;       // bytes of a central directory
inline constexpr std::size_t k_zip_end_max =
    65'535 + 22 + 20 + 56;  // end record, comment, zip64 locator and end record

// Reads `size` bytes at `offset`; fewer only at the end of the file.
using ReadAt = std::function<Result<Bytes>(std::uint64_t offset, std::size_t size)>;

struct Extent {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Extent&) const = default;
};

// Describes a tensor of a safetensors file, or an archive's content under one name. Names are foreign, and unchanged
// from the file.
struct Tensor {
  std::string name;
  std::string type;  // "BF16", as safetensors calls it; empty in archives, which tell it in a pickle only
  Extent at;
};

// Returns the tensors, in the order of the file; an error says why the file is incomplete or not safetensors: header
// length, JSON, data offsets without gaps, type times shape equal to the length, the last one ending exactly at
// `file_size`.
[[nodiscard]] Result<std::vector<Tensor>> safetensors_tensors(std::uint64_t file_size, const ReadAt& read);

// Returns the entries, in the order of the file; an error says why the archive is incomplete: end record at the very
// end, zip64 records if needed, a central directory with exactly the declared length and count, every local header
// inside the file.
[[nodiscard]] Result<std::vector<Tensor>> zip_entries(std::uint64_t file_size, const ReadAt& read);

[[nodiscard]] std::vector<Extent> extents_of(const std::vector<Tensor>& tensors);
void sort_by_place(std::vector<Tensor>& tensors);

inline constexpr std::uint64_t k_json_max = 16u << 20;  // bytes; what trainers keep beside their tensors is far smaller

// Checks that the file is one complete JSON object or array; a truncated one never is.
[[nodiscard]] Result<void> check_json(std::uint64_t file_size, const ReadAt& read);

// Returns whether this is one complete JSON document; Python's NaN and Infinity are allowed.
[[nodiscard]] bool is_json(std::string_view text);

inline constexpr std::string_view k_hdf5_begins = "\x89HDF\r\n\x1a\n";
// Checks that the file ends where its superblock says, and was closed.
[[nodiscard]] Result<void> check_hdf5(std::uint64_t file_size, const ReadAt& read);

enum class Format : std::uint8_t { unknown, safetensors, zip, json, hdf5, truncated };
// Guesses by name and first bytes. `truncated`: a name that torch or safetensors writes, and too few bytes to be
// anything.
[[nodiscard]] Format guess_format(std::string_view name, std::uint64_t file_size, ByteView first_bytes);
// Lists the tensors of such a file; none for formats without tensors.
[[nodiscard]] Result<std::vector<Tensor>> tensors_of(Format format, std::uint64_t file_size, const ReadAt& read);

}  // namespace gridctl::store
