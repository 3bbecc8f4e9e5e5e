// SPDX-License-Identifier: Apache-2.0
#include "control/copies/remote_work.hpp"

#include "control/copies/chunks.hpp"
#include "control/copies/copier.hpp"
#include "control/copies/healing.hpp"
#include "remotes_fixture.hpp"

namespace gridctl::control::remote_work_test {
namespace {

using namespace store::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class RemoteWorkTest : public WithRemotes {
 protected:
  void SetUp() override {
    WithRemotes::SetUp();
    add("nas");
  }
  CopyRound round(const std::string& remote = "nas") { return copy_what_is_due(paths, net, remote, clock, memory[remote]); }
  std::vector<std::string> history(const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events(id, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.text);
    return texts;
  }
  std::vector<std::string> copies_of(const registry::Checkpoint& checkpoint) {
    return registry.checkpoint(id, checkpoint.seq)->copies;
  }
  void unmount(const std::string& name) { fs::rename(there / name, there / (name + "-away")); }
  void mount(const std::string& name) { fs::rename(there / (name + "-away"), there / name); }

  std::map<std::string, RemoteMemory> memory;
};

TEST_F(RemoteWorkTest, CopiesWhatJobsAskForAndSaysSo) {
  EXPECT_FALSE(round().is_due);
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}}), two = save_checkpoint({{"a", "second"}});
  const CopyRound done = round();
  EXPECT_EQ(done.copied, 2u);
  EXPECT_FALSE(done.is_due);
  EXPECT_THAT(copies_of(one), ElementsAre("nas"));
  EXPECT_THAT(copies_of(two), ElementsAre("nas"));
  EXPECT_THAT(history("checkpoint_copied"), ElementsAre(HasSubstr("checkpoint 2 copied to nas"),  // the newest first
                                                        HasSubstr("checkpoint 1 copied to nas")));
  EXPECT_EQ(round().copied, 0u);
}

TEST_F(RemoteWorkTest, TellsTroubleOnceAndCatchesUp) {
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}});
  unmount("nas");
  for (int i = 0; i < 3; ++i) {
    const CopyRound failed = round();
    ASSERT_TRUE(failed.trouble);
    EXPECT_EQ(failed.trouble->code, Code::host_unreachable);
    EXPECT_TRUE(failed.is_due);
  }
  EXPECT_THAT(history("copy_waits"), ElementsAre(HasSubstr("nas accepts no copies")));
  EXPECT_EQ(registry.remote("nas")->trouble_code, "host_unreachable");
  EXPECT_THAT(copies_of(one), IsEmpty());
  mount("nas");
  EXPECT_EQ(round().copied, 1u);
  EXPECT_EQ(registry.remote("nas")->trouble, "");
  EXPECT_THAT(copies_of(one), ElementsAre("nas"));
  unmount("nas");
  save_checkpoint({{"a", "second"}});
  EXPECT_TRUE(round().trouble);
  EXPECT_THAT(history("copy_waits"), SizeIs(2));  // it is news again
}

TEST_F(RemoteWorkTest, UsesAnotherPlaceWhileOneIsInTrouble) {
  add("usb");
  const registry::Checkpoint one = save_checkpoint({{"a", "first"}});
  unmount("nas");
  EXPECT_EQ(round("usb").copied, 0u);  // nobody knows yet
  EXPECT_TRUE(round("nas").trouble);
  EXPECT_EQ(round("usb").copied, 1u);
  EXPECT_THAT(copies_of(one), ElementsAre("usb"));
  mount("nas");
  EXPECT_EQ(round("nas").copied, 0u);  // there are as many as were asked for
}

TEST_F(RemoteWorkTest, RemovesThereWhatWasRemovedHereAndNothingElse) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  const registry::Checkpoint two = save_checkpoint({{"a", noise(5000, 2)}});
  ASSERT_EQ(round().copied, 2u);
  ASSERT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
  round();
  const auto remote = store::open_dir_remote(there / "nas", store::k_mark_name);
  const auto left = store::list_remote(*remote);
  ASSERT_THAT(left, IsOk());
  EXPECT_THAT(left->records, ElementsAre(store::RecordName{id, two.seq}));
  EXPECT_THAT(left->packs, SizeIs(1));
}

TEST_F(RemoteWorkTest, SaysThatADamagedOneIsNotCopiedAndBlamesNoPlace) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  for (const auto& pack : fs::directory_iterator(paths.chunk_store() / "packs")) {
    std::string text = slurp(pack.path());
    text[1000] ^= 1;
    write(pack.path(), text);
  }
  EXPECT_FALSE(round().trouble);
  EXPECT_FALSE(round().is_due);
  EXPECT_THAT(history("copy_refused"), ElementsAre(HasSubstr("is not copied")));
  EXPECT_THAT(copies_of(one), IsEmpty());
  EXPECT_EQ(registry.remote("nas")->trouble, "");
}

TEST_F(RemoteWorkTest, WhatWasRemovedHereWhileItWasReadIsNotDamaged) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  std::optional<registry::Checkpoint> two;
  memory["nas"].open = [&](const RemoteAccess& access, AgentNetwork& where, os::Clock& now) {
    if (!two) {
      for (const auto& pack : fs::directory_iterator(paths.chunk_store() / "packs")) {
        std::string text = slurp(pack.path());
        text[1000] ^= 1;
        write(pack.path(), text);
      }
      two = save_checkpoint({{"a", noise(5000, 2)}});
      EXPECT_THAT(registry.remove_checkpoint(id, one.seq), IsOk());
    }
    return open_marked_remote(access, where, now);
  };
  EXPECT_EQ(round().copied, 1u);
  EXPECT_THAT(history("copy_refused"), IsEmpty());
  EXPECT_THAT(copies_of(*two), ElementsAre("nas"));
  EXPECT_THAT(memory["nas"].hopeless, IsEmpty());
  EXPECT_EQ(registry.remote("nas")->trouble, "");
}

TEST_F(RemoteWorkTest, KeepsOutOfAPlaceThatAnotherStateDirectoryHasTakenOver) {
  save_checkpoint({{"a", "first"}});
  const auto remote = store::open_dir_remote(there / "nas", "");
  store::RemoteMark mark = *own_mark(paths, registry);
  mark.keeper = {"another"};
  ASSERT_THAT(remote->remove(store::k_mark_name), IsOk());
  ASSERT_THAT(store::write_mark(*remote, mark), IsOk());
  const CopyRound refused = round();
  ASSERT_TRUE(refused.trouble);
  EXPECT_EQ(refused.trouble->code, Code::refused);
  EXPECT_THAT(store::list_remote(*remote)->records, IsEmpty());
}

TEST_F(RemoteWorkTest, OneProcessAtATimeWorksOnAPlace) {
  save_checkpoint({{"a", "first"}});
  const auto work = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true);
  ASSERT_THAT(work, IsOk());
  const CopyRound other = round();
  EXPECT_TRUE(other.busy);
  EXPECT_FALSE(other.trouble);
  EXPECT_THAT(history("copy_waits"), IsEmpty());
}

TEST_F(RemoteWorkTest, RepairsEachSideFromTheOther) {
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  const registry::Checkpoint two = save_checkpoint({{"a", noise(6000, 2)}});
  ASSERT_EQ(round().copied, 2u);
  // The first checkpoint is damaged here, the second one there.
  std::vector<os::Path> mine, theirs;
  for (const auto& pack : fs::directory_iterator(paths.chunk_store() / "packs")) mine.push_back(pack.path());
  for (const auto& pack : mine) theirs.push_back(there / ("nas/packs/" + pack.filename().native()));
  ASSERT_THAT(mine, SizeIs(2));
  const bool first_is_smaller = fs::file_size(mine[0]) < fs::file_size(mine[1]);
  for (const os::Path& path : {mine[first_is_smaller ? 0 : 1], theirs[first_is_smaller ? 1 : 0]}) {
    std::string text = slurp(path);
    text[1000] ^= 1;
    write(path, text);
  }
  auto work = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true);
  ASSERT_THAT(work, IsOk());
  const auto found = work->check(1);
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(found->bad_records, ElementsAre(store::RecordName{id, two.seq}));
  const auto repaired = work->repair(*found);
  ASSERT_THAT(repaired, IsOk());
  EXPECT_THAT(repaired->failed, IsEmpty());
  EXPECT_THAT(repaired->done, SizeIs(2));
  EXPECT_THAT(work->check(1)->findings, IsEmpty());
  auto chunks = open_chunks(paths);
  EXPECT_EQ(load(*chunks, one.root)->at("a"), noise(5000, 1));
  EXPECT_EQ(load(*chunks, two.root)->at("a"), noise(6000, 2));
  EXPECT_THAT(copies_of(one), ElementsAre("nas"));
  EXPECT_THAT(copies_of(two), ElementsAre("nas"));
}

TEST_F(RemoteWorkTest, NamesWhatIsWholeOnNeitherSideAndLeavesIt) {
  save_checkpoint({{"a", noise(5000, 1)}});
  ASSERT_EQ(round().copied, 1u);
  for (const os::Path& folder : {paths.chunk_store() / "packs", os::Path(there / "nas/packs")})
    for (const auto& pack : fs::directory_iterator(folder)) {
      std::string text = slurp(pack.path());
      text[1000] ^= 1;
      write(pack.path(), text);
    }
  auto work = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true);
  ASSERT_THAT(work, IsOk());
  const auto repaired = work->repair(*work->check(1));
  ASSERT_THAT(repaired, IsOk());
  EXPECT_THAT(repaired->failed, Not(IsEmpty()));
  EXPECT_THAT(store::list_remote(*work->link().backend)->packs, SizeIs(1));
}

TEST_F(RemoteWorkTest, HealsFromTheNearestPlaceThatHasItSound) {
  add("usb");
  const registry::Checkpoint one = save_checkpoint({{"a", noise(5000, 1)}});
  for (const char* name : {"nas", "usb"}) {
    auto work = RemoteWork::open(paths, net, registry, *registry.remote(name), clock, true);
    ASSERT_THAT(work->copy({one, "train", 3}), IsOk());
  }
  fs::remove_all(paths.chunk_store());
  for (const auto& pack : fs::directory_iterator(there / "nas/packs")) fs::remove(pack.path());
  auto chunks = open_chunks(paths);
  ASSERT_THAT(chunks, IsOk());
  const auto remotes = remotes_with(registry, id, one.seq);
  ASSERT_THAT(remotes, IsOk());
  const auto healed = heal_from(paths, net, *chunks, *remotes, {id, one.seq}, one.root, clock);
  ASSERT_THAT(healed, IsOk());
  EXPECT_EQ(healed->remote, "usb");
  EXPECT_EQ(load(*chunks, one.root)->at("a"), noise(5000, 1));
  fs::remove_all(paths.chunk_store());
  for (const auto& pack : fs::directory_iterator(there / "usb/packs")) fs::remove(pack.path());
  auto empty = open_chunks(paths);
  EXPECT_THAT(heal_from(paths, net, *empty, *remotes, {id, one.seq}, one.root, clock), FailsWith(Code::checkpoint_damaged));
}

}  // namespace
}  // namespace gridctl::control::remote_work_test
