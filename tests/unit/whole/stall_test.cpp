// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/stall.hpp"

namespace gridctl::whole::stall_test {
namespace {

using ::testing::HasSubstr;
constexpr BootTime at(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

Verdict waiting() {
  Verdict verdict;
  verdict.why = "'s.bin', in an unknown format, changed 200ms ago";
  verdict.blame = "out/s \"1\".bin";
  return verdict;
}

Verdict refused(const std::string& blame) {
  Verdict verdict;
  verdict.why = "it is incomplete";
  verdict.blame = blame;
  return verdict;
}

TEST(Stall, NamesTheFileToBlameAndTheLineForTheJobFile) {
  Stall stall(at(0));
  stall.look(waiting(), false, at(10));
  stall.look(waiting(), false, at(129));
  EXPECT_EQ(stall.message(), "");
  stall.look(waiting(), false, at(135));
  EXPECT_THAT(stall.message(), HasSubstr("no checkpoint for 2m: 's.bin'"));
  EXPECT_THAT(stall.message(), HasSubstr(R"(checkpoint: {whole_when: "s \"1\".bin"})"));
  const std::string before = stall.message();
  stall.look(waiting(), false, at(160));
  EXPECT_EQ(stall.message(), before) << "it is an event each time that it changes";
  stall.look(waiting(), true, at(170));
  EXPECT_EQ(stall.message(), "");
}

TEST(Stall, HasPatienceWithWhatTookLongBefore) {
  Stall stall(at(0));
  stall.look(waiting(), false, at(0));
  stall.look(waiting(), true, at(100));
  stall.look(waiting(), false, at(200));
  stall.look(waiting(), false, at(500));
  EXPECT_EQ(stall.message(), "");
  stall.look(waiting(), false, at(601));
  EXPECT_NE(stall.message(), "");
}

TEST(Stall, AsksForTheFolderWhenNothingIsWritten) {
  Stall stall(at(0));
  Verdict none;
  none.whole = Whole::nothing_new;
  none.why = k_no_files;
  stall.look(none, false, at(1799));
  EXPECT_EQ(stall.message(), "");
  stall.look(none, false, at(1800));
  EXPECT_THAT(stall.message(), HasSubstr("checkpoint: {path: FOLDER}"));
}

TEST(Stalls, AreToldAgainAtTwiceTheWait) {
  Stall stall(at(0));
  stall.look(refused("a"), false, at(10));
  stall.look(refused("a"), false, at(129));
  EXPECT_EQ(stall.message(), "") << "the wait begins with the first file";
  stall.look(refused("a"), false, at(130));
  EXPECT_THAT(stall.message(), HasSubstr("no checkpoint for 2m: it is incomplete."));
  stall.look(refused("b"), false, at(249));
  EXPECT_THAT(stall.message(), HasSubstr("\"a\""));
  stall.look(refused("b"), false, at(250));
  EXPECT_THAT(stall.message(), HasSubstr("no checkpoint for 4m"));
  EXPECT_THAT(stall.message(), HasSubstr("\"b\""));
}

TEST(Stalls, EndWithNothingNew) {
  Stall stall(at(0));
  stall.look(refused(""), false, at(0));
  stall.look(refused(""), false, at(200));
  EXPECT_THAT(stall.message(), HasSubstr("whole_when: \"FILE\"")) << "nobody is to blame";
  Verdict same;
  same.whole = Whole::nothing_new;
  same.why = "unchanged";
  stall.look(same, false, at(300));
  EXPECT_EQ(stall.message(), "");
  stall.look(refused("a"), false, at(310));
  stall.look(refused("a"), false, at(429));
  EXPECT_EQ(stall.message(), "") << "counted from 310 on, and that wait did not end by a snapshot";
  stall.look(refused("a"), false, at(430));
  EXPECT_NE(stall.message(), "");
}

TEST(Stalls, SayWhenItChangesFasterThanItCanBeCopied) {
  Stall stall(at(0));
  Verdict whole;
  whole.whole = Whole::format;
  stall.look(whole, false, at(0));
  stall.look(whole, false, at(120));
  EXPECT_THAT(stall.message(), HasSubstr("the checkpoint changes faster than gridctl can copy it"));
}

TEST(Stalls, OfAnEmptyFolderEndWithTheFirstFile) {
  Stall stall(at(0));
  Verdict none;
  none.whole = Whole::nothing_new;
  none.why = k_no_files;
  stall.look(none, false, at(1800));
  EXPECT_NE(stall.message(), "");
  stall.look(refused("a"), false, at(1801));
  EXPECT_EQ(stall.message(), "");
  stall.look(refused("a"), false, at(1921));
  EXPECT_NE(stall.message(), "");
}

}  // namespace
}  // namespace gridctl::whole::stall_test
