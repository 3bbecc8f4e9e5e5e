// SPDX-License-Identifier: Apache-2.0
// The differences between two trees, down to the tensors of known formats, and their size where the type of the numbers
// is known. Chunks that both have are not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

enum class Change : std::uint8_t { none, changed, resized, added, removed };

// The difference of two tensors of one name in files of one path, or of two whole files where the format lists no
// tensors.
struct Difference {
  std::string path;          // of the file; foreign
  std::string tensor, type;  // foreign; empty: the whole file, or not told
  Change change = Change::none;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  // With `changed`: numbers of a known type, else bytes.
  std::uint64_t count = 0, changed = 0;
  // Over floating-point numbers that are finite on both sides: root mean squares of the values before and of the
  // differences, and the largest difference.
  bool measured = false;
  double rms_before = 0, rms_change = 0, largest = 0;
};

// In the order of the paths and, within a file, of `after` (what was removed comes last). not_found or
// checkpoint_damaged when a chunk is. Keeps two chunks in memory.
[[nodiscard]] Result<std::vector<Difference>> compare(const Tree& before, const Tree& after, ChunkReader& chunks);

}  // namespace gridctl::store
