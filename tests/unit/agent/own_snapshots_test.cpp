// SPDX-License-Identifier: Apache-2.0
// A host offers its own snapshots instead of receiving them: what counts as present, what is kept, and what goes.
#include "agent/own_snapshots.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "agent/prepare.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "store/scan.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::own_snapshots_test {
namespace {

using namespace gridctl::testing;
using store::testing::noise, store::testing::slurp, store::testing::write;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OwnSnapshotsTest : public ::testing::Test {
 protected:
  [[nodiscard]] AttemptDir attempt(std::uint64_t epoch) const {
    return {home_ / "jobs/c/j" / std::to_string(epoch)};
  }
  // Snapshot `number` of an attempt, with one file.
  store::Tree save(std::uint64_t epoch, std::uint64_t number, const std::string& weights,
                   const std::string& boot = os::boot_id()) {
    const Path folder = attempt(epoch).snapshots() / std::to_string(number);
    write(folder / "files/out/weights", weights);
    store::Tree tree = store::scan(folder / "files", {})->tree;
    const Bytes manifest = store::to_manifest(tree);
    write(folder / "manifest", as_text(manifest));
    write(folder / "info", boot + " 1 " + to_hex(store::root_of(manifest)) + " 1 1 quiet\n");
    return tree;
  }
  std::vector<std::uint32_t> missing(const store::Tree& tree) {
    std::vector<Digest> digests;
    std::vector<std::uint32_t> indices;
    for (const store::Chunk& chunk : tree.unique_chunks()) {
      indices.push_back(static_cast<std::uint32_t>(digests.size()));
      digests.push_back(chunk.digest);
    }
    own_.find(job_, digests, indices);
    return indices;
  }
  std::vector<std::string> kept() const {
    const auto names = os::list_directory(home_ / "snapshots");
    return names ? *names : std::vector<std::string>{};
  }
  // Only the manifest is in the cache.
  Result<Prepared> restore(const store::Tree& tree) {
    store::ChunkStore cache = *store::ChunkStore::open(home_ / "cache");
    const Bytes manifest = store::to_manifest(tree);
    EXPECT_THAT(cache.put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache.seal(), IsOk());
    wire::AttemptSpec spec;
    spec.job = job_;
    spec.epoch = Epoch{9};
    spec.engine = EngineKind::process;
    spec.restore = store::root_of(manifest);
    EXPECT_THAT(os::make_directories(attempt(9).path), IsOk());
    return prepare_folders(attempt(9), spec, [](const std::string&) {});
  }

  store::testing::Folder dir_;
  const Path home_ = dir_ / "home";
  const JobId job_{"j"};
  OwnSnapshots own_{home_, {"c"}};
};

TEST_F(OwnSnapshotsTest, AnAttemptIsRestoredFromSnapshotsOfAnEarlierOneAndTheCacheHoldsNothingOfThem) {
  const std::string weights = noise(9'000'000, 1);
  const store::Tree tree = save(3, 1, weights);
  EXPECT_THAT(missing(tree), IsEmpty());
  ASSERT_THAT(restore(tree), IsOk());
  EXPECT_EQ(slurp(attempt(9).checkpoints() / "out/weights"), weights);
}

TEST_F(OwnSnapshotsTest, WhatIsInNoneIsStillMissing) {
  save(3, 1, noise(9'000'000, 1));
  const std::string changed = noise(4u << 20, 2) + noise(9'000'000, 1).substr(4u << 20);
  write(dir_ / "other/out/weights", changed);
  EXPECT_THAT(missing(store::scan(dir_ / "other", {})->tree), ElementsAre(0));
  OwnSnapshots other_controller(home_, {"d"});
  std::vector<std::uint32_t> all{0};
  const Digest digest = save(3, 2, "mine").unique_chunks().front().digest;
  other_controller.find(job_, std::span(&digest, 1), all);
  EXPECT_THAT(all, ElementsAre(0));
}

TEST_F(OwnSnapshotsTest, WhatAPowerCutTookIsMissing) {
  const store::Tree tree = save(3, 1, noise(9'000'000, 1), "another-boot");
  const Path file = attempt(3).snapshots() / "1/files/out/weights";
  EXPECT_THAT(missing(tree), IsEmpty()) << "it is whole, and was read";
  std::string content = slurp(file);
  content[5'000'000] ^= 1;
  write(file, content);
  own_ = OwnSnapshots(home_, {"c"});
  EXPECT_THAT(missing(tree), ElementsAre(1));
  write(file, content.substr(0, 100));
  own_ = OwnSnapshots(home_, {"c"});
  EXPECT_THAT(missing(tree), ElementsAre(0, 1, 2));
}

TEST_F(OwnSnapshotsTest, ADamagedOneIsNotOfferedAgain) {
  const store::Tree tree = save(3, 1, noise(9'000'000, 1));
  std::string content = noise(9'000'000, 1);
  content[5'000'000] ^= 1;
  write(attempt(3).snapshots() / "1/files/out/weights", content);
  EXPECT_THAT(missing(tree), IsEmpty()) << "nobody looks twice at what this boot has hashed";
  EXPECT_FALSE(restore(tree));
  EXPECT_FALSE(os::exists(attempt(9).checkpoints() / "out/weights"));
  EXPECT_THAT(missing(tree), ElementsAre(0, 1, 2));
}

TEST_F(OwnSnapshotsTest, TheNewestOutliveTheirAttemptUntilANewerOneHasSome) {
  const store::Tree first = save(3, 1, "one"), second = save(3, 2, "two"), third = save(3, 3, "three");
  ASSERT_THAT(own_.keep(attempt(3)), IsOk());
  ASSERT_THAT(os::remove_tree(attempt(3).path), IsOk());
  EXPECT_THAT(kept(), ElementsAre("c.j.3.2", "c.j.3.3"));
  EXPECT_THAT(missing(third), IsEmpty());
  EXPECT_THAT(missing(first), ElementsAre(0));
  ASSERT_THAT(os::make_directories(attempt(4).path), IsOk());
  ASSERT_THAT(own_.keep(attempt(4)), IsOk());
  EXPECT_THAT(missing(third), IsEmpty()) << "attempt 4 has saved nothing";
  save(5, 1, "four");
  ASSERT_THAT(own_.keep(attempt(5)), IsOk());
  EXPECT_THAT(kept(), ElementsAre("c.j.5.1"));
  own_.drop(job_);
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(OwnSnapshotsTest, WhatTheControllerStillWantsIsKeptThoughItIsOld) {
  for (std::uint64_t number = 1; number <= 5; ++number) save(3, number, std::to_string(number));
  write(attempt(3).kept_file(), "2\n");
  ASSERT_THAT(own_.keep(attempt(3)), IsOk());
  EXPECT_THAT(kept(), ElementsAre("c.j.3.2", "c.j.3.4", "c.j.3.5"));
}

TEST_F(OwnSnapshotsTest, NothingIsKeptForEver) {
  const store::Tree tree = save(3, 1, "one");
  ASSERT_THAT(own_.keep(attempt(3)), IsOk());
  const WallTime now = os::system_clock().wall();
  own_.sweep({now.ms + 23 * 3'600'000});
  EXPECT_THAT(missing(tree), IsEmpty());
  own_.sweep({now.ms + 25 * 3'600'000});
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(OwnSnapshotsTest, OtherJobsGetTheRoom) {
  save(3, 1, "one");
  ASSERT_THAT(own_.keep(attempt(3)), IsOk());
  own_.make_room(UINT64_MAX, job_);
  EXPECT_THAT(kept(), ElementsAre("c.j.3.1"));
  own_.make_room(1, {"other"});
  EXPECT_THAT(kept(), ElementsAre("c.j.3.1")) << "there is enough";
  own_.make_room(UINT64_MAX, {"other"});
  EXPECT_THAT(kept(), IsEmpty());
}

}  // namespace
}  // namespace gridctl::agent::own_snapshots_test
