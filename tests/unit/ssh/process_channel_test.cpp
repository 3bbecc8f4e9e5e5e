// SPDX-License-Identifier: Apache-2.0
#include "ssh/process_channel.hpp"

#include <csignal>

#include "os/net.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::ssh::process_channel_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

// The system's time, and what a test adds to it.
class AheadClock : public os::Clock {
 public:
  [[nodiscard]] BootTime boot() const override { return os::system_clock().boot() + ahead; }
  [[nodiscard]] WallTime wall() const override { return os::system_clock().wall(); }
  Duration ahead{};
};

class OfAShell : public ::testing::Test {
 protected:
  std::unique_ptr<ProcessChannel> start(const std::string& script) {
    ProcessChannelOptions options;
    options.peer = "ann@box:22";
    options.judge = [this](const os::ExitStatus& status, const std::string& words) -> Result<void> {
      ++judged_;
      if (status.code == 7) return make_error(Code::host_unreachable, "seven: " + words);
      return {};
    };
    auto channel = ProcessChannel::open({"sh", "-c", script}, std::move(options), clock_);
    EXPECT_THAT(channel, IsOk());
    return std::move(channel).value();
  }
  // Whether a descriptor has told, within the patience of a test.
  bool wait_for(const ProcessChannel& channel, bool output_pending = false) {
    std::vector<os::Poll> polls;
    for (const Watched& watched : channel.wants(output_pending)) polls.push_back({watched.fd, watched.interest, {}});
    return os::wait_any(polls, os::system_clock().boot() + std::chrono::seconds{20}, os::system_clock()).value();
  }
  Result<std::string> read_all(ProcessChannel& channel) {
    std::string all;
    std::array<std::byte, 4096> buffer;
    for (;;) {
      TRY_ASSIGN(const auto got, channel.read(buffer));
      if (got && *got == 0) return all;
      if (got) all += as_text(ByteView{buffer}.first(*got));
      else EXPECT_TRUE(wait_for(channel));
    }
  }
  AheadClock clock_;
  int judged_ = 0;
};

TEST_F(OfAShell, CarriesBytesBothWaysAndJudgesTheEnd) {
  const auto channel = start("read line; echo \"got $line\"; echo noise >&2");
  EXPECT_EQ(channel->write(as_bytes("hello\n")).value(), 6u);
  channel->close_write();
  const auto said = read_all(*channel);
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(*said, "got hello\n");
  EXPECT_EQ(channel->stderr_tail(), "noise\n");
  EXPECT_EQ(judged_, 1);
  ASSERT_TRUE(channel->has_ended().value());
  EXPECT_EQ(channel->exit_status().code, 0);
  EXPECT_EQ(channel->transport(), TransportKind::system);
  EXPECT_EQ(channel->peer(), "ann@box:22");
  EXPECT_TRUE(channel->flushed());
}

TEST_F(OfAShell, WhatTheJudgeSaysIsTheErrorOfReading) {
  const auto channel = start("echo reason >&2; exit 7");
  const auto said = read_all(*channel);
  ASSERT_THAT(said, FailsWith(Code::host_unreachable));
  EXPECT_EQ(said.error().message, "seven: reason\n");
}

TEST_F(OfAShell, ReadingWithoutBytesGivesNothingYet) {
  const auto channel = start("read line");
  std::array<std::byte, 16> buffer;
  EXPECT_EQ(channel->read(buffer).value(), std::nullopt);
  EXPECT_FALSE(channel->has_ended().value());
  channel->close_write();
  EXPECT_EQ(read_all(*channel).value(), "");
}

TEST_F(OfAShell, WaitsFiveSecondsForACommandThatHasClosedItsOutput) {
  const auto channel = start("exec >&-; read line");
  std::array<std::byte, 16> buffer;
  ASSERT_TRUE(wait_for(*channel));
  EXPECT_EQ(channel->read(buffer).value(), std::nullopt) << "its status is still to come";
  clock_.ahead = std::chrono::seconds{4};
  EXPECT_EQ(channel->read(buffer).value(), std::nullopt);
  clock_.ahead = std::chrono::seconds{30};
  EXPECT_EQ(channel->read(buffer).value(), 0u);
  EXPECT_EQ(judged_, 0) << "there is no status to judge";
}

TEST_F(OfAShell, PollsWhatMayStillTellSomething) {
  const auto channel = start("exec >&-; read line");
  const auto interests = [&](bool output_pending) {
    std::string text;
    for (const Watched& watched : channel->wants(output_pending)) text += watched.interest.write ? "w" : "r";
    return text;
  };
  EXPECT_EQ(interests(false), "rr") << "its output and its errors";
  EXPECT_EQ(interests(true), "rrw");
  std::array<std::byte, 16> buffer;
  ASSERT_TRUE(wait_for(*channel));
  ASSERT_EQ(channel->read(buffer).value(), std::nullopt);
  EXPECT_EQ(interests(true), "rrw") << "its end instead of its output";
  channel->close_write();
  EXPECT_EQ(interests(true), "rr");
  EXPECT_EQ(read_all(*channel).value(), "");
  EXPECT_EQ(interests(true), "") << "all has ended";
}

TEST_F(OfAShell, WritingToACommandThatHasEndedIsAnError) {
  const auto fine = start("exit 0");
  ASSERT_EQ(read_all(*fine).value(), "");
  const auto refused = fine->write(as_bytes("more"));
  ASSERT_THAT(refused, FailsWith(Code::host_unreachable));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("ann@box:22 no longer reads"));
  EXPECT_EQ(judged_, 2);

  const auto broken = start("exit 7");
  ASSERT_FALSE(read_all(*broken));
  EXPECT_THAT(broken->write(as_bytes("more")).error().message, ::testing::HasSubstr("seven"));

  const auto deaf = start("exec <&-; echo closed; sleep 60");
  ASSERT_TRUE(wait_for(*deaf));
  judged_ = 0;
  EXPECT_THAT(deaf->write(as_bytes("more")), FailsWith(Code::host_unreachable));
  EXPECT_EQ(judged_, 0) << "it goes on";
}

TEST_F(OfAShell, AFullPipeTakesNothingForNow) {
  const auto channel = start("sleep 60");
  const std::string block(64 * 1024, 'x');
  std::optional<std::size_t> taken = 1;
  for (int i = 0; i < 100 && taken; ++i) {
    const auto wrote = channel->write(as_bytes(block));
    ASSERT_THAT(wrote, IsOk());
    taken = *wrote;
  }
  EXPECT_EQ(taken, std::nullopt);
}

TEST_F(OfAShell, KeepsTheEndOfWhatItSaysAsErrors) {
  const auto channel = start("head -c 100000 /dev/zero | tr '\\0' e >&2; printf END >&2");
  ASSERT_EQ(read_all(*channel).value(), "");
  const std::string tail = channel->stderr_tail();
  EXPECT_EQ(tail.size(), k_stderr_kept);
  EXPECT_TRUE(tail.ends_with("eEND"));
}

TEST_F(OfAShell, HandsOverItsErrorsOnce) {
  const auto channel = start("echo first >&2; read line; echo second >&2");
  ASSERT_TRUE(wait_for(*channel));
  EXPECT_EQ(channel->take_stderr(), "first\n");
  EXPECT_EQ(channel->take_stderr(), "");
  channel->close_write();
  ASSERT_EQ(read_all(*channel).value(), "");
  EXPECT_EQ(channel->stderr_tail(), "second\n");
}

TEST(Tail, KeepsFourKibibytes) {
  std::string tail(k_stderr_kept - 2, 'a');
  keep_tail(tail, "bc");
  EXPECT_EQ(tail, std::string(k_stderr_kept - 2, 'a') + "bc");
  keep_tail(tail, "d");
  EXPECT_EQ(tail, std::string(k_stderr_kept - 3, 'a') + "bcd");
}

TEST_F(OfAShell, EndsWithItsChannelPolitelyFirst) {
  const TempDir dir;
  const std::string note = (dir / "note").native();
  auto channel = start("trap 'echo asked > " + note + "; exit' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_TRUE(wait_for(*channel));
  channel.reset();
  EXPECT_EQ(os::read_file(note).value_or(""), "asked\n");
}

TEST_F(OfAShell, EndsWithItsChannelEvenIfItWillNot) {
  const TempDir dir;
  auto channel = start("trap '' TERM HUP; echo $$ > " + (dir / "pid").native() + "; echo ready; exec sleep 60");
  ASSERT_TRUE(wait_for(*channel));
  const int pid = std::stoi(os::read_file(dir / "pid").value());
  ASSERT_TRUE(os::identify(pid));
  channel.reset();
  EXPECT_FALSE(os::identify(pid));
  EXPECT_FALSE(os::try_wait(pid)) << "it was waited for";
}

TEST(ProcessChannel, SaysThatThereIsNoSuchProgram) {
  EXPECT_THAT(ProcessChannel::open({"no-such-program-anywhere"}, {}, os::system_clock()), FailsWith(Code::not_found));
}

}  // namespace
}  // namespace gridctl::ssh::process_channel_test
