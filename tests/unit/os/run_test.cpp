// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"

namespace gridctl::os::run_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

bool runs_anywhere(const std::string& word) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (read_file(entry.path() / "cmdline").value_or("").find(word) != std::string::npos) return true;
  return false;
}

TEST(Run, CollectsBothStreamsAndTheStatus) {
  const Result<RunOutcome> outcome = run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->out, "out\n");
  EXPECT_EQ(outcome->err, "err\n");
  EXPECT_EQ(outcome->status.code, 3);
}

TEST(Run, FeedsInputLargerThanAPipe) {
  RunOptions options;
  options.input = std::string(300'000, 'x');
  EXPECT_EQ(run({"cat"}, options)->out, options.input);
  EXPECT_TRUE(run({"true"}, options)->status.success()) << "a program that reads no input must not harm us";
}

TEST(Run, DrainsMoreThanItKeeps) {
  RunOptions options;
  options.output_max = 1000;
  const Result<RunOutcome> outcome =
      run({"sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"}, options);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->out.size(), 1000u);
  EXPECT_EQ(outcome->err.size(), 1000u);
  EXPECT_TRUE(outcome->status.success());
}

TEST(Run, KillsTheWholeGroupAtTheDeadline) {
  RunOptions options;
  options.timeout = std::chrono::milliseconds{100};
  const std::string tag = "59." + std::to_string(::getpid());
  EXPECT_THAT(run({"sh", "-c", "sleep " + tag + " & sleep " + tag}, options), FailsWith(Code::timed_out));
  // The kernel takes a moment to bury what was killed; alive it would run for a minute.
  const BootTime deadline = system_clock().boot() + std::chrono::seconds{40};
  while (runs_anywhere(tag) && system_clock().boot() < deadline) pause_for(std::chrono::milliseconds{5});
  EXPECT_FALSE(runs_anywhere(tag));
}

TEST(Run, DoesNotWaitForGrandchildrenThatKeepTheOutputOpen) {
  const BootTime before = system_clock().boot();
  const Result<RunOutcome> outcome = run({"sh", "-c", "echo done; sleep 50 &"});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->out, "done\n");
  EXPECT_LT(system_clock().boot() - before, std::chrono::seconds{40});
}

TEST(Run, AddsToOurEnvironment) {
  RunOptions options;
  options.environment_extra = {{"GRIDCTL_TEST_WORD", "hello"}};
  EXPECT_EQ(run({"sh", "-c", "echo $GRIDCTL_TEST_WORD; test -n \"$PATH\""}, options)->out, "hello\n");
}

TEST(Run, AMissingProgramIsNotFound) { EXPECT_THAT(run({"no-such-program-anywhere"}), FailsWith(Code::not_found)); }

TEST(Run, TellsASignal) { EXPECT_EQ(run({"sh", "-c", "kill -9 $$"})->status.signal, 9); }

}  // namespace
}  // namespace gridctl::os::run_test
