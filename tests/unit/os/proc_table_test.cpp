// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::proc_table_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

int start(const std::vector<std::string>& argv) { return spawn(argv, {}).value(); }

void end(int pid) {
  ::kill(pid, SIGKILL);
  EXPECT_THAT(wait(pid), IsOk());
}

TEST(ProcTable, IdentifiesAProcessByStartTimeToo) {
  const int pid = start({"sleep", "60"});
  const std::optional<ProcessId> process = identify(pid);
  ASSERT_TRUE(process);
  EXPECT_TRUE(is_alive(*process));
  EXPECT_FALSE(is_alive({pid, process->start_ticks + 1}));
  end(pid);
  EXPECT_FALSE(is_alive(*process));
}

TEST(ProcTable, AZombieIsNoProcess) {
  const int pid = start({"sleep", "60"});
  const ProcessId process = identify(pid).value();
  const Fd handle = open_pidfd(process).value();
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(wait_ready(handle.get(), true, false, std::chrono::seconds{10}).value());
  EXPECT_FALSE(identify(pid));
  EXPECT_FALSE(is_alive(process));
  EXPECT_THAT(wait(pid), IsOk());
}

TEST(ProcTable, ReadsNamesThatImitateTheFormat) {
  const TempDir dir;
  const Path odd = dir / ") R 1 1 (x";
  std::filesystem::copy_file("/bin/sleep", odd);
  const int pid = start({odd, "60"});
  const std::optional<ProcessId> process = identify(pid);
  ASSERT_TRUE(process);
  const std::vector<ProcessId> ours = descendants(::getpid());
  EXPECT_NE(std::find(ours.begin(), ours.end(), *process), ours.end());
  end(pid);
}

TEST(ProcTable, ListsDescendantsOfDescendants) {
  Result<std::pair<Fd, Fd>> ready = make_pipe();
  SpawnOptions options;
  options.stdout_fd = ready->second.get();
  options.new_group = true;
  const int pid = spawn({"sh", "-c", "sh -c 'sleep 60 & echo up; wait' & wait"}, options).value();
  char byte = 0;
  ASSERT_EQ(::read(ready->first.get(), &byte, 1), 1);
  EXPECT_EQ(descendants(pid).size(), 2u);
  for (const ProcessId& process : descendants(pid)) EXPECT_NE(process.pid, pid);
  ::kill(-pid, SIGKILL);
  EXPECT_THAT(wait(pid), IsOk());
}

TEST(ProcTable, SignalsOnlyTheProcessThatWasMeant) {
  const int pid = start({"sleep", "60"});
  const ProcessId process = identify(pid).value();
  EXPECT_FALSE(send_signal({pid, process.start_ticks + 1}, SIGKILL).value());
  EXPECT_TRUE(is_alive(process));
  EXPECT_TRUE(send_signal(process, SIGTERM).value());
  EXPECT_EQ(wait(pid)->signal, SIGTERM);
  EXPECT_FALSE(send_signal(process, SIGTERM).value());
  EXPECT_THAT(open_pidfd(process), FailsWith(Code::not_found));
}

TEST(ProcTable, FindsProgramsInPathAndByPath) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_TRUE(find_program("/bin/sh"));
  EXPECT_FALSE(find_program("/etc/passwd"));
  EXPECT_FALSE(find_program("no-such-program-anywhere"));
  EXPECT_FALSE(find_program(""));
  EXPECT_EQ(boot_id().size(), 36u);
}

}  // namespace
}  // namespace gridctl::os::proc_table_test
