// SPDX-License-Identifier: Apache-2.0
// The kernels' texts as they are compiled on the host. They live as long as the program.
#pragma once

#include <string_view>

namespace gridctl::gpubench {

[[nodiscard]] std::string_view kernels_text();  // kernels.cl
[[nodiscard]] std::string_view rates_text();    // rates.cl
// kernels.cu as PTX, for compute capability 7.0 and later, for 8.0 and later, and what 9.0 alone can run besides. Each
// ends with a NUL.
[[nodiscard]] std::string_view ptx_70();
[[nodiscard]] std::string_view ptx_80();
[[nodiscard]] std::string_view ptx_90();

}  // namespace gridctl::gpubench
