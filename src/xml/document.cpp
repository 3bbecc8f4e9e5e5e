// SPDX-License-Identifier: Apache-2.0
#include "xml/document.hpp"

#include <expat.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "base/text.hpp"

namespace gridctl::xml {

namespace {
class Reader {
 public:
  explicit Reader(const char* encoding = nullptr) : parser_(XML_ParserCreate(encoding), &XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* reader, const char* name, const char** attributes) { of(reader).begin(name, attributes); },
        [](void* reader, const char*) { of(reader).open_.pop_back(); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* reader, const char* text, int size) {
      of(reader).open_.back()->text.append(text, static_cast<std::size_t>(size));
    });
    XML_SetEntityDeclHandler(parser_.get(),
                             [](void* reader, const char*, int, const char*, int, const char*, const char*, const char*,
                                const char*) { of(reader).stop("it declares an entity"); });
  }

  // Returns the first problem, or an empty text.
  std::string read(std::string_view text) {
    constexpr std::size_t k_piece = 1 << 20;  // Expat counts in int
    do {
      const std::string_view piece = text.substr(0, k_piece);
      text.remove_prefix(piece.size());
      if (XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), text.empty()) == XML_STATUS_OK)
        continue;
      const std::string what = why_.empty() ? XML_ErrorString(XML_GetErrorCode(parser_.get())) : why_;
      return what + " in line " + std::to_string(XML_GetCurrentLineNumber(parser_.get()));
    } while (!text.empty());
    return {};
  }
  [[nodiscard]] std::size_t elements() const { return elements_; }
  Element take() { return std::move(root_); }

 private:
  static Reader& of(void* reader) { return *static_cast<Reader*>(reader); }

  void stop(const char* why) {
    why_ = why;
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  void begin(std::string_view name, const char** attributes) {
    if (open_.size() == k_depth_max) return stop("elements are nested too deeply");
    if (++elements_ > k_elements_max) return stop("too many elements");
    // Children of `open_` grow only at its end, while none of those before is open, so that pointers stay valid.
    Element& element = open_.empty() ? root_ : open_.back()->children.emplace_back();
    element.name = name.substr(name.find(':') + 1);  // npos + 1 is 0
    for (; *attributes != nullptr; attributes += 2)
      if (std::string_view(attributes[0]) == "id") element.id = attributes[1];
    open_.push_back(&element);
    if (element.name.empty()) stop("an element has no name");
  }

  std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser_;
  Element root_;
  std::vector<Element*> open_;
  std::size_t elements_ = 0;
  std::string why_;  // gridctl's own reason to stop
};

// Escapes the process names that a tool did not escape.
std::string repaired(std::string_view text) {
  const std::string safe = without_controls(text);
  std::string out;
  for (std::size_t at = 0; at < safe.size(); ++at) {
    const std::string_view rest = std::string_view(safe).substr(at);
    const auto begins = [&](std::string_view word) { return rest.starts_with(word); };
    const bool entity = begins("&lt;") || begins("&gt;") || begins("&amp;") || begins("&quot;") || begins("&apos;");
    const bool tag = rest.size() > 1 && (rest[1] >= '?' || rest[1] == '/' || rest[1] == '!');  // '?', letters, '_'
    if (rest[0] == '&' && !entity) out += "&amp;";
    else if (rest[0] == '<' && !tag && rest.size() > 1) out += "&lt;";
    else out += rest[0];
  }
  return out;
}

void trim_all(Element& element) {
  element.text = trim(element.text);
  for (Element& child : element.children) trim_all(child);
}
}  // namespace

const Element* Element::find(std::string_view path) const {
  const std::string_view first = path.substr(0, path.find('/'));
  for (const Element& child : children) {
    if (child.name != first) continue;
    if (first.size() == path.size()) return &child;
    if (const Element* found = child.find(path.substr(first.size() + 1))) return found;
  }
  return nullptr;
}

std::vector<const Element*> Element::all(std::string_view child_name) const {
  std::vector<const Element*> out;
  for (const Element& child : children)
    if (child.name == child_name) out.push_back(&child);
  return out;
}

std::string_view Element::text_of(std::string_view path) const {
  const Element* found = find(path);
  return found == nullptr ? std::string_view{} : std::string_view{found->text};
}

std::string without_controls(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ((c >= 0 && c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) c = '?';
  return out;
}

Result<Element> parse(std::string_view text) {
  Reader reader;
  if (const std::string wrong = reader.read(text); !wrong.empty())
    return make_error(Code::protocol_violation, "the XML is invalid: " + wrong);
  return reader.take();
}

Element parse_what_is_there(std::string_view text) {
  const std::size_t declared = text.find("<?xml");
  text.remove_prefix(std::min(declared == std::string_view::npos ? text.find('<') : declared, text.size()));
  const std::string document = repaired(text);
  Reader reader, of_bytes("ISO-8859-1");  // which takes every byte for a letter
  const bool whole = reader.read(document).empty();
  if (!whole) (void)of_bytes.read(document);  // what is wrong ends it
  Element root = (whole || reader.elements() >= of_bytes.elements() ? reader : of_bytes).take();
  trim_all(root);
  return root;
}

}  // namespace gridctl::xml
