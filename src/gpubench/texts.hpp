// SPDX-License-Identifier: Apache-2.0
// Holds the kernels' texts as they are compiled on the host, for the lifetime of the program.
#pragma once

#include <string_view>

namespace gridctl::gpubench {

[[nodiscard]] std::string_view kernels_text();  // kernels.cl
[[nodiscard]] std::string_view rates_text();    // rates.cl
// Return kernels.cu as PTX: for compute capability 7.0 and later, for 8.0 and later, and the additional kernels that
// only 9.0 can run. Each ends with a NUL.
[[nodiscard]] std::string_view ptx_70();
[[nodiscard]] std::string_view ptx_80();
[[nodiscard]] std::string_view ptx_90();

}  // namespace gridctl::gpubench
