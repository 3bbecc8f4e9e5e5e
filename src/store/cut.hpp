// SPDX-License-Identifier: Apache-2.0
// Where a file is cut into chunks: every 4 MiB, counted anew from large tensors' bounds when the file is safetensors or
// a zip archive of torch.save, so that a tensor that did not change gives the same chunks wherever it stands. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::uint64_t k_aligned_tensor_min = 1u << 20;  // bytes; smaller tensors do not start a segment

// Lengths of the chunks from extents of tensors (ascending); they sum up to file_size.
[[nodiscard]] std::vector<std::uint32_t> cut_file(std::uint64_t file_size, const std::vector<Extent>& tensors);

// Plans the chunks of a file: looks at its first bytes and, where these promise it, at its header. Odd files are cut
// plainly.
[[nodiscard]] std::vector<std::uint32_t> plan_chunks(std::string_view name, std::uint64_t file_size,
                                                     const ReadAt& read);

}  // namespace gridctl::store
