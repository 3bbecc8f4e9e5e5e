// SPDX-License-Identifier: Apache-2.0
// The daemon's copies in a loop of their own; remotes and what it takes to get there; garbage.
#include "control/copies/copier.hpp"

#include "control/copies/chunks.hpp"
#include "control/copies/freight.hpp"
#include "control/copies/housekeeping.hpp"
#include "control/copies/remote_work.hpp"
#include "hand_world.hpp"
#include "remotes_fixture.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::control::copier_test {
namespace {

using namespace std::chrono_literals;
using namespace store::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class CopierTest : public WithRemotes {
 protected:
  // A day and more has passed since anything was put into the store.
  void age() {
    for (const auto& pack : fs::directory_iterator(paths.chunk_store() / "packs"))
      fs::last_write_time(pack.path(), fs::file_time_type::clock::now() - 25h);
  }
  bool loop_until(const std::function<bool()>& done) {
    const BootTime end = clock.boot() + 60s;
    bool met = false;
    const auto timer = loop.every(10ms, [&] {
      met = done();
      if (met || clock.boot() > end) loop.stop();
    });
    loop.run();
    return met;
  }

  os::Loop loop;
};

TEST_F(CopierTest, CopiesWhatComesWhileItRunsAndIsIdleThen) {
  add("nas");
  Copier copier(loop, clock, paths, net);
  EXPECT_TRUE(copier.is_idle());
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}});
  EXPECT_TRUE(loop_until([&] { return !registry.checkpoint(id, one.seq)->copies.empty(); }));
  EXPECT_TRUE(loop_until([&] { return copier.is_idle(); }));
  const registry::Checkpoint two = save_checkpoint({{"a", "second"}});
  EXPECT_TRUE(loop_until([&] { return !registry.checkpoint(id, two.seq)->copies.empty(); }));
}

TEST_F(CopierTest, TriesAPlaceAgainThatWasInTroubleAndIsNotIdleMeanwhile) {
  add("nas");
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}});
  fs::rename(there / "nas", there / "away");
  Copier copier(loop, clock, paths, net);
  EXPECT_TRUE(loop_until([&] { return !registry.remote("nas")->trouble.empty(); }));
  EXPECT_FALSE(copier.is_idle());
  fs::rename(there / "away", there / "nas");
  EXPECT_TRUE(loop_until([&] { return !registry.checkpoint(id, one.seq)->copies.empty(); }));
  EXPECT_TRUE(loop_until([&] { return copier.is_idle(); }));
}

TEST_F(CopierTest, RemovesThereWhatWasRemovedHere) {
  add("nas");
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  save_checkpoint({{"a", noise(5000, 2)}});
  Copier copier(loop, clock, paths, net);
  const auto records = [&] {
    return store::list_remote(*store::open_dir_remote(there / "nas", store::k_mark_name))->records.size();
  };
  EXPECT_TRUE(loop_until([&] { return records() == 2; }));
  ASSERT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
  EXPECT_TRUE(loop_until([&] { return records() == 1; }));
}

TEST_F(CopierTest, PrunesAPlaceAtMostOnceAnHour) {
  add("nas");
  testing::HandClock hand;
  RemoteMemory memory;
  const auto packs = [&] {
    return store::list_remote(*store::open_dir_remote(there / "nas", store::k_mark_name))->packs.size();
  };
  std::vector<registry::Checkpoint> all;
  for (unsigned i = 0; i < 4; ++i) all.push_back(save_checkpoint({{"a", noise(5000, i)}}));
  ASSERT_EQ(copy_what_is_due(paths, net, "nas", hand, memory).copied, 4u);
  const auto remove = [&](std::size_t which) {
    EXPECT_THAT(registry.remove_checkpoint(id, all[which].seq), IsOk());
    EXPECT_FALSE(copy_what_is_due(paths, net, "nas", hand, memory).trouble);
    return packs();
  };
  EXPECT_EQ(remove(0), 3u);
  hand.pass(1h - 1s);
  EXPECT_EQ(remove(1), 3u);
  hand.pass(1s);
  EXPECT_EQ(remove(2), 1u);
}

TEST_F(CopierTest, TellsOnceThatAJobsCopiesMustNotBeThere) {
  add("nas");
  registry::Remote remote = *registry.remote("nas");
  const JobId strict{"abcdefghijk24"};
  job::Spec spec;
  spec.name = "strict";
  spec.run = "true";
  spec.checkpoint.copies = 2;
  spec.constraints.region_in = {"DE"};
  ASSERT_THAT(registry.submit(strict, spec, {1}), IsOk());
  auto chunks = open_chunks(paths);
  registry::Checkpoint checkpoint;
  checkpoint.job = strict;
  checkpoint.root = save(*chunks, {{"a", "x"}}, 1).root;
  checkpoint.created_at = {5};
  ASSERT_THAT(registry.commit_checkpoint(checkpoint), IsOk());
  const auto told = [&] {
    std::size_t count = 0;
    const auto events = *registry.events(strict, 0, 0);
    for (const registry::EventRecord& event : events) count += event.kind == "copy_not_allowed" ? 1 : 0;
    return count;
  };
  for (int daemon = 0; daemon < 2; ++daemon) {
    RemoteMemory memory;
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(copy_what_is_due(paths, net, "nas", clock, memory).is_due);
    EXPECT_EQ(told(), 1u) << "whatever daemons come and go";
  }
}

TEST_F(CopierTest, SaysNothingOfAPlaceThatWasRemovedJustNow) {
  RemoteMemory memory;
  const CopyRound round = copy_what_is_due(paths, net, "gone", clock, memory);
  EXPECT_FALSE(round.is_due);
  EXPECT_FALSE(round.trouble);
}

TEST_F(CopierTest, GarbageIsWhatNoCheckpointNeeds) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}}), two = save_checkpoint({{"a", noise(5000, 2)}});
  age();
  EXPECT_EQ(collect_garbage(paths)->bytes_freed, 0u);
  ASSERT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
  age();
  const auto collected = collect_garbage(paths);
  ASSERT_THAT(collected, IsOk());
  EXPECT_GT(collected->bytes_freed, 4000u);
  auto chunks = open_chunks(paths);
  EXPECT_THAT(chunks->get(one.root), ::testing::Not(IsOk()));
  EXPECT_EQ(store::testing::load(*chunks, two.root)->at("a"), noise(5000, 2));
}

TEST_F(CopierTest, HousekeepingCollectsOnceADayAtTheStartOfADaemon) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  save_checkpoint({{"a", noise(5000, 2)}});
  ASSERT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
  const auto is_there = [&] { return open_chunks(paths)->get(one.root).has_value(); };
  const os::Path noted = paths.chunk_store() / "collected";
  ASSERT_THAT(os::write_file_atomically(noted, ""), IsOk());
  age();
  fs::create_directories(paths.root / "secrets" / "of-nobody");
  fs::last_write_time(paths.root / "secrets" / "of-nobody", fs::file_time_type::clock::now() - 2h);
  {
    const Housekeeping daemon(loop, paths);
    EXPECT_TRUE(loop_until([&] { return !fs::exists(paths.root / "secrets" / "of-nobody"); }));
  }
  EXPECT_TRUE(is_there()) << "it was done today";
  fs::last_write_time(noted, fs::file_time_type::clock::now() - 25h);
  const Housekeeping daemon(loop, paths);
  EXPECT_TRUE(loop_until([&] { return !is_there(); }));
  EXPECT_TRUE(loop_until([&] { return fs::last_write_time(noted) > fs::file_time_type::clock::now() - 1h; }));
}

class Remotes : public CopierTest {
 protected:
  void remote(const std::string& name, const std::string& url, const std::string& location = "", bool lent = false) {
    registry::Remote one;
    one.name = name;
    one.url = url;
    one.added_at = {1};
    one.location = location;
    one.lent = lent;
    EXPECT_THAT(registry.add_remote(one), IsOk());
  }
  registry::Provider provider(const std::string& name, const std::string& host) {
    registry::Provider one;
    one.name = {name};
    one.address = "me@" + host;
    one.host = host;
    one.host_class = "datacenter";
    one.region = "DE";
    EXPECT_THAT(registry.add_provider(one), IsOk());
    return one;
  }
};

TEST_F(Remotes, AreOfferedWithWhereTheyAreAndWhose) {
  provider("ada", "10.0.0.1");
  registry::Provider lent = provider("bob", "10.0.0.2");
  lent.host_class = "community";
  ASSERT_THAT(registry.update_provider(lent), IsOk());
  remote("a", "dir:/mnt/a", "FR", true);
  remote("b", "ssh://ada/copies", "FR");
  remote("c", "ssh://gone/copies");
  remote("d", "ssh://bob/copies");
  ASSERT_THAT(registry.note_trouble("b", {5}, make_error(Code::io, "full")), IsOk());
  const auto offers = *remote_offers(registry);
  ASSERT_THAT(offers, SizeIs(4));
  EXPECT_EQ(offers[0].region + offers[1].region + offers[2].region + offers[3].region, "FRDEDE");
  EXPECT_TRUE(offers[0].lent);
  EXPECT_EQ(offers[1].lent, sched::is_lent("datacenter", {}));
  EXPECT_TRUE(offers[2].lent) << "nobody knows whose it is";
  EXPECT_EQ(offers[3].lent, sched::is_lent("community", {}));
  EXPECT_FALSE(offers[0].in_trouble);
  EXPECT_TRUE(offers[1].in_trouble);
  EXPECT_NE(offers[1].failure_domain, offers[3].failure_domain);
  EXPECT_THAT(*remotes_on(registry, {"ada"}), ElementsAre("b"));
}

TEST_F(Remotes, OfAProviderAreFoundByItsNameOrByAnAddressThatIsItsAlone) {
  provider("ada", "10.0.0.1"), provider("bob", "10.0.0.2"), provider("eve", "10.0.0.2");
  const auto reach = [&](const std::string& url) {
    registry::Remote one;
    one.name = "x";
    one.url = url;
    const auto access = access_to(registry, one);
    return access && access->provider ? access->provider->name.value : access ? "none" : std::string(code_name(access.error().code));
  };
  EXPECT_EQ(reach("ssh://ada/x"), "ada");
  EXPECT_EQ(reach("ssh://10.0.0.1/x"), "ada");
  EXPECT_EQ(reach("ssh://me@10.0.0.1/x"), "ada");
  EXPECT_EQ(reach("ssh://10.0.0.2/x"), "not_found") << "it is two's";
  EXPECT_EQ(reach("ssh://10.0.0.3/x"), "not_found");
  EXPECT_EQ(reach("dir:/x"), "none");
  EXPECT_EQ(reach("ftp://x"), "usage");
}

TEST_F(Remotes, WithACheckpointComeNearestFirst) {
  provider("ada", "10.0.0.1");
  remote("bucket", "s3://b/p");
  remote("host", "ssh://ada/x");
  remote("gone", "ssh://gone/x");
  remote("disk", "dir:/mnt/x");
  remote("other", "dir:/mnt/y");
  const registry::Checkpoint one = save_checkpoint({{"a", "x"}}), two = save_checkpoint({{"a", "y"}});
  for (const char* name : {"bucket", "host", "gone", "disk"}) ASSERT_THAT(registry.add_copy({name, id, one.seq, {1}}), IsOk());
  ASSERT_THAT(registry.add_copy({"other", id, two.seq, {1}}), IsOk());
  std::vector<std::string> names;
  const auto found = *remotes_with(registry, id, one.seq);
  for (const RemoteAccess& access : found) names.push_back(access.remote.name);
  EXPECT_THAT(names, ElementsAre("disk", "host", "bucket"));
  EXPECT_EQ(found[1].provider->name.value, "ada");
  EXPECT_EQ(found[0].controller, *registry.controller_id());
}

// What gangs ask of the store: parts of members become one checkpoint.
class Merging : public CopierTest {
 protected:
  CheckpointPart part(const std::string& member, std::uint32_t rank, const Files& files, std::optional<std::int64_t> step, std::uint64_t number) {
    auto chunks = open_chunks(paths);
    CheckpointPart one;
    one.member = member;
    one.first_rank = rank;
    one.root = save(*chunks, files, 1).root;
    one.number = number;
    one.step = step;
    return one;
  }
  static CheckpointPart nothing(const std::string& member, std::uint32_t rank, bool settled) {
    CheckpointPart one;
    one.member = member;
    one.first_rank = rank;
    one.nothing = true;
    one.settled = settled;
    return one;
  }
  Files files_of(const Digest& root) {
    auto chunks = open_chunks(paths);
    return *store::testing::load(*chunks, root);
  }
  LinkMeter meter;
  testing::HandClock hand;
  testing::HandNetwork net{hand};
  StoreFreight freight{net, clock, registry, meter};
};

TEST_F(Merging, TakesTheNewestStepThatAllHave) {
  const auto merged = freight.merge({{part("ada", 0, {{"rank_0.pt", "old"}}, 1, 11), part("ada", 0, {{"rank_0.pt", "new"}}, 2, 12)},
                                     {part("bob", 1, {{"rank_1.pt", "older"}}, 1, 21)}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->missing, "");
  EXPECT_THAT(merged->numbers, ElementsAre(11, 21));
  EXPECT_EQ(merged->files, 2u);
  EXPECT_EQ(merged->bytes, 8u);
  EXPECT_EQ(files_of(merged->root), (Files{{"rank_0.pt", "old"}, {"rank_1.pt", "older"}})) << "it is kept in the store";
}

TEST_F(Merging, SaysWhyThereIsNoneYet) {
  auto merged = freight.merge({{part("ada", 0, {{"rank_0.pt", "x"}}, 1, 11)}, {part("bob", 1, {{"rank_1.pt", "y"}}, 2, 21)}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->missing, "no step that all members have saved yet");
  EXPECT_EQ(merged->root, Digest{});
  merged = freight.merge({{part("ada", 0, {{"rank_0.pt", "x"}}, 1, 11)}, {nothing("bob", 1, false)}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(merged->missing, ::testing::Not(IsEmpty()));
  EXPECT_EQ(merged->root, Digest{});
  merged = freight.merge({{part("ada", 0, {{"model.pt", "x"}}, 1, 11)}, {nothing("bob", 1, false)}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->missing, "") << "one file, written by one";
  EXPECT_EQ(files_of(merged->root), (Files{{"model.pt", "x"}}));
}

TEST_F(Merging, SaysWhatMembersHoldDifferently) {
  const auto merged = freight.merge({{part("ada", 0, {{"model.pt", "mine"}, {"train.log", "0"}}, 1, 11)},
                                     {part("bob", 1, {{"model.pt", "theirs"}, {"train.log", "1"}}, 1, 21)}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->missing, "'model.pt' differs between ada and bob");
  EXPECT_EQ(merged->root, Digest{});
}

TEST_F(Merging, WhatAMemberWasGivenYieldsToWhatAnotherHasMade) {
  auto chunks = open_chunks(paths);
  const Digest base = save(*chunks, {{"state", "given"}}, 1).root;
  CheckpointPart ada = part("ada", 0, {{"state", "given"}}, 1, 11), bob = part("bob", 1, {{"state", "made"}}, 1, 21);
  EXPECT_EQ(freight.merge({{ada}, {bob}})->missing, "'state' differs between ada and bob");
  ada.base = base;
  EXPECT_EQ(files_of(freight.merge({{ada}, {bob}})->root).at("state"), "made");
  ada.base = Digest{};
  ada.base->bytes[0] = std::byte{1};
  EXPECT_THAT(freight.merge({{ada}, {bob}})->missing, HasSubstr("differs")) << "it is not kept any more";
}

TEST_F(Merging, AHostIsGivenItsOwnPart) {
  auto chunks = open_chunks(paths);
  const Digest root = save(*chunks, {{"rank_0.pt", "zero"}, {"rank_1.pt", "one!!"}, {"config", "c"}}, 1).root;
  const auto own = freight.part_of(root, {1, 1}, 2);
  ASSERT_THAT(own, IsOk());
  ASSERT_TRUE(*own);
  EXPECT_EQ((*own)->bytes, 6u);
  EXPECT_EQ((*own)->of_bytes, 10u);
  EXPECT_EQ((*own)->root, store::root_of((*own)->manifest));
  EXPECT_NE((*own)->root, root);
  EXPECT_FALSE(freight.part_of(root, {0, 2}, 2)->has_value()) << "it needs all of it";
}

}  // namespace
}  // namespace gridctl::control::copier_test
