// SPDX-License-Identifier: Apache-2.0
// Puts one big object in parts, several at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "store/backend.hpp"
#include "transfer/s3_wire.hpp"

namespace gridctl::transfer {

inline constexpr std::uint64_t k_part_size = 8u << 20;  // bytes; S3 wants 5 MiB at least
inline constexpr std::size_t k_parts_in_flight = 4;     // one connection seldom fills a long link; 32 MiB of memory

// Returns the next `size` bytes at `offset`; fewer are an error, because the object would be incomplete.
[[nodiscard]] Result<Bytes> read_part(const store::ReadAt& content, std::uint64_t offset, std::size_t size);

// `wires` are used by threads of this function, one each, the first for everything that is not a part; only the
// caller's thread calls `moved` and `content`. Removes the leftovers of a failed upload.
[[nodiscard]] Result<void> upload_in_parts(const std::vector<std::unique_ptr<S3Wire>>& wires, std::string_view name,
                                           std::uint64_t size, const store::ReadAt& content, const store::Moved& moved);

}  // namespace gridctl::transfer
