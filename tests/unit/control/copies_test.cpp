// SPDX-License-Identifier: Apache-2.0
// What a remote's record holds, and what a check of copies finds missing.
#include <fcntl.h>
#include <filesystem>

#include "hand_clock.hpp"
#include "remotes_fixture.hpp"
#include "store/record.hpp"
#include "support/results.hpp"

namespace gridctl::control::copies_test {
namespace {

using namespace std::chrono_literals;
using namespace store::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

TEST(WhatWasSent, IsToldByWhomItWasSent) {
  const auto text = [](std::uint64_t sent, std::uint64_t by_host) {
    store::CopyStats stats;
    stats.bytes_sent = sent;
    stats.bytes_elsewhere = by_host;
    return describe(stats);
  };
  EXPECT_EQ(text(0, 0), "");
  EXPECT_EQ(text(1024, 0), ", 1.0 KiB sent");
  EXPECT_EQ(text(2048, 2048), ", 2.0 KiB sent directly from its host");
  EXPECT_EQ(text(2048, 1024), ", 2.0 KiB sent, 1.0 KiB of it directly from its host");
}

class Copies : public WithRemotes {
 protected:
  void SetUp() override {
    WithRemotes::SetUp();
    add("nas");
  }
  RemoteWork work() {
    auto opened = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true);
    EXPECT_THAT(opened, IsOk());
    return *std::move(opened);
  }
  void copy(const registry::Checkpoint& checkpoint) { EXPECT_THAT(work().copy({checkpoint, "train", 2}), IsOk()); }
};

TEST_F(Copies, HaveARecordThatSaysWhatTheyAre) {
  registry::Checkpoint one = save_checkpoint({{"a", "first"}, {"b", "more"}});
  one.epoch = {7};
  one.attempt = {3};
  copy(one);
  RemoteWork at = work();
  const auto key = load_key(paths);
  ASSERT_TRUE(key && *key);
  const auto record = store::read_record(*at.link().backend, {id, one.seq}, **key);
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->job, id);
  EXPECT_EQ(record->seq, one.seq);
  EXPECT_EQ(record->epoch.value, 7u);
  EXPECT_EQ(record->attempt.value, 3u);
  EXPECT_EQ(record->root, one.root);
  EXPECT_EQ(record->created_at, one.created_at);
  EXPECT_EQ(record->bytes, 9u);
  EXPECT_EQ(record->files, 2u);
  EXPECT_EQ(record->job_name, "train");
  EXPECT_EQ(record->how, "push");
  EXPECT_TRUE(registry.remote("nas")->answered_at);
}

TEST_F(Copies, AreCountedWhileTheyAreMadeAndMayBeStopped) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(50'000, 1)}});
  std::uint64_t done = 0, total = 0;
  EXPECT_THAT(work().copy({one, "train", 2},
                          [&](std::uint64_t now_done, std::uint64_t now_total) {
                            done = now_done, total = now_total;
                            return true;
                          }),
              IsOk());
  EXPECT_EQ(done, total);
  EXPECT_GT(total, 40'000u);
  const registry::Checkpoint two = save_checkpoint({{"a", noise(50'000, 2)}});
  EXPECT_THAT(work().copy({two, "train", 2}, [](std::uint64_t, std::uint64_t) { return false; }), FailsWith(Code::cancelled));
  EXPECT_THAT(registry.checkpoint(id, two.seq)->copies, IsEmpty());
}

TEST_F(Copies, WhoseRecordIsGoneOrAnotherOnesAreFound) {
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}}), two = save_checkpoint({{"a", "second"}});
  const registry::Checkpoint here_only = save_checkpoint({{"a", "third"}});
  copy(one);
  copy(two);
  RemoteWork at = work();
  EXPECT_THAT(at.check(1)->findings, IsEmpty()) << "the third is not said to be there";
  store::RemoteLink link = at.link();
  store::RemoteListing there_now = *store::list_remote(*link.backend);
  ASSERT_THAT(store::forget_copy(*link.backend, there_now, {id, one.seq}), IsOk());
  auto found = at.check(1);
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(found->findings, ElementsAre("the record of " + checkpoint_name(id, one.seq) + " is missing"));
  EXPECT_THAT(found->bad_records, ElementsAre(store::RecordName{id, one.seq}));
  const auto repaired = at.repair(*found);
  ASSERT_THAT(repaired, IsOk());
  EXPECT_THAT(repaired->done, ElementsAre("the copy of " + checkpoint_name(id, one.seq) + " was rewritten"));
  EXPECT_THAT(at.check(1)->findings, IsEmpty());
  EXPECT_THAT(registry.checkpoint(id, one.seq)->copies, ElementsAre("nas"));
  (void)here_only;
}

TEST_F(Copies, WhoseRecordIsOfAnotherCheckpointAreFound) {
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}}), two = save_checkpoint({{"a", "second"}});
  copy(two);
  registry::Checkpoint another = two;
  another.seq = one.seq;  // what a remote would hold that somebody filled with other records
  copy(another);
  RemoteWork at = work();
  const auto found = at.check(1);
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(found->findings,
              ElementsAre("the record of " + checkpoint_name(id, one.seq) + " belongs to another checkpoint"));
  EXPECT_THAT(found->bad_records, ElementsAre(store::RecordName{id, one.seq}));
}

TEST_F(Copies, AreForgottenWithWhatIsNotKeptHere) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}}), two = save_checkpoint({{"a", noise(5000, 2)}}),
                             three = save_checkpoint({{"a", noise(5000, 3)}});
  for (const auto& checkpoint : {one, two, three}) copy(checkpoint);
  RemoteWork at = work();
  EXPECT_EQ(*at.forget_obsolete(), 0u);
  ASSERT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
  EXPECT_EQ(*at.forget_obsolete(), 1u);
  EXPECT_EQ(*at.forget_obsolete(), 0u) << "the registry knows";
  EXPECT_THAT(store::list_remote(*at.link().backend)->packs, SizeIs(3));
  ASSERT_THAT(at.prune(), IsOk());
  EXPECT_THAT(store::list_remote(*at.link().backend)->packs, SizeIs(2));
}

TEST_F(Copies, ThatBringACheckpointBackMakeItVerifiedAgain) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  copy(one);
  ASSERT_THAT(registry.set_verified(id, one.seq, false), IsOk());
  for (const auto& pack : fs::directory_iterator(paths.chunk_store() / "packs")) {
    std::string text = slurp(pack.path());
    text[1000] ^= 1;
    write(pack.path(), text);
  }
  RemoteWork at = work();
  const auto repaired = at.repair(*at.check(1));
  ASSERT_THAT(repaired, IsOk());
  EXPECT_THAT(repaired->failed, IsEmpty());
  EXPECT_THAT(repaired->done, ElementsAre(HasSubstr(checkpoint_name(id, one.seq) + ": restored here: ")));
  EXPECT_TRUE(registry.checkpoint(id, one.seq)->verified);
}

TEST_F(Copies, AreGivenUpForADaemonThatHasNothingElseToDo) {
  save_checkpoint({{"a", "first"}});
  fs::rename(there / "nas", there / "away");
  os::Loop loop;
  testing::HandClock hand;
  Copier copier(loop, hand, paths, net);
  const auto loop_until = [&](const std::function<bool()>& done) {
    const BootTime end = clock.boot() + 60s;
    bool met = false;
    const auto timer = loop.every(10ms, [&] {
      met = done();
      if (met || clock.boot() > end) loop.stop();
    });
    loop.run();
    return met;
  };
  EXPECT_TRUE(loop_until([&] { return !registry.remote("nas")->trouble.empty(); }));
  EXPECT_FALSE(copier.is_idle());
  hand.pass(9min);
  EXPECT_FALSE(copier.is_idle());
  hand.pass(2min);
  // It may hear of the trouble only now, and counts from then on.
  EXPECT_TRUE(loop_until([&] {
    hand.pass(1min);
    return copier.is_idle();
  })) << "it waits for a remote for ten minutes";
}

}  // namespace
}  // namespace gridctl::control::copies_test
