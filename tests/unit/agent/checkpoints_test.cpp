// SPDX-License-Identifier: Apache-2.0
#include "agent/checkpoints.hpp"
#include "agent/snapshots.hpp"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/entries.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::checkpoints_test {
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

TEST_F(CheckpointWatchTest, WhatWasTakenIsToldAndComesBackFromTheDisk) {
  write(attempt_.run(1) / "metrics", "{\"loss\": 1.5}\n");
  write(files() / "state", "step 46\n");
  write(files() / ".commit", "");
  std::vector<wire::HostCheckpoint> told;
  {
    CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
    watch.start();
    watch.finish(whole::Writer::exited);
    told = watch.list();
    EXPECT_EQ(watch.problem(), "");
    EXPECT_EQ(watch.stalled(), "");
    EXPECT_FALSE(watch.out_of_space());
  }
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].number, 1u);
  EXPECT_EQ(told[0].files, 1u);
  EXPECT_EQ(told[0].bytes, 8u);
  EXPECT_EQ(told[0].how, "commit-marker");
  EXPECT_FALSE(told[0].provisional);
  EXPECT_GE(told[0].age_ms, 0);
  EXPECT_LT(told[0].age_ms, 60'000);
  EXPECT_EQ(told[0].metrics, (Metrics{{"loss", 1.5}}));
  std::uint64_t signalled = 0;
  EXPECT_EQ(::read(changed_.get(), &signalled, sizeof signalled), static_cast<ssize_t>(sizeof signalled));
  const auto held = held_snapshots(attempt_, false);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].checkpoint.root, told[0].root);
  EXPECT_EQ(held[0].checkpoint.bytes, 8u);
  EXPECT_EQ(held[0].checkpoint.files, 1u);
  EXPECT_EQ(held[0].checkpoint.how, "commit-marker");
  EXPECT_EQ(held[0].checkpoint.metrics, told[0].metrics);
  EXPECT_GT(held[0].taken_at.ns, 0);
  // The next supervisor knows it by its root, and counts on.
  write(files() / ".commit", "");
  CheckpointWatch next(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  next.finish(whole::Writer::exited);
  EXPECT_THAT(next.list(), SizeIs(1));
  write(files() / "state", "step 47\n");
  write(files() / ".commit", "");
  CheckpointWatch last(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  last.finish(whole::Writer::exited);
  ASSERT_THAT(last.list(), SizeIs(2));
  EXPECT_EQ(last.list()[1].number, 2u);
}

TEST_F(CheckpointWatchTest, NothingIsTakenWhereNoneAreWanted) {
  spec_.checkpoints = false;
  write(files() / "state", "step 46\n");
  write(files() / ".commit", "");
  CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  watch.start();
  watch.finish(whole::Writer::exited);
  EXPECT_THAT(watch.list(), IsEmpty());
  EXPECT_FALSE(os::exists(attempt_.snapshots()));
}

TEST_F(CheckpointWatchTest, WithoutItsFolderThereIsNothingToTake) {
  std::filesystem::remove_all(files());
  CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
  watch.restored();
  watch.finish(whole::Writer::exited);
  EXPECT_THAT(watch.list(), IsEmpty());
}

// Snapshots as they lie on the disk, without their files.
class HeldTest : public CheckpointWatchTest {
 protected:
  void lay(std::uint64_t number, const std::string& info = "b 5 " + std::string(64, 'a') + " 10 2 exit\n") const {
    write(attempt_.snapshots() / std::to_string(number) / "info", info);
  }
  [[nodiscard]] std::vector<std::uint64_t> numbers(bool tidy = false) const {
    std::vector<std::uint64_t> found;
    for (const HeldSnapshot& one : held_snapshots(attempt_, tidy)) found.push_back(one.checkpoint.number);
    return found;
  }
  // What is left when the controller has all before `kept_from`.
  [[nodiscard]] std::vector<std::uint64_t> after_release(std::uint64_t kept_from) {
    spec_.checkpoints = false;
    CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
    watch.release(kept_from);
    std::vector<std::uint64_t> found;
    for (const auto& one : watch.list()) found.push_back(one.number);
    EXPECT_EQ(found, numbers());
    return found;
  }
};

TEST_F(HeldTest, AreThoseThatAreWholeInTheirOrder) {
  EXPECT_THAT(numbers(true), IsEmpty());
  for (const std::uint64_t number : {10u, 9u, 100u}) lay(number);
  lay(11, "b 5 " + std::string(64, 'a') + " 10 2\n");
  lay(12, "b 5 " + std::string(64, 'a') + " 10 2 exit provisional more\n");
  lay(13, "b 5 short 10 2 exit\n");
  lay(0);
  write(attempt_.snapshots() / "14" / "manifest", "no info");
  write(attempt_.snapshots() / "x" / "info", "b 5 " + std::string(64, 'a') + " 10 2 exit\n");
  EXPECT_THAT(numbers(), ElementsAre(9, 10, 100));
  EXPECT_TRUE(os::exists(attempt_.snapshots() / "14"));
  EXPECT_THAT(numbers(true), ElementsAre(9, 10, 100));
  EXPECT_THAT(*os::list_directory(attempt_.snapshots()), ElementsAre("10", "100", "9")) << "what is half made goes";
}

TEST_F(HeldTest, AreReadWithAllTheirWords) {
  lay(1, "b 77 " + std::string(64, 'b') + " 1000 3 transformers:x provisional\n{\"loss\": 2}\n");
  lay(2);
  const auto held = held_snapshots(attempt_, false);
  ASSERT_THAT(held, SizeIs(2));
  EXPECT_EQ(held[0].taken_at, BootTime{77});
  EXPECT_EQ(to_hex(held[0].checkpoint.root), std::string(64, 'b'));
  EXPECT_EQ(held[0].checkpoint.bytes, 1000u);
  EXPECT_EQ(held[0].checkpoint.files, 3u);
  EXPECT_EQ(held[0].checkpoint.how, "transformers:x");
  EXPECT_TRUE(held[0].checkpoint.provisional);
  EXPECT_EQ(held[0].checkpoint.metrics, (Metrics{{"loss", 2}}));
  EXPECT_FALSE(held[1].checkpoint.provisional);
  EXPECT_TRUE(held[1].checkpoint.metrics.empty());
}

TEST_F(HeldTest, StayUntilTheControllerHasThemAndTheNewestTwoAlways) {
  for (std::uint64_t number = 1; number <= 5; ++number) lay(number);
  EXPECT_THAT(after_release(0), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(after_release(1), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(after_release(3), ElementsAre(3, 4, 5));
  EXPECT_THAT(after_release(1000), ElementsAre(4, 5));
}

TEST_F(HeldTest, GoBeforeTheControllerHasThemWhereTheyTakeTooMuch) {
  for (std::uint64_t number = 1; number <= 5; ++number) lay(number);
  spec_.disk_bytes_max = 40;
  EXPECT_THAT(after_release(1), ElementsAre(2, 3, 4, 5));
  spec_.disk_bytes_max = 39;
  EXPECT_THAT(after_release(1), ElementsAre(3, 4, 5));
  spec_.disk_bytes_max = 5;
  EXPECT_THAT(after_release(1), ElementsAre(4, 5)) << "two stay whatever they take";
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
}  // namespace gridctl::agent::checkpoints_test
