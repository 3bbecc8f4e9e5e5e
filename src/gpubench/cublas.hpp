// SPDX-License-Identifier: Apache-2.0
// C = A B^T by cuBLAS, queued on the current context: rows x inner and columns x inner in bf16, C in fp32.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace gridctl::gpubench {

// Addresses in the device's memory. unsupported where the host has no cuBLAS.
[[nodiscard]] Result<void> multiply_by_library(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint32_t rows,
                                               std::uint32_t columns, std::uint32_t inner);

}  // namespace gridctl::gpubench
