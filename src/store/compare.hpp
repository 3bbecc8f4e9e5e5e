// SPDX-License-Identifier: Apache-2.0
// Compares two trees, down to the tensors of known formats, and measures the differences if the type of the numbers is
// known. Chunks that both have are not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

enum class Change : std::uint8_t { none, changed, resized, added, removed };

// Describes the difference of two tensors with the same name in files with the same path, or of two complete files if
// the format lists no tensors.
struct Difference {
  std::string path;          // of the file; foreign
  std::string tensor, type;  // foreign; empty: the whole file, or not told
  Change change = Change::none;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  // Counts numbers of a known type, otherwise bytes; `changed` counts those that differ.
  std::uint64_t count = 0, changed = 0;
  // Over floating-point numbers that are finite on both sides: the root mean squares of the earlier values and of the
  // differences, and the largest difference.
  bool measured = false;
  double rms_before = 0, rms_change = 0, largest = 0;
};

// Ordered by path and, within a file, as in `after` (removed ones come last). not_found or checkpoint_damaged if a
// chunk is missing or damaged. Keeps two chunks in memory.
[[nodiscard]] Result<std::vector<Difference>> compare(const Tree& before, const Tree& after, ChunkReader& chunks);

}  // namespace gridctl::store
