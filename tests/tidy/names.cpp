// SPDX-License-Identifier: Apache-2.0
// Names that would meet when files are compiled together, and names by which tests are found.
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "rules.hpp"

namespace gridctl::tidy {

namespace {
// Returns the constants and types that a file defines in unnamed namespaces, with their lines. Functions may be overloads.
std::map<std::string, int> unnamed_names(const Source& source) {
  static const std::regex type(R"((?:class|struct|enum class|enum) (\w+)[^;]*)");
  static const std::regex constant(R"((?:inline )?(?:constexpr|const) [\w:<>*& ]+? (\w+)(?:\[\w*\])?(?: =|\{|;).*)");
  std::map<std::string, int> names;
  const std::string code = without_comments_and_literals(source.text);  // line for line the same
  std::istringstream lines(code), raw(source.text);
  bool is_unnamed = false;
  int number = 0;
  for (std::string line, text; std::getline(lines, line) && std::getline(raw, text);) {
    ++number;
    if (text.starts_with("namespace ")) is_unnamed = text == "namespace {";
    if (text == "}  // namespace") is_unnamed = false;
    std::smatch found;
    if (is_unnamed && (std::regex_match(line, found, type) || std::regex_match(line, found, constant))) names.emplace(found[1], number);
  }
  return names;
}
// "src/control/reach/peer.hpp" -> "peer".
std::string stem_of(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

// Returns what tests of each folder of tests/unit may be named for: sources of the room, the room, and rooms in it.
std::map<std::string, std::set<std::string>> subjects_of(const std::vector<std::string>& product) {
  std::map<std::string, std::set<std::string>> subjects;
  for (const std::string& path : product) {
    const std::string room = room_of(path);
    std::set<std::string>& names = subjects[room.substr(0, room.find('/'))];
    names.insert(stem_of(path));
    names.insert(room.substr(room.rfind('/') + 1));
  }
  return subjects;
}
}  // namespace

Findings check_unnamed(const std::vector<Source>& sources) {
  std::map<std::string, std::string> first;  // room and name -> where
  Findings findings;
  for (const Source& source : sources) {
    const std::string room = room_of(source.path);
    if (room.empty() || room == "cmd" || !source.path.ends_with(".cpp")) continue;
    for (const auto& [name, line] : unnamed_names(source)) {
      const auto [there, is_new] = first.emplace(room + " " + name, source.path);
      if (!is_new && there->second != source.path)
        findings.push_back(source.path + ":" + std::to_string(line) + ": " + name + " is defined in " + there->second +
                           " too, and both are compiled together");
    }
  }
  return findings;
}

Findings check_test_subjects(const std::vector<std::string>& tests, const std::vector<std::string>& product) {
  const std::map<std::string, std::set<std::string>> subjects = subjects_of(product);
  static const std::regex unit_test("tests/unit/(\\w+)/(\\w+)_test\\.cpp");
  Findings findings;
  for (const std::string& path : tests) {
    std::smatch found;
    if (!std::regex_match(path, found, unit_test)) continue;
    const std::string room = found[1], name = found[2];
    const auto known = subjects.find(room);
    const auto is_subject = [&](const std::string& word) { return known != subjects.end() && known->second.contains(word); };
    static const std::set<std::string> empty_words{"details", "edges", "misc", "more", "parts"};
    const std::string word = name.substr(name.rfind('_') + 1);
    if (!is_subject(name) && empty_words.contains(word))
      findings.push_back(path + ":1: '" + word + "' does not say what the tests are about");
    else if (!is_subject(name) && !is_subject(name.substr(0, name.rfind('_'))))
      findings.push_back(path + ":1: no source of " + room + " is named '" + name + "', nor is it one and a word");
  }
  return findings;
}

Findings check_test_namespace(const Source& source) {
  const std::string stem = source.path.substr(source.path.rfind('/') + 1);
  const std::string wanted = "::" + stem.substr(0, stem.rfind('.')) + " {";
  static const std::regex test("(^|\n)TEST(_[FP])?\\(");
  if (!source.path.ends_with(".cpp") || !std::regex_search(source.text, test)) return {};
  std::istringstream lines(source.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("namespace ") && line.ends_with(wanted)) return {};
  return {source.path + ":1: expected a namespace of the file's own, 'namespace gridctl::ROOM" + wanted + "'"};
}

}  // namespace gridctl::tidy
