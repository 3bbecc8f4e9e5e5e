// SPDX-License-Identifier: Apache-2.0
// The reading of a text by a person, however programs changed it on its way: a quoted, escaped, wrapped or coloured
// value is still that value. Masks compare this reading of a text with this reading of a secret. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::control {

// Characters, and the bytes [from, to) of the text that each stands for, ascending.
struct Legible {
  std::string characters;
  struct Span {
    std::uint32_t from = 0, to = 0;
  };
  std::vector<Span> spans;
};

// Leaves out white space, quotes, backslashes, colours and frames; decodes \n, \u0041, \x41, \101, %41 and &amp;.
[[nodiscard]] Legible legible(std::string_view text);
// One reading for the lines of each rank ("[rank 3] …"), without that label. Empty when there is none.
[[nodiscard]] std::vector<Legible> legible_by_rank(std::string_view text);

}  // namespace gridctl::control
