// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace gridctl::text_test {
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

TEST(Text, IsAllDigitsOrNot) {
  EXPECT_TRUE(all_digits("0"));
  EXPECT_TRUE(all_digits("0123456789"));
  for (const char* odd : {"", "a", "1a", "1/", "1:"}) EXPECT_FALSE(all_digits(odd)) << odd;
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> known{"resources", "workdir", "checkpoint", "setup", "run", "envs"};
  EXPECT_EQ(nearest("resource", known), "resources");
  EXPECT_EQ(nearest("chekpoint", known), "checkpoint");
  EXPECT_EQ(nearest("WorkDir", known), "workdir");
  EXPECT_EQ(nearest("env", known), "envs");
  EXPECT_EQ(nearest("rnu", known), "run") << "letters that changed places are one edit";
  EXPECT_EQ(nearest("rxy", known), "") << "two edits in three letters may mean anything";
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> known{"resources", "workdir"};
  EXPECT_EQ(nearest("banana", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), known), "");
}

// Edit distance as it is defined, in exponential time.
std::size_t distance_by_definition(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view a_rest = a.substr(1), b_rest = b.substr(1);
  std::size_t least = std::min({distance_by_definition(a_rest, b) + 1, distance_by_definition(a, b_rest) + 1,
                                distance_by_definition(a_rest, b_rest) + (a[0] == b[0] ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    least = std::min(least, distance_by_definition(a.substr(2), b.substr(2)) + 1);
  return least;
}

TEST(Nearest, IsTheFirstOfTheNearestByDefinition) {
  std::mt19937 random(1);
  const auto any_word = [&] {
    std::string word(1 + random() % 6, ' ');
    for (char& c : word) c = "abc-"[random() % 4];
    return word;
  };
  for (int round = 0; round < 500; ++round) {
    const std::string word = any_word();
    std::vector<std::string> known(1 + random() % 5);
    std::generate(known.begin(), known.end(), any_word);
    std::string best;
    std::size_t least = std::max<std::size_t>(word.size(), 3) / 3 + 1;
    for (const std::string& candidate : known)
      if (const std::size_t distance = distance_by_definition(word, candidate); distance < least)
        best = candidate, least = distance;
    EXPECT_EQ(nearest(word, known), best) << word << " among " << join(known, " ");
  }
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

TEST(IsPlain, LooksAtEveryByteWhereverItStands) {
  for (int value = 0; value < 256; ++value)
    for (std::size_t size = 1; size <= 17; ++size)
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, '~');
        text[at] = static_cast<char>(value);
        EXPECT_EQ(is_plain(text), value >= 0x20 && value < 0x7F) << "byte " << value << " at " << at << " of " << size;
      }
  EXPECT_TRUE(is_plain(""));
}

}  // namespace
}  // namespace gridctl::text_test
