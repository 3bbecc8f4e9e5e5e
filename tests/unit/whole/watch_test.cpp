// SPDX-License-Identifier: Apache-2.0
#include "whole/watch.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <random>

#include "unit/whole/directory.hpp"

namespace gridctl::whole::watch_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using store::testing::noise;
using store::testing::safetensors;
using store::testing::torch_zip;

class Wholeness : public WatchTest {
 protected:
  bool take_if_whole() {
    if (!look().is_whole()) return false;
    take();
    return true;
  }
};

TEST_F(Wholeness, WaitsForTheFirstFile) { EXPECT_EQ(look().whole, Whole::nothing_new); }

TEST_F(Wholeness, TakesAnArchiveWithAnOptimizerASecondAfterItsFirstSave) {
  dir.save("ckpt.pt", archive(1));
  EXPECT_EQ(look().whole, Whole::not_yet);
  EXPECT_EQ(look_after(999).whole, Whole::not_yet);
  const Verdict verdict = look_after(1);
  EXPECT_EQ(verdict.whole, Whole::format);
  EXPECT_EQ(verdict.how, "torch:ckpt.pt");
  EXPECT_FALSE(verdict.provisional);
  take();
  EXPECT_EQ(look_after(10'000).whole, Whole::nothing_new);
}

TEST_F(Wholeness, TakesALearnedSingleFileWithoutWaiting) {
  for (int save = 0; save < 3; ++save) {
    dir.rename_into("state.json", R"({"step": )" + std::to_string(save) + "}");
    static_cast<void>(look());
    if (save < 2) {
      const Verdict verdict = look_after(1000);
      EXPECT_TRUE(verdict.is_whole()) << save << verdict.why;
      EXPECT_TRUE(verdict.provisional) << "only its name says that it is all";
      take();
    }
    dir.pass(4000);
  }
  EXPECT_TRUE(look().is_whole());
  dir.rename_into("state.json", "{}");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::format) << verdict.why;
  EXPECT_FALSE(verdict.provisional);
}

TEST_F(Wholeness, NamesTheFormatOfALearnedFile) {
  for (int save = 0; save < 3; ++save) {
    dir.rename_into("ckpt.pt", archive(static_cast<std::uint64_t>(save)));
    if (!look().is_whole()) {
      EXPECT_TRUE(look_after(1000).is_whole()) << save;
    }
    take();
    dir.pass(4000);
  }
  dir.rename_into("ckpt.pt", archive(9));
  const Verdict verdict = look();
  EXPECT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_EQ(verdict.how, "torch:ckpt.pt");
}

// The program that this rule was made for: two files that belong together, long gaps, no word about it.
TEST_F(Wholeness, NeverTakesTwoFilesOfDifferentSaves) {
  std::mt19937 random(7);
  for (const int gap_max : {4000, 30'000}) {
    dir = {};
    watch = WholeWatch();
    int taken = 0, torn = 0, provisional = 0;
    for (int step = 1; step <= 60; ++step) {
      for (const char* name : {"model.json", "optimizer.json"}) {
        dir.rename_into(name, R"({"step": )" + std::to_string(step) + "}");
        auto gap = static_cast<std::int64_t>(gap_max == 4000 ? (name[0] == 'm' ? 4000 : 6000) : 100 + random() % gap_max);
        for (; gap > 0; gap -= 500) {
          const Verdict verdict = look();
          if (verdict.is_whole()) {
            ++taken;
            provisional += verdict.provisional ? 1 : 0;
            torn += dir.content("model.json") != dir.content("optimizer.json") ? 1 : 0;
            EXPECT_THAT(verdict.selection.left_out, IsEmpty());
            take();
          }
          dir.pass(std::min<std::int64_t>(gap, 500));
        }
      }
    }
    EXPECT_EQ(torn, 0) << gap_max;
    EXPECT_GE(taken, 57) << "every save once what belongs together is known, " << gap_max;
    EXPECT_LE(provisional, 2);
  }
}

TEST_F(Wholeness, KnowsWhatBelongsTogetherFromTheRestoredCheckpoint) {
  dir.save("model.json", "{}");
  dir.save("optimizer.json", "{}");
  watch.restored(dir.listing, {dir.now_ms * 1'000'000}, dir.access());
  dir.pass(5000);
  dir.rename_into("model.json", "{}");
  EXPECT_FALSE(look().is_whole());
  EXPECT_THAT(look_after(50'000).why, HasSubstr("'optimizer.json' to change"));
  dir.rename_into("optimizer.json", "{}");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::format) << verdict.why;
  EXPECT_FALSE(verdict.provisional);
}

TEST_F(Wholeness, LetsLogsGrow) {
  for (int step = 0; step < 50; ++step) {
    dir.append("train.log", "a line\n");
    dir.append("runs/events.out.tfevents.17.host", "x");
    if (step == 20) dir.save("state.json", "{}");
    const Verdict verdict = look_after(200);
    if (step < 24) {
      EXPECT_FALSE(verdict.is_whole()) << step;
    }
    if (step == 25) {
      ASSERT_TRUE(verdict.is_whole()) << verdict.why;
      EXPECT_THAT(verdict.selection.growing, ElementsAre("runs/events.out.tfevents.17.host", "train.log"));
      take();
    }
    if (step > 25) {
      EXPECT_FALSE(verdict.is_whole()) << "a log alone is no news";
    }
  }
}

TEST_F(Wholeness, LearnsThatAFileIsALog) {
  int taken = 0;
  for (int step = 0; step < 200; ++step) {
    dir.append("progress", "a line\n");
    if (step % 25 == 0) dir.rename_into("net.json", "{}");
    static_cast<void>(look());
    dir.pass(200);
    if (take_if_whole()) ++taken;
  }
  EXPECT_GE(taken, 4) << "of 8 saves, as soon as it is known that the other file only grows";
}

TEST_F(Wholeness, TakesASaverThatNeverRests) {
  int taken = 0;
  for (int step = 0; step < 40; ++step) {
    dir.rename_into("ckpt.json", "{}");
    if (take_if_whole()) ++taken;
    dir.pass(600);
  }
  EXPECT_GE(taken, 36);
}

TEST_F(Wholeness, NeverTakesATornArchiveWhateverTimePasses) {
  const std::string whole = archive(1);
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    dir.save("ckpt.pt", whole.substr(0, size));
    EXPECT_FALSE(look().is_whole()) << size;
    EXPECT_FALSE(look_after(20'000).is_whole()) << size;
    writer = Writer::killed;
    EXPECT_EQ(look().whole, Whole::never) << size;
    writer = Writer::exited;
    EXPECT_EQ(look().whole, Whole::never) << size;
    writer = Writer::running;
  }
}

TEST_F(Wholeness, NeverTakesAnArchiveThatIsBeingOverwrittenInPlace) {
  dir.save("ckpt.pt", archive(1));
  look();
  EXPECT_TRUE(look_after(1000).is_whole());
  take();
  const std::string next = archive(2);
  for (std::size_t size = 0; size < next.size(); size += 97) {
    dir.save("ckpt.pt", next.substr(0, size));
    EXPECT_EQ(look_after(1500).whole, Whole::not_yet) << size;
  }
  dir.save("ckpt.pt", next);
  look();
  EXPECT_EQ(look_after(1000).whole, Whole::format);
}

TEST_F(Wholeness, GivesASingleFileOfUnknownFormatTenSeconds) {
  dir.save("state.bin", "{}");
  look();
  EXPECT_EQ(look_after(9999).whole, Whole::not_yet);
  const Verdict verdict = look_after(1);
  EXPECT_EQ(verdict.whole, Whole::quiet);
  EXPECT_TRUE(verdict.provisional);
}

TEST_F(Wholeness, WaitsSeveralTimesTheLongestGapSeenWithinASave) {
  for (const char* name : {"a.bin", "b.bin", "c.bin"}) {
    dir.save(name, "x");
    look();
    look_after(6000);
  }
  EXPECT_FALSE(look_after(17'000).is_whole()) << "23 s after the last change, gaps of 6 s";
  EXPECT_TRUE(look_after(1500).is_whole());
}

TEST_F(Wholeness, CountsQuietTimeAnewAfterEachChange) {
  dir.save("state", "a");
  look();
  look_after(9000);
  dir.save("state", "ab");
  EXPECT_EQ(look_after(9000).whole, Whole::not_yet);
}

TEST_F(Wholeness, BelievesTheCommitMarkerAtOnce) {
  dir.save("state.bin", "half");
  dir.append("train.log", "x");
  dir.save(".commit", "");
  dir.pass(10);
  dir.append("train.log", "y");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::commit_marker);
  EXPECT_EQ(verdict.how, "commit-marker");
  EXPECT_FALSE(verdict.provisional);
}

TEST_F(Wholeness, OnlyBelievesTheMarkerOnceAJobUsesIt) {
  dir.save("state.bin", "one");
  dir.save(".commit", "");
  ASSERT_TRUE(look().is_whole());
  take();
  dir.pass(1000);
  dir.remove(".commit");
  dir.save("state.bin", "tw");
  EXPECT_EQ(look_after(100'000).whole, Whole::not_yet);
  dir.save("state.bin", "two");
  dir.save(".commit", "");
  EXPECT_EQ(look().whole, Whole::commit_marker);
}

TEST_F(Wholeness, WaitsForTheFirstMarkerOfAJobThatIsKnownToUseOne) {
  WholeRules rules;
  rules.marker_expected = true;
  watch = WholeWatch(rules);
  dir.save("ckpt.pt", archive(1));
  look();
  EXPECT_EQ(look_after(100'000).whole, Whole::not_yet);
  dir.save(".commit", "");
  EXPECT_EQ(look().whole, Whole::commit_marker);
}

TEST_F(Wholeness, DoesNotBelieveAMarkerThatIsOlderThanAFile) {
  dir.save(".commit", "");
  dir.pass(1000);
  dir.save("state.bin", "being written again");
  EXPECT_THAT(look_after(100'000).why, HasSubstr("changed after .commit"));
  EXPECT_FALSE(look().is_whole());
}

TEST_F(Wholeness, DoesNotBelieveAMarkerAboutATornArchive) {
  dir.save("ckpt.pt", archive(1).substr(0, 500));
  dir.save(".commit", "");
  EXPECT_EQ(look().whole, Whole::not_yet);
}

TEST_F(Wholeness, BelievesTheFileThatTheJobFileNames) {
  WholeRules rules;
  rules.whole_when = "done-*.json";
  watch = WholeWatch(rules);
  dir.save("a.bin", "1");
  EXPECT_THAT(look_after(60'000).why, HasSubstr("whole_when"));
  dir.save("done-1.json", "{}");
  Verdict verdict = look();
  EXPECT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_EQ(verdict.how, "whole-when");
  take();
  dir.pass(3000);
  dir.save("a.bin", "2");
  verdict = look_after(60'000);
  EXPECT_FALSE(verdict.is_whole());
  dir.save("done-2.json", "{}");
  EXPECT_TRUE(look().is_whole());
  take();
  dir.pass(100);
  dir.save("a.bin", "3");
  dir.save("done-3.json", "{}");
  dir.pass(10);
  dir.save("a.bin", "4");
  EXPECT_FALSE(look_after(20'000).is_whole()) << "the next save has begun";
}

TEST_F(Wholeness, TakesNoTemporaryNames) {
  for (const char* name : {"model.json", "optimizer.json"}) dir.save(name, "{}");
  dir.save("ckpt.json.tmp", "half");
  look();
  EXPECT_THAT(look_after(60'000).why, HasSubstr("temporary name")) << "more is to come";
  dir.remove("ckpt.json.tmp");
  look();
  EXPECT_TRUE(look().is_whole());
}

TEST_F(Wholeness, DoesNotWaitForEverForAForgottenTemporaryFile) {
  dir.save("ckpt.pt", archive(1));
  dir.save("old.tmp", "half");
  look();
  EXPECT_EQ(look_after(100'000).whole, Whole::not_yet);
  const Verdict verdict = look_after(40'000);
  EXPECT_TRUE(verdict.provisional);
  EXPECT_THAT(verdict.selection.left_out, ElementsAre("old.tmp"));
  EXPECT_EQ(look_after(600'000).whole, Whole::format) << "it is no temporary file any more";
}

TEST_F(Wholeness, WaitsForAllShardsOfASet) {
  dir.save("m-00001-of-00002.safetensors", safetensors({{"a", noise(40, 1)}}));
  look();
  EXPECT_THAT(look_after(60'000).why, HasSubstr("1 of 2 shards"));
  dir.save("m-00002-of-00002.safetensors", safetensors({{"b", noise(40, 2)}}));
  look();
  EXPECT_TRUE(look_after(300'000).is_whole());
}

TEST_F(Wholeness, TakesOverWhatIsBeingRewrittenFromTheSnapshotBefore) {
  dir.save("checkpoint-1/model.safetensors", safetensors({{"a", noise(40, 1)}}));
  dir.save("checkpoint-1/trainer_state.json", "{}");
  dir.save("ckpt.pt", archive(1));
  look();
  ASSERT_TRUE(look_after(1000).is_whole());
  take();
  dir.pass(1000);
  dir.save("ckpt.pt", archive(2).substr(0, 300));
  dir.save("checkpoint-2/model.safetensors", safetensors({{"a", noise(40, 1)}}));
  EXPECT_FALSE(look().is_whole());
  dir.save("checkpoint-2/trainer_state.json", "{}");
  const Verdict verdict = look();
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_EQ(verdict.how, "transformers:checkpoint-2");
  EXPECT_THAT(verdict.selection.from_previous, ElementsAre("ckpt.pt"));
}

TEST_F(Wholeness, LeavesOutTheFolderThatIsNotDoneYet) {
  dir.save("checkpoint-1/trainer_state.json", "{}");
  dir.save("checkpoint-1/model.safetensors", safetensors({{"a", noise(40, 1)}}));
  dir.save("checkpoint-2/optimizer.pt", archive(4));
  Verdict verdict = look();
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, ElementsAre("checkpoint-2/optimizer.pt"));
  take();
  EXPECT_EQ(look_after(60'000).whole, Whole::not_yet);
  writer = Writer::killed;
  verdict = look();
  EXPECT_EQ(verdict.whole, Whole::never) << verdict.how;
}

TEST_F(Wholeness, LearnsFoldersOfSteps) {
  int taken = 0;
  for (int step = 100; step <= 800; step += 100) {
    for (const char* name : {"weights.json", "moments.json", "step.json"}) {
      dir.save("step-" + std::to_string(step) + "/" + name, "{}");
      const bool last = std::string(name) == "step.json";
      for (int i = 0; i < 6; ++i) {
        if (take_if_whole()) {
          EXPECT_TRUE(last) << step << name;
          ++taken;
        }
        dir.pass(500);
      }
    }
    if (step > 200)
      for (const char* name : {"weights.json", "moments.json", "step.json"})
        dir.remove("step-" + std::to_string(step - 200) + "/" + name);
  }
  EXPECT_GE(taken, 5);
}

TEST_F(Wholeness, TakesAValidNewArchiveAfterAKillAtOnce) {
  dir.save("step-1.pt", archive(1));
  look();
  look_after(1000);
  take();
  dir.save("step-2.pt", archive(2));
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::format);
}

TEST_F(Wholeness, NeverTrustsUnknownFormatsThatChangedBeforeAKill) {
  dir.save("state.json", "{}");
  dir.save("ckpt.pt", archive(1));
  look();
  ASSERT_TRUE(look_after(1000).is_whole());
  take();
  dir.pass(1000);
  dir.save("state.json", "{\"step\":");
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
  EXPECT_EQ(look_after(100'000).whole, Whole::never);
}

TEST_F(Wholeness, NeverTrustsHalfOfAPairAfterAKill) {
  dir.save("model.json", "{}");
  look();
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
}

TEST_F(Wholeness, AcceptsUnchangedSettingsBesideNewValidOnesAfterAKill) {
  dir.save("config.json", "{}");
  dir.save("ckpt.pt", archive(1));
  look();
  ASSERT_TRUE(look_after(1000).is_whole());
  take();
  dir.pass(1000);
  dir.save("ckpt.pt", archive(2));
  writer = Writer::killed;
  EXPECT_FALSE(look().is_whole()) << "one save more, and it would be known that the settings stay as they are";
}

TEST_F(Wholeness, LeavesOutAFolderThatIsBeingRemoved) {
  for (int step = 1; step <= 3; ++step) {
    dir.save("step-" + std::to_string(step) + "/a.pt", archive(1));
    dir.save("step-" + std::to_string(step) + "/b.pt", archive(2));
    look();
    look_after(1000);
  }
  ASSERT_TRUE(look().is_whole());
  take();
  dir.pass(1000);
  dir.remove("step-1/a.pt");
  dir.save("step-4/a.pt", archive(3));
  dir.save("step-4/b.pt", archive(3));
  const Verdict verdict = look();
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, Contains("step-1/b.pt"));
  EXPECT_THAT(verdict.selection.left_out, Not(Contains("step-2/b.pt")));
}

TEST_F(Wholeness, TakesWhatAProgramLeftThatEndedByItself) {
  dir.save("result.json", "{}");
  dir.save("leftover.tmp", "x");
  writer = Writer::exited;
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::exit);
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
}

// Two hosts of two ranks each; the first has rank 0, which writes the model, its own part, and then `latest`.
TEST_F(Wholeness, OfDeepSpeedEachHostOfAGangHasItsOwnRanksOnlyAndOneTheNameOfTheNewest) {
  WholeRules rules;
  rules.of_gang = true;
  const auto rank_file = [](int step, int rank) {
    return "global_step" + std::to_string(step) + "/zero_pp_rank_" + std::to_string(rank) + "_mp_rank_00_optim_states.pt";
  };
  const auto save = [&](int step, int first) {
    if (first == 0)
      dir.save("global_step" + std::to_string(step) + "/mp_rank_00_model_states.pt",
               torch_zip({{"m/data.pkl", std::string("module dp_world_sizeK\x04 mp_world_sizeK\x01 ZeRO")}, {"m/data/0", noise(500, 9)}}));
    for (const int rank : {first, first + 1}) dir.save(rank_file(step, rank), archive(static_cast<std::uint64_t>(10 * step + rank)));
  };
  watch = WholeWatch(rules);
  save(5, 0);
  EXPECT_FALSE(look_after(5000).is_whole()) << "without `latest` nobody would find it";
  dir.save("latest", "global_step5");
  const Verdict verdict = look_after(4000);
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
  take();
  // In the midst of the next save the host still has the one before, and its name.
  save(8, 0);
  dir.save("latest", "global_step8");
  const Verdict between = look_after(1000);
  EXPECT_FALSE(between.is_whole());
  const Verdict next = look_after(3000);
  ASSERT_TRUE(next.is_whole()) << next.why;
  EXPECT_THAT(next.selection.from_previous, IsEmpty());

  dir = Directory();
  watch = WholeWatch(rules);
  save(5, 2);
  EXPECT_FALSE(look_after(1000).is_whole());
  EXPECT_TRUE(look_after(3000).is_whole());

  dir = Directory();
  watch = WholeWatch();
  save(5, 0);
  dir.save("latest", "global_step5");
  EXPECT_FALSE(look_after(60000).is_whole()) << "on one host alone the ranks' files are missing";
}

TEST_F(Wholeness, AsksAboutEachUnchangedFileOnce) {
  dir.save("ckpt.pt", archive(1));
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(look());
    dir.pass(100);
  }
  EXPECT_EQ(dir.inspected, 1);
}

}  // namespace
}  // namespace gridctl::whole::watch_test
