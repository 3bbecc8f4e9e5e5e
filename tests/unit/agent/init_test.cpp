// SPDX-License-Identifier: Apache-2.0
#include "agent/init.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/attempt_dir.hpp"
#include "os/clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent {
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
  [[nodiscard]] pid_t begin() const {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_init(plan_));
    return child;
  }
  // Waits while taking the output, as a supervisor does.
  int end(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) take_output();
    take_output();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void take_output() {
    char buffer[4096];
    const ssize_t got = ::read(log_.get(), buffer, sizeof buffer);
    if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
    else ::usleep(500);
  }

  testing::TempDir folder_;
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
}  // namespace gridctl::agent
