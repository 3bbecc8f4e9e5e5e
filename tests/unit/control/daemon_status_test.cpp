// SPDX-License-Identifier: Apache-2.0
// Who looks from outside knows by the lock whether a daemon runs, and by the environment how often GPUs are tested.
#include <gtest/gtest.h>

#include <cstdlib>

#include "control/daemon/daemon.hpp"
#include "control/measure/bench.hpp"
#include "control/reach/paths.hpp"
#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::daemon_status_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

TEST(DaemonStatus, IsThatOfWhoHoldsTheLock) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  EXPECT_FALSE(daemon_status(dir.path())->running) << "there was never one";
  {
    const auto lock = os::FileLock::acquire(paths.daemon_lock());
    ASSERT_THAT(lock, IsOk());
    const auto status = daemon_status(dir.path());
    ASSERT_THAT(status, IsOk());
    EXPECT_TRUE(status->running);
    EXPECT_EQ(status->pid, 0) << "it has not said who it is yet";
  }
  EXPECT_FALSE(daemon_status(dir.path())->running) << "the file alone is nobody";
}

}  // namespace
}  // namespace gridctl::control::daemon_status_test
