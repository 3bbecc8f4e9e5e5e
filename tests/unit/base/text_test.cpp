// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "base/text.hpp"

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

TEST(Texts, AreSafeAtTheEdgesOfEachRange) {
  for (const auto& [text, safe] : {std::pair{"\xc2\x9f", "<U+009F>"},
                                   {"\xc2\xa0", "\xc2\xa0"},
                                   {"\xc2\xad", "<U+00AD>"},
                                   {"\xd8\x9c", "<U+061C>"},
                                   {"\xe1\xa0\x8e", "<U+180E>"},
                                   {"\xe2\x80\x8a", "\xe2\x80\x8a"},
                                   {"\xe2\x80\x8b", "<U+200B>"},
                                   {"\xe2\x80\x8f", "<U+200F>"},
                                   {"\xe2\x80\x90", "\xe2\x80\x90"},
                                   {"\xe2\x80\xa7", "\xe2\x80\xa7"},
                                   {"\xe2\x80\xa8", "<U+2028>"},
                                   {"\xe2\x80\xae", "<U+202E>"},
                                   {"\xe2\x80\xaf", "\xe2\x80\xaf"},
                                   {"\xe2\x81\x9f", "\xe2\x81\x9f"},
                                   {"\xe2\x81\xa0", "<U+2060>"},
                                   {"\xe2\x81\xaf", "<U+206F>"},
                                   {"\xe2\x81\xb0", "\xe2\x81\xb0"},
                                   {"\xef\xbb\xbf", "<U+FEFF>"},
                                   {"\xef\xbf\xb8", "\xef\xbf\xb8"},
                                   {"\xef\xbf\xb9", "<U+FFF9>"},
                                   {"\xef\xbf\xbb", "<U+FFFB>"},
                                   {"\xef\xbf\xbc", "\xef\xbf\xbc"},
                                   {"\xf3\xa0\x80\x80", "<U+E0000>"},
                                   {"\xf3\xa0\xbf\xbf", "<U+E0FFF>"},
                                   {"\xf3\xa1\x80\x80", "\xf3\xa1\x80\x80"},
                                   {"\xf3\x9f\xbf\xbf", "\xf3\x9f\xbf\xbf"},
                                   {"\xef\xb8\x80", "<U+FE00>"},
                                   {"\xef\xb8\x8e", "<U+FE0E>"},
                                   {"\xef\xb8\x8f", "\xef\xb8\x8f"},
                                   {"\xef\xb8\x90", "\xef\xb8\x90"},
                                   {"\xef\xb7\xbf", "\xef\xb7\xbf"},
                                   {"\x1f", "^_"},
                                   {" ", " "},
                                   {"~", "~"}})
    EXPECT_EQ(sanitize(text), safe) << safe;
}

TEST(Texts, AreDecodedStrictly) {
  for (const auto& [text, safe] : {std::pair{"\xc1\xbf", "\\xC1\\xBF"},           // overlong
                                   {"\xc2\x80", "<U+0080>"},                      // the least of two bytes
                                   {"\xdf\xbf", "\xdf\xbf"},                      // the greatest
                                   {"\xe0\x9f\xbf", "\\xE0\\x9F\\xBF"},           // overlong
                                   {"\xe0\xa0\x80", "\xe0\xa0\x80"},              // the least of three
                                   {"\xed\x9f\xbf", "\xed\x9f\xbf"},              // before the surrogates
                                   {"\xed\xa0\x80", "\\xED\\xA0\\x80"},           // a surrogate
                                   {"\xed\xbf\xbf", "\\xED\\xBF\\xBF"},           // the last one
                                   {"\xee\x80\x80", "\xee\x80\x80"},              // behind them
                                   {"\xef\xbf\xbf", "\xef\xbf\xbf"},              // the greatest of three
                                   {"\xf0\x8f\xbf\xbf", "\\xF0\\x8F\\xBF\\xBF"},  // overlong
                                   {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},      // the least of four
                                   {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},      // U+10FFFF
                                   {"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"},  // beyond
                                   {"\xf5\x80\x80\x80", "\\xF5\\x80\\x80\\x80"},  // no first byte
                                   {"\x80", "\\x80"},                             // a lonely continuation
                                   {"\xe2\x82", "\\xE2\\x82"},                    // cut off
                                   {"\xe2\x82"
                                    "a",
                                    "\\xE2\\x82"
                                    "a"}})  // not continued
    EXPECT_EQ(sanitize(text), safe) << safe;
}

TEST(Texts, OfADocumentKeepAllButDeceptiveCharacters) {
  EXPECT_EQ(escape_deceptive("plain \"text\"\n"), "plain \"text\"\n");
  EXPECT_EQ(escape_deceptive("a\x7f"
                             "b\xe2\x80\xae"
                             "c\xf3\xa0\x80\x81"
                             "d"),
            "a\\u007fb\\u202ec\\udb40\\udc01d");
  EXPECT_EQ(escape_deceptive("\xe2\x82\xac\xe2\x80\x8b"), "\xe2\x82\xac\\u200b");
  EXPECT_EQ(escape_deceptive(std::string("\xff") + "x"), std::string("\xff") + "x") << "no business of ours";
  EXPECT_EQ(escape_deceptive(""), "");
}

TEST(Texts, LinesAreCutWhereTheyAreLonger) {
  EXPECT_EQ(sanitize_lines("abcd\nef", 3), "abc…\nef");
  EXPECT_EQ(sanitize_lines("abc\nabc", 3), "abc\nabc");
  EXPECT_EQ(sanitize_lines("abcd", 4), "abcd");
  EXPECT_EQ(sanitize_lines("ab\r", 5), "ab^M");
  EXPECT_EQ(sanitize_lines("ab\r\n\r\nc"), "ab\n\nc");
}

TEST(Texts, NearestIsOfWordsUpToSixtyFourBytes) {
  const std::string word(64, 'a');
  const std::vector<std::string> known{word + "b"};
  EXPECT_EQ(nearest(word, known), known[0]);
  EXPECT_EQ(nearest(word + "a", known), "");
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"ac"}), "ac") << "one edit of two letters";
  EXPECT_EQ(nearest("abcde", std::vector<std::string>{"abxye"}), "") << "two edits of five";
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abxyef"}), "abxyef") << "two of six";
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abxyzf"}), "");
}

TEST(Texts, OtherSmallThings) {
  EXPECT_EQ(trim("\v\f x \v\f"), "x");
  EXPECT_EQ(lower("AZaz@[`{Ä"), "azaz@[`{Ä");
  EXPECT_EQ(split_lines("a\r\r\n"), (std::vector<std::string>{"a\r"}));
  EXPECT_EQ(split_lines("\n\n"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(join(std::vector<std::string>{"", ""}, "-"), "-");
  EXPECT_EQ(shell_quote("_@%+=:,./-"), "_@%+=:,./-");
  EXPECT_EQ(shell_quote("'"), "''\\'''");
}

}  // namespace
}  // namespace gridctl::text_test
