// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>

#include "base/text.hpp"

namespace gridctl::config {

const Node* Node::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].text == key) return &items[i];
  return nullptr;
}

Node text_node(std::string text, Position at) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.at = at;
  return node;
}

void put(Node& map, const std::string& key, Node value) {
  map.kind = Node::Kind::map;
  map.keys.push_back({key, value.at});
  map.items.push_back(std::move(value));
}

Error error_at(const std::string& file, Position at, const std::string& what) {
  return make_error(Code::bad_job_file,
                    file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + what);
}

std::string excerpt(std::string_view text) {
  std::string flat = sanitize(text.substr(0, 200), 60);
  for (char& c : flat)
    if (c == '\t') c = ' ';
  return flat.size() > 80 ? sanitize(flat, 60) : flat;
}

namespace {
struct Refusal {  // thrown through yaml-cpp, caught in parse_yaml
  Position at;
  std::string what;
};

Position position_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Builds the tree from the parser's events; throws Refusal.
class Builder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { document_at_ = position_of(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "", anchor);
    add(Node{Node::Kind::null, "", position_of(mark), {}, {}}, true);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{position_of(mark), "aliases (*name) are not allowed; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_extras(mark, tag, anchor);
    if (value.find('\0') != std::string::npos) throw Refusal{position_of(mark), "text with a NUL character"};
    last_scalar_ = position_of(mark);
    last_quoted_ = tag == "!";
    add(Node{Node::Kind::scalar, value, position_of(mark), {}, {}}, true);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  Node take_root() { return std::move(root_); }
  [[nodiscard]] bool empty() const { return root_.kind == Node::Kind::null; }
  [[nodiscard]] Position document_at() const { return document_at_; }
  // Returns where the last scalar of the document begins, if it is not a plain one.
  [[nodiscard]] std::optional<Position> last_quoted() const {
    return last_quoted_ ? std::optional(last_scalar_) : std::nullopt;
  }

 private:
  struct Level {
    Node node;
    std::optional<Key> key;           // of a map, while its value is awaited
    std::map<std::string, int> seen;  // keys and their lines
  };

  static void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) throw Refusal{position_of(mark), "anchors (&name) are not allowed; write the value out"};
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Refusal{position_of(mark), "tags (" + excerpt(tag) + ") are not allowed; every value is typed by its key"};
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_extras(mark, tag, anchor);
    const Position at = position_of(mark);
    if (levels_.size() >= static_cast<std::size_t>(k_yaml_depth_max))
      throw Refusal{at, "nested deeper than " + std::to_string(k_yaml_depth_max) + " levels"};
    if (!levels_.empty() && levels_.back().node.kind == Node::Kind::map && !levels_.back().key)
      throw Refusal{at, "a key must be plain text, not a list or mapping"};
    levels_.push_back(Level{Node{kind, "", at, {}, {}}, {}, {}});
  }

  void close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    add(std::move(node), false);
  }

  void add(Node node, bool may_be_key) {
    if (++nodes_ > k_yaml_nodes_max)
      throw Refusal{node.at, "more than " + std::to_string(k_yaml_nodes_max) + " values"};
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::map && !level.key) {
      GRIDCTL_CHECK(may_be_key);
      take_key(level, node);
      return;
    }
    if (level.key) level.node.keys.push_back(*std::exchange(level.key, std::nullopt));
    level.node.items.push_back(std::move(node));
  }

  static void take_key(Level& level, const Node& node) {
    if (node.kind == Node::Kind::null) throw Refusal{node.at, "a key is missing before ':'"};
    const std::string shown = "key '" + excerpt(node.text) + "': ";
    if (node.text == "<<") throw Refusal{node.at, shown + "merge keys are not allowed; write the values out"};
    const auto [found, fresh] = level.seen.emplace(node.text, node.at.line);
    if (!fresh) throw Refusal{node.at, shown + "given twice, first on line " + std::to_string(found->second)};
    level.key = Key{node.text, node.at};
  }

  std::vector<Level> levels_;
  Node root_;
  std::size_t nodes_ = 0;
  Position document_at_;
  Position last_scalar_;
  bool last_quoted_ = false;
};

std::optional<Refusal> check_bytes(std::string_view text) {
  Position at;
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = decode_utf8(text, i, code);
    if (length == 0) return Refusal{at, "not valid UTF-8"};
    if ((code < 0x20 && code != '\n' && code != '\r' && code != '\t') || code == 0x7F)
      return Refusal{at, code == 0 ? "a NUL character" : "a control character (" + sanitize(text.substr(i, 1)) + ")"};
    if (code == '\n') ++at.line, at.column = 1;
    else ++at.column;
    i += length;
  }
  return std::nullopt;
}

// Returns whether the lines after this one are the text of a block scalar ("run: |").
bool opens_block(std::string_view line) {
  line = trim(line);
  const std::size_t mark = line.find_last_of("|>");
  if (mark == std::string_view::npos || line.starts_with('#')) return false;
  const std::string_view tail = line.substr(mark + 1);
  const std::size_t rest = tail.find_first_not_of("0123456789+-");
  const bool clean = rest == std::string_view::npos || trim(tail.substr(rest)).starts_with('#');
  return clean && (mark == 0 || line[mark - 1] == ' ');
}

// Tabs may not indent, except within the text of a block scalar.
std::optional<Refusal> check_tabs(std::string_view text) {
  int number = 0;
  std::optional<std::size_t> block;  // indentation of the line that opened a block scalar
  for (const std::string& line : split_lines(text)) {
    ++number;
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    if (trim(line).empty() || (block && spaces > *block)) continue;
    block = opens_block(line) ? std::optional<std::size_t>(spaces) : std::nullopt;
    if (line[spaces] == '\t')
      return Refusal{{number, static_cast<int>(spaces) + 1}, "this line is indented with a tab; YAML requires spaces"};
  }
  return std::nullopt;
}

// yaml-cpp 0.7 takes the end of the file for the end of a quoted text: only the last scalar can be affected.
bool is_unclosed(std::string_view text, Position at) {
  std::size_t start = 0;
  for (int line = 1; line < at.line; ++line) start = text.find('\n', start) + 1;
  start += static_cast<std::size_t>(at.column - 1);
  if (start >= text.size() || (text[start] != '"' && text[start] != '\'')) return false;
  const char quote = text[start];
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') ++i;
    else if (quote == '\'' && text.substr(i, 2) == "''") ++i;
    else if (text[i] == quote) return false;
  }
  return true;
}

// Adds the usual cause to yaml-cpp's message.
std::string with_cause(const std::string& message) {
  static constexpr std::pair<std::string_view, std::string_view> k_causes[] = {
      {"illegal map value", "a value that contains ': ' needs quotes, or an earlier line lacks its ':'"},
      {"end of map not found", "check the indentation of this line"},
      {"end of sequence not found", "check the indentation of this line"},
      {"end of map flow not found", "a '{' is not closed"},
      {"end of sequence flow not found", "a '[' is not closed"},
  };
  for (const auto& [start, cause] : k_causes)
    if (message == start) return "not valid YAML: " + message + "; " + std::string(cause);
  if (message.starts_with("the referenced anchor")) return "aliases (*name) are not allowed; write the value out";
  return "not valid YAML: " + excerpt(message);
}

Node build(std::string_view text) {
  std::istringstream in{std::string(text)};
  YAML::Parser parser(in);
  Builder builder;
  parser.HandleNextDocument(builder);
  if (const auto at = builder.last_quoted(); at && is_unclosed(text, *at))
    throw Refusal{*at, "not valid YAML: the quote that begins here is not closed"};
  Builder next;
  if (parser.HandleNextDocument(next) && !next.empty())
    throw Refusal{next.document_at(), "a second document; pipelines of several tasks are not supported yet"};
  return builder.take_root();
}
}  // namespace

Result<Node> parse_yaml(std::string_view text, const std::string& file) {
  const auto refused = [&](const Refusal& refusal) { return error_at(file, refusal.at, refusal.what); };
  if (text.size() > k_yaml_bytes_max)
    return refused({{}, "longer than " + std::to_string(k_yaml_bytes_max / 1024) + " KiB"});
  if (const auto bad = check_bytes(text)) return refused(*bad);
  if (const auto bad = check_tabs(text)) return refused(*bad);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  try {
    return build(text);
  } catch (const Refusal& refusal) {
    return refused(refusal);
  } catch (const YAML::Exception& e) {
    return refused({e.mark.is_null() ? Position{} : position_of(e.mark), with_cause(e.msg)});
  } catch (const std::exception& e) {
    return refused({{}, std::string("not valid YAML: ") + excerpt(e.what())});
  }
}

}  // namespace gridctl::config
