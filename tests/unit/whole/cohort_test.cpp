// SPDX-License-Identifier: Apache-2.0
#include "whole/cohort.hpp"

#include <gtest/gtest.h>

#include <list>

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

}  // namespace
}  // namespace gridctl::whole::cohort_test
