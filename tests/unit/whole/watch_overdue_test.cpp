// SPDX-License-Identifier: Apache-2.0
// Waiting ends: what nobody can judge is taken after three saves or two intervals, and is provisional. And at a good end
// all is taken that its program has not torn.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"

namespace gridctl::whole::watch_overdue_test {
namespace {

using store::testing::noise;
using store::testing::safetensors;
using store::testing::torch_zip;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Overdue : public ::testing::Test {
 protected:
  Directory dir;
  WholeRules rules;
  std::optional<WholeWatch> made;
  Writer writer = Writer::running;

  WholeWatch& watch() {
    if (!made) made.emplace(rules);
    return *made;
  }
  Verdict look() { return watch().look(dir.listing, {dir.now_ms * 1'000'000}, writer, dir.access()); }
  // Changes `step` each 200 ms, looks as the agent does, and tells what was taken first, in at most so many seconds.
  template <class Step>
  std::optional<Verdict> first_within(int seconds, Step step) {
    for (int tick = 0; tick < seconds * 5; ++tick) {
      step(tick);
      for (int again = 0; again < 2; ++again) {
        const Verdict verdict = look();
        if (verdict.is_whole()) {
          watch().taken(dir.listing);
          return verdict;
        }
        dir.pass(100);
      }
    }
    return std::nullopt;
  }
  static std::string archive(std::uint64_t seed, const std::string& keys = "model optimizer") {
    return torch_zip({{"ckpt/data.pkl", keys + noise(200, seed)}, {"ckpt/data/0", noise(2000, seed + 1)}});
  }
};

TEST_F(Overdue, AMemoryMappedFileThatAlwaysChangesIsTakenAfterTwoIntervals) {
  watch().set_interval(std::chrono::seconds{10});
  const auto taken = first_within(40, [&](int tick) { dir.save("state.mm", noise(4096, 7) + std::to_string(tick % 10)); });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
  EXPECT_EQ(taken->how, "overdue");
  EXPECT_EQ(taken->blame, "state.mm");
}

TEST_F(Overdue, WholeWhenBesideABusyFileIsTakenAfterThreeSaves) {
  rules.whole_when = "done";
  const auto taken = first_within(30, [&](int tick) {
    dir.save("heart.beat", std::to_string(tick));
    if (tick % 20 == 0) dir.save("model.raw", noise(1000, static_cast<std::uint64_t>(tick)));
    if (tick % 20 == 1) dir.save("done", std::to_string(tick));
  });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
  EXPECT_THAT(taken->blame, ::testing::AnyOf("heart.beat", "done"));  // the file that always changes, or the marker that is older
}

TEST_F(Overdue, ADatabaseWithItsJournalIsTaken) {
  const auto taken = first_within(40, [&](int tick) {
    if (tick % 3 == 0) dir.save("study.db-journal", noise(512, static_cast<std::uint64_t>(tick)));
    if (tick % 3 == 1) dir.save("study.db", noise(4096, static_cast<std::uint64_t>(tick)));
    if (tick % 3 == 2) dir.remove("study.db-journal");
  });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
}

TEST_F(Overdue, TwoWritersWithPacesOfTheirOwnAreTaken) {
  const auto taken = first_within(40, [&](int tick) {
    if (tick % 7 == 0) dir.save("a-" + std::to_string(tick / 7) + ".bin", noise(900, static_cast<std::uint64_t>(tick)));
    if (tick % 11 == 0) dir.save("b.bin", noise(900, static_cast<std::uint64_t>(tick) + 1));
  });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
}

TEST_F(Overdue, AMomentBetweenTwoSavesIsChosen) {
  // A save takes a second, in five pieces; then nothing happens for two.
  std::string content;
  const auto taken = first_within(60, [&](int tick) {
    if (tick % 15 == 0) content.clear();
    if (tick % 15 < 5) dir.save("state.raw", content += noise(100, static_cast<std::uint64_t>(tick)));
  });
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->as_left);
  EXPECT_EQ(content.size(), 500u);
}

TEST_F(Overdue, ATornFileIsLeftOutWhileItIsWritten) {
  watch().set_interval(std::chrono::seconds{5});
  const std::string whole = archive(1);
  const auto taken = first_within(30, [&](int tick) {
    dir.save("notes.raw", std::to_string(tick));
    dir.save("big.pt", whole.substr(0, 100 + static_cast<std::size_t>(tick)));
  });
  ASSERT_TRUE(taken);
  EXPECT_THAT(taken->selection.left_out, Contains("big.pt"));
}

TEST_F(Overdue, AUnitThatNeverGetsItsLastFileIsTakenWhenANewerOneIsThere) {
  const auto taken = first_within(60, [&](int tick) {
    if (tick % 50 != 0) return;
    const std::string folder = "checkpoint-" + std::to_string(tick / 50 + 1) + "/";
    dir.save(folder + "training_args.bin", archive(1, "args"));
    dir.save(folder + "non_lora_trainables.bin", archive(static_cast<std::uint64_t>(tick), "projector"));
  });
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
  EXPECT_THAT(taken->blame, HasSubstr("trainer_state.json"));
}

TEST_F(Overdue, LogsAloneAreTakenAsTheyGrow) {
  watch().set_interval(std::chrono::seconds{10});
  const auto taken = first_within(30, [&](int tick) { dir.append("results.jsonl", std::to_string(tick) + "\n"); });
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->provisional);
  EXPECT_THAT(taken->selection.growing, Contains("results.jsonl"));
}

TEST_F(Overdue, LogsThatComeAfterTheFirstLookAreWrittenInNoTime) {
  look();
  dir.pass(1000);
  dir.append("results.jsonl", "0\n");
  look();
  EXPECT_EQ(watch().written_for(), Duration{});
}

TEST_F(Overdue, WhatCannotBeReadMakesTheRestProvisional) {
  dir.save("ckpt.pt", archive(1));
  dir.listing.unreadable = {"lock.bin: Permission denied"};
  const auto taken = first_within(30, [](int) {});
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->provisional);
}

TEST_F(Overdue, APointerIsAsWholeAsWhatItNames) {
  // As detectron2 saves, slowly and often: the third and later ones are sure.
  std::optional<Verdict> last;
  for (int save = 1; save <= 5; ++save) {
    const std::string name = "model_" + std::to_string(save) + ".pth", content = archive(static_cast<std::uint64_t>(save));
    for (std::size_t size = 200; size < content.size(); size += 400) {
      dir.save(name, content.substr(0, size));
      if (look().is_whole()) watch().taken(dir.listing);
      dir.pass(700);
    }
    dir.save(name, content);
    dir.save("last_checkpoint", name);
    for (int tick = 0; tick < 8; ++tick) {
      const Verdict verdict = look();
      if (verdict.is_whole()) {
        watch().taken(dir.listing);
        last = verdict;
      }
      dir.pass(300);
    }
    ASSERT_TRUE(last) << save;
  }
  EXPECT_FALSE(last->provisional);
  EXPECT_THAT(last->selection.left_out, IsEmpty());
}

TEST_F(Overdue, AReplayBufferOfAnotherStepIsNeverSure) {
  const std::string zip = torch_zip({{"data", "{}"}, {"policy.pth", noise(500, 1)}, {"policy.optimizer.pth", noise(500, 2)}});
  for (int save = 1; save <= 4; ++save) {
    const std::string step = std::to_string(save), buffer = "rl_model_replay_buffer_" + step + "_steps.pkl";
    dir.save("rl_model_" + step + "_steps.zip", zip + "");
    for (int tick = 0; tick < 85; ++tick) {
      if (tick % 3 == 1 && tick < 24) dir.append(buffer, noise(300, static_cast<std::uint64_t>(save)));
      const Verdict verdict = look();
      if (verdict.is_whole() && !verdict.provisional) {
        EXPECT_GE(dir.content(buffer).size(), 2400u) << save << " " << tick;
      }
      if (verdict.is_whole()) watch().taken(dir.listing);
      dir.pass(200);
    }
  }
}

// --- A good end ---------------------------------------------------------------------------------------------------------

TEST_F(Overdue, AGoodEndTakesWhatItsLayoutMisses) {
  writer = Writer::exited;
  dir.save("global_step1/mp_rank_00_model_states.pt", archive(1, "model"));
  dir.save("global_step1/zero_pp_rank_0_mp_rank_00_optim_states.pt", archive(2));
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::exit);
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
}

TEST_F(Overdue, AGoodEndTakesWhatWasAppendedAfterTheLastSave) {
  dir.save("ckpt.pt", archive(1));
  dir.save("loss.csv", "1\n");
  ASSERT_TRUE(first_within(10, [](int) {}));
  dir.append("loss.csv", "2\n");
  EXPECT_FALSE(look().is_whole());
  writer = Writer::exited;
  EXPECT_TRUE(look().is_whole());
  watch().taken(dir.listing);
  EXPECT_TRUE(watch().has_all(dir.listing));
  dir.append("loss.csv", "3\n");
  EXPECT_FALSE(watch().has_all(dir.listing));
}

TEST_F(Overdue, AGoodEndDoesNotVouchForATornFile) {
  writer = Writer::exited;
  dir.save("checkpoint-5/trainer_state.json", "{}");
  dir.save("checkpoint-5/model.safetensors", safetensors({{"w", noise(40, 1)}}).substr(0, 90));
  EXPECT_EQ(look().whole, Whole::never);
}

}  // namespace
}  // namespace gridctl::whole::watch_overdue_test
