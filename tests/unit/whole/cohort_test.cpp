// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "unit/whole/directory.hpp"
#include "whole/cohort.hpp"

namespace gridctl::whole::cohort_test {
namespace {

class Cohorts : public ::testing::Test {
 protected:
  Cohort cohort;
  std::list<store::FileFact> files;
  std::int64_t seconds = 0;

  bool change(const std::string& path, Change change = Change::replaced) {
    ++seconds;
    files.push_back({path, 1, 0, 0, 1});
    return cohort.changed({{&files.back(), change, {}}}, {seconds * 1'000'000'000});
  }
};

using ::testing::ElementsAre;
constexpr BootTime at(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

class Learning : public ::testing::Test {
 protected:
  bool change(const std::vector<std::string>& paths, std::int64_t seconds, Change change = Change::replaced,
              Duration gap = {}) {
    std::vector<FileFact> files;
    for (const std::string& path : paths) files.push_back({path, 1, 0, 0, 1});
    std::vector<News> news;
    for (const FileFact& file : files) news.push_back({&file, change, gap});
    return cohort.changed(news, at(seconds));
  }
  Cohort cohort;
};

TEST_F(Cohorts, KnowsNothingOfTheFirstSave) {
  change("a", Change::fresh);
  change("b", Change::fresh);
  EXPECT_FALSE(cohort.learned());
  EXPECT_FALSE(cohort.complete());
}

TEST_F(Cohorts, HasLearnedAfterTwoSavesThatWereAlike) {
  for (int save = 0; save < 2; ++save) {
    change("a");
    change("b");
  }
  EXPECT_FALSE(cohort.learned()) << "only one save has ended";
  EXPECT_TRUE(change("a")) << "the second has ended by it";
  EXPECT_TRUE(cohort.learned());
  EXPECT_FALSE(cohort.complete());
  EXPECT_EQ(cohort.awaited(), "b");
  change("b");
  EXPECT_TRUE(cohort.complete());
}

TEST_F(Cohorts, UnlearnsWhenASaveIsDifferent) {
  for (int save = 0; save < 3; ++save) {
    change("a");
    change("b");
  }
  change("a");
  change("a");
  EXPECT_FALSE(cohort.learned());
  change("a");
  EXPECT_TRUE(cohort.learned()) << "two saves of one file";
  EXPECT_TRUE(cohort.complete());
}

TEST_F(Cohorts, IsNotMisledByAFileThatEachSaveWritesTwice) {
  for (int save = 0; save < 5; ++save) {
    change("a");
    EXPECT_FALSE(cohort.learned());
    change("a");
    EXPECT_FALSE(cohort.learned());
    change("b");
    EXPECT_FALSE(cohort.learned());
  }
}

TEST_F(Cohorts, SeesNumberedFilesAsTheSamePlace) {
  change("model_100.pt", Change::fresh);
  change("optim_100.pt", Change::fresh);
  EXPECT_TRUE(change("model_200.pt", Change::fresh));
  EXPECT_FALSE(change("optim_200.pt", Change::fresh));
  EXPECT_TRUE(change("model_300.pt", Change::fresh));
  EXPECT_TRUE(cohort.learned());
}

TEST_F(Cohorts, SeesRanksAsDifferentPlaces) {
  EXPECT_FALSE(change("rank_0_100.pt", Change::fresh));
  EXPECT_FALSE(change("rank_1_100.pt", Change::fresh));
  EXPECT_TRUE(change("rank_0_200.pt", Change::fresh));
}

TEST_F(Cohorts, TakesLongWritesForOne) {
  change("a", Change::fresh);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(change("a", Change::continued));
  EXPECT_TRUE(change("a", Change::rewritten));
}

TEST_F(Cohorts, ExpectsWhatWasRestored) {
  cohort.expect({"a", "b"});
  change("a");
  EXPECT_FALSE(cohort.learned());
  change("b");
  EXPECT_TRUE(cohort.learned());
  EXPECT_TRUE(cohort.complete());
}

TEST_F(Learning, MeasuresGapsWithinASaveAndPausesOfOneFile) {
  EXPECT_TRUE(cohort.idle());
  EXPECT_FALSE(cohort.changed({}, at(5)));
  EXPECT_EQ(cohort.changed_at(), BootTime{}) << "nothing has changed";
  change({"a"}, 10, Change::fresh);
  EXPECT_EQ(cohort.longest_gap(), Duration{});
  change({"b"}, 14, Change::fresh);
  change({"c"}, 16, Change::continued, std::chrono::seconds{7});
  EXPECT_EQ(cohort.longest_gap(), std::chrono::seconds{4});
  EXPECT_EQ(cohort.longest_pause(), std::chrono::seconds{7});
  EXPECT_EQ(cohort.changed_at(), at(16));
  EXPECT_TRUE(change({"a"}, 100)) << "a pause between saves is none within one";
  EXPECT_EQ(cohort.longest_gap(), std::chrono::seconds{4});
  EXPECT_EQ(cohort.saves(), 1u);
  EXPECT_THAT(cohort.paths(), ElementsAre("a"));
  EXPECT_EQ(cohort.awaited(), "b");
}

TEST_F(Learning, AFileThatGoesOnAfterAnotherBeginsASave) {
  change({"a"}, 1, Change::fresh);
  EXPECT_FALSE(change({"a"}, 2, Change::continued));
  change({"b"}, 3, Change::fresh);
  EXPECT_FALSE(change({"b"}, 4, Change::continued)) << "it is the last";
  EXPECT_TRUE(change({"a"}, 5, Change::continued));
}

TEST_F(Learning, ForgetsWhatTurnsOutToBeKnown) {
  for (int save = 0; save < 3; ++save) change({"a", "b"}, save);
  EXPECT_TRUE(cohort.complete());
  change({"a"}, 9);
  EXPECT_EQ(cohort.awaited(), "b");
  cohort.forget("b");
  EXPECT_TRUE(cohort.complete());
  EXPECT_TRUE(cohort.learned());
  EXPECT_EQ(cohort.awaited(), "");
  cohort.forget("a");
  EXPECT_TRUE(cohort.idle());
  EXPECT_FALSE(cohort.learned()) << "of nothing";
  EXPECT_FALSE(cohort.complete());
}

TEST_F(Learning, OfAnotherNumberIsNotForgotten) {
  change({"m_1"}, 1, Change::fresh);
  cohort.forget("m_2");
  EXPECT_FALSE(cohort.idle());
  cohort.forget("m_1");
  EXPECT_TRUE(cohort.idle());
}

TEST_F(Learning, ExpectsTheRestoredOnlyOfTheFirstSave) {
  cohort.expect({"a", "b"});
  EXPECT_EQ(cohort.awaited(), "a");
  change({"b"}, 1);
  EXPECT_EQ(cohort.awaited(), "a");
  EXPECT_FALSE(cohort.complete());
  EXPECT_TRUE(change({"b"}, 2));
  EXPECT_EQ(cohort.awaited(), "");
  EXPECT_FALSE(cohort.learned());
}

}  // namespace
}  // namespace gridctl::whole::cohort_test
