// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gridctl::agent {
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
}  // namespace gridctl::agent
