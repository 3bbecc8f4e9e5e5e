// SPDX-License-Identifier: Apache-2.0
// What a follower of a log is given while the log is still written.
#include "cmd/log_reader.hpp"

#include <gtest/gtest.h>

#include "control/follow/secrets.hpp"
#include "os/entries.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::cmd::log_reader_test {
namespace {

using ::gridctl::testing::IsOk;

constexpr std::size_t k_piece = 256 << 10;

class FollowedLog : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(control::write_secrets(paths_.secrets_of(job_), {{"TOKEN", "hf_a1b2c3d4"}}), IsOk());
    ASSERT_THAT(os::make_directories(paths_.logs_of(job_)), IsOk());
  }
  void stands(const std::string& text, int rank = 0) {
    ASSERT_THAT(os::write_file_atomically(paths_.log_of(job_, AttemptNumber{1}, rank), text), IsOk());
  }
  std::string given(LogReader& reader, bool all = false) {
    std::string text;
    EXPECT_THAT(reader.read_new([&](AttemptNumber, std::string_view bytes) { text += bytes; }, all), IsOk());
    return text;
  }

  const gridctl::testing::TempDir folder_;
  const control::Paths paths_{folder_.path()};
  const JobId job_{"abcdefghijk23"};
};

TEST_F(FollowedLog, HoldsBackWhatMayBeTheBeginningOfASecretUntilItIsMasked) {
  LogReader reader(paths_, job_);
  stands("login with hf_a1b");
  EXPECT_EQ(given(reader), "login with ");
  EXPECT_EQ(given(reader), "");
  stands("login with ***********\nnext\n");  // the rest came, and the controller has masked it
  EXPECT_EQ(given(reader), "***********\nnext\n");
}

TEST_F(FollowedLog, HoldsBackNothingElse) {
  LogReader reader(paths_, job_);
  stands("login with hf_a1b");
  EXPECT_EQ(given(reader), "login with ");
  stands("login with hf_a1bis\nhalf a li");
  EXPECT_EQ(given(reader), "hf_a1bis\nhalf a li");
}

TEST_F(FollowedLog, GivesTheEndOfAnEndedJobWhateverItIs) {
  LogReader reader(paths_, job_);
  stands("login with hf_");
  EXPECT_EQ(given(reader, true), "login with hf_");
}

TEST_F(FollowedLog, HoldsBackWhereAPieceEndsToo) {
  for (const std::size_t begun : {std::size_t{1}, std::size_t{5}, std::size_t{10}}) {
    LogReader reader(paths_, job_);
    const std::string before(k_piece - begun, 'x');
    stands(before + std::string("hf_a1b2c3d4").substr(0, begun));
    EXPECT_EQ(given(reader), before) << begun;
    stands(before + "***********\n");
    EXPECT_EQ(given(reader), "***********\n") << begun;
  }
}

TEST_F(FollowedLog, OfSeveralHostsComesInWholeLines) {
  LogReader reader(paths_, job_);
  const std::string lines(k_piece / 2 - 1, 'x');
  stands(lines + "\n" + lines + "xyz");  // a piece ends within the second line
  stands("one\ntw", 1);
  EXPECT_EQ(given(reader), lines + "\none\n");
  stands(lines + "\n" + lines + "xyz\n");
  stands("one\ntwo\n", 1);
  EXPECT_EQ(given(reader), lines + "xyz\ntwo\n");
}

TEST_F(FollowedLog, GivesALineThatIsLongerThanAPiece) {
  LogReader reader(paths_, job_);
  stands(std::string(3 * k_piece, 'x'));
  stands("one\n", 1);
  EXPECT_EQ(given(reader), std::string(3 * k_piece, 'x') + "one\n");
}

}  // namespace
}  // namespace gridctl::cmd::log_reader_test
