// SPDX-License-Identifier: Apache-2.0
// The XML of S3's answers: elements and their text. Strict, for a part of an answer must never pass for the whole: what
// is cut off, ends wrongly or goes on behind its root is an error. No DTD, no entities but the five and characters by
// number; attributes and prefixes of namespaces are dropped. Pure, bounded; the bytes are foreign.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::transfer {

inline constexpr std::size_t k_xml_depth_max = 16;         // S3 nests 4 deep
inline constexpr std::size_t k_xml_elements_max = 50'000;  // a listing of 1,000 objects has 10,000 at most

struct XmlElement {
  std::string name;
  std::string text;  // direct text, as it stands
  std::vector<XmlElement> children;
  // First child of that name; nullptr when there is none.
  [[nodiscard]] const XmlElement* child(std::string_view child_name) const;
  // Its text, or empty.
  [[nodiscard]] std::string_view text_of(std::string_view child_name) const;
};

[[nodiscard]] Result<XmlElement> parse_xml(std::string_view text);  // the root; protocol_violation says what is odd

}  // namespace gridctl::transfer
