// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gmock/gmock.h>

namespace gridctl {
namespace {

using ::testing::ElementsAre;

TEST(Text, Trims) {
  EXPECT_EQ(trim("  a b \r\n"), "a b");
  EXPECT_EQ(trim(" \t\n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitsAndKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Text, SplitsLinesOfBothKinds) {
  EXPECT_THAT(split_lines("a\r\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\n"), ElementsAre("a"));
  EXPECT_THAT(split_lines(""), ElementsAre());
}

TEST(Text, Joins) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> known{"resources", "workdir", "checkpoint", "setup", "run", "envs"};
  EXPECT_EQ(nearest("resource", known), "resources");
  EXPECT_EQ(nearest("chekpoint", known), "checkpoint");
  EXPECT_EQ(nearest("WorkDir", known), "workdir");
  EXPECT_EQ(nearest("env", known), "envs");
  EXPECT_EQ(nearest("rnu", known), "") << "two edits in three letters may mean anything";
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> known{"resources", "workdir"};
  EXPECT_EQ(nearest("banana", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), known), "");
}

TEST(ShellQuote, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_quote("plain-word_1.2/x=y"), "plain-word_1.2/x=y");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote("$(rm -rf ~)"), "'$(rm -rf ~)'");
  EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_quote("~"), "'~'");
}

}  // namespace
}  // namespace gridctl
