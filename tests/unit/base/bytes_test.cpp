// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <unordered_set>

#include "support/results.hpp"

namespace gridctl::bytes_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(ParseSize, UnderstandsDecimalAndBinaryUnits) {
  const std::pair<const char*, std::uint64_t> cases[] = {{"0", 0},
                                                         {"512", 512},
                                                         {"97B", 97},
                                                         {"64k", 64'000},
                                                         {"64K", 64'000},
                                                         {"64KB", 64'000},
                                                         {"64KiB", 65'536},
                                                         {"40GB", 40'000'000'000},
                                                         {"16GiB", 17'179'869'184},
                                                         {"16 GiB", 17'179'869'184},
                                                         {"16gib", 17'179'869'184},
                                                         {"1.5TB", 1'500'000'000'000},
                                                         {"2Mi", 2'097'152},
                                                         {"1PiB", 1'125'899'906'842'624}};
  for (const auto& [text, bytes] : cases) {
    ASSERT_THAT(parse_size(text), IsOk()) << text;
    EXPECT_EQ(*parse_size(text), bytes) << text;
  }
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", " ", "GB", "-1", "+1", "1XB", "1 G B", "1GBs", "1.5.2", "nan", "inf", "0x10GZ", "0x10",
                           "1e30", "99999999PB", "1Gib/s"})
    EXPECT_THAT(parse_size(text), FailsWith(Code::usage)) << text;
}

TEST(FormatSize, ChoosesTheUnitPeopleRead) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(97), "97 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1.0 KiB");
  EXPECT_EQ(format_size(812 * 1024), "812 KiB");
  EXPECT_EQ(format_size(1'610'612'736), "1.5 GiB");
  EXPECT_EQ(format_size(~std::uint64_t{0}), "16 EiB");
}

TEST(Digest, ComesBackFromHex) {
  Digest digest;
  for (std::size_t i = 0; i < 32; ++i) digest.bytes[i] = static_cast<std::byte>(i * 9);
  const std::string hex = to_hex(digest);
  EXPECT_EQ(hex.size(), 64u);
  EXPECT_EQ(parse_digest(hex).value(), digest);
}

TEST(Digest, RefusesAnythingButSixtyFourLowerCaseDigits) {
  const std::string good(64, 'a');
  EXPECT_THAT(parse_digest(good), IsOk());
  for (const std::string& bad : {good.substr(1), good + "a", std::string(64, 'A'), std::string(63, 'a') + "g",
                                 std::string(63, 'a') + " ", std::string()})
    EXPECT_THAT(parse_digest(bad), FailsWith(Code::protocol_violation)) << bad;
}

TEST(Digest, HashesApart) {
  std::unordered_set<Digest> seen;
  for (int i = 0; i < 100; ++i) {
    Digest digest;
    digest.bytes[static_cast<std::size_t>(i % 32)] = static_cast<std::byte>(i + 1);
    seen.insert(digest);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Sizes, EndWhereNumbersDo) {
  EXPECT_EQ(parse_size("9000PB").value(), 9'000'000'000'000'000'000u);
  EXPECT_THAT(parse_size("9001PB"), FailsWith(Code::usage));
  EXPECT_EQ(parse_size("1 b").value(), 1u);
  EXPECT_EQ(parse_size("1kb").value(), 1000u);
  EXPECT_EQ(parse_size("1m").value(), 1'000'000u);
  for (const char* bad : {"/1", ":1", "1kx", "1ix", "1kibb", "1ib"})
    EXPECT_THAT(parse_size(bad), FailsWith(Code::usage)) << bad;
  EXPECT_EQ(format_size(10 * 1024 - 1), "10.0 KiB");
  EXPECT_EQ(format_size(10 * 1024), "10 KiB");
  EXPECT_EQ(format_size(9), "9 B");
  EXPECT_EQ(format_size(1024 * 1024 - 1), "1024 KiB");
  EXPECT_EQ(to_hex(as_bytes("\x09\x0f\xf0\x99")), "090ff099");
  const std::string nought(64, '0');
  for (const char odd : {'/', ':', '`', 'g'}) {
    std::string text = nought;
    text[1] = odd;
    EXPECT_THAT(parse_digest(text), FailsWith(Code::protocol_violation)) << odd;
    std::swap(text[0], text[1]);
    EXPECT_THAT(parse_digest(text), FailsWith(Code::protocol_violation)) << odd;
  }
}

}  // namespace
}  // namespace gridctl::bytes_test
