// SPDX-License-Identifier: Apache-2.0
#include "control/follow/log_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace gridctl::control {
namespace {

class LogFile : public ::testing::Test {
 protected:
  std::string text() const { return os::read_file(path_).value_or(""); }

  const testing::TempDir directory_;
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
}  // namespace gridctl::control
