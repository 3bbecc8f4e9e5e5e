// SPDX-License-Identifier: Apache-2.0
// The edges of each rule about what a directory holds: small directories, each one fault away from a whole one.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/names.hpp"
#include "whole/shards.hpp"
#include "whole/stall.hpp"

namespace gridctl::whole::edges_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr BootTime at(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

// --- names ----------------------------------------------------------------------------------------------------------

TEST(NameRules, EachTemporaryEndingAndBeginning) {
  for (const char* name :
       {"a.tmp",      "a.temp", "a.part", "a.partial",    "a.incomplete", "a.swp",   "a.swx", "a.writing",
        "a.download", "a.lock", "a~",     ".#a",          "tmp-a",        "tmp_a",   ".tmpa", "a.tmp.b",
        "a-tmp-b",    "a-tmp",  "a_temp", "a.tempstate1", "tmp",          "x/tmp/y", "tmp/y", "a.tmp/y"})
    EXPECT_TRUE(is_temporary_name(name)) << name;
  for (const char* name : {"", "a", "atmp", "tmpa", "a.temps", "partial", "a/b", "temp", "a.tmpx"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
}

TEST(NameRules, EachEndingOfALog) {
  for (const char* name : {"a.log", "a.out", "a.err", "a.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.wandb", "a.trace",
                           "stdout", "stderr", "x/stdout", "events.out.tfevents.1"})
    EXPECT_TRUE(is_log_name(name)) << name;
  for (const char* name : {"stdout2", "a.logs", "log/a", "xevents.out.tfevents.1", "a.outx"})
    EXPECT_FALSE(is_log_name(name)) << name;
}

TEST(NameRules, SlotsKeepWhatTellsMembersApart) {
  for (const auto& [path, slot] : {std::pair{"a1/b2/c", "a#/b#/c"},
                                   {"rank-3/x-7.pt", "rank-3/x-#.pt"},
                                   {"gpu=2.pt", "gpu=2.pt"},
                                   {"layer.12.pt", "layer.12.pt"},
                                   {"RANK0.pt", "RANK0.pt"},
                                   {"ranks0.pt", "ranks#.pt"},
                                   {"x__3.pt", "x__#.pt"},
                                   {"1-of-2.pt", "1-of-2.pt"},
                                   {"step-7/model-8.pt", "step-#/model-8.pt"},
                                   {"step-0/model-000.pt", "step-#/model-#.pt"},
                                   {"rank_1/2.pt", "rank_1/#.pt"},
                                   {"a/7.pt", "a/#.pt"},
                                   {"", ""},
                                   {"42", "#"}})
    EXPECT_EQ(slot_of(path), slot) << path;
}

TEST(NameRules, SettingsStatesAndParts) {
  for (const char* name :
       {"a/config.json", "training-args.yaml", "README.md", "hparams_2.yml", "vocab.txt", "x.py", "a.b/config.toml"})
    EXPECT_TRUE(names_settings(name)) << name;
  for (const char* name : {"config", "model.json", "settings.bin", "configs.json", "config/x.json", "x.pyc"})
    EXPECT_FALSE(names_settings(name)) << name;
  for (const char* name : {"ckpt-3.pt", "Checkpoint_LAST.pt", "7.pt", "a/model/ckpt.pt"})
    EXPECT_TRUE(names_a_whole_state(name)) << name;
  for (const char* name : {"ckpt-model.pt", "x.pt", "ckpt.best2.pt"}) EXPECT_FALSE(names_a_whole_state(name)) << name;
  EXPECT_FALSE(names_a_whole_state(".model")) << "the dot begins its name";
  EXPECT_FALSE(names_a_whole_state("ckpt.5x")) << "what begins with a digit is no ending: x is one of its words";
  EXPECT_TRUE(names_a_part("ema-3.pt"));
  EXPECT_FALSE(names_a_part("modelling.pt"));
}

TEST(NameRules, TheOutermostNumberedFolder) {
  EXPECT_EQ(numbered_folder("step-1/x-2/file"), "step-1");
  EXPECT_EQ(numbered_folder("a/9"), "");
  EXPECT_EQ(numbered_folder("0/x"), "0");
  EXPECT_EQ(numbered_folder("ab/cd/e"), "");
}

// --- shards ---------------------------------------------------------------------------------------------------------

std::string shard_trouble(const std::vector<std::string>& paths) {
  std::vector<FileFact> files;
  for (const std::string& path : paths) files.push_back({path, 1, 0, 0, 1});
  const auto trouble = missing_shard(files);
  return trouble ? trouble->why + "|" + trouble->blame : "";
}

TEST(Shards, OfASetAreAllThereCountedFromNoughtOrOne) {
  EXPECT_EQ(shard_trouble({"m-00000-of-00002", "m-00001-of-00002"}), "");
  EXPECT_EQ(shard_trouble({"m-00001-of-00002", "m-00002-of-00002"}), "");
  EXPECT_EQ(shard_trouble({"m-00001-of-00002.bin", "n"}),
            "only 1 of 2 shards of 'm--of-00002.bin' are there|m-00001-of-00002.bin");
  EXPECT_NE(shard_trouble({"m-00001-of-00002", "o-00002-of-00002"}), "") << "of two sets";
  EXPECT_EQ(shard_trouble({"m-00001-of-00001.tmp", "m-00001-of-00002.tmp"}), "") << "temporary";
}

TEST(Shards, WhatIsNoSetIsLeftAlone) {
  for (const char* name :
       {"m-0001-of-00002", "m-00001-of-0002", "m00001-of-00002", "00001-of-00002", "m-00003-of-00002",
        "m-00000-of-00000", "m-0000x-of-00002", "m-00001-of-0000x", "plain", "-of-"})
    EXPECT_EQ(shard_trouble({name}), "") << name;
  EXPECT_NE(shard_trouble({"-00001-of-00002"}), "");
  EXPECT_NE(shard_trouble({"m-00002-of-00002"}), "");
}

// --- what became of each file ---------------------------------------------------------------------------------------

class Histories : public ::testing::Test {
 protected:
  std::vector<News> look(const std::vector<FileFact>& files, std::int64_t seconds) {
    listing = files;
    return history.look(listing, at(seconds));
  }
  Change change(const FileFact& now, std::int64_t seconds) {
    const auto news = look({now}, seconds);
    EXPECT_EQ(news.size(), 1u);
    return news.at(0).change;
  }
  static FileFact file(std::uint64_t size, std::uint64_t inode = 1, std::int64_t mtime = 0,
                       const std::string& path = "a") {
    return {path, size, mtime, mtime, inode};
  }
  History history;
  std::vector<FileFact> listing;
};

TEST_F(Histories, TellHowAFileHasChanged) {
  EXPECT_EQ(change(file(10), 1), Change::fresh);
  EXPECT_TRUE(look({file(10)}, 2).empty());
  EXPECT_EQ(change(file(20), 3), Change::continued);
  EXPECT_EQ(look({file(21)}, 7).at(0).gap, std::chrono::seconds{4});
  EXPECT_EQ(change(file(21, 1, 5), 8), Change::continued) << "as long as before";
  EXPECT_EQ(change(file(20, 1, 6), 9), Change::rewritten);
  EXPECT_EQ(change(file(30, 2, 7), 10), Change::replaced);
  EXPECT_EQ(history.unchanged_for("a", at(15)), std::chrono::seconds{5});
  EXPECT_EQ(history.unchanged_for("none", at(15)), Duration{});
}

TEST_F(Histories, AFileThatWasWholeIsBegunAnew) {
  change(file(10), 1);
  int asked = 0;
  const store::Inspect whole = [&](const FileFact&) { return ++asked, store::Inspection{store::FileState::whole, ""}; };
  EXPECT_EQ(history.inspect(listing[0], whole).state, store::FileState::whole);
  static_cast<void>(history.inspect(listing[0], whole));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(change(file(20), 2), Change::rewritten);
  static_cast<void>(history.inspect(listing[0], whole));
  EXPECT_EQ(asked, 2) << "it is another state of it";
}

TEST_F(Histories, ALogIsWhatHasOnlyGrownThroughTwoSaves) {
  std::uint64_t size = 1;
  look({file(size)}, 0);
  for (int i = 1; i <= 4; ++i) look({file(++size)}, i);
  EXPECT_FALSE(history.is_log("a"));
  history.save_ended();
  EXPECT_FALSE(history.is_log("a"));
  history.save_ended();
  EXPECT_TRUE(history.is_log("a"));
  EXPECT_FALSE(history.is_log("b"));
  EXPECT_TRUE(history.is_log("b.log"));
  look({file(1)}, 10);
  EXPECT_FALSE(history.is_log("a")) << "it was cut";
}

TEST_F(Histories, ThreeGrowthsOrAReplacementMakeNoLog) {
  for (std::uint64_t size = 1; size <= 4; ++size) look({file(size)}, static_cast<std::int64_t>(size));
  history.save_ended();
  history.save_ended();
  EXPECT_FALSE(history.is_log("a")) << "it has grown three times";
  look({file(5)}, 9);
  EXPECT_TRUE(history.is_log("a"));
  look({file(6, 2)}, 10);
  EXPECT_FALSE(history.is_log("a"));
}

TEST_F(Histories, SavesBeforeAFileWasThereDoNotCount) {
  history.save_ended();
  history.save_ended();
  for (std::uint64_t size = 1; size <= 6; ++size) look({file(size)}, static_cast<std::int64_t>(size));
  EXPECT_FALSE(history.is_log("a"));
}

TEST_F(Histories, WhatIsReplacedTwiceArrivesWhole) {
  EXPECT_FALSE(history.arrives_whole("a"));
  change(file(1, 1), 1);
  change(file(1, 2), 2);
  EXPECT_FALSE(history.arrives_whole("a"));
  change(file(1, 3), 3);
  EXPECT_TRUE(history.arrives_whole("a"));
  change(file(2, 3), 4);
  EXPECT_FALSE(history.arrives_whole("a")) << "it was written on in its place";
}

TEST_F(Histories, AFolderThatLosesFilesIsBeingRemovedUntilSomethingIsWrittenIntoIt) {
  const FileFact one = file(1, 1, 0, "step-1/a"), two = file(1, 2, 0, "step-1/b"), other = file(1, 3, 0, "x/c");
  look({one, two, other}, 1);
  EXPECT_FALSE(history.is_being_removed("step-1/b"));
  look({two}, 2);
  EXPECT_TRUE(history.is_being_removed("step-1/b"));
  EXPECT_FALSE(history.is_being_removed("x/d")) << "it has no number";
  EXPECT_FALSE(history.is_being_removed("step-2/b"));
  look({one, two}, 3);
  EXPECT_FALSE(history.is_being_removed("step-1/b"));
  look({one, two, file(1, 4, 0, "step-1/c.tmp")}, 4);
  look({one, two}, 5);
  EXPECT_FALSE(history.is_being_removed("step-1/b")) << "a temporary file goes when it is done";
}

TEST(Reads, AreMadeOnceForEachStateOfAFile) {
  ReadCache cache;
  int asked = 0;
  bool fails = false;
  const store::ReadListed read = [&](const FileFact&, std::uint64_t, std::size_t size) -> Result<Bytes> {
    ++asked;
    if (fails) return make_error(Code::io, "x");
    return Bytes(size);
  };
  const FileFact one{"a", 10, 0, 0, 1}, changed{"a", 11, 0, 0, 1};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.read(one, 0, 4, read)->size(), 4u);
  EXPECT_EQ(asked, 1);
  static_cast<void>(cache.read(one, 1, 4, read));
  static_cast<void>(cache.read(one, 0, 5, read));
  EXPECT_EQ(asked, 3) << "other pieces";
  cache.keep_only({one});
  static_cast<void>(cache.read(one, 0, 4, read));
  EXPECT_EQ(asked, 3);
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 4);
  cache.keep_only({one});
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 5) << "another state of it was kept";
  cache.keep_only({});
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 6);
  fails = true;
  EXPECT_FALSE(cache.read(changed, 9, 4, read));
  fails = false;
  EXPECT_TRUE(cache.read(changed, 9, 4, read)) << "an error is not kept";
}

TEST(Reads, BeyondTheirRoomAreMadeAnew) {
  ReadCache cache;
  int asked = 0;
  const store::ReadListed read = [&](const FileFact&, std::uint64_t, std::size_t size) -> Result<Bytes> {
    ++asked;
    return Bytes(size);
  };
  const std::vector<FileFact> files{{"a", 1, 0, 0, 1}, {"b", 1, 0, 0, 2}};
  constexpr std::size_t k_half = 16u << 20;
  for (int i = 0; i < 2; ++i)
    for (const FileFact& file : files) static_cast<void>(cache.read(file, 0, k_half, read));
  EXPECT_EQ(asked, 2) << "both fit";
  cache.keep_only(files);
  static_cast<void>(cache.read(files[0], 1, 1, read));
  EXPECT_EQ(asked, 3);
  static_cast<void>(cache.read(files[0], 0, k_half, read));
  EXPECT_EQ(asked, 4) << "one byte too much, and all is forgotten";
}

// --- learning -------------------------------------------------------------------------------------------------------

class Learning : public ::testing::Test {
 protected:
  bool change(const std::vector<std::string>& paths, std::int64_t seconds, Change change = Change::replaced,
              Duration gap = {}) {
    std::vector<FileFact> files;
    for (const std::string& path : paths) files.push_back({path, 1, 0, 0, 1});
    std::vector<News> news;
    for (const FileFact& file : files) news.push_back({&file, change, gap});
    return cohort.changed(news, at(seconds));
  }
  Cohort cohort;
};

TEST_F(Learning, MeasuresGapsWithinASaveAndPausesOfOneFile) {
  EXPECT_TRUE(cohort.idle());
  EXPECT_FALSE(cohort.changed({}, at(5)));
  EXPECT_EQ(cohort.changed_at(), BootTime{}) << "nothing has changed";
  change({"a"}, 10, Change::fresh);
  EXPECT_EQ(cohort.longest_gap(), Duration{});
  change({"b"}, 14, Change::fresh);
  change({"c"}, 16, Change::continued, std::chrono::seconds{7});
  EXPECT_EQ(cohort.longest_gap(), std::chrono::seconds{4});
  EXPECT_EQ(cohort.longest_pause(), std::chrono::seconds{7});
  EXPECT_EQ(cohort.changed_at(), at(16));
  EXPECT_TRUE(change({"a"}, 100)) << "a pause between saves is none within one";
  EXPECT_EQ(cohort.longest_gap(), std::chrono::seconds{4});
  EXPECT_EQ(cohort.saves(), 1u);
  EXPECT_THAT(cohort.paths(), ElementsAre("a"));
  EXPECT_EQ(cohort.awaited(), "b");
}

TEST_F(Learning, AFileThatGoesOnAfterAnotherBeginsASave) {
  change({"a"}, 1, Change::fresh);
  EXPECT_FALSE(change({"a"}, 2, Change::continued));
  change({"b"}, 3, Change::fresh);
  EXPECT_FALSE(change({"b"}, 4, Change::continued)) << "it is the last";
  EXPECT_TRUE(change({"a"}, 5, Change::continued));
}

TEST_F(Learning, ForgetsWhatTurnsOutToBeKnown) {
  for (int save = 0; save < 3; ++save) change({"a", "b"}, save);
  EXPECT_TRUE(cohort.complete());
  change({"a"}, 9);
  EXPECT_EQ(cohort.awaited(), "b");
  cohort.forget("b");
  EXPECT_TRUE(cohort.complete());
  EXPECT_TRUE(cohort.learned());
  EXPECT_EQ(cohort.awaited(), "");
  cohort.forget("a");
  EXPECT_TRUE(cohort.idle());
  EXPECT_FALSE(cohort.learned()) << "of nothing";
  EXPECT_FALSE(cohort.complete());
}

TEST_F(Learning, OfAnotherNumberIsNotForgotten) {
  change({"m_1"}, 1, Change::fresh);
  cohort.forget("m_2");
  EXPECT_FALSE(cohort.idle());
  cohort.forget("m_1");
  EXPECT_TRUE(cohort.idle());
}

TEST_F(Learning, ExpectsTheRestoredOnlyOfTheFirstSave) {
  cohort.expect({"a", "b"});
  EXPECT_EQ(cohort.awaited(), "a");
  change({"b"}, 1);
  EXPECT_EQ(cohort.awaited(), "a");
  EXPECT_FALSE(cohort.complete());
  EXPECT_TRUE(change({"b"}, 2));
  EXPECT_EQ(cohort.awaited(), "");
  EXPECT_FALSE(cohort.learned());
}

// --- stalling -------------------------------------------------------------------------------------------------------

Verdict refused(const std::string& blame) {
  Verdict verdict;
  verdict.why = "it is incomplete";
  verdict.blame = blame;
  return verdict;
}

TEST(Stalls, AreToldAgainAtTwiceTheWait) {
  Stall stall(at(0));
  stall.look(refused("a"), false, at(10));
  stall.look(refused("a"), false, at(129));
  EXPECT_EQ(stall.message(), "") << "the wait begins with the first file";
  stall.look(refused("a"), false, at(130));
  EXPECT_THAT(stall.message(), HasSubstr("no checkpoint for 2m: it is incomplete."));
  stall.look(refused("b"), false, at(249));
  EXPECT_THAT(stall.message(), HasSubstr("\"a\""));
  stall.look(refused("b"), false, at(250));
  EXPECT_THAT(stall.message(), HasSubstr("no checkpoint for 4m"));
  EXPECT_THAT(stall.message(), HasSubstr("\"b\""));
}

TEST(Stalls, EndWithNothingNew) {
  Stall stall(at(0));
  stall.look(refused(""), false, at(0));
  stall.look(refused(""), false, at(200));
  EXPECT_THAT(stall.message(), HasSubstr("whole_when: \"FILE\"")) << "nobody is to blame";
  Verdict same;
  same.whole = Whole::nothing_new;
  same.why = "unchanged";
  stall.look(same, false, at(300));
  EXPECT_EQ(stall.message(), "");
  stall.look(refused("a"), false, at(310));
  stall.look(refused("a"), false, at(429));
  EXPECT_EQ(stall.message(), "") << "counted from 310 on, and that wait did not end by a snapshot";
  stall.look(refused("a"), false, at(430));
  EXPECT_NE(stall.message(), "");
}

TEST(Stalls, SayWhenItChangesFasterThanItCanBeCopied) {
  Stall stall(at(0));
  Verdict whole;
  whole.whole = Whole::format;
  stall.look(whole, false, at(0));
  stall.look(whole, false, at(120));
  EXPECT_THAT(stall.message(), HasSubstr("the checkpoint changes faster than gridctl can copy it"));
}

TEST(Stalls, OfAnEmptyFolderEndWithTheFirstFile) {
  Stall stall(at(0));
  Verdict none;
  none.whole = Whole::nothing_new;
  none.why = k_no_files;
  stall.look(none, false, at(1800));
  EXPECT_NE(stall.message(), "");
  stall.look(refused("a"), false, at(1801));
  EXPECT_EQ(stall.message(), "");
  stall.look(refused("a"), false, at(1921));
  EXPECT_NE(stall.message(), "");
}

}  // namespace
}  // namespace gridctl::whole::edges_test
