// SPDX-License-Identifier: Apache-2.0
#include "control/copies/moving.hpp"

#include <gtest/gtest.h>

#include "hand_clock.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::moving_test {
namespace {
using namespace std::chrono_literals;

class MovingTest : public ::testing::Test {
 protected:
  std::vector<Moving> seen() { return moving_now(paths_, job_, clock_.wall()); }

  gridctl::testing::TempDir dir_;
  const Paths paths_{dir_.path()};
  const JobId job_{"abcdefghijkmn"};
  testing::HandClock clock_;
};

TEST_F(MovingTest, ShowsATransferFromItsSecondSecondToItsEnd) {
  {
    MovingFile file(paths_, job_, {"ada"}, true, clock_);
    clock_.pass(500ms);
    file.moved(50 << 20, 100 << 20);
    EXPECT_TRUE(seen().empty()) << "most are over by now";
    clock_.pass(1500ms);
    file.moved(60 << 20, 100 << 20);
    ASSERT_EQ(seen().size(), 1u);
    EXPECT_EQ(in_words(seen().front()), "sends 60 MiB of 100 MiB to ada, 30 MiB/s, 2s left");
    clock_.pass(11s);
    EXPECT_TRUE(seen().empty()) << "its daemon was killed";
    file.moved(90 << 20, 100 << 20);
    EXPECT_EQ(seen().size(), 1u);
  }
  EXPECT_TRUE(seen().empty());
}

TEST_F(MovingTest, KeepsJobsAndDirectionsApart) {
  MovingFile up(paths_, job_, {"ada"}, true, clock_), down(paths_, job_, {"ada"}, false, clock_);
  MovingFile other(paths_, {"zzzzzzzzzzzzz"}, {"ada"}, false, clock_), nobodys(paths_, {}, {"ada"}, true, clock_);
  clock_.pass(2s);
  for (MovingFile* one : {&up, &down, &other, &nobodys}) one->moved(1 << 20, 4 << 20);
  ASSERT_EQ(seen().size(), 2u);
  EXPECT_NE(seen()[0].up, seen()[1].up);
}

TEST_F(MovingTest, AFileThatIsNoTransferIsPassedOver) {
  ASSERT_TRUE(os::make_directories(paths_.moving()));
  ASSERT_TRUE(os::write_file_atomically(paths_.moving() / (job_.value + ".ada.up"), "{\"host\": 1"));
  EXPECT_TRUE(seen().empty());
}

}  // namespace
}  // namespace gridctl::control::moving_test
