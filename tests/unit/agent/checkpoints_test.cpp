// SPDX-License-Identifier: Apache-2.0
#include "agent/checkpoints.hpp"
#include "agent/snapshots.hpp"

#include <gmock/gmock.h>
#include <sys/eventfd.h>

#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent {
namespace {

using gridctl::testing::IsOk;
using store::testing::slurp, store::testing::write;
using ::testing::ElementsAre;
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
  watch.finish(whole::Writer::exited);
  EXPECT_THAT(watch.list(), IsEmpty());
}

// A program that resumes near its end may have saved, and ended, before anybody looks for the first time.
TEST_F(CheckpointWatchTest, WhatIsSavedBeforeTheFirstLookIsTaken) {
  CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  watch.restored();
  write(files() / "state", "step 45\nstep 46\n");
  write(files() / ".commit", "");
  watch.start();
  watch.finish(whole::Writer::exited);
  ASSERT_THAT(watch.list(), SizeIs(1));
  EXPECT_EQ(slurp(snapshot_files(attempt_, 1) / "state"), "step 45\nstep 46\n");
}

class BasesTest : public CheckpointWatchTest {
 protected:
  BasesTest() { std::filesystem::create_directories(attempt_.bases_file().parent_path()); }
  // Takes one more snapshot, when the controller has all of those before it; which ones there are then.
  std::vector<std::uint64_t> after_another() {
    write(files() / "state", "step " + std::to_string(++step_) + "\n");
    write(files() / ".commit", "");
    CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
    watch.release(1000);
    watch.start();
    watch.finish(whole::Writer::exited);
    std::vector<std::uint64_t> numbers;
    for (const auto& one : watch.list()) numbers.push_back(one.number);
    return numbers;
  }
  int step_ = 100;
};

TEST_F(BasesTest, StayForTheNextFewSnapshots) {
  EXPECT_THAT(after_another(), ElementsAre(1));
  EXPECT_THAT(after_another(), ElementsAre(1, 2));
  ASSERT_THAT(note_bases(attempt_, 2, {1}), IsOk());
  EXPECT_THAT(after_another(), ElementsAre(1, 2, 3));
  ASSERT_THAT(note_bases(attempt_, 3, {1}), IsOk());
  ASSERT_THAT(note_bases(attempt_, 3, {2}), IsOk());  // of another pack
  EXPECT_THAT(after_another(), ElementsAre(1, 2, 3, 4));
  ASSERT_THAT(note_bases(attempt_, 4, {2}), IsOk());
  ASSERT_THAT(note_bases(attempt_, 3, {1}), IsOk());  // comes late
  EXPECT_THAT(after_another(), ElementsAre(2, 4, 5));
  EXPECT_THAT(after_another(), ElementsAre(2, 5, 6));
  EXPECT_THAT(after_another(), ElementsAre(2, 6, 7));
  EXPECT_THAT(after_another(), ElementsAre(2, 7, 8));
  EXPECT_THAT(after_another(), ElementsAre(8, 9));  // nobody has asked for long
}

// Two connections, of which each sends 1 MB at a time.
TEST_F(CheckpointWatchTest, UploadsKeepTogetherToTheirLimit) {
  std::filesystem::create_directories(attempt_.path);
  const BootTime begin{1'000'000'000'000};
  const auto wait = [&](Duration after, std::uint64_t bytes) {
    const auto told = reserve_upload(attempt_, bytes, 2'000'000, begin + after);
    EXPECT_THAT(told, IsOk());
    return told ? *told : Duration{-1};
  };
  using std::chrono::milliseconds;
  EXPECT_EQ(wait(milliseconds{0}, 1'000'000), milliseconds{500});
  EXPECT_EQ(wait(milliseconds{100}, 1'000'000), milliseconds{900});
  EXPECT_EQ(wait(milliseconds{500}, 1'000'000), milliseconds{1000});
  EXPECT_EQ(wait(milliseconds{5000}, 1'000'000), milliseconds{500});         // what was not used is not saved up
  EXPECT_EQ(wait(milliseconds{5000}, 1'000'000'000), milliseconds{20'500});  // never so long that the link seems dead
  write(attempt_.path / "uploads", "nonsense");
  EXPECT_EQ(wait(milliseconds{0}, 1'000'000), milliseconds{500});
}

TEST_F(BasesTest, GoWhereRoomIsShort) {
  spec_.disk_bytes_max = 20;  // two of nine bytes
  after_another();
  after_another();
  ASSERT_THAT(note_bases(attempt_, 2, {1}), IsOk());
  EXPECT_THAT(after_another(), ElementsAre(2, 3));
}

TEST_F(BasesTest, ThatCannotBeReadAreNone) {
  after_another();
  after_another();
  write(attempt_.bases_file(), "2 1 x\n\xff 99999999999999999999999999");
  EXPECT_THAT(after_another(), ElementsAre(1, 2, 3));  // as far as it goes
  write(attempt_.bases_file(), "");
  EXPECT_THAT(after_another(), ElementsAre(3, 4));
}

}  // namespace
}  // namespace gridctl::agent
