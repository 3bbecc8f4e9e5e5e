// SPDX-License-Identifier: Apache-2.0
#include "store/ignore.hpp"

#include <gmock/gmock.h>

#include "os/process.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::ignore_test {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const std::vector<std::string> k_patterns{
    "foo",       "/foo",     "foo/",    "*.log",  "a/b",     "a/*",      "a/**",          "**/b",        "a/**/c",
    "**",        "*",        "/*",      "?oo",    "[a-f]oo", "[!a-f]oo", "[^g]oo",        "f[]o]o",      "\\*",
    "foo\\ ",    "foo ",     "#foo",    "\\#foo", "!foo",    "\\!foo",   "**foo",         "foo**",       "a**b",
    "**/foo/**", "/**/c",    "a/",      "/a/b/c", "b/c",     "*/c",      "[[:alpha:]]oo", "[[:digit:]]", "x[",
    "x\\",       "a/**/",    "***",     "a/***",  "f*o*o",   "*o",       "f?o",           "**/",         "//foo",
    "a//b",      "./foo",    "foo/*",   "[a-]oo", "[--0]x",  "**/**/c",  "a/**/**/c",     "/",           " ",
    "*.l?g",     "a/b/**/d", "[a-c/]b", "a[/]b",  "a?b",     "\\foo",    "fo\\o",         "*/*",         "foo/**/bar"};
const std::vector<std::string> k_files{
    "foo",       "goo",         "a/foo", "a/b",  "a/b/c", "a/c",  "a/x/y/c",   "b/c",     "x.log", "a/x.log", "foo/bar",
    "foo/x/bar", "foo/x/y/bar", "!foo",  "#foo", "*",     "foo ", "a/b/d",     "a/b/x/d", "f]o",   "foobar",  "barfoo",
    "ab",        "aXXb",        "c",     "5",    "x[",    "-x",   "a/foo/b/q", "c/a/b",   "x\\"};

// Files lie at these paths, or, where a path is a prefix of another, directories.
TEST(Ignore, AgreesWithGit) {
  const auto git = os::find_program("git");
  if (!git) GTEST_SKIP() << "git is not installed";
  Folder dir;
  std::vector<std::string> files;
  for (const std::string& file : k_files) {
    const bool is_folder =
        std::any_of(k_files.begin(), k_files.end(), [&](const auto& f) { return f.starts_with(file + "/"); });
    if (!is_folder) files.push_back(file);
  }
  for (const std::string& file : files) write(dir / "r" / file, "x");
  os::RunOptions in_repository;
  in_repository.directory = dir / "r";
  in_repository.environment_extra = {
      {"GIT_CONFIG_GLOBAL", "/dev/null"}, {"GIT_CONFIG_SYSTEM", "/dev/null"}, {"HOME", "/nonexistent"}};
  ASSERT_TRUE(os::run({git->native(), "init", "-q", "."}, in_repository)->status.success());
  in_repository.input.clear();
  for (const std::string& file : files) in_repository.input += file + '\0';

  std::vector<std::string> sets = k_patterns;  // each alone, and each negated behind "foo"
  for (const std::string& pattern : k_patterns) {
    sets.push_back("foo\n!" + pattern);
  }
  int compared = 0;
  for (const std::string& set : sets) {
    write(dir / "r/.gitignore", set + "\n");
    const auto outcome = os::run({git->native(), "check-ignore", "--no-index", "-z", "--stdin"}, in_repository);
    ASSERT_TRUE(outcome);
    std::vector<std::string> theirs;
    std::size_t begin = 0;
    for (std::size_t end; (end = outcome->out.find('\0', begin)) != std::string::npos; begin = end + 1)
      theirs.push_back(outcome->out.substr(begin, end - begin));
    IgnoreRules rules;
    rules.add("", set);
    std::vector<std::string> ours;
    for (const std::string& file : files) {
      bool out = false;
      for (std::size_t slash = file.find('/'); !out && slash != std::string::npos; slash = file.find('/', slash + 1))
        out = rules.ignored(file.substr(0, slash), true);
      if (out || rules.ignored(file, false)) ours.push_back(file);
      ++compared;
    }
    EXPECT_EQ(ours, theirs) << "patterns:\n" << set;
  }
  EXPECT_GT(compared, 3000);
}

TEST(Ignore, LetsDeeperFilesOverruleShallowerOnes) {
  IgnoreRules rules;
  rules.add("", "*.bin\n/only-top\n");
  rules.add("models", "!keep.bin\nscratch\n");
  EXPECT_TRUE(rules.ignored("x.bin", false));
  EXPECT_FALSE(rules.ignored("models/keep.bin", false));
  EXPECT_TRUE(rules.ignored("models/other.bin", false));
  EXPECT_TRUE(rules.ignored("models/deep/scratch", false));
  EXPECT_FALSE(rules.ignored("scratch", false));
  EXPECT_FALSE(rules.ignored("models/only-top", false));
}

TEST(Ignore, TakesLinearTimeForPatternsMadeToExplode) {
  IgnoreRules rules;
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  rules.add("", pattern + "b");
  EXPECT_FALSE(rules.ignored(std::string(250, 'a'), false));
}

TEST(Ignore, ReadsCarriageReturnsAndByteOrderMarks) {
  IgnoreRules rules;
  rules.add("",
            "\xEF\xBB\xBF"
            "foo\r\nbar\r\n");
  EXPECT_TRUE(rules.ignored("foo", false));
  EXPECT_TRUE(rules.ignored("bar", false));
}

}  // namespace
}  // namespace gridctl::store::ignore_test
