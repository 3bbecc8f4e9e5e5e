// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_xml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace gridctl::transfer {
namespace {

constexpr std::string_view k_blanks = " \t\r\n";

Error odd_xml(const std::string& what) { return make_error(Code::protocol_violation, "the XML is invalid: " + what); }

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

// "#47", "#x2F": a character that XML allows.
std::optional<std::uint32_t> numbered(std::string_view entity) {
  const bool hexadecimal = entity.starts_with("#x");
  const std::string_view digits = entity.substr(hexadecimal ? 2 : 1);
  std::uint32_t c = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), c, hexadecimal ? 16 : 10);
  if (digits.empty() || problem != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  const bool allowed = c == 9 || c == 10 || c == 13 || (c >= 0x20 && c < 0xD800) || (c >= 0xE000 && c < 0x110000);
  return allowed ? std::optional(c) : std::nullopt;
}

Result<void> append_decoded(std::string& out, std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> k_entities{
      {{"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"amp", '&'}}};
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('&'), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    const std::size_t end = text.substr(0, 12).find(';');
    if (end == std::string_view::npos) return odd_xml("an '&' without its ';'");
    const std::string_view entity = text.substr(1, end - 1);
    const auto* known =
        std::find_if(k_entities.begin(), k_entities.end(), [&](const auto& e) { return e.first == entity; });
    if (known != k_entities.end()) {
      out += known->second;
    } else if (const auto c = entity.starts_with('#') ? numbered(entity) : std::nullopt) {
      append_utf8(out, *c);
    } else {
      return odd_xml("an unknown entity");
    }
    text.remove_prefix(end + 1);
  }
  return {};
}

struct Tag {
  enum class Kind { open, close, empty } kind = Kind::open;
  std::string_view name;  // without its prefix
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Result<XmlElement> document() {
    XmlElement root;
    TRY(skip_misc());
    TRY_ASSIGN(const Tag tag, next_tag());
    if (tag.kind == Tag::Kind::close) return odd_xml("it begins with an end");
    root.name = tag.name;
    if (tag.kind == Tag::Kind::open) TRY(read_into(root, 1));
    TRY(skip_misc());
    if (!text_.empty()) return odd_xml("something stands behind its end");
    return root;
  }

 private:
  // Blanks, comments and <?…?> around the root.
  Result<void> skip_misc() {
    for (;;) {
      text_.remove_prefix(std::min(text_.find_first_not_of(k_blanks), text_.size()));
      if (text_.starts_with("<?")) {
        TRY(skip_past("?>"));
      } else if (text_.starts_with("<!--")) {
        TRY(skip_past("-->"));
      } else {
        return {};
      }
    }
  }

  Result<void> skip_past(std::string_view end) {
    const std::size_t at = text_.find(end);
    if (at == std::string_view::npos) return odd_xml("it is cut off");
    text_.remove_prefix(at + end.size());
    return {};
  }

  // REQUIRES: the text begins with the tag, if anything is right.
  Result<Tag> next_tag() {
    if (text_.empty()) return odd_xml("it is cut off");
    if (!text_.starts_with('<')) return odd_xml("text where an element is due");
    if (text_.starts_with("<!") || text_.starts_with("<?")) return odd_xml("a declaration that S3 never sends");
    std::size_t end = 1;
    for (char quote = 0; end < text_.size() && (quote != 0 || text_[end] != '>'); ++end) {
      if (text_[end] == '<') return odd_xml("a '<' within a tag");
      if (quote == 0 && (text_[end] == '"' || text_[end] == '\'')) quote = text_[end];
      else if (text_[end] == quote) quote = 0;
    }
    if (end == text_.size()) return odd_xml("it is cut off");
    std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    Tag tag;
    if (inside.starts_with('/')) {
      tag.kind = Tag::Kind::close;
      inside.remove_prefix(1);
    } else if (inside.ends_with('/')) {
      tag.kind = Tag::Kind::empty;
      inside.remove_suffix(1);
    }
    tag.name = inside.substr(0, inside.find_first_of(k_blanks));
    if (const std::size_t colon = tag.name.find(':'); colon != std::string_view::npos)
      tag.name.remove_prefix(colon + 1);
    if (tag.name.empty() || tag.name.size() > 100) return odd_xml("a tag without a proper name");
    if (++elements_ > 2 * k_xml_elements_max) return odd_xml("it has too many elements");  // both ends are counted
    return tag;
  }

  Result<void> read_into(XmlElement& element, std::size_t depth) {
    for (;;) {
      const std::size_t open = text_.find('<');
      if (open == std::string_view::npos) return odd_xml("it is cut off");
      TRY(append_decoded(element.text, text_.substr(0, open)));
      text_.remove_prefix(open);
      if (text_.starts_with("<!--")) {
        TRY(skip_past("-->"));
        continue;
      }
      TRY_ASSIGN(const Tag tag, next_tag());
      if (tag.kind == Tag::Kind::close) {
        if (tag.name != element.name) return odd_xml("an element ends that has not begun");
        return {};
      }
      if (depth == k_xml_depth_max) return odd_xml("it nests too deep");
      element.children.push_back({std::string(tag.name), {}, {}});
      if (tag.kind == Tag::Kind::open) TRY(read_into(element.children.back(), depth + 1));
    }
  }

  std::string_view text_;  // what is left
  std::size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view child_name) const {
  for (const XmlElement& one : children)
    if (one.name == child_name) return &one;
  return nullptr;
}

std::string_view XmlElement::text_of(std::string_view child_name) const {
  const XmlElement* found = child(child_name);
  return found == nullptr ? std::string_view{} : std::string_view{found->text};
}

Result<XmlElement> parse_xml(std::string_view text) { return Reader(text).document(); }

}  // namespace gridctl::transfer
