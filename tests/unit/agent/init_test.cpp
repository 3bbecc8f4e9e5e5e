// SPDX-License-Identifier: Apache-2.0
#include "agent/init.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/attempt_dir.hpp"
#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/disk_calls.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::init_test {
namespace {

class InitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"run", "ctl", "work", "secrets"}) std::filesystem::create_directory(folder_ / name);
    ASSERT_EQ(::mkfifo((folder_ / "run/log").c_str(), 0600), 0);
    log_ = os::Fd(::open((folder_ / "run/log").c_str(), O_RDONLY | O_NONBLOCK));
    plan_ = {folder_ / "run", folder_ / "ctl", folder_ / "work", {}, Duration{}, {}};
    deadline_in(std::chrono::hours{1});
  }
  void deadline_in(Duration left) const {
    std::ofstream(folder_ / "ctl/deadline") << (os::system_clock().boot() + left).ns << "\n";
  }
  void script(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / "run" / name) << text << "\n";
  }
  // What ignores a signal when the tests begin (SIGHUP below nohup) would ignore it in every child, and a shell could not
  // even trap it.
  [[nodiscard]] pid_t begin() const {
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
      ::_exit(run_init(plan_));
    }
    if (child < 0) std::abort();  // to signal -1 is to signal everybody
    return child;
  }
  // Waits while taking the output, as a supervisor does.
  int end(pid_t child) {
    int status = 0;
    const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60};
    while (::waitpid(child, &status, WNOHANG) == 0) {
      take_output();
      if (os::system_clock().boot() < give_up) continue;
      ADD_FAILURE() << "it does not end";
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    take_output();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void take_output() {
    char buffer[4096];
    const ssize_t got = ::read(log_.get(), buffer, sizeof buffer);
    if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
    else ::usleep(500);
  }

  gridctl::testing::TempDir folder_;
  os::Fd log_;
  InitPlan plan_;
  std::string output_;
};

TEST_F(InitTest, RunsSetupThenRunInTheWorkingDirectory) {
  script("setup.sh", "echo setting up >marker");
  script("run.sh", "cat marker; exit 5");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "setting up\n");
  const auto record = read_exit_record(plan_.run);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->code, 5);
  EXPECT_EQ(record->phase, "run");
}

TEST_F(InitTest, RunsOnlyOnce) {
  script("run.sh", "echo ran");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(end(begin()), k_init_refused);
  EXPECT_EQ(output_, "ran\n");
}

TEST_F(InitTest, PutsOutputThatNobodyTakesOnTheDiskBeforeItTellsTheEnd) {
  script("run.sh", "echo one; echo two; exit 3");
  int status = 0;
  const pid_t child = begin();
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(*os::read_file(plan_.run / k_rest), "one\ntwo\n");
  take_output();
  EXPECT_EQ(output_, "");
  const auto record = read_exit_record(plan_.run);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->code, 3);
}

// The host may lose its power in the moment after: the end of a job would be a loss of its host then.
TEST_F(InitTest, HasTheEndOnTheDiskBeforeItIsGone) {
  script("run.sh", "echo one; exit 3");
  const testing::DiskRecord disk(folder_.path());
  const pid_t child = begin();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(os::exists(plan_.run / "exit"));
  EXPECT_GT(disk.durable(plan_.run / "exit"), 0u) << disk.text();
  EXPECT_GT(disk.durable(plan_.run / k_rest), 0u) << "its last output\n" << disk.text();
  EXPECT_GT(disk.named(plan_.run / "exit"), disk.durable(plan_.run / k_rest)) << disk.text();
}

TEST_F(InitTest, LeavesOutputInThePipeWhenTheDiskTakesNone) {
  script("run.sh", "echo one");
  std::filesystem::create_directories(plan_.run / k_rest);  // no file can have this name
  int status = 0;
  const pid_t child = begin();
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  take_output();
  EXPECT_EQ(output_, "one\n");
}

TEST_F(InitTest, BeginsNothingWhoseEndItCouldNotTell) {
  std::filesystem::create_directory(plan_.run / "exit.room");  // as on a full disk, no file can be made there
  script("run.sh", "echo began");
  EXPECT_NE(end(begin()), 0);
  EXPECT_EQ(output_, "");
}

TEST_F(InitTest, GivesTheJobItsVariablesAndSecrets) {
  std::ofstream(folder_ / "run/env") << "A=one two" << '\0' << "B=x\ny" << '\0';
  std::ofstream(folder_ / "secrets/TOKEN") << "s3cret";
  plan_.secrets = folder_ / "secrets";
  script("run.sh", "echo \"$A|$B|$TOKEN|$PYTHONUNBUFFERED\"");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "one two|x\ny|s3cret|1\n");
}

TEST_F(InitTest, PassesTermToAllAndWaitsForThem) {
  script("run.sh", "sh -c 'trap \"echo child saved; exit\" TERM; echo ready; while :; do sleep 0.01; done' & wait");
  const pid_t init = begin();
  while (output_.find("ready") == std::string::npos) take_output();
  ::kill(init, SIGTERM);
  EXPECT_EQ(end(init), 0);
  EXPECT_NE(output_.find("child saved"), std::string::npos);
  EXPECT_TRUE(read_exit_record(plan_.run)->term_received);
}

TEST_F(InitTest, EndsAJobThatNobodyElseStopped) {
  plan_.grace = -k_init_slack;  // its last line is the deadline itself
  deadline_in(std::chrono::milliseconds{300});
  script("run.sh", "trap '' TERM; echo began; sleep 1000");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "began\n");
  EXPECT_TRUE(read_exit_record(plan_.run)->lease_passed);
}

TEST_F(InitTest, BeginsNothingAfterItsLease) {
  deadline_in(std::chrono::milliseconds{-1});
  script("run.sh", "echo began");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "");
  const auto record = read_exit_record(plan_.run);
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(record->lease_passed);
}

TEST_F(InitTest, TellsEachPhaseAndLeavesItsOwnMark) {
  script("setup.sh", "cat \"" + (plan_.run / "phase").native() + "\"");
  script("run.sh", "cat \"" + (plan_.run / "phase").native() + "\"");
  const pid_t init = begin();
  EXPECT_EQ(end(init), 0);
  EXPECT_EQ(output_, "setup\nrun\n");
  EXPECT_TRUE(os::read_file(plan_.run / "once")->starts_with(std::to_string(init) + " "));
  EXPECT_FALSE(os::exists(plan_.run / "exit.room")) << "it has become the record";
  EXPECT_FALSE(os::exists(plan_.run / k_rest));
  EXPECT_LT(os::read_file(plan_.run / "exit")->size(), 200u);
}

TEST_F(InitTest, RunsNothingAfterASetupThatFailed) {
  script("setup.sh", "exit 9");
  script("run.sh", "echo ran");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "");
  EXPECT_EQ(read_exit_record(plan_.run)->phase, "setup");
  EXPECT_EQ(read_exit_record(plan_.run)->code, 9);
}

TEST_F(InitTest, RunsNothingAfterASetupThatWasStopped) {
  plan_.grace = std::chrono::seconds{10};
  script("setup.sh", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  script("run.sh", "echo ran");
  const pid_t init = begin();
  while (output_.find("ready") == std::string::npos) take_output();
  ::kill(init, SIGINT);
  EXPECT_EQ(end(init), 0);
  EXPECT_EQ(output_.find("ran\n"), std::string::npos) << output_;
  EXPECT_TRUE(read_exit_record(plan_.run)->term_received) << "an interrupt is one, too";
}

TEST_F(InitTest, DoesNotBeginBesideAnotherOrWithoutALogPipe) {
  script("run.sh", "echo ran");
  {
    const auto held = os::FileLock::try_acquire(plan_.run / "lock").value();
    ASSERT_TRUE(held);
    EXPECT_EQ(end(begin()), k_init_refused);
    EXPECT_FALSE(os::exists(plan_.run / "once"));
  }
  std::filesystem::remove(plan_.run / "log");
  EXPECT_EQ(end(begin()), 1);
  EXPECT_FALSE(os::exists(plan_.run / "exit"));
}

TEST_F(InitTest, GivesTheJobCleanSurroundings) {
  script("run.sh",
         "pwd; ulimit -c; cat; cat /proc/self/oom_score_adj; sed -n 's/^SigBlk:.0*$/nothing blocked/p' /proc/self/status\n"
         "echo to stderr >&2; kill -PIPE $$; echo not reached");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, plan_.work.native() + "\n0\n200\nnothing blocked\nto stderr\n");
  EXPECT_EQ(read_exit_record(plan_.run)->signal, SIGPIPE);
  EXPECT_EQ(read_exit_record(plan_.run)->code, -1);
}

TEST_F(InitTest, SaysWhereItsWorkingDirectoryIsMissing) {
  plan_.work = folder_ / "none";
  script("run.sh", "echo ran");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_NE(output_.find("cannot enter the working directory " + plan_.work.native()), std::string::npos) << output_;
  EXPECT_EQ(read_exit_record(plan_.run)->code, 126);
}

TEST_F(InitTest, PassesASignalOnToThoseThatWaitForIt) {
  script("run.sh",
         "sh -c 'echo $$; exec sleep 77' & trap 'echo one' USR1; trap 'echo two' USR2; trap 'kill $! && echo three; exit 0' HUP\n"
         "echo ready; while :; do sleep 0.01; done");
  const pid_t init = begin();
  const auto comes = [&](const std::string& word) {
    const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60};
    while (output_.find(word) == std::string::npos && os::system_clock().boot() < give_up) take_output();
    EXPECT_NE(output_.find(word), std::string::npos) << output_;
  };
  comes("ready");
  ::kill(init, SIGUSR1);
  comes("one");
  ::kill(init, SIGUSR2);
  comes("two");
  ::kill(init, SIGHUP);
  EXPECT_EQ(end(init), 0);
  comes("three");
  EXPECT_EQ(read_exit_record(plan_.run)->code, 0);
  EXPECT_FALSE(read_exit_record(plan_.run)->term_received);
}

TEST_F(InitTest, EndsWhatTheProgramLeavesRunning) {
  const std::string file = (folder_ / "work/pid").native();
  script("run.sh", "(trap '' TERM; setsid sleep 77 & echo $! > " + file + "); exit 2");
  EXPECT_EQ(end(begin()), 0);
  const int left = std::stoi(os::read_file(file).value());
  EXPECT_FALSE(os::identify(left)) << "it would hold its GPU";
  EXPECT_EQ(read_exit_record(plan_.run)->code, 2);
}

TEST_F(InitTest, AfterTermTheOthersKeepTheirGrace) {
  plan_.grace = std::chrono::seconds{10};
  script("run.sh",
         "sh -c 'trap \"sleep 0.2; echo late; exit\" TERM; echo ready; while :; do sleep 0.01; done' &\n"
         "trap 'exit 0' TERM; while :; do sleep 0.01; done");
  const pid_t init = begin();
  while (output_.find("ready") == std::string::npos) take_output();
  ::kill(init, SIGTERM);
  EXPECT_EQ(end(init), 0);
  EXPECT_NE(output_.find("late\n"), std::string::npos) << output_;
}

// Somebody ends all processes of the job with TERM: the shell dies of it, and the program in it saves.
TEST_F(InitTest, WhatSavesWhenItsShellHasDiedOfTheSignalMayEnd) {
  plan_.grace = std::chrono::seconds{20};
  script("run.sh", "sleep 50 & (trap 'sleep 1; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done) & "
                   "child=$!; sleep 0.5; kill -TERM $child; kill -TERM $$; sleep 5");
  const BootTime began = os::system_clock().boot();
  EXPECT_EQ(end(begin()), 0);
  EXPECT_NE(output_.find("saved"), std::string::npos);
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::seconds{15}) << "'sleep 50' was told to end";
  const auto record = read_exit_record(plan_.run);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->signal, SIGTERM);
  EXPECT_FALSE(record->term_received);
}

TEST_F(InitTest, ALeaseThatIsRenewedEndsNothing) {
  plan_.grace = -k_init_slack;
  deadline_in(std::chrono::milliseconds{400});
  script("run.sh", "trap '' TERM; echo began; while [ ! -e done ]; do sleep 0.01; done; exit 6");
  const pid_t init = begin();
  while (output_.find("began") == std::string::npos) take_output();
  const BootTime old = os::system_clock().boot() + std::chrono::milliseconds{450};
  deadline_in(std::chrono::hours{1});
  while (os::system_clock().boot() < old) take_output();
  std::ofstream(folder_ / "work/done") << "";
  EXPECT_EQ(end(init), 0);
  EXPECT_EQ(read_exit_record(plan_.run)->code, 6);
  EXPECT_FALSE(read_exit_record(plan_.run)->lease_passed);
}

TEST_F(InitTest, StartsEachRankWithItsOwnVariablesAndLabel) {
  plan_.grace = std::chrono::seconds{10};
  std::ofstream(plan_.run / k_ranks_file) << "rank 4\nrank 5\n";
  std::ofstream(plan_.run / "env.0") << "R=four" << '\0';
  std::ofstream(plan_.run / "env.1") << "R=five" << '\0';
  script("setup.sh", "echo once");
  script("run.sh", "echo $R; printf no-end");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_TRUE(output_.starts_with("once\n")) << output_;
  for (const char* line : {"[rank 4] four\n", "[rank 4] no-end\n", "[rank 5] five\n", "[rank 5] no-end\n"})
    EXPECT_NE(output_.find(line), std::string::npos) << line << output_;
  EXPECT_EQ(read_exit_record(plan_.run)->code, 0);
  EXPECT_EQ(read_exit_record(plan_.run)->first, "");
}

TEST_F(InitTest, ALineOfARankIsThereWhileTheRanksRun) {
  std::ofstream(plan_.run / k_ranks_file) << "rank 0\nrank 1\n";
  for (int rank = 0; rank < 2; ++rank) std::ofstream(plan_.run / ("env." + std::to_string(rank))) << '\0';
  script("run.sh", "echo up; while [ ! -e seen ]; do sleep 0.01; done");
  const pid_t child = begin();
  const BootTime give_up = os::system_clock().boot() + std::chrono::minutes{1};
  while (output_.size() < 24 && os::system_clock().boot() < give_up) take_output();
  EXPECT_NE(output_.find("[rank 1] up\n"), std::string::npos) << output_;
  std::ofstream(plan_.work / "seen") << "";
  EXPECT_EQ(end(child), 0);
}

TEST_F(InitTest, ARankThatFailsEndsTheOthersAndIsNamed) {
  plan_.grace = std::chrono::seconds{10};
  std::ofstream(plan_.run / k_ranks_file) << "rank 0\nrank 1\nrank 2\n";
  for (int rank = 0; rank < 3; ++rank)
    std::ofstream(plan_.run / ("env." + std::to_string(rank))) << "R=" << rank << '\0';
  script("run.sh",
         "case $R in 0) trap 'echo saved; exit 0' TERM ;; 2) exit 0 ;; esac\n"
         "if [ $R = 1 ]; then while [ ! -e up ]; do sleep 0.01; done; exit 7; fi\n"
         ": > up; while :; do sleep 0.01; done");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_NE(output_.find("[rank 0] saved\n"), std::string::npos) << output_;
  const auto record = read_exit_record(plan_.run);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->code, 7);
  EXPECT_EQ(record->first, "rank 1");
  EXPECT_FALSE(record->term_received) << "that TERM was not from outside";
}

TEST_F(InitTest, RanksThatDoNotGoAreKilledAfterTheirGrace) {
  plan_.grace = std::chrono::milliseconds{200};
  std::ofstream(plan_.run / k_ranks_file) << "rank 0\nrank 1\n";
  std::ofstream(plan_.run / "env.0") << "R=0" << '\0';
  std::ofstream(plan_.run / "env.1") << "R=1" << '\0';
  script("run.sh",
         "if [ $R = 1 ]; then while [ ! -e up ]; do sleep 0.01; done; kill -SEGV $$; fi\n"
         "trap '' TERM; : > up; while :; do sleep 0.01; done");
  const BootTime began = os::system_clock().boot();
  EXPECT_EQ(end(begin()), 0);
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::seconds{4}) << "five seconds are for those with a longer grace";
  EXPECT_EQ(read_exit_record(plan_.run)->signal, SIGSEGV);
  EXPECT_EQ(read_exit_record(plan_.run)->first, "rank 1");
}

TEST_F(InitTest, OneRankWithoutALabelWritesAsAnyProgram) {
  std::ofstream(plan_.run / k_ranks_file) << "\n";
  std::ofstream(plan_.run / "env.0") << "R=only" << '\0';
  script("run.sh", "echo $R");
  EXPECT_EQ(end(begin()), 0);
  EXPECT_EQ(output_, "only\n");
}

TEST(InitArguments, AreRefusedWhenTheyAreNotWhole) {
  const auto parsed = [](std::vector<std::string> texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    const auto plan = parse_init(pointers);
    return plan ? std::optional(*plan) : std::nullopt;
  };
  const auto plan = parsed({"/r", "/c", "/w", "-", "0"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->secrets, "");
  EXPECT_TRUE(plan->groups.empty());
  EXPECT_EQ(parsed({"/r", "/c", "/w", "/s", "7", "/g", "/h"})->groups, (std::vector<os::Path>{"/g", "/h"}));
  EXPECT_FALSE(parsed({"/r", "/c", "/w", "-"}));
  EXPECT_FALSE(parsed({"/r", "/c", "/w", "-", "x"}));
  EXPECT_FALSE(parsed({"/r", "/c", "/w", "-", "-1"}));
}

TEST(InitArguments, ComeBackAsTheyWere) {
  const InitPlan plan{"/r", "/c", "/w", "/s", Duration{5}, {"/g"}};
  auto texts = to_arguments(plan);
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  const auto back = parse_init(pointers);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_arguments(*back), texts);
}

}  // namespace
}  // namespace gridctl::agent::init_test
