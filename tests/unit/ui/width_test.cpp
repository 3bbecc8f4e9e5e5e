// SPDX-License-Identifier: Apache-2.0
#include "ui/width.hpp"

#include <gtest/gtest.h>

namespace gridctl::ui::width_test {
namespace {

TEST(Width, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("grün"), 4u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);  // e and a combining accent
  EXPECT_EQ(display_width("🚀"), 2u);
}

TEST(Width, GivesEachInvalidByteOneColumn) {
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(display_width("\xe6\x97"), 2u);  // cut in the middle of a character
}

TEST(Width, TruncatesWithAnEllipsisAndNeverWithinACharacter) {
  EXPECT_EQ(truncate("abcdef", 6), "abcdef");
  EXPECT_EQ(truncate("abcdef", 4), "abc…");
  EXPECT_EQ(truncate("日本語", 4), "日…");
  EXPECT_EQ(truncate("abc", 1), "…");
  EXPECT_EQ(truncate("abc", 0), "");
}

TEST(Width, PadsToColumns) {
  EXPECT_EQ(pad_right("日", 4) + "|", "日  |");
}

TEST(Width, WrapsAtSpacesAndKeepsParagraphs) {
  const std::vector<std::string> expected{"one two", "three", "", "four"};
  EXPECT_EQ(wrap("one two three\n\nfour", 8), expected);
  const std::vector<std::string> alone{"a", "verylongword", "b"};
  EXPECT_EQ(wrap("a verylongword b", 5), alone);
}

}  // namespace
}  // namespace gridctl::ui::width_test
