// SPDX-License-Identifier: Apache-2.0
// The rules, applied to the sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "rules.hpp"

namespace gridctl::tidy::tree_test {
namespace {

std::vector<Source> read_sources(const std::vector<std::string>& folders) {
  const std::filesystem::path top = GRIDCTL_SOURCE_DIR;
  std::vector<Source> sources;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top / folder)) {
      const std::string extension = entry.path().extension();
      if (!entry.is_regular_file() || (extension != ".cpp" && extension != ".hpp")) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream content;
      content << in.rdbuf();
      sources.push_back({entry.path().lexically_relative(top).generic_string(), content.str()});
    }
  return sources;
}

const std::vector<Source>& product() {
  static const std::vector<Source> sources = read_sources({"src", "cmd"});
  return sources;
}

// "path:12: what" -> "path: what"
std::string without_line(const std::string& finding) {
  const std::size_t colon = finding.find(':');
  return finding.substr(0, colon) + finding.substr(finding.find(':', colon + 1));
}

bool is_known(const std::string& finding) {
  const std::vector<std::string>& known = known_findings();
  return std::find(known.begin(), known.end(), without_line(finding)) != known.end();
}

void expect_clean(const std::vector<Source>& sources, const std::function<Findings(const Source&)>& rule) {
  ASSERT_GT(sources.size(), 20u) << "the sources were not found";
  for (const Source& source : sources)
    for (const std::string& finding : rule(source))
      if (!is_known(finding)) ADD_FAILURE() << finding;
}

TEST(Tree, RoomsIncludeOnlyWhatTheTableAllows) { expect_clean(product(), &check_layers); }

TEST(Tree, LibrariesStayInTheirRooms) { expect_clean(product(), &check_third_party); }

TEST(Tree, SystemHeadersStayInOsAndAgent) { expect_clean(product(), &check_system_calls); }

TEST(Tree, HostsAreReachedByTheNetworkAlone) { expect_clean(product(), &check_ways); }

TEST(Tree, NamesMeanOneThingInARoom) {
  for (const std::string& finding : check_unnamed(product())) ADD_FAILURE() << finding;
}

TEST(Tree, FilesOfTestsHaveNamespaces) { expect_clean(read_sources({"tests/unit", "tests/tidy", "tests/cli"}), &check_test_namespace); }

TEST(Tree, TestsAreFoundByTheNamesOfTheirSubjects) {
  const auto paths = [](const std::vector<Source>& sources) {
    std::vector<std::string> all;
    for (const Source& source : sources) all.push_back(source.path);
    return all;
  };
  for (const std::string& finding : check_test_subjects(paths(read_sources({"tests/unit"})), paths(product())))
    ADD_FAILURE() << finding;
}

TEST(Tree, UsesNoBannedWords) { expect_clean(product(), &check_words); }

TEST(Tree, FilesHaveTheirShape) { expect_clean(product(), &check_shape); }

TEST(Tree, TestsHaveTheirLicenceToo) { expect_clean(read_sources({"tests"}), &check_shape); }

TEST(Tree, FunctionsFitTheirScreens) {
  expect_clean(product(), [](const Source& source) { return check_functions(source, long_functions()); });
}

// Findings by room, which may only become fewer.
void expect_within(const Budget& left, const std::function<Findings(const Source&)>& rule,
                   const std::set<std::string>& rooms) {
  std::map<std::string, Findings> by_room;
  for (const Source& source : product()) {
    std::string room = room_of(source.path);
    room = room.substr(0, room.find('/'));
    if (!rooms.empty() && !rooms.contains(room)) continue;
    for (std::string& finding : rule(source)) by_room[room].push_back(std::move(finding));
  }
  for (const auto& [room, findings] : by_room) {
    const auto may = left.find(room);
    EXPECT_LE(static_cast<int>(findings.size()), may == left.end() ? 0 : may->second)
        << room << " has more than it had:\n"
        << join(findings, "\n");
  }
}

TEST(Tree, WordsThatDecideAreEnums) {
  expect_within({}, &check_compared_words, {"job", "sched", "control", "agent"});
}

// What takes two parts that neither holds the other: hosts and jobs, hosts and copies.
TEST(Tree, FewTakeTheWholeRegistry) { expect_within({{"cmd", 46}, {"control", 24}}, &check_whole_registry, {}); }

TEST(Tree, RowsOfHostsAreChangedNotReplaced) { expect_within({}, &check_whole_rows, {"cmd", "control"}); }

TEST(Tree, CommentsCanBeReadAlone) { expect_within({}, &check_openings, {}); }

TEST(Tree, HoldsWhatWeWrote) {
  const std::filesystem::path top = GRIDCTL_SOURCE_DIR;
  for (const char* folder : {"src", "cmd", "tests", "scripts", "man"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top / folder)) {
      const std::string path = entry.path().lexically_relative(top).generic_string();
      if (!entry.is_regular_file() || path.starts_with("tests/tidy/") || path.ends_with(".pyc")) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream content;
      content << in.rdbuf();
      for (const std::string& finding : check_origin(path, content.str())) ADD_FAILURE() << finding;
    }
}

TEST(Tree, TheListOfLongFunctionsOnlyShrinks) {
  std::map<std::string, int> longest;
  for (const Source& source : product())
    for (const Function& function : functions_of(source)) {
      int& lines = longest[source.path + ":" + function.name];
      lines = std::max(lines, function.lines);
    }
  for (const auto& [name, lines] : long_functions()) {
    EXPECT_GT(lines, k_function_lines_max) << name << " needs no entry";
    EXPECT_EQ(longest[name], lines) << name << ": write down what it has now";
  }
}

TEST(Tree, TheListOfKnownFindingsOnlyShrinks) {
  std::set<std::string> found;
  for (const Source& source : product())
    for (const auto& rule : {&check_layers, &check_third_party, &check_system_calls, &check_words, &check_shape})
      for (const std::string& finding : rule(source)) found.insert(without_line(finding));
  for (const std::string& known : known_findings()) EXPECT_TRUE(found.contains(known)) << "mended, remove: " << known;
}

TEST(Tree, MostFunctionsAreFound) {
  std::size_t count = 0;
  for (const Source& source : product()) count += functions_of(source).size();
  EXPECT_GT(count, product().size() * 2) << "the search for functions is blind";
}

}  // namespace
}  // namespace gridctl::tidy::tree_test
