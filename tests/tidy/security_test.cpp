// SPDX-License-Identifier: Apache-2.0
// The page gridctl-security(7) promises exactly what the red team's tests try.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace gridctl::tidy::security_test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex finds(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), finds), end; match != end; ++match)
    found.insert((*match)[1].str() + "." + (*match)[2].str());
  return found;
}

// Class.test_cannot_… of a Python file.
std::set<std::string> methods_of(const std::string& text) {
  static const std::regex finds(R"((?:^|\n)(?:class (\w+)|    def (test_cannot\w+)\())");
  std::set<std::string> found;
  std::string name;
  for (std::sregex_iterator match(text.begin(), text.end(), finds), end; match != end; ++match) {
    if ((*match)[1].matched) name = (*match)[1].str();
    else found.insert(name + "." + (*match)[2].str());
  }
  return found;
}

// Suite.Test of files that call themselves the red team's.
std::set<std::string> tried() {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(GRIDCTL_SOURCE_DIR) / "tests")) {
    const bool python = entry.path().extension() == ".py";
    if (!entry.is_regular_file() || !(python || entry.path().extension() == ".cpp")) continue;
    const std::string text = content_of(entry.path());
    if (text.substr(0, 400).find(python ? "\n# Red team: " : "\n// Red team: ") == std::string::npos) continue;
    if (python) found.merge(methods_of(text));
    else found.merge(all_matches(text, R"(TEST(?:_F|_P)?\((\w+), (Cannot\w+)\))"));
  }
  return found;
}

TEST(Security, ThePagePromisesWhatTestsTryAndNothingElse) {
  const std::string page = content_of(fs::path(GRIDCTL_SOURCE_DIR) / "man/gridctl-security.7.md");
  const std::set<std::string> promised = all_matches(page, R"(`(\w+)\.(Cannot\w+|test_cannot\w+)`)");
  const std::set<std::string> tests = tried();
  EXPECT_GE(promised.size(), 40u);
  for (const std::string& one : promised)
    EXPECT_TRUE(tests.contains(one)) << one << " is promised, and no test tries it";
  for (const std::string& one : tests)
    EXPECT_TRUE(promised.contains(one)) << one << " is tried, and the page does not say so";
}

TEST(Security, ThereIsAWordOnHowToReportFaults) {
  EXPECT_NE(content_of(fs::path(GRIDCTL_SOURCE_DIR) / ".github/SECURITY.md").find("gridctl-security"),
            std::string::npos);
}

}  // namespace
}  // namespace gridctl::tidy::security_test
