// SPDX-License-Identifier: Apache-2.0
// Decides where a file is cut into chunks: every 4 MiB, starting again at the bounds of large tensors if the file is
// safetensors or a zip archive of torch.save, so that an unchanged tensor gives the same chunks wherever it is. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::uint64_t k_aligned_tensor_min = 1u << 20;  // bytes; smaller tensors do not start a segment

// Returns the lengths of the chunks from the extents of tensors (ascending); their sum is file_size.
[[nodiscard]] std::vector<std::uint32_t> cut_file(std::uint64_t file_size, const std::vector<Extent>& tensors);

// Plans the chunks of a file: looks at its first bytes and, if they suggest it, at its header. Unusual files are cut
// plainly.
[[nodiscard]] std::vector<std::uint32_t> plan_chunks(std::string_view name, std::uint64_t file_size,
                                                     const ReadAt& read);

}  // namespace gridctl::store
