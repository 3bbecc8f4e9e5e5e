// SPDX-License-Identifier: Apache-2.0
#include "agent/checkpoints.hpp"

#include <gmock/gmock.h>
#include <sys/eventfd.h>

#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent {
namespace {

using store::testing::slurp, store::testing::write;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// An attempt whose checkpoint directory holds what was restored.
class CheckpointWatchTest : public ::testing::Test {
 protected:
  CheckpointWatchTest() {
    spec_.job = {"j"};
    spec_.restore = Digest{};
    write(files() / "state", "step 45\n");
  }
  os::Path files() const { return attempt_.checkpoints(); }

  store::testing::Folder dir_;
  const AttemptDir attempt_{dir_ / "jobs/c/j/1"};
  wire::AttemptSpec spec_;
  const os::Fd changed_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST_F(CheckpointWatchTest, WhatWasRestoredIsNoNews) {
  CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  watch.restored();
  watch.start();
  watch.finish(store::Writer::exited);
  EXPECT_THAT(watch.list(), IsEmpty());
}

// A program that resumes near its end may have saved, and ended, before anybody looks for the first time.
TEST_F(CheckpointWatchTest, WhatIsSavedBeforeTheFirstLookIsTaken) {
  CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  watch.restored();
  write(files() / "state", "step 45\nstep 46\n");
  write(files() / ".commit", "");
  watch.start();
  watch.finish(store::Writer::exited);
  ASSERT_THAT(watch.list(), SizeIs(1));
  EXPECT_EQ(slurp(snapshot_files(attempt_, 1) / "state"), "step 45\nstep 46\n");
}

}  // namespace
}  // namespace gridctl::agent
