// SPDX-License-Identifier: Apache-2.0
// Reads a text as a person would, however programs have changed it: a quoted, escaped, wrapped or coloured value is
// still that value. Masks compare this reading of a text with this reading of a secret. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::control {

// Holds characters, and the ascending byte ranges [from, to) of the text that each stands for.
struct Legible {
  std::string characters;
  struct Span {
    std::uint32_t from = 0, to = 0;
  };
  std::vector<Span> spans;
};

// Skips white space, quotes, backslashes, colours and frames; decodes \n, \u0041, \x41, \101, %41 and &amp;.
[[nodiscard]] Legible legible(std::string_view text);
// Returns one reading of each rank's lines ("[rank 3] …"), without the label. Empty if there are none.
[[nodiscard]] std::vector<Legible> legible_by_rank(std::string_view text);

}  // namespace gridctl::control
