// SPDX-License-Identifier: Apache-2.0
#include "whole/stall.hpp"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace gridctl::whole::stall_test
