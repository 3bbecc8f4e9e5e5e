// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "os/files.hpp"

namespace gridctl::agent::rank_output_test {
namespace {

BootTime at(std::int64_t ms) { return BootTime{ms * 1'000'000}; }

TEST(LabelledLines, BeginEachLineWithTheLabelHoweverTheBytesCome) {
  LabelledLines lines("rank 3");
  std::string out;
  lines.feed("one\ntw", at(0), out);
  EXPECT_EQ(out, "[rank 3] one\n");
  EXPECT_TRUE(lines.is_waiting());
  lines.feed("o\n", at(1), out);
  EXPECT_EQ(out, "[rank 3] one\n[rank 3] two\n");
  EXPECT_FALSE(lines.is_waiting());
}

TEST(LabelledLines, TakeACarriageReturnForAnEnd) {
  LabelledLines lines("rank 0");
  std::string out;
  lines.feed(" 10%\r 20%\r\n", at(0), out);
  EXPECT_EQ(out, "[rank 0]  10%\r[rank 0]  20%\r\n");
}

TEST(LabelledLines, ShowALineWithoutAnEndAfterASecond) {
  LabelledLines lines("rank 0");
  std::string out;
  lines.feed("waiting for peers", at(0), out);
  lines.flush(at(900), false, out);
  EXPECT_EQ(out, "");
  lines.flush(at(1000), false, out);
  EXPECT_EQ(out, "[rank 0] waiting for peers\n");
}

TEST(LabelledLines, CutWhatIsLongerThanTheLimit) {
  LabelledLines lines("rank 0");
  std::string out;
  lines.feed(std::string(k_line_bytes_max + 10, 'x') + "\n", at(0), out);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  EXPECT_EQ(std::count(out.begin(), out.end(), 'x'), static_cast<std::ptrdiff_t>(k_line_bytes_max + 10));
}

TEST(LabelledLines, TakeAnEndThatComesInTwoPartsForOne) {
  LabelledLines lines("r");
  std::string out;
  lines.feed("10%\r", at(0), out);
  lines.feed("\n", at(1), out);
  EXPECT_EQ(out, "[r] 10%\r\n");
  lines.feed("\n", at(2), out);
  EXPECT_EQ(out, "[r] 10%\r\n[r] \n") << "that is a line of its own";
}

TEST(LabelledLines, OfExactlyTheLimitAreCutToo) {
  std::string out;
  LabelledLines longest("r");
  longest.feed(std::string(k_line_bytes_max - 1, 'x') + "\n", at(0), out);
  EXPECT_EQ(std::count(out.begin(), out.end(), '['), 1);
  out.clear();
  LabelledLines full("r");
  full.feed(std::string(k_line_bytes_max, 'x'), at(0), out);
  EXPECT_EQ(out.size(), 4 + k_line_bytes_max + 1) << "it does not wait for more";
  EXPECT_FALSE(full.is_waiting());
}

TEST(LabelledLines, WaitFromTheirFirstByteOn) {
  LabelledLines lines("r");
  std::string out;
  lines.feed("a", at(0), out);
  lines.feed("b", at(900), out);
  lines.flush(at(999), false, out);
  EXPECT_EQ(out, "");
  lines.flush(at(1000), false, out);
  EXPECT_EQ(out, "[r] ab\n");
  lines.flush(at(5000), true, out);
  EXPECT_EQ(out, "[r] ab\n") << "nothing waits";
  lines.feed("c", at(5000), out);
  lines.flush(at(5000), true, out);
  EXPECT_EQ(out, "[r] ab\n[r] c\n");
}

class RankPipes : public ::testing::Test {
 protected:
  RankPipes() {
    EXPECT_TRUE(output_.open());
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    log_ = os::Fd(ends[0]);
    into_log_ = os::Fd(ends[1]);
  }
  void write(std::size_t rank, std::string_view text) const {
    ASSERT_EQ(::write(output_.writer(rank), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::vector<pollfd> polls() const {
    std::vector<pollfd> all;
    output_.add_polls(all, into_log_.get());
    return all;
  }
  [[nodiscard]] std::string log() const {
    std::string text(1 << 20, '\0');
    const ssize_t got = ::read(log_.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  RankOutput output_{{"rank 0", "rank 1"}};
  os::Fd log_, into_log_;
};

TEST_F(RankPipes, AreListenedToUntilNobodyHoldsThem) {
  ASSERT_EQ(polls().size(), 2u);
  for (const pollfd& one : polls()) EXPECT_EQ(one.events, POLLIN);
  EXPECT_EQ(output_.patience_ms(), -1);
  write(0, "half");
  output_.pump(into_log_.get(), at(0));
  EXPECT_EQ(output_.patience_ms(), 1000) << "then it is shown all the same";
  EXPECT_EQ(log(), "");
  output_.pump(into_log_.get(), at(1000));
  EXPECT_EQ(log(), "[rank 0] half\n");
  EXPECT_EQ(output_.patience_ms(), -1);
  write(1, "end");
  output_.close_writers();
  output_.pump(into_log_.get(), at(1000));
  EXPECT_EQ(log(), "[rank 1] end\n") << "no more can come";
  EXPECT_TRUE(polls().empty());
}

TEST_F(RankPipes, AFullLogHoldsTheRanksAndLosesNothing) {
  const std::string filling(1 << 20, 'f');
  std::size_t filled = 0;
  for (ssize_t wrote = 0; (wrote = ::write(into_log_.get(), filling.data(), 4096)) > 0;) filled += static_cast<std::size_t>(wrote);
  write(0, "one\n");
  output_.pump(into_log_.get(), at(0));
  const std::vector<pollfd> waiting = polls();
  ASSERT_EQ(waiting.size(), 3u);
  EXPECT_EQ(waiting.back().fd, into_log_.get());
  EXPECT_EQ(waiting.back().events, POLLOUT);
  while (filled > 0) filled -= std::min(filled, log().size());
  output_.pump(into_log_.get(), at(1));
  EXPECT_EQ(log(), "[rank 0] one\n");
  EXPECT_EQ(polls().size(), 2u);
}

TEST_F(RankPipes, WhatIsLeftIsTakenAtOnce) {
  write(0, "whole\npart");
  EXPECT_EQ(output_.take_rest(at(0)), "[rank 0] whole\n[rank 0] part\n");
  EXPECT_EQ(output_.take_rest(at(0)), "");
}

TEST(RankOutput, NeverMixesLinesOfTwoRanks) {
  RankOutput output({"rank 0", "rank 1"});
  ASSERT_TRUE(output.open());
  const auto write = [&](std::size_t rank, std::string_view text) {
    ASSERT_EQ(::write(output.writer(rank), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  int log[2];
  ASSERT_EQ(::pipe(log), 0);
  write(0, "loss ");
  write(1, "loss 2\n");
  output.pump(log[1], at(0));
  write(0, "1\n");
  output.close_writers();
  output.pump(log[1], at(1));
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(log[0], text.data(), text.size())));
  EXPECT_EQ(text, "[rank 1] loss 2\n[rank 0] loss 1\n");
  ::close(log[0]);
  ::close(log[1]);
}

}  // namespace
}  // namespace gridctl::agent::rank_output_test
