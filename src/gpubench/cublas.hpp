// SPDX-License-Identifier: Apache-2.0
// Computes C = A B^T with cuBLAS, queued on the current context: rows x inner and columns x inner in bf16, C in fp32.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace gridctl::gpubench {

// Takes addresses in the device's memory. Fails with unsupported if the host has no cuBLAS.
[[nodiscard]] Result<void> multiply_by_library(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint32_t rows,
                                               std::uint32_t columns, std::uint32_t inner);

}  // namespace gridctl::gpubench
