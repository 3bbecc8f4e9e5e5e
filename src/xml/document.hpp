// SPDX-License-Identifier: Apache-2.0
// Reads elements and text of foreign XML documents with Expat. No DTD is followed and no entity is expanded but the
// five of XML and characters by number; namespace prefixes and attributes other than `id` are dropped. Pure.
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
  // Returns the first descendant by names with '/' between; nullptr if there is none.
  [[nodiscard]] const Element* find(std::string_view path) const;
  [[nodiscard]] std::vector<const Element*> all(std::string_view child_name) const;
  [[nodiscard]] std::string_view text_of(std::string_view path) const;  // empty if there is none
};

// Replaces characters that no document may contain with '?'.
[[nodiscard]] std::string without_controls(std::string_view text);

// Returns the root of a complete document, with unchanged texts. protocol_violation describes the problem and its
// place: a part never passes for the complete document.
[[nodiscard]] Result<Element> parse(std::string_view text);

// Parses as much as possible of a document that may be cut off, stand among other words, be too large, or contain names
// that its writer did not escape. Texts have no blanks around them. An element that does not end is present with its
// content so far. The root has no name if there is none.
[[nodiscard]] Element parse_what_is_there(std::string_view text);

}  // namespace gridctl::xml
