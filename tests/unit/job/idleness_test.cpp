// SPDX-License-Identifier: Apache-2.0
#include "job/idleness.hpp"

#include <gtest/gtest.h>

namespace gridctl::job::idleness_test {
namespace {

using namespace std::chrono_literals;

struct Watched {
  Idleness idleness{10min};
  BootTime now{1};
  void pass(Duration time) { now = now + time; }
  // Measured every ten seconds.
  void work(int percent, Duration time) {
    for (Duration past{}; past < time; past += 10s) {
      pass(10s);
      idleness.measured(percent, now);
    }
  }
  [[nodiscard]] bool hangs() const { return idleness.hang(now).has_value(); }
};

TEST(Idleness, OfAJobThatAlwaysWorkedIsAHangAfterAWhile) {
  Watched job;
  job.work(90, 5min);
  job.work(0, 10min);
  EXPECT_FALSE(job.hangs()) << "a long evaluation on processors";
  job.work(0, 10s);
  ASSERT_TRUE(job.hangs());
  EXPECT_EQ(job.idleness.hang(job.now)->text("GPUs"),
            "no output, no checkpoint and idle GPUs for 10m10s; GPUs are usually 90 % busy");
  job.work(0, 24h);
  EXPECT_EQ(job.idleness.hang(job.now)->usual, 90) << "the hang itself is no habit";
  job.work(90, 10s);
  EXPECT_FALSE(job.hangs());
}

TEST(Idleness, IsNoHangWhileTheJobPrintsOrSaves) {
  Watched job;
  job.work(90, 5min);
  for (int i = 0; i < 20; ++i) {
    job.work(0, 9min);
    job.idleness.sign(job.now);
    EXPECT_FALSE(job.hangs());
  }
}

TEST(Idleness, ThatAJobHasShownBeforeIsNoHang) {
  Watched job;
  job.work(90, 3h);
  job.work(0, 1h);
  job.work(90, 5min);
  job.work(0, 3h);
  EXPECT_FALSE(job.hangs());
  job.work(0, 2min);
  EXPECT_TRUE(job.hangs());
}

TEST(Idleness, OfAJobThatIsUsuallyIdleIsNoHang) {
  Watched server;
  server.work(2, 1h);
  server.work(60, 5min);  // somebody asked
  server.work(2, 24h);
  EXPECT_FALSE(server.hangs());
  Watched fresh;
  fresh.work(90, 50s);
  fresh.work(0, 24h);
  EXPECT_FALSE(fresh.hangs()) << "five measurements are no habit";
  EXPECT_FALSE(Watched{}.hangs());
}

TEST(Idleness, ThatNobodyMeasuredDoesNotCount) {
  Watched job;
  job.work(90, 5min);
  for (int i = 0; i < 1000; ++i) {
    job.pass(10s);
    job.idleness.unknown(job.now);
  }
  EXPECT_FALSE(job.hangs());
  job.work(0, 9min);
  EXPECT_FALSE(job.hangs());
  job.work(0, 2min);
  EXPECT_TRUE(job.hangs());
}

TEST(Idleness, OutOfRangeIsClamped) {
  Watched job;
  job.work(100'000, 5min);
  job.work(-5, 11min);
  EXPECT_TRUE(job.hangs());
}

}  // namespace
}  // namespace gridctl::job::idleness_test
