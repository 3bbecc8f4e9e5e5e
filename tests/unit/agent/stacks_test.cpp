// SPDX-License-Identifier: Apache-2.0
// Where the processes of a job stand: this test holds the lock of its first process, and its children are the job.
#include "agent/stacks.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::stacks_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

class StacksTest : public ::testing::Test {
 protected:
  StacksTest() : path_(std::getenv("PATH")) {
    EXPECT_THAT(os::make_directories(attempt_.run(1)), IsOk());
    EXPECT_THAT(os::make_directories(bin_), IsOk());
    ::setenv("PATH", (bin_.native() + ":" + path_).c_str(), 1);
    std::filesystem::copy_file("/bin/sleep", bin_ / "python3.11");
  }
  ~StacksTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const int pid : started_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  void begin() {
    held_ = os::FileLock::try_acquire(attempt_.run(1) / "lock").value();
    ASSERT_TRUE(held_);
  }
  // A process of the job, with that rank.
  std::string start(const std::string& program, const std::string& rank) {
    os::SpawnOptions options;
    options.environment = {{"PATH", bin_.native() + ":" + path_}};
    if (!rank.empty()) (*options.environment)["GRIDCTL_RANK"] = rank;
    started_.push_back(os::spawn({program, "77.25"}, options).value());
    return std::to_string(started_.back());
  }
  void pyspy(const std::string& script) const {
    ASSERT_THAT(os::write_file_atomically(bin_ / "py-spy", "#!/bin/sh\n" + script + "\n", 0700), IsOk());
  }
  [[nodiscard]] std::string text() const {
    const auto found = stacks_of(attempt_, os::system_clock());
    EXPECT_THAT(found, IsOk());
    return found ? *found : "";
  }

  std::string path_;
  gridctl::testing::TempDir dir_;
  const os::Path bin_ = dir_ / "bin";
  const AttemptDir attempt_{dir_.path() / "home/jobs/c/j/1"};
  std::optional<os::FileLock> held_;
  std::vector<int> started_;
};

TEST_F(StacksTest, AreOfAnAttemptThatRuns) {
  EXPECT_THAT(stacks_of(attempt_, os::system_clock()), FailsWith(Code::not_found));
  EXPECT_THAT(stacks_of({dir_ / "none"}, os::system_clock()), FailsWith(Code::not_found));
  begin();
  EXPECT_THAT(stacks_of(attempt_, os::system_clock()), IsOk());
}

TEST_F(StacksTest, NameEachProcessByItsRankAndWhatItDoes) {
  begin();
  const std::string second = start("sleep", "1"), none = start("sleep", ""), first = start("sleep", "0");
  std::string all;
  const auto sleeps = [&](const std::string& who) {
    return all.find(who + ": sleep 77.25 \n  state S (sleeping)") != std::string::npos;
  };
  for (const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60}; os::system_clock().boot() < give_up;) {
    all = text();
    if (sleeps("rank 0, process " + first) && sleeps("rank 1, process " + second)) break;
    os::pause_for(std::chrono::milliseconds{5});  // they may still be starting
  }
  EXPECT_TRUE(sleeps("rank 0, process " + first)) << all;
  EXPECT_TRUE(sleeps("rank 1, process " + second)) << all;
  EXPECT_THAT(all, HasSubstr("process " + none + ": sleep 77.25 \n"));
  EXPECT_LT(all.find("rank 0,"), all.find("rank 1,"));
  EXPECT_LT(all.find("process " + none), all.find("rank 0,"));
  EXPECT_THAT(all, Not(HasSubstr("Python")));
}

TEST_F(StacksTest, OfPythonAreItsOwnWhereTheHostCanTellThem) {
  begin();
  const std::string one = start("python3.11", "0");
  pyspy("[ \"$*\" = \"dump --nonblocking --pid " + one + "\" ] && echo 'Thread 1 \033[1m' && echo '  train (a.py:7)'");
  EXPECT_THAT(text(), HasSubstr("  Python:\n    Thread 1 ^[[1m\n      train (a.py:7)\n"));
  pyspy("echo 'Permission denied' >&2; exit 1");
  EXPECT_THAT(text(), HasSubstr("  no Python stack: Permission denied\n"));
}

TEST_F(StacksTest, SayOnceThatTheHostCannotTellThoseOfPython) {
  if (os::find_program("py-spy")) GTEST_SKIP() << "this host has py-spy";
  begin();
  start("python3.11", "0");
  start("python3.11", "1");
  const std::string all = text(), sentence = "no Python stacks: py-spy is not installed on this host";
  EXPECT_NE(all.find(sentence), std::string::npos);
  EXPECT_EQ(all.find(sentence), all.rfind(sentence));
}

TEST_F(StacksTest, NameWhatACollectiveHasWrittenDown) {
  begin();
  std::ofstream(attempt_.run(1) / "nccl_trace_rank_3") << std::string(2048, 'x');
  std::ofstream(attempt_.run(1) / "nccl_trace_rank_3.pipe") << "x";
  std::ofstream(attempt_.run(1) / "my_nccl_trace_rank_3") << "x";
  std::filesystem::create_symlink("/etc/hostname", attempt_.run(1) / "nccl_trace_rank_4");
  const std::string all = text();
  EXPECT_THAT(all, HasSubstr("NCCL flight recorder: nccl_trace_rank_3, 2.0 KiB\n"));
  for (const char* other : {".pipe", "my_nccl", "nccl_trace_rank_4"}) EXPECT_THAT(all, Not(HasSubstr(other)));
}

}  // namespace
}  // namespace gridctl::agent::stacks_test
