// SPDX-License-Identifier: Apache-2.0

#include "base/time.hpp"
#include "support/results.hpp"

namespace gridctl::time_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(Rfc3339, FormatsUtcWithMilliseconds) {
  EXPECT_EQ(format_rfc3339({0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339({1'795'263'385'123}), "2026-11-21T12:16:25.123Z");
  EXPECT_EQ(format_rfc3339({-1}), "1969-12-31T23:59:59.999Z");
}

TEST(Rfc3339, ReadsBackWhatItWrites) {
  for (const std::int64_t ms : {std::int64_t{0}, std::int64_t{1'709'210'096'007}, std::int64_t{253'402'300'799'999}})
    EXPECT_EQ(parse_rfc3339(format_rfc3339({ms})).value(), WallTime{ms});
  EXPECT_EQ(parse_rfc3339("2026-11-21T12:16:25Z").value(), WallTime{1'795'263'385'000});
  EXPECT_THAT(parse_rfc3339("2024-02-29T00:00:00Z"), IsOk());
  EXPECT_EQ(parse_rfc3339("2026-11-21T13:46:25.007+01:30").value(), WallTime{1'795'263'385'007});
  EXPECT_EQ(parse_rfc3339("2026-11-20T23:16:25-13:00").value(), WallTime{1'795'263'385'000});
  EXPECT_EQ(parse_rfc3339("2026-11-22T12:15:25+23:59").value(), WallTime{1'795'263'385'000});
  for (const char* zone : {"+24:00", "+23:60", "23:59", "+2:00", "+02.00"})
    EXPECT_THAT(parse_rfc3339("2026-11-22T12:15:25" + std::string(zone)), FailsWith(Code::usage)) << zone;
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-11-21", "2026-11-21T12:16:25", "2026-11-21 12:16:25Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-11-21T24:00:00Z", "2026-11-21T12:60:00Z", "2026-11-21T12:16:25.1Z", "2026-11-21T12:16:25+0100",
        "2026-11-21T12:16:25+01:60", "2026-11-21T12:16:25 01:00", "2026-11-21T12:16:25.123",
        "2026-11-21T12:16:25+01:000", "2026-11-21T12:16:25.123456Z", "2026-1a-21T12:16:25Z", "2026-11-00T12:16:25Z",
        "2026/11/21T12:16:25Z", "2026-11-21T12-16-25Z"})
    EXPECT_THAT(parse_rfc3339(text), FailsWith(Code::usage)) << text;
}

TEST(ParseDuration, UnderstandsWhatPeopleWrite) {
  const std::pair<const char*, Duration> cases[] = {{"90", std::chrono::seconds{90}},
                                                    {"90s", std::chrono::seconds{90}},
                                                    {"15m", minutes{15}},
                                                    {"1h30m", minutes{90}},
                                                    {"2d", hours{48}},
                                                    {"500ms", milliseconds{500}},
                                                    {"0", Duration{}},
                                                    {"1d2h3m4s5ms", hours{26} + minutes{3} + milliseconds{4005}}};
  for (const auto& [text, duration] : cases) {
    ASSERT_THAT(parse_duration(text), IsOk()) << text;
    EXPECT_EQ(*parse_duration(text), duration) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "s", "-5s", "+5s", "5x", "5 s", "1.5h", "1h30", "11y", "4000d", "99999999999999999999s",
                           "9223372036854775807ms", "5S", "m5"})
    EXPECT_THAT(parse_duration(text), FailsWith(Code::usage)) << text;
}

TEST(FormatDuration, IsShortAndReadsBack) {
  EXPECT_EQ(format_duration(milliseconds{320}), "320ms");
  EXPECT_EQ(format_duration(milliseconds{1500}), "1.5s");
  EXPECT_EQ(format_duration(std::chrono::seconds{45}), "45s");
  EXPECT_EQ(format_duration(minutes{65}), "1h5m");
  EXPECT_EQ(format_duration(hours{24}), "1d");
  EXPECT_EQ(format_duration(hours{49}), "2d1h");
  EXPECT_EQ(format_duration(-minutes{1}), "-1m");
  for (const auto duration : {Duration{minutes{61}}, Duration{hours{50}}, Duration{std::chrono::seconds{59}}})
    EXPECT_EQ(parse_duration(format_duration(duration)).value(), duration);
}

TEST(BootTime, IsOrderedAndSubtracts) {
  const BootTime t{1000};
  EXPECT_LT(t, t + Duration{1});
  EXPECT_EQ((t + Duration{5}) - t, Duration{5});
  EXPECT_EQ(t - Duration{1000}, BootTime{0});
}

TEST(Times, EndAtTenYears) {
  EXPECT_EQ(parse_duration("3660d").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("3661d"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("3660d1s"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("316224000").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("316224001"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("316224000000ms").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("316224000001ms"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("3659d23h59m60s").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("1s2"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("5`"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("5{"), FailsWith(Code::usage));
}

TEST(Times, AreShortAtTheEdgesOfEachUnit) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  for (const auto& [duration, text] : {std::pair<Duration, const char*>{Duration{999'999}, "0ms"},
                                       {milliseconds{999}, "999ms"},
                                       {milliseconds{1000}, "1s"},
                                       {milliseconds{1050}, "1.0s"},
                                       {milliseconds{9900}, "9.9s"},
                                       {milliseconds{10'500}, "10s"},
                                       {seconds{59}, "59s"},
                                       {seconds{60}, "1m"},
                                       {seconds{61}, "1m1s"},
                                       {seconds{3599}, "59m59s"},
                                       {seconds{3600}, "1h"},
                                       {seconds{3659}, "1h"},
                                       {seconds{86'399}, "23h59m"},
                                       {seconds{86'400}, "1d"},
                                       {seconds{89'999}, "1d"},
                                       {seconds{90'000}, "1d1h"},
                                       {-seconds{5}, "-5s"},
                                       {Duration{}, "0ms"}})
    EXPECT_EQ(format_duration(duration), text);
}

TEST(Times, OfDayAreWithinTheirLimits) {
  for (const char* good :
       {"2026-01-01T23:59:60Z", "2026-12-31T00:00:00Z", "2026-11-21T12:16:25.000Z", "0001-01-01T00:00:00Z"})
    EXPECT_THAT(parse_rfc3339(good), IsOk()) << good;
  for (const char* bad :
       {"2026-01-01T23:59:61Z", "2026-01-32T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T:0:00:00Z",
        "2026-01-01T0/:00:00Z", "2026-01-01T00:00:00z", "2026-01-01T00:00:00.000"})
    EXPECT_THAT(parse_rfc3339(bad), FailsWith(Code::usage)) << bad;
}

}  // namespace
}  // namespace gridctl::time_test
