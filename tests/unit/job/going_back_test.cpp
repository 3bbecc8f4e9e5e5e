// SPDX-License-Identifier: Apache-2.0
#include "job/going_back.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"

namespace gridctl::job::going_back_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job whose checkpoints are kept as the registry keeps them.
class GoingBack : public ::testing::Test {
 protected:
  explicit GoingBack() : job(Spec{}) {}

  // The current attempt commits one; nobody is sure of a provisional one, and it stays behind the head.
  void save(bool provisional = false) {
    const Attempt& attempt = *job.state.attempt();
    const CheckpointSeq seq{++newest};
    if (!provisional) job.happen(CheckpointCommitted{attempt.epoch, seq, "", seq.value});
    job.state.saved.list.push_back({seq, attempt.number, attempt.lead().host, provisional});
  }
  void run_and_fail(const std::string& host, const std::string& last = "", int code = 3) {
    job.run_on(host);
    fail(last, code);
  }
  void fail(const std::string& last = "", int code = 3) {
    job.happen(AttemptEnded{job.state.epoch, {EndKind::exited, code, 0, ""}});
    job.happen(Collected{job.state.epoch, "", 0, last});
  }
  // On `host`, saved three times, and lost.
  void make_three(const std::string& host) {
    job.run_on(host);
    for (int i = 0; i < 3; ++i) save();
    job.lose();
  }
  std::uint64_t next_start() const { return job.state.start().value; }
  std::string told(const std::string& kind) const {
    std::string text;
    for (const Record& record : job.records)
      if (record.kind == kind) text += record.text + "\n";
    return text;
  }

  Driver job;
  std::uint64_t newest = 0;
};

TEST_F(GoingBack, WhatIsDamagedIsLeftForTheOneBeforeAsLongAsThereIsOne) {
  make_three("a");
  const auto start_from_damage = [&] {
    job.place("b");
    job.happen(LaunchFailed{job.state.epoch, "a chunk is damaged", false, {}, EndKind::start_failed, false, 0, true});
  };
  start_from_damage();
  EXPECT_THAT(job.state.suspects, ElementsAre(CheckpointSeq{3}));
  EXPECT_THAT(told("checkpoint_suspect"), HasSubstr("checkpoint 3 is damaged, and no copy can replace it: going back to checkpoint 2"));
  EXPECT_THAT(job.state.avoided, IsEmpty()) << "the host can do nothing about it";
  EXPECT_EQ(next_start(), 2u);
  start_from_damage();
  EXPECT_EQ(next_start(), 1u);
  start_from_damage();
  EXPECT_EQ(next_start(), 1u) << "never from the beginning: a copy may turn up";
  EXPECT_FALSE(is_final(job.state.visible()));
  EXPECT_EQ(std::get<Waiting>(job.state.phase).why, "checkpoint_damaged");
  EXPECT_GT(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
  job.run_on("b");
  save();
  EXPECT_EQ(next_start(), 4u);
}

TEST_F(GoingBack, OneFailureOrOneHostAloneBlamesNoCheckpoint) {
  make_three("a");
  run_and_fail("b", "KeyError: 'x'");
  EXPECT_EQ(next_start(), 3u);
  run_and_fail("b", "something else");
  EXPECT_EQ(next_start(), 3u) << "the same host, other words: it may be the host";
  EXPECT_THAT(job.state.suspects, IsEmpty());
}

TEST_F(GoingBack, TwoHostsBlameTheCheckpointAndTheNextAttemptStartsFromTheOneBefore) {
  make_three("a");
  run_and_fail("b");
  run_and_fail("c", "", 4);
  EXPECT_THAT(job.state.suspects, ElementsAre(CheckpointSeq{3}));
  EXPECT_EQ(job.state.reason, "checkpoint_suspect");
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_THAT(told("checkpoint_suspect"), HasSubstr("going back to checkpoint 2"));
  EXPECT_THAT(job.state.failures, IsEmpty()) << "neither the program";
  EXPECT_THAT(job.state.avoided, IsEmpty()) << "nor the hosts are to blame";
  job.run_on("b");
  EXPECT_EQ(job.state.attempt()->resumed_from.value, 2u);
  save();
  EXPECT_EQ(next_start(), 4u);
  EXPECT_EQ(job.state.proven.value, 2u);
  EXPECT_THAT(job.state.suspects, ElementsAre(CheckpointSeq{3})) << "it stays what it is";
}

TEST_F(GoingBack, TheSameLastLinesOnOneHostAreEnough) {
  make_three("a");
  run_and_fail("a", gist_of("12:01:07 loading\nKeyError: 'x' at 0x7f12\n"));
  run_and_fail("a", gist_of("12:01:09 loading\nKeyError: 'x' at 0x5f99\n"));
  EXPECT_EQ(next_start(), 2u);
}

TEST_F(GoingBack, AnAttemptThatSavedSomethingBlamesNothing) {
  make_three("a");
  run_and_fail("b");
  job.run_on("c");
  save();
  fail();
  EXPECT_THAT(job.state.suspects, IsEmpty());
  EXPECT_EQ(next_start(), 4u);
}

TEST_F(GoingBack, SavingWhatNobodyIsSureOfIsProgressToo) {
  make_three("a");
  run_and_fail("b");
  job.run_on("c");
  save(true);
  fail("", 4);
  EXPECT_THAT(job.state.suspects, IsEmpty());
}

TEST_F(GoingBack, LostHostsNeverBlameACheckpoint) {
  make_three("a");
  for (const char* host : {"b", "c", "d"}) {
    job.run_on(host);
    job.lose();
  }
  EXPECT_EQ(next_start(), 3u);
}

TEST_F(GoingBack, WithoutAnEarlierOneItFailsAsTheProgramDoes) {
  job.run_on("a");
  save();
  job.lose();
  run_and_fail("b");
  run_and_fail("c");
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_THAT(job.state.reason_text, HasSubstr("the fault is in the program"));
  EXPECT_THAT(job.state.suspects, IsEmpty());
}

TEST_F(GoingBack, AProvisionalOneIsGoneBackToOnlyWhenThereIsNoOther) {
  job.run_on("a");
  save();
  save(true);
  save();
  job.lose();
  run_and_fail("b");
  run_and_fail("c");
  EXPECT_EQ(next_start(), 1u);
}

TEST_F(GoingBack, WhenTheOneBeforeFailsTooTheNewestOfAnotherHostIsTried) {
  make_three("a");  // 1 2 3
  job.run_on("b");
  for (int i = 0; i < 3; ++i) save();  // 4 5 6, all bad
  job.lose();
  run_and_fail("c");
  run_and_fail("d");
  EXPECT_EQ(next_start(), 5u);
  run_and_fail("c");
  run_and_fail("d");
  EXPECT_EQ(next_start(), 3u);
  EXPECT_THAT(job.state.suspects, ElementsAre(CheckpointSeq{6}, CheckpointSeq{5}));
}

TEST_F(GoingBack, WhenAllFailTheProgramIsToBlameAndTheMarksAreWithdrawn) {
  make_three("a");
  run_and_fail("b");
  run_and_fail("c");  // back to 2
  run_and_fail("b");
  run_and_fail("c");
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_THAT(job.state.suspects, IsEmpty());
  EXPECT_THAT(job.state.reason_text, HasSubstr("no longer suspect"));
  job.happen(ResumeRequested{});
  EXPECT_EQ(next_start(), 3u) << "once the program is mended, nothing is lost";
}

TEST_F(GoingBack, ASuspectOneIsRestoredOnlyByName) {
  make_three("a");
  run_and_fail("b");
  run_and_fail("c");
  job.happen(CancelRequested{});
  job.happen(ResumeRequested{});
  EXPECT_EQ(next_start(), 2u);
  job.happen(CancelRequested{});
  job.happen(ResumeRequested{CheckpointSeq{3}});
  EXPECT_EQ(next_start(), 3u);
  run_and_fail("b");
  EXPECT_EQ(next_start(), 3u);
  run_and_fail("c");
  EXPECT_EQ(job.state.visible(), JobState::failed) << "it happens once for each checkpoint";
}

TEST_F(GoingBack, TheOneThatTheUserInsistsOnIsClearedWhenItWorks) {
  make_three("a");
  run_and_fail("b");
  run_and_fail("c");
  job.happen(CancelRequested{});
  job.happen(ResumeRequested{CheckpointSeq{3}});
  job.run_on("b");
  save();
  EXPECT_THAT(job.state.suspects, IsEmpty());
}

TEST_F(GoingBack, TheStoredFormKeepsIt) {
  make_three("a");
  run_and_fail("b", "one");
  run_and_fail("c", "two");
  run_and_fail("d", "three");
  const auto read = parse_state(to_json(job.state));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, job.state);
  EXPECT_EQ(read->failures.back().last, "three");
}

TEST_F(GoingBack, TheNewestProvenOneIsThatOfAnotherHostOrOneThatWasRestored) {
  make_three("a");
  EXPECT_FALSE(newest_proven(job.state)) << "all of one host, none was ever restored";
  job.run_on("b");
  save();
  EXPECT_EQ(newest_proven(job.state)->value, 3u);
  job.lose();
  job.run_on("b");
  EXPECT_EQ(newest_proven(job.state)->value, 3u);
  save();
  EXPECT_EQ(newest_proven(job.state)->value, 4u) << "restored with success";
}

TEST(GistOf, KeepsTheLastLinesWithoutNumbers) {
  EXPECT_EQ(gist_of("a\nb 12\n\nc\nd 7 of 9\n"), "b #\nc\nd # of #");
  EXPECT_EQ(gist_of(""), "");
  EXPECT_LE(gist_of(std::string(5000, 'x')).size(), 400u);
}

}  // namespace
}  // namespace gridctl::job::going_back_test
