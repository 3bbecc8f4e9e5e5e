// SPDX-License-Identifier: Apache-2.0
// Terminal attacks, as hosts could print them: none may reach a terminal in a form that it obeys.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace gridctl::text_sanitize_test {
namespace {

// What a terminal might obey, or a reader be deceived by.
bool is_safe(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 && c != '\t') return false;
    if (c == 0x7F) return false;
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const unsigned char third = i + 2 < text.size() ? static_cast<unsigned char>(text[i + 2]) : 0;
    if (c == 0xC2 && next < 0xA0) return false;                                     // C1 controls
    if (c == 0xE2 && next == 0x80 && third >= 0x8B && third <= 0x8F) return false;  // zero width, marks
    if (c == 0xE2 && next == 0x80 && third >= 0xA8 && third <= 0xAE) return false;  // separators, embeddings
    if (c == 0xE2 && next == 0x81 && third >= 0xA0 && third <= 0xAF) return false;  // isolates
    if (c == 0xEF && next == 0xBB && third == 0xBF) return false;                   // byte order mark
    if (c == 0xF3 && next == 0xA0) return false;                                    // tags
  }
  return true;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

std::vector<std::string> corpus() {
  std::vector<std::string> attacks{
      "\x1b[31mred\x1b[0m",                          // colour
      "\x1b[2J\x1b[H",                               // clear the screen
      "\x1b[1A\x1b[2K",                              // rewrite the line above
      "\x1b[?1049h",                                 // alternate screen
      "\x1b[?25l",                                   // hide the cursor
      "\x1b[6n",                                     // report the cursor: types for the user
      "\x1b[c",                                      // device attributes
      "\x1b[>c",                                     // secondary attributes
      "\x1b[=c",                                     // tertiary attributes
      "\x1b[5n",                                     // status report
      "\x1b[21t",                                    // report the window title
      "\x1b[20t",                                    // report the icon label
      "\x1b[8;1;1t",                                 // resize
      "\x1b[3;0;0t",                                 // move the window
      "\x1b[2t",                                     // iconify
      "\x1b]0;title\x07",                            // set the title
      "\x1b]2;title\x1b\\",                          // set the title, ended by ST
      "\x1b]52;c;ZXZpbA==\x07",                      // write the clipboard
      "\x1b]52;c;?\x07",                             // read the clipboard
      "\x1b]8;;http://evil\x07link\x1b]8;;\x07",     // a link that says something else
      "\x1b]4;1;?\x07",                              // query a colour
      "\x1b]10;?\x07",                               // query the foreground
      "\x1b]11;#000000\x07",                         // set the background
      "\x1b]50;font\x07",                            // set the font
      "\x1b]133;A\x07",                              // shell integration marks
      "\x1b]1337;File=name=YQ==;inline=1:AAAA\x07",  // files of iTerm2
      "\x1b]777;notify;a;b\x07",                     // notification
      "\x1b]9;message\x07",                          // notification
      "\x1bP$q\"p\x1b\\",                            // DECRQSS
      "\x1bP+q544e\x1b\\",                           // terminfo query
      "\x1bP1;1|17/68656c6c6f\x1b\\",                // programs function keys
      "\x1bPq#0;2;0;0;0~\x1b\\",                     // sixel
      "\x1b_Gf=100;AAAA\x1b\\",                      // kitty graphics
      "\x1b^private\x1b\\",                          // privacy message
      "\x1bX string\x1b\\",                          // start of string
      "\x1b"
      "c",  // full reset
      "\x1b"
      "7\x1b"
      "8",                                 // save and restore the cursor
      "\x1b(0lqqk\x1b(B",                  // line drawing characters
      "\x1b#8",                            // alignment test
      "\x1b=\x1b>",                        // keypad modes
      "\x1b[4h",                           // insert mode
      "\x1b[20h",                          // newline mode
      "\x1b[?1000h\x1b[?1006h",            // mouse reports
      "\x1b[?2004h",                       // bracketed paste on
      "\x1b[201~rm -rf ~\n",               // end of a bracketed paste
      "\x1b[200~",                         // begin of one
      "\x1b[?1004h",                       // focus reports
      "\x1b[?5h",                          // reverse video
      "\x1b[8mhidden\x1b[0m",              // concealed text
      "\x1b[1;1r",                         // scroll region
      "\x1b[999999999999999999999A",       // huge parameters
      "\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;m",  // many parameters
      "\x1b[38;2;0;0;0;48;2;0;0;0m",       // black on black
      "\x1b[5i",                           // print
      "\x1b[4i",                           // print off
      "\x1b[0q",                           // LEDs
      "\x1b[!p",                           // soft reset
      "\x1b[61;1\"p",                      // conformance level
      "\x1b[1$}",                          // status line
      "\x1b",                              // cut off
      "\x1b[",                             // cut off
      "\x1b]0;",                           // cut off
      "\x1b\x1b\x1b",                      // several
      "\x1b\n[31m",                        // a sequence over a line end
      "safe\rover",                        // overwrites the line
      "safe\b\b\b\bevil",                  // backspaces
      "\x07\x07\x07",                      // bells
      "\x0e shifted \x0f",                 // shift out and in
      "\x05",                              // enquiry: answerback
      "\x11\x13",                          // flow control
      "\x04",                              // end of transmission
      "\x1a",                              // substitute
      "\x18",                              // cancel
      "\x0b\x0c",                          // vertical tab, form feed
      "\x7f\x7f",                          // delete
      "\xc2\x9b"
      "31m",  // CSI as C1 in UTF-8
      "\xc2\x9d"
      "0;t\xc2\x9c",        // OSC and ST as C1
      "\xc2\x90q\xc2\x9c",  // DCS as C1
      "\xc2\x85next line",  // NEL
      "\xc2\x84\xc2\x8d",   // IND, RI
      "\x9b"
      "31m",  // CSI as one byte
      "\x9d"
      "0;t\x9c",              // OSC as one byte
      "\x90q\x9c",            // DCS as one byte
      "\xe2\x80\xaetxt.exe",  // right-to-left override
      "\xe2\x80\xad"
      "a\xe2\x80\xac",                                     // left-to-right override
      "\xe2\x80\xaa\xe2\x80\xab",                          // embeddings
      "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9",  // isolates
      "\xe2\x80\x8e\xe2\x80\x8f",                          // marks
      "\xd8\x9c",                                          // Arabic letter mark
      "pass\xe2\x80\x8bword",                              // zero width space
      "a\xe2\x80\x8c\xe2\x80\x8d"
      "b",  // joiners
      "a\xe2\x81\xa0"
      "b",  // word joiner
      "\xef\xbb\xbf"
      "bom",                                   // byte order mark
      "soft\xc2\xadhyphen",                    // soft hyphen
      "\xe1\xa0\x8e",                          // Mongolian vowel separator
      "\xf3\xa0\x81\xa1\xf3\xa0\x81\xa2",      // tag characters
      "\xe2\x80\xa8\xe2\x80\xa9",              // line and paragraph separators
      "\xef\xbf\xb9\xef\xbf\xba\xef\xbf\xbb",  // interlinear annotation
      "\xef\xb8\x80",                          // variation selector
      "\xc0\x9b[31m",                          // overlong ESC
      "\xe0\x80\x9b[31m",                      // overlong ESC
      "\xf0\x80\x80\x9b[31m",                  // overlong ESC
      "\xc1\xbf",                              // overlong DEL
      "\xed\xa0\x80",                          // surrogate
      "\xed\xbf\xbf",                          // surrogate
      "\xf4\x90\x80\x80",                      // beyond Unicode
      "\xf5\x80\x80\x80",                      // no such lead byte
      "\xfe\xff",                              // UTF-16 mark
      "\xff\xfe\x1b\x00[",                     // UTF-16
      "\x80\x81\x82",                          // continuation alone
      "\xe2\x80",                              // cut off
      "\xe2\x80\x1b[31m",                      // cut off by an escape
      "\xf0\x9f\x1b[31m",                      // cut off by an escape
      "\xc2",                                  // cut off
  };
  for (int c = 0; c < 0x20; ++c) attacks.push_back(std::string("a") + static_cast<char>(c) + "b");
  for (int c = 0x80; c < 0x100; ++c) attacks.push_back(std::string("a") + static_cast<char>(c) + "b");
  return attacks;
}

TEST(Sanitize, DisarmsEveryAttackOfTheCorpus) {
  const std::vector<std::string> attacks = corpus();
  EXPECT_GE(attacks.size(), 250u);
  for (const std::string& attack : attacks) {
    const std::string safe = sanitize("before " + attack + " after");
    EXPECT_TRUE(is_safe(safe)) << safe;
    EXPECT_TRUE(is_utf8(safe)) << safe;
    EXPECT_EQ(safe.substr(0, 7), "before ");
    EXPECT_EQ(safe.substr(safe.size() - 6), " after") << safe;
  }
}

TEST(Sanitize, ShowsWhatItDisarmed) {
  EXPECT_EQ(sanitize("\x1b[31mred"), "^[[31mred");
  EXPECT_EQ(sanitize("a\x7f"), "a^?");
  EXPECT_EQ(sanitize("\x9b"), "\\x9B");
  EXPECT_EQ(sanitize("\xc2\x9b"), "<U+009B>");
  EXPECT_EQ(sanitize("\xe2\x80\xae"), "<U+202E>");
  EXPECT_EQ(sanitize(std::string("a\0b", 3)), "a^@b");
  EXPECT_EQ(sanitize("50%\rdone"), "50%^Mdone");
}

TEST(Sanitize, LeavesHonestTextAlone) {
  for (const std::string& text : {std::string("plain"), std::string("läuft für 3 €"), std::string("日本語"),
                                  std::string("тест"), std::string("🚀 ✔"), std::string("a\tb")})
    EXPECT_EQ(sanitize(text), text);
  EXPECT_EQ(sanitize_lines("a\tb\nc\n"), "a\tb\nc\n");
  EXPECT_EQ(sanitize_lines("a\r\nb\r\n"), "a\nb\n");
}

// A host, and the name of a file, must not begin a line: there it would pass for words of ours.
TEST(Sanitize, GivesOneLine) {
  EXPECT_EQ(sanitize("p\nhint: gridctl provider register lab"), "p | hint: gridctl provider register lab");
  EXPECT_EQ(sanitize("a\r\n\r\n\nb\r\n"), "a | b");
  EXPECT_EQ(sanitize("\n"), "");
  EXPECT_LT(sanitize(std::string(10'000, '\n') + std::string(10'000, 'x') + "\nnext", 100).size(), 110u);
}

TEST(Sanitize, CutsLongLinesAndOnlyThose) {
  const std::string cut = sanitize_lines(std::string(10'000, 'x') + "\nnext", 100);
  EXPECT_EQ(cut, std::string(100, 'x') + "…\nnext");
  EXPECT_EQ(sanitize(std::string(100, 'x'), 100), std::string(100, 'x'));
  // What one byte becomes may be longer than the byte: the limit counts what is shown, one character over at most.
  EXPECT_LT(sanitize(std::string(10'000, '\xff'), 100).size(), 110u);
}

TEST(Sanitize, DisarmsBytesOfChance) {
  std::mt19937 generator(5);  // a fixed seed: the same bytes every time
  for (int round = 0; round < 2000; ++round) {
    std::string text(1 + generator() % 60, '\0');
    for (char& c : text) c = static_cast<char>(generator() % 4 == 0 ? 0x1b : generator());
    const std::string safe = sanitize(text);
    EXPECT_TRUE(is_safe(safe) && is_utf8(safe)) << safe;
    EXPECT_EQ(sanitize(safe), safe) << "twice is once";
  }
}

}  // namespace
}  // namespace gridctl::text_sanitize_test
