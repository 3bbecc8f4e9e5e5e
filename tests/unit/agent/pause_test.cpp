// SPDX-License-Identifier: Apache-2.0
#include "agent/pause.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "agent/engine.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::pause_test {
namespace {

// An engine without a freezer, as plain processes have it on a host without control groups.
class Bare final : public Engine {
 public:
  explicit Bare(pid_t first) : first_(first) {}
  Result<std::string> ensure_image(const wire::AttemptSpec&, const Path&) override { return std::string(); }
  Result<void> launch(const wire::AttemptSpec&, const LaunchPlan&) override { return {}; }
  bool is_gone(const std::string&) override { return false; }
  std::vector<os::ProcessId> members(const std::string&, const Path&) override {
    std::vector<os::ProcessId> all = os::descendants(first_);
    if (const auto first = os::identify(first_)) all.push_back(*first);
    return all;
  }
  bool set_frozen(const std::string&, bool) override { return false; }
  Result<void> remove(const std::string&) override { return {}; }

 private:
  pid_t first_;
};

// A shell that starts a command is in vfork(2) until the command runs. Stopped in between, the child would keep its
// parent deaf to every signal for ever.
TEST(Freeze, StopsAProgramThatIsStartingAnother) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork)
    if (::vfork() == 0) {
      ::raise(SIGSTOP);
      ::execlp("sleep", "sleep", "60", nullptr);
      ::_exit(1);
    }
    for (;;) ::pause();
  }
  Bare engine(parent);
  const gridctl::testing::TempDir folder;
  while (engine.members("", folder.path()).size() < 2) std::this_thread::yield();
  EXPECT_THAT(freeze(engine, "", folder.path()), gridctl::testing::IsOk());
  EXPECT_EQ(engine.members("", folder.path()).size(), 2U);
  for (const os::ProcessId& process : engine.members("", folder.path())) ::kill(process.pid, SIGKILL);
}

}  // namespace
}  // namespace gridctl::agent::pause_test
