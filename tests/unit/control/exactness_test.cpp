// SPDX-License-Identifier: Apache-2.0
#include "control/follow/exactness.hpp"

#include <gmock/gmock.h>

#include "control/follow/job_files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::exactness_test {
namespace {

using namespace gridctl::testing;

class FoundExactness : public ::testing::Test {
 protected:
  // Steps with a loss that looks like noise, and depends on step and `data`.
  static std::string lines(int begin, int end, int data = 0) {
    std::string text;
    for (int step = begin; step < end; ++step) {
      std::uint32_t noise = static_cast<std::uint32_t>(step) * 2'654'435'761u + static_cast<std::uint32_t>(data) * 40'503u;
      noise = (noise ^ (noise >> 15)) * 2'246'822'519u;
      noise ^= noise >> 13;
      text += "{\"step\": " + std::to_string(step) + ", \"loss\": 0." + std::to_string(100'000 + noise % 899'999) + "}\n";
    }
    return text;
  }
  void wrote(std::uint64_t attempt, int rank, const std::string& text) {
    ASSERT_THAT(files_.log_append(job_, {attempt}, rank, 0, text), IsOk());
  }
  std::optional<ExactnessFound> find(const std::vector<std::uint64_t>& resumed_from) {
    std::vector<registry::AttemptRecord> attempts(resumed_from.size());
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      attempts[i].number = {i + 1};
      attempts[i].resumed_from = {resumed_from[i]};
    }
    auto found = find_exactness(files_, job_, attempts);
    EXPECT_THAT(found, IsOk());
    return found ? *found : std::nullopt;
  }

  TempDir dir_;
  JobFiles files_{Paths{dir_.path()}};
  const JobId job_{"j"};
};

TEST_F(FoundExactness, OfAJobThatWasNeverRestoredThereIsNone) {
  wrote(1, 0, lines(0, 40));
  EXPECT_FALSE(find({0}));
  EXPECT_FALSE(find({0, 0}));
}

TEST_F(FoundExactness, TheStepsOfAllEarlierAttemptsCount) {
  wrote(1, 0, lines(0, 40));
  wrote(2, 0, lines(30, 60));
  wrote(3, 0, lines(35, 80));
  const auto found = find({0, 1, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->attempt.value, 3u);
  EXPECT_EQ(found->verdict.verdict, job::Exactness::exact) << found->verdict.why;
  EXPECT_EQ(found->verdict.steps, 25u);
  EXPECT_TRUE(found->verdict.complete);
}

TEST_F(FoundExactness, WhatWasToldAsMetricsComesBeforeWhatWasPrinted) {
  wrote(1, 0, lines(0, 40));
  wrote(2, 0, lines(20, 60));
  wrote(1, k_metrics_rank, lines(0, 40));
  wrote(2, k_metrics_rank, lines(20, 60, 1));
  EXPECT_EQ(find({0, 1})->verdict.verdict, job::Exactness::other_data);
}

TEST_F(FoundExactness, AMuteProgramGivesNoVerdict) {
  wrote(1, 0, "working\n");
  EXPECT_EQ(find({0, 1})->verdict.verdict, job::Exactness::cannot_tell);
}

}  // namespace
}  // namespace gridctl::control::exactness_test
