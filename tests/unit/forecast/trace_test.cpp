// SPDX-License-Identifier: Apache-2.0
#include "forecast/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "forecast/availability.hpp"

namespace gridctl::forecast::trace_test {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

Trace a_trace(std::string_view text) {
  Result<Trace> trace = parse_trace(text, "t.csv");
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
  return trace ? *trace : Trace{};
}

TEST(Trace, OfBothFormsIsOne) {
  const Trace lines = a_trace("# from somewhere\ngap_seconds,30\nhosts_up,samples\n0,2\n2,1\n1,3\n");
  const Trace json = a_trace(R"({"metadata": {"gap_seconds": 30}, "data": [0, 0, 2, 1, 1, 1], "prices": [0.918]})");
  for (const Trace* trace : {&lines, &json}) {
    EXPECT_EQ(trace->gap_seconds, 30);
    EXPECT_EQ(trace->hosts_max, 2);
    EXPECT_EQ(trace->length_seconds(), 180);
    ASSERT_EQ(trace->runs.size(), 3u);
    EXPECT_EQ(trace->runs[2].hosts_up, 1);
    EXPECT_EQ(trace->runs[2].samples, 3u);
  }
}

TEST(Trace, SaysWhereItIsWrong) {
  const auto error = [](std::string_view text) {
    const Result<Trace> trace = parse_trace(text, "t");
    EXPECT_FALSE(trace) << text;
    return trace ? std::string() : trace.error().message;
  };
  EXPECT_THAT(error(""), StartsWith("t:1:1: the trace is empty"));
  EXPECT_THAT(error("# nothing\n"), HasSubstr("empty"));
  EXPECT_THAT(error("gap,3"), StartsWith("t:1:1: expected gap_seconds,N"));
  EXPECT_THAT(error("gap_seconds,0"), StartsWith("t:1:13: expected gap_seconds,N"));
  EXPECT_THAT(error("gap_seconds,nan"), StartsWith("t:1:13: "));
  EXPECT_THAT(error("gap_seconds,-1"), StartsWith("t:1:13: "));
  EXPECT_THAT(error("gap_seconds,1e99"), StartsWith("t:1:13: "));
  EXPECT_THAT(error("gap_seconds,30\n1,2\n"), StartsWith("t:2:1: expected the line hosts_up,samples"));
  EXPECT_THAT(error("gap_seconds,30\nhosts_up,samples\n"), HasSubstr("empty"));
  EXPECT_THAT(error("gap_seconds,30\nhosts_up,samples\n1,2\n-1,2\n"),
              StartsWith("t:4:1: expected a whole number of hosts"));
  EXPECT_THAT(error("gap_seconds,30\nhosts_up,samples\n1,0\n"),
              StartsWith("t:3:3: expected a whole number of samples"));
  EXPECT_THAT(error("gap_seconds,30\nhosts_up,samples\n1,99999999999999\n"), StartsWith("t:3:3: "));
  EXPECT_THAT(error("gap_seconds,30\nhosts_up,samples\n0,5\n"), HasSubstr("no host is ever up"));
  EXPECT_THAT(error("{\"metadata\": {\"gap_seconds\": 30},\n \"data\": [1, 1,\n  0.5]}"),
              StartsWith("t:3:3: key 'data': "));
  EXPECT_THAT(error("{\"metadata\": {\"gap_seconds\": 30},\n \"data\": [1, \"x\"]}"),
              StartsWith("t:2:14: key 'data': "));
  EXPECT_THAT(error("{\"metadata\": {\"gap_seconds\": -3}, \"data\": [1]}"), HasSubstr("metadata.gap_seconds"));
  EXPECT_THAT(error("{\"data\": [1]}"), HasSubstr("metadata.gap_seconds"));
  EXPECT_THAT(error("{\"metadata\": {\"gap_seconds\": 30}}"), HasSubstr("key 'data'"));
  EXPECT_THAT(error("{\"metadata\":\n {"), StartsWith("t:2:"));
  EXPECT_THAT(error("{\"metadata\": {\"gap_seconds\": 30}, \"data\": []}"), HasSubstr("empty"));
}

TEST(Trace, GivesEachHostItsTimes) {
  const Trace trace = a_trace("gap_seconds,10\nhosts_up,samples\n0,1\n1,1\n2,1\n1,1\n");
  const auto first = up_times(trace, 0, 2), second = up_times(trace, 1, 2), only = up_times(trace, 0, 1);
  ASSERT_EQ(first->changes.size(), 2u);
  EXPECT_EQ(first->changes[0].at, 0);  // the end is followed by the beginning
  EXPECT_FALSE(first->changes[0].up);
  EXPECT_EQ(first->changes[1].at, 10);
  ASSERT_EQ(second->changes.size(), 2u);
  EXPECT_EQ(second->changes[0].at, 20);
  EXPECT_TRUE(second->changes[0].up);
  EXPECT_EQ(second->changes[1].at, 30);
  EXPECT_EQ(only->changes.size(), 2u);               // one host of two: there is one while any is
  const auto third_of_four = up_times(trace, 2, 4);  // of twice the hosts twice as many are up
  ASSERT_EQ(third_of_four->changes.size(), 2u);
  EXPECT_EQ(third_of_four->changes[0].at, 20);
}

TEST(Availability, RepeatsItsTraceFromAnyPoint) {
  const Trace trace = a_trace("gap_seconds,10\nhosts_up,samples\n0,3\n1,2\n0,1\n1,4\n");
  const auto recorded = up_times(trace, 0, 1);
  for (int offset = 0; offset < 100; ++offset) {
    Availability host(recorded, offset + 0.5);
    for (int second = 0; second < 350; ++second) {
      while (host.next() <= second) host.pass();
      const int place = (offset + second) % 100 / 10;
      const bool up = (place >= 3 && place < 5) || place >= 6;
      ASSERT_EQ(host.up(), up) << offset << " " << second;
    }
  }
}

TEST(Availability, OfAHostThatNeverFailsNeverChanges) {
  Availability host(0, 3600, Random(1));
  EXPECT_TRUE(host.up());
  EXPECT_EQ(host.next(), std::numeric_limits<double>::infinity());
  const Availability always(up_times(a_trace("gap_seconds,1\nhosts_up,samples\n1,5\n"), 0, 1), 2);
  EXPECT_TRUE(always.up());
  EXPECT_EQ(always.next(), std::numeric_limits<double>::infinity());
}

TEST(Availability, FailsAsOftenAsItsRateSays) {
  Availability host(1.0 / 100, 25, Random(1));
  double up_seconds = 0, at = 0;
  int failures = 0;
  for (; failures < 20'000;) {
    if (host.up()) up_seconds += host.next() - at, ++failures;
    at = host.next();
    host.pass();
  }
  EXPECT_NEAR(up_seconds / failures, 100, 3);
  EXPECT_NEAR(up_seconds / at, 0.8, 0.01);
}

// Every trace that is kept here can be read.
TEST(Trace, OfThePublishedOnesEachIsRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GRIDCTL_SOURCE_DIR "/tests/data/spot")) {
    if (entry.path().extension() != ".csv") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const Result<Trace> trace = parse_trace(text.str(), entry.path());
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_GT(trace->length_seconds(), 86400);
    ++count;
  }
  EXPECT_GE(count, 29);
}

}  // namespace
}  // namespace gridctl::forecast::trace_test
