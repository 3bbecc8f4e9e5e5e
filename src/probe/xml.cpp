// SPDX-License-Identifier: Apache-2.0
#include "probe/xml.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::size_t k_depth_max = 32;         // nvidia-smi nests 7 deep
constexpr std::size_t k_elements_max = 100000;  // 8 GPUs with all their clocks have 10,000

std::string decoded(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> entities{
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool replaced = false;
    if (text[i] == '&')
      for (const auto& [entity, c] : entities)
        if (text.substr(i).starts_with(entity)) {
          out += c;
          i += entity.size() - 1;
          replaced = true;
          break;
        }
    if (!replaced) out += text[i];
  }
  return out;
}

std::string id_of(std::string_view tag) {
  for (const char quote : {'"', '\''}) {
    const std::size_t at = tag.find(std::string(" id=") + quote);
    if (at == std::string_view::npos) continue;
    const std::size_t end = tag.find(quote, at + 5);
    if (end != std::string_view::npos) return decoded(tag.substr(at + 5, end - at - 5));
  }
  return {};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  XmlNode root() {
    while (next_tag()) {
      if (!is_element()) continue;
      XmlNode node;
      read_into(node, 0);
      return node;
    }
    return {};
  }

 private:
  // Moves to the next "<…>"; its inside is tag_, what stood before it is before_.
  bool next_tag() {
    const std::size_t open = text_.find('<', at_);
    if (open == std::string_view::npos) return false;
    before_ = text_.substr(at_, open - at_);
    const bool comment = text_.substr(open).starts_with("<!--");
    const std::size_t close = comment ? text_.find("-->", open) : text_.find('>', open);
    if (close == std::string_view::npos) return false;
    at_ = close + (comment ? 3 : 1);
    tag_ = text_.substr(open + 1, close - open - 1);
    return true;
  }
  [[nodiscard]] bool is_element() const { return !tag_.empty() && tag_[0] != '?' && tag_[0] != '!' && tag_[0] != '/'; }

  // REQUIRES: tag_ is the node's own.
  void read_into(XmlNode& node, std::size_t depth) {
    const bool closed = tag_.ends_with('/');
    const std::string_view inside = closed ? tag_.substr(0, tag_.size() - 1) : tag_;
    node.name = std::string(inside.substr(0, inside.find_first_of(" \t\r\n")));
    node.id = id_of(inside);
    ++elements_;
    if (closed) return;
    while (next_tag()) {
      if (node.text.empty()) node.text = decoded(trim(before_));
      if (tag_.starts_with('/')) return;
      if (!is_element()) continue;
      if (depth + 1 >= k_depth_max || elements_ >= k_elements_max) {
        at_ = text_.size();
        return;
      }
      node.children.emplace_back();
      read_into(node.children.back(), depth + 1);
    }
  }

  std::string_view text_, tag_, before_;
  std::size_t at_ = 0, elements_ = 0;
};

}  // namespace

const XmlNode* XmlNode::find(std::string_view path) const {
  const std::string_view first = path.substr(0, path.find('/'));
  for (const XmlNode& child : children) {
    if (child.name != first) continue;
    if (first.size() == path.size()) return &child;
    if (const XmlNode* found = child.find(path.substr(first.size() + 1))) return found;
  }
  return nullptr;
}

std::vector<const XmlNode*> XmlNode::all(std::string_view child_name) const {
  std::vector<const XmlNode*> out;
  for (const XmlNode& child : children)
    if (child.name == child_name) out.push_back(&child);
  return out;
}

XmlNode parse_xml(std::string_view text) { return Reader(text).root(); }

}  // namespace gridctl::probe
