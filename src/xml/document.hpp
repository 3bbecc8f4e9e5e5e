// SPDX-License-Identifier: Apache-2.0
// Elements and text of XML documents that others wrote, read by Expat. No DTD is followed and no entity is expanded but
// the five of XML and characters by number; namespace prefixes and attributes other than `id` are dropped. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::xml {

inline constexpr std::size_t k_depth_max = 32;  // nvidia-smi nests 7 deep, S3 4
inline constexpr std::size_t k_elements_max =
    100'000;  // 8 GPUs with all their clocks have 10,000, as 1,000 objects in S3

struct Element {
  std::string name;
  std::string id;    // the attribute of that name
  std::string text;  // direct text
  std::vector<Element> children;
  // First descendant by names with '/' between; nullptr if there is none.
  [[nodiscard]] const Element* find(std::string_view path) const;
  [[nodiscard]] std::vector<const Element*> all(std::string_view child_name) const;
  [[nodiscard]] std::string_view text_of(std::string_view path) const;  // empty if there is none
};

// Characters that no document may hold, as '?'.
[[nodiscard]] std::string without_controls(std::string_view text);

// The root of a whole document, texts as they stand. protocol_violation says what is wrong, and where: a part never
// passes for the whole.
[[nodiscard]] Result<Element> parse(std::string_view text);

// Parses as much as possible of a document that may be cut off, stand among other words, be too large, or hold names
// that its writer did not escape. Texts have no blanks around them. An element that does not end is there with what it
// holds so far. The root has no name if there is none.
[[nodiscard]] Element parse_what_is_there(std::string_view text);

}  // namespace gridctl::xml
