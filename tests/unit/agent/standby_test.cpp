// SPDX-License-Identifier: Apache-2.0
#include "agent/standby.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"
#include "wire/guest.hpp"

namespace gridctl::agent::standby_test {
namespace {

using namespace gridctl::testing;
using store::testing::slurp, store::testing::write;
using ::testing::IsEmpty;

class StandbyTest : public ::testing::Test {
 protected:
  // A checkpoint in the cache.
  Digest saved(const std::string& weights) {
    const Digest digest = store::testing::put(cache_, weights);
    store::Entry file{store::EntryKind::file, 0644, "deep/weights", weights.size(), {}, {}};
    file.chunks.push_back({digest, static_cast<std::uint32_t>(weights.size())});
    const Bytes manifest =
        to_manifest(*store::make_tree({{store::EntryKind::directory, 0755, "deep", 0, {}, {}}, file}));
    EXPECT_THAT(cache_.put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache_.seal(), IsOk());
    return store::root_of(manifest);
  }
  bool take(const Digest& root) {
    const auto taken = standby_.take(job_, root, dir_ / "scratch", dir_ / "into");
    EXPECT_THAT(taken, IsOk());
    EXPECT_FALSE(os::exists(dir_ / "scratch"));
    return taken && *taken;
  }
  os::Path lies() { return dir_ / "home/standby/c.j"; }
  os::Path laid() { return lies() / "tree/deep/weights"; }

  store::testing::Folder dir_;
  store::ChunkStore cache_ = *store::ChunkStore::open(dir_ / "cache");
  const JobId job_{"j"};
  Standby standby_{dir_ / "home", {"c"}};
};

TEST_F(StandbyTest, TakesNoMoreOfALentMachineThanIsLent) {
  wire::GuestTerms terms;
  terms.controller = {"c"};
  terms.who = "alice@laptop";
  terms.disk_bytes = 64 << 20;
  write(dir_ / "home/guests/c", "id\n");
  write(dir_ / "home/lend/id/terms.json", wire::encode(terms));
  // One chunk, named a hundred times: it comes once, and takes a hundred times as much.
  const std::string weights = store::testing::noise(1 << 20, 7);
  const Digest digest = store::testing::put(cache_, weights);
  const auto tree = [&](int times) {
    std::vector<store::Entry> files;
    for (int number = 0; number < times; ++number) {
      store::Entry file{store::EntryKind::file, 0644, "part" + std::to_string(1000 + number), weights.size(), {}, {}};
      file.chunks.push_back({digest, static_cast<std::uint32_t>(weights.size())});
      files.push_back(file);
    }
    const Bytes manifest = to_manifest(*store::make_tree(files));
    EXPECT_THAT(cache_.put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache_.seal(), IsOk());
    return store::root_of(manifest);
  };
  const Result<void> made = standby_.make(job_, tree(100), cache_);
  ASSERT_THAT(made, FailsWith(Code::no_space));
  EXPECT_NE(made.error().one_line().find("the owner of this machine lends 64 MiB of disk"), std::string::npos) << made.error().one_line();
  EXPECT_FALSE(os::exists(lies()));
  EXPECT_THAT(standby_.make(job_, tree(10), cache_), IsOk());
}

TEST_F(StandbyTest, TheVeryFilesBecomeTheCheckpoint) {
  const Digest root = saved("seven");
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  const auto inode = os::status_of(laid()).value()->inode;
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());  // again: nothing is to do
  EXPECT_EQ(os::status_of(laid()).value()->inode, inode);
  EXPECT_TRUE(take(root));
  EXPECT_EQ(slurp(dir_ / "into/deep/weights"), "seven");
  EXPECT_EQ(os::status_of(dir_ / "into/deep/weights").value()->inode, inode);
  EXPECT_FALSE(os::exists(lies()));
  EXPECT_FALSE(take(root));
}

TEST_F(StandbyTest, ANewerOneTakesThePlaceAndAnOlderIsNotUsed) {
  const Digest first = saved("first"), second = saved("second");
  ASSERT_THAT(standby_.make(job_, first, cache_), IsOk());
  ASSERT_THAT(standby_.make(job_, second, cache_), IsOk());
  EXPECT_EQ(slurp(laid()), "second");
  EXPECT_FALSE(take(first));
  EXPECT_FALSE(os::exists(dir_ / "into"));
  EXPECT_FALSE(os::exists(lies()));  // it will not be wanted again
}

TEST_F(StandbyTest, WhatWasTouchedIsNotUsed) {
  const Digest root = saved("weights");
  const std::vector<std::function<void()>> touches{
      [&] { write(laid(), "Weights"); },
      [&] { write(lies() / "tree/deep/more", ""); },
      [&] { std::filesystem::remove(laid()); },
      [&] {
        std::filesystem::permissions(laid(), std::filesystem::perms::owner_exec, std::filesystem::perm_options::add);
      },
      [&] { std::filesystem::create_symlink("weights", lies() / "tree/link"); },
      [&] {  // the same bytes, size and time, but another file
        const auto time = std::filesystem::last_write_time(laid());
        std::filesystem::copy(laid(), dir_ / "copy");
        std::filesystem::rename(dir_ / "copy", laid());
        std::filesystem::last_write_time(laid(), time);
      },
      [&] { write(lies() / "ready", slurp(lies() / "ready") + "x"); },
      [&] {  // another boot's
        std::string text = slurp(lies() / "ready");
        const std::string line = "\nboot " + os::boot_id() + "\n";
        const std::size_t at = text.find(line);
        ASSERT_NE(at, std::string::npos) << text;
        text[at + line.size() - 2] ^= 1;
        write(lies() / "ready", text);
      },
  };
  for (std::size_t i = 0; i < touches.size(); ++i) {
    ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
    touches[i]();
    EXPECT_FALSE(take(root)) << i;
    EXPECT_FALSE(os::exists(dir_ / "into")) << i;
  }
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  EXPECT_TRUE(take(root));
}

TEST_F(StandbyTest, WhatIsNotInTheCacheIsAnErrorAndLeavesNothing) {
  EXPECT_THAT(standby_.make(job_, store::testing::digest_of("nothing"), cache_), FailsWith(Code::not_found));
  EXPECT_THAT(standby_.make({"../j"}, saved("x"), cache_), FailsWith(Code::refused));
  EXPECT_THAT(os::list_directory(dir_ / "home/standby").value(), IsEmpty());
}

TEST_F(StandbyTest, WhatAnEarlierAttemptToTakeItLeftIsCleared) {
  const Digest root = saved("weights");
  write(dir_ / "scratch/tree/half", "of another");
  EXPECT_THAT(standby_.take(job_, root, dir_ / "scratch", dir_ / "into").value_or(true), ::testing::IsFalse());
  EXPECT_TRUE(os::exists(dir_ / "scratch")) << "nothing is ready: nothing is touched";
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  EXPECT_TRUE(take(root));
  EXPECT_EQ(slurp(dir_ / "into/deep/weights"), "weights");
  EXPECT_FALSE(os::exists(dir_ / "into/half"));
}

TEST_F(StandbyTest, IsNotPutWhereSomethingLies) {
  const Digest root = saved("weights");
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  write(dir_ / "into/mine", "kept");
  EXPECT_FALSE(take(root));
  EXPECT_EQ(slurp(dir_ / "into/mine"), "kept");
}

TEST_F(StandbyTest, UsingItAgainKeepsItForAnotherDay) {
  const Digest root = saved("weights");
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  const os::Path ready = lies() / "ready";
  std::filesystem::last_write_time(ready, std::filesystem::last_write_time(ready) - std::chrono::hours{23});
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  standby_.sweep({os::system_clock().wall().ms + 2 * 3600 * 1000});
  EXPECT_TRUE(os::exists(laid()));
  EXPECT_THAT(standby_.drop(job_), IsOk());
  EXPECT_FALSE(os::exists(lies()));
  EXPECT_THAT(standby_.drop({"../j"}), FailsWith(Code::refused));
}

TEST_F(StandbyTest, ADraftThatIsBeingMadeIsLeftAlone) {
  const os::Path draft = dir_ / "home/standby/c.k.draft-1";
  write(draft / "tree/half", "");
  const auto lock = os::DirectoryLock::try_acquire(draft);
  ASSERT_THAT(lock, IsOk());
  standby_.sweep({os::system_clock().wall().ms + 48 * 3600 * 1000});
  EXPECT_TRUE(os::exists(draft / "tree/half"));
}

TEST_F(StandbyTest, IsSweptAfterADayAndWhenItsMakerIsGone) {
  const Digest root = saved("weights");
  ASSERT_THAT(standby_.make(job_, root, cache_), IsOk());
  write(dir_ / "home/standby/c.k.draft-1/tree/half", "");
  const WallTime now = os::system_clock().wall();
  standby_.sweep(now);
  EXPECT_THAT(os::list_directory(dir_ / "home/standby").value(), ::testing::ElementsAre("c.j"));
  standby_.sweep({now.ms + 25 * 3600 * 1000});
  EXPECT_THAT(os::list_directory(dir_ / "home/standby").value(), IsEmpty());
}

}  // namespace
}  // namespace gridctl::agent::standby_test
