// SPDX-License-Identifier: Apache-2.0
// Elements, attributes and text of the XML that nvidia-smi prints. Pure, tolerant, bounded: no entities but the five,
// no DTD, no namespaces; what is cut off is closed at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gridctl::probe {

struct XmlNode {
  std::string name;
  std::string id;    // the attribute of that name
  std::string text;  // direct text, without blanks around it
  std::vector<XmlNode> children;
  // First descendant by names with '/' between; nullptr when there is none.
  [[nodiscard]] const XmlNode* find(std::string_view path) const;
  [[nodiscard]] std::vector<const XmlNode*> all(std::string_view child_name) const;
};

// The root element; without a name when there is none. At most 32 levels and 100,000 elements are read.
[[nodiscard]] XmlNode parse_xml(std::string_view text);

}  // namespace gridctl::probe
