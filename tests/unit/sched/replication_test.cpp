// SPDX-License-Identifier: Apache-2.0
#include "sched/replication.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "sched/interval.hpp"

namespace gridctl::sched::replication_test {
namespace {
using ::testing::HasSubstr;

// tests/data/replication_reference.csv: by recursion over the failures.
TEST(Replication, IsTheReferenceTable) {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/replication_reference.csv");
  std::string line;
  std::getline(in, line);
  int rows = 0;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::vector<double> row;
    for (std::string cell; row.size() < 8 && std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
    ASSERT_EQ(row.size(), 8u) << line;
    const int pairs = static_cast<int>(row[0]);
    // The table has four digits after the point.
    EXPECT_NEAR(failures_to_interruption(pairs), row[3], 1e-4 * row[3] + 5e-5) << line;
    EXPECT_NEAR(replicated_mtti(pairs, row[2]), row[5], 1e-4 * row[5] + 5e-5) << line;
    ++rows;
  }
  EXPECT_GE(rows, 21);
}

TEST(Replication, IsMetByFailuresDrawnAtRandom) {
  std::mt19937 random(7);
  for (const int pairs : {1, 4, 16}) {
    double sum = 0;
    constexpr int k_runs = 20'000;
    for (int run = 0; run < k_runs; ++run) {
      std::vector<int> dead(static_cast<std::size_t>(pairs), -1);  // which of the pair
      for (int failures = 1;; ++failures) {
        const int struck = static_cast<int>(random() % (2u * static_cast<unsigned>(pairs)));
        int& other = dead[static_cast<std::size_t>(struck / 2)];
        if (other >= 0 && other != struck % 2) {
          sum += failures;
          break;
        }
        other = struck % 2;
      }
    }
    EXPECT_NEAR(sum / k_runs, failures_to_interruption(pairs), 0.02 * failures_to_interruption(pairs)) << pairs;
  }
}

TEST(Replication, GrowsAsTheRootOfThePairs) {
  EXPECT_NEAR(failures_to_interruption(1'000'000), std::sqrt(std::acos(-1.0) * 1e6) + 1, 0.01);
}

TEST(Replication, PaysWherePlainCheckpointingWastesOverHalf) {
  // with R = 0, plain falls below one half at C/M = ln 2 - 1/2
  EXPECT_NEAR(best_efficiency(0.193, 1, 0), 0.5, 0.001);
  EXPECT_FALSE(replication_advice({.hosts = 4, .host_mtbf = 100 * 3600, .checkpoint = 60, .restart = 60}));
  const auto advice = replication_advice({.hosts = 16, .host_mtbf = 3600, .checkpoint = 120, .restart = 60});
  ASSERT_TRUE(advice);
  EXPECT_THAT(*advice, HasSubstr("which pays against the same 32 hosts"));
  EXPECT_GT(compare_replication({.hosts = 16, .host_mtbf = 3600, .checkpoint = 120, .restart = 60}).gain(), 1);
  // so bad that replication wastes as well, but less
  EXPECT_LT(compare_replication({.hosts = 1, .host_mtbf = 100'000, .checkpoint = 60, .restart = 60}).gain(), 1);
}

}  // namespace
}  // namespace gridctl::sched::replication_test
