// SPDX-License-Identifier: Apache-2.0
#include "control/follow/log_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "control/follow/log_times.hpp"
#include "os/clock.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::log_file_test {
namespace {

class LogFile : public ::testing::Test {
 protected:
  std::string text() const { return os::read_file(path_).value_or(""); }

  const gridctl::testing::TempDir directory_;
  const os::Path path_ = directory_.path() / "job" / "attempt-1.log";
};

TEST_F(LogFile, TakesTheSameBytesTwiceOnce) {
  ASSERT_TRUE(log_append(path_, 0, "one\n"));
  ASSERT_TRUE(log_append(path_, 4, "two\n"));
  ASSERT_TRUE(log_append(path_, 0, "one\ntwo\n"));
  ASSERT_TRUE(log_append(path_, 2, "e\ntwo\nthree\n"));
  EXPECT_EQ(text(), "one\ntwo\nthree\n");
  EXPECT_EQ(*log_next_offset(path_), 14u);
}

TEST_F(LogFile, KnowsWhenALineCame) {
  ASSERT_TRUE(os::make_directories(path_.parent_path()));
  const std::int64_t now = os::system_clock().wall().ms;
  ASSERT_TRUE(log_append(path_, 0, "one\n"));
  const LogTimes first = LogTimes::read(path_);
  ASSERT_TRUE(first.at(0));
  EXPECT_GE(first.at(0)->ms, now);
  ASSERT_TRUE(os::write_file_atomically(path_.string() + ".times", "4 5000\n20 9000\nbroken\n"));
  const LogTimes times = LogTimes::read(path_);
  EXPECT_EQ(times.at(3), std::nullopt);
  EXPECT_EQ(times.at(4), WallTime{5000});
  EXPECT_EQ(times.at(19), WallTime{5000});
  EXPECT_EQ(times.at(1000), WallTime{9000});
  EXPECT_EQ(LogTimes::read(directory_.path() / "none").at(0), std::nullopt);
}

TEST_F(LogFile, MarksAHoleAndGoesOnBehindIt) {
  ASSERT_TRUE(log_append(path_, 0, "one\n"));
  ASSERT_TRUE(log_append(path_, 1000, "late\n"));
  EXPECT_EQ(*log_next_offset(path_), 1005u);
  EXPECT_NE(text().find("996 bytes of output were dropped"), std::string::npos);
  ASSERT_TRUE(log_append(path_, 1005, "later\n"));
  EXPECT_EQ(text().substr(text().size() - 11), "late\nlater\n");
}

TEST_F(LogFile, GivesItsLastLines) {
  ASSERT_TRUE(log_append(path_, 0, "one\ntwo\nthree\n"));
  EXPECT_EQ(*log_tail(path_, 2), "two\nthree");
  EXPECT_EQ(*log_tail(path_, 9), "one\ntwo\nthree");
  EXPECT_FALSE(log_tail(path_.parent_path() / "none", 2));
}

TEST_F(LogFile, BeginsAtZeroWhereThereIsNoFile) { EXPECT_EQ(*log_next_offset(path_), 0u); }

TEST_F(LogFile, LosesNothingWhenTwoThreadsBringTheSameOutput) {
  std::string all;
  for (int i = 0; i < 400; ++i) all += "line " + std::to_string(i) + "\n";
  const auto bring = [&](std::size_t piece) {
    for (std::size_t at = 0; at < all.size(); at += piece)
      ASSERT_TRUE(log_append(path_, at, std::string_view(all).substr(at, piece)));
  };
  // Both bring everything from the beginning; whoever is late brings what is there already.
  std::thread one(bring, 97), two(bring, 61);
  one.join();
  two.join();
  EXPECT_EQ(text(), all);
  EXPECT_EQ(*log_next_offset(path_), all.size());
}

}  // namespace
}  // namespace gridctl::control::log_file_test
