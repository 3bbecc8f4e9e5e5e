// SPDX-License-Identifier: Apache-2.0
#include "lend/leave.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "os/process.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::lend::leave_test {
namespace {

struct LeaveTest : ::testing::Test {
  LeaveTest() {
    ::setenv("GRIDCTL_AGENT_HOME", (dir / "home").c_str(), 1);
    std::filesystem::create_directories(lent().folder());
    EXPECT_TRUE(os::write_file_atomically(lent().folder() / "token", "x"));
  }
  ~LeaveTest() override { ::unsetenv("GRIDCTL_AGENT_HOME"); }
  LeaveTest(const LeaveTest&) = delete;
  LeaveTest& operator=(const LeaveTest&) = delete;

  [[nodiscard]] static Lent lent() { return Lent("4711abcd"); }
  // Waits until the shell has begun to write.
  [[nodiscard]] os::ProcessId starts(const std::string& script, const std::vector<std::string>& words) const {
    std::vector<std::string> argv{"sh", "-c", script};
    argv.insert(argv.end(), words.begin(), words.end());
    auto pid = os::spawn(argv, {});
    EXPECT_TRUE(pid);
    for (int turn = 0; turn < 1000 && !os::exists(lent().folder() / "log"); ++turn) os::pause_for(std::chrono::milliseconds{5});
    return pid ? os::identify(*pid).value_or(os::ProcessId{}) : os::ProcessId{};
  }

  const gridctl::testing::TempDir dir;
  const ControllerId controller{"someone"};
  os::Clock& clock = os::system_clock();
};

TEST_F(LeaveTest, RemovesAFolderThatIsBeingWrittenTo) {
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    while (!ends) lent().log("connected to the relay", clock);
  });
  for (int turn = 0; turn < 200; ++turn) {
    std::filesystem::create_directories(lent().folder());
    os::pause_for(std::chrono::milliseconds{1});
    const auto gone = withdraw(lent(), controller, clock);
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_FALSE(os::exists(lent().folder()));
    const auto removed = remove_for_good(gone->folder(), clock);
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_TRUE(withdrawn().empty());
  }
  ends = true;
  writer.join();
}

TEST_F(LeaveTest, EndsThoseWhoServeTheInvitation) {
  const std::string script = "while :; do : > " + lent().log_file().native() + "; done 2> /dev/null";
  const os::ProcessId dials = starts(script, {"lend", "dial", "4711abcd"});
  const os::ProcessId serves = starts(script, {"connect", "--guest", lent().terms_file().native()});
  const os::ProcessId other = starts("sleep 60", {"lend", "dial", "4711abce"});
  const auto gone = withdraw(lent(), controller, clock);
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_FALSE(os::is_alive(dials));
  EXPECT_FALSE(os::is_alive(serves));
  EXPECT_TRUE(os::is_alive(other));
  EXPECT_FALSE(os::exists(lent().folder()));
  EXPECT_TRUE(os::send_signal(other, SIGKILL).value_or(false));
}

TEST_F(LeaveTest, ListsWhatAnInterruptedOneHasLeft) {
  const auto gone = withdraw(lent(), controller, clock);
  ASSERT_TRUE(gone) << gone.error().message;
  ASSERT_EQ(withdrawn().size(), 1U);
  EXPECT_TRUE(all_lent().empty());
  EXPECT_TRUE(withdraw(withdrawn().front(), controller, clock)) << "it can be repeated";
  EXPECT_TRUE(remove_for_good(gone->folder(), clock));
  EXPECT_TRUE(withdrawn().empty());
}

}  // namespace
}  // namespace gridctl::lend::leave_test
