// SPDX-License-Identifier: Apache-2.0
// Holds functions that both halves of the query language share. Not for other rooms.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::sched {

inline constexpr double k_gib = 1024.0 * 1024 * 1024;

// Returns lower case, with '_' and '-' as blanks, trimmed: the form in which texts are compared.
[[nodiscard]] std::string normal_text(std::string_view text);
// Returns the field's name or alias that was probably meant, or empty.
[[nodiscard]] std::string nearest_field(std::string_view word);

}  // namespace gridctl::sched
