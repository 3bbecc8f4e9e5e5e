// SPDX-License-Identifier: Apache-2.0
// Finds functions by their braces: enough for code that clang-format has laid out.
#include <algorithm>
#include <cctype>
#include <regex>

#include "base/text.hpp"
#include "source_text.hpp"

namespace gridctl::tidy {

namespace {
enum class Scope { outer, function, inner };  // outer: a namespace or a type, where functions may begin

// Where the text before a '{' begins: after the end of what came before it.
std::size_t head_start(std::string_view code, std::size_t brace) {
  std::size_t start = brace;
  for (int depth = 0; start > 0; --start) {
    const char c = code[start - 1];
    if (c == ')') ++depth;
    if (c == '(') --depth;
    if (depth == 0 && (c == ';' || c == '}' || c == '{')) break;
  }
  return start;
}

// Whether the brace after this head initialises a member: T::T() : a_{1}, b_{2} {…}
bool is_initialiser(std::string_view head) {
  static const std::regex list(R"(\)\s*(noexcept\s*)?:[^:])");
  const std::string_view text = trim(head);
  const bool word = !text.empty() && (std::isalnum(static_cast<unsigned char>(text.back())) != 0 || text.back() == '_');
  return word && std::regex_search(std::string(text), list);
}

// The name of the function whose head this is, or empty.
std::string function_name(std::string_view head) {
  static const std::regex access(R"((public|private|protected)\s*:)");
  static const std::regex directive(R"(^\s*#[^\n]*)", std::regex::multiline);
  static const std::regex type(R"(^\s*(template\s*<[^(]*>\s*)?(namespace|class|struct|union|enum|extern)\b[^()]*$)");
  static const std::regex name(R"(([~\w:]+|operator\s*[^\s\w(]+|operator\s*\(\))\s*\()");
  const std::string text = std::regex_replace(std::regex_replace(std::string(head), directive, ""), access, "");
  if (text.find('(') == std::string::npos || std::regex_search(text, type)) return {};
  if (const std::size_t equals = text.find('='); equals < text.find('(') && text.find("operator") == std::string::npos)
    return {};
  std::smatch match;
  return std::regex_search(text, match, name) ? match[1].str() : std::string{};
}

bool is_outer(std::string_view head) {
  static const std::regex outer(R"((^|\s)(namespace|class|struct|union|extern)\b)");
  return head.find('(') == std::string_view::npos && std::regex_search(std::string(head), outer);
}
}  // namespace

std::vector<Function> functions_of(const Source& source) {
  const std::string code = without_comments_and_literals(source.text);
  std::vector<Function> functions;
  std::vector<Scope> scopes;
  Function open;
  std::size_t constructor_start = std::string::npos;  // set while in a list of initialisers
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (code[at] == '{') {
      const bool may_begin = scopes.empty() || scopes.back() == Scope::outer;
      const std::size_t start = may_begin ? std::min(constructor_start, head_start(code, at)) : at;
      const std::string_view head = std::string_view(code).substr(start, at - start);
      const bool initialises = may_begin && is_initialiser(head);
      constructor_start = initialises ? start : may_begin ? std::string::npos : constructor_start;
      const std::string name = may_begin && !initialises ? function_name(head) : std::string{};
      if (!name.empty()) {
        const std::size_t first = start + std::min(head.find_first_not_of(" \n\t"), head.size());
        open = {name, line_of(code, first), 0};
      }
      scopes.push_back(!name.empty() ? Scope::function : may_begin && is_outer(head) ? Scope::outer : Scope::inner);
    } else if (code[at] == '}' && !scopes.empty()) {
      if (scopes.back() == Scope::function) {
        open.lines = line_of(code, at) - open.line + 1;
        functions.push_back(open);
      }
      scopes.pop_back();
    }
  }
  return functions;
}

}  // namespace gridctl::tidy
