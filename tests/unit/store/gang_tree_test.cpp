// SPDX-License-Identifier: Apache-2.0
#include "store/gang_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "crypto/sha256.hpp"
#include "support/results.hpp"

namespace gridctl::store::gang_tree_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

// Hosts with files whose content is text.
class GangTree : public ::testing::Test {
 protected:
  void host(const std::string& name, std::uint32_t first, std::uint32_t ranks,
            const std::map<std::string, std::string>& files) {
    members_.push_back({name, first, ranks, &tree_of(files), {}});
  }
  const Tree& tree_of(const std::map<std::string, std::string>& files) {
    std::map<std::string, Entry> entries;
    for (const auto& [path, content] : files) {
      for (std::size_t cut = path.find('/'); cut != std::string::npos; cut = path.find('/', cut + 1))
        entries[path.substr(0, cut)] = Entry{EntryKind::directory, 0755, path.substr(0, cut), 0, {}, ""};
      Entry file{EntryKind::file, 0644, path, content.size(), {}, ""};
      const Digest digest = crypto::sha256(as_bytes(content));
      if (!content.empty()) file.chunks = {{digest, static_cast<std::uint32_t>(content.size())}};
      contents_[digest] = content;
      entries[path] = file;
    }
    std::vector<Entry> list;
    for (auto& [path, entry] : entries) list.push_back(entry);
    trees_.push_back(*make_tree(std::move(list)));
    return trees_.back();
  }
  [[nodiscard]] Result<MergedTree> merge(const Tree* base = nullptr) {
    return merge_members(
        members_,
        [&](const MemberTree&, const Entry& entry) -> Result<Bytes> {
          const ByteView bytes = as_bytes(contents_.at(entry.chunks.at(0).digest));
          return Bytes(bytes.begin(), bytes.end());
        },
        base);
  }
  [[nodiscard]] static std::vector<std::string> files_of(const Tree& tree) {
    std::vector<std::string> files;
    for (const Entry& entry : tree.entries)
      if (entry.kind == EntryKind::file) files.push_back(entry.path);
    return files;
  }

  std::deque<Tree> trees_;
  std::map<Digest, std::string> contents_;
  std::vector<MemberTree> members_;
};

constexpr const char* k_pickle = "\x80\x02}q...X\x0c__0_0.distcpq\x01...__1_0.distcp...__2_0.distcp...__3_0.distcp.";

TEST_F(GangTree, ATorchCheckpointOfFourRanksIsPutTogetherFromTheirHosts) {
  host("ada", 0, 2, {{"step-5/.metadata", k_pickle}, {"step-5/__0_0.distcp", "a"}, {"step-5/__1_0.distcp", "b"}});
  host("bob", 2, 2, {{"step-5/__2_0.distcp", "c"}, {"step-5/__3_0.distcp", "d"}});
  const auto merged = merge();
  ASSERT_THAT(merged, IsOk());
  EXPECT_TRUE(merged->is_whole()) << merged->why();
  EXPECT_THAT(files_of(merged->tree), ElementsAre("step-5/.metadata", "step-5/__0_0.distcp", "step-5/__1_0.distcp",
                                                  "step-5/__2_0.distcp", "step-5/__3_0.distcp"));
  EXPECT_EQ(merged->owners.back(), "bob");
}

TEST_F(GangTree, AShardThatTheMetadataNamesAndNobodyHasIsNamed) {
  host("ada", 0, 2, {{"step-5/.metadata", k_pickle}, {"step-5/__0_0.distcp", "a"}, {"step-5/__1_0.distcp", "b"}});
  host("bob", 2, 2, {{"step-5/__2_0.distcp", "c"}});
  const auto merged = merge();
  ASSERT_THAT(merged, IsOk());
  EXPECT_FALSE(merged->is_whole());
  EXPECT_EQ(merged->why(), "missing: step-5/__3_0.distcp, which step-5/.metadata names");
}

TEST_F(GangTree, ShardsWithoutMetadataAreNoCheckpoint) {
  host("ada", 0, 1, {{"__0_0.distcp", "a"}});
  host("bob", 1, 1, {{"__1_0.distcp", "b"}});
  EXPECT_THAT(merge()->why(), HasSubstr(".metadata, without which __0_0.distcp cannot be read"));
}

TEST_F(GangTree, DeepSpeedsFilesOfAllRanksAreWanted) {
  host("ada", 0, 1, {{"latest", "global_step5"},
                     {"global_step5/mp_rank_00_model_states.pt", "m"},
                     {"global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt", "0"}});
  host("bob", 1, 1, {{"global_step5/zero_pp_rank_1_mp_rank_00_optim_states.pt", "1"}});
  EXPECT_TRUE(merge()->is_whole()) << merge()->why();
  host("cyd", 2, 1, {});
  EXPECT_EQ(merge()->why(), "missing: global_step5/zero_pp_rank_2_mp_rank_00_optim_states.pt, because the other ranks have "
                            "written one");
}

TEST_F(GangTree, OneFileForEachRankMayBeNumberedWithZeros) {
  std::map<std::string, std::string> some, others;
  for (int rank = 0; rank < 12; ++rank)
    (rank < 6 ? some : others)["step-1/rank_" + std::string(rank < 10 ? "0" : "") + std::to_string(rank) + ".pt"] = "x";
  host("ada", 0, 6, some);
  host("bob", 6, 6, others);
  EXPECT_TRUE(merge()->is_whole()) << merge()->why();
  others.erase("step-1/rank_10.pt");
  members_.pop_back();
  host("bob", 6, 6, others);
  EXPECT_EQ(merge()->why(), "missing: step-1/rank_10.pt, because the other ranks have written one");
}

TEST_F(GangTree, RankZeroAloneIsEnoughWhereNobodyElseWrites) {
  host("ada", 0, 2, {{"ckpt.pt", "m"}});
  host("bob", 2, 2, {});
  const auto merged = merge();
  EXPECT_TRUE(merged->is_whole());
  EXPECT_THAT(files_of(merged->tree), ElementsAre("ckpt.pt"));
}

TEST_F(GangTree, WhatSeveralHoldIsKeptOnceAndAConflictIsNamed) {
  host("ada", 0, 1, {{"ckpt.pt", "m"}, {"config.json", "{}"}, {"train.log", "0"}});
  host("bob", 1, 1, {{"ckpt.pt", "m"}, {"config.json", "{}"}, {"train.log", "1"}});
  const auto alike = merge();
  EXPECT_TRUE(alike->is_whole()) << alike->why();
  EXPECT_EQ(alike->tree.entries.size(), 3u);
  ASSERT_EQ(alike->conflicts.size(), 1u);
  EXPECT_TRUE(alike->conflicts[0].harmless);
  host("cyd", 2, 1, {{"ckpt.pt", "other"}});
  EXPECT_EQ(merge()->why(), "'ckpt.pt' differs between ada and cyd");
}

TEST_F(GangTree, WhatAMemberWasGivenYieldsToWhatAnotherHasMadeOfIt) {
  const Tree& base = tree_of({{"ckpt.pt", "10"}, {"rng-of-bob.bin", "10"}});
  host("ada", 0, 1, {{"ckpt.pt", "20"}, {"rng-of-bob.bin", "10"}});
  host("bob", 1, 1, {{"ckpt.pt", "10"}, {"rng-of-bob.bin", "20"}});
  EXPECT_FALSE(merge()->is_whole());
  const auto merged = merge(&base);
  ASSERT_TRUE(merged->is_whole()) << merged->why();
  EXPECT_THAT(merged->owners, ElementsAre("ada", "bob"));
}

TEST_F(GangTree, FilesOfRanksThatAreWrittenInPlaceAreAllOfOneSave) {
  const Tree& base = tree_of({{"rank_0.pt", "10"}, {"rank_1.pt", "10"}});
  host("ada", 0, 1, {{"rank_0.pt", "20"}, {"rank_1.pt", "10"}});
  host("bob", 1, 1, {{"rank_0.pt", "10"}, {"rank_1.pt", "10"}});
  EXPECT_EQ(merge(&base)->why(), "missing: rank_1.pt again, because other ranks have written theirs");
  members_.pop_back();
  host("bob", 1, 1, {{"rank_0.pt", "10"}, {"rank_1.pt", "20"}});
  EXPECT_TRUE(merge(&base)->is_whole()) << merge(&base)->why();
}

TEST_F(GangTree, NumberedFilesThatOneRankWritesAreNoRanks) {
  const Tree& base = tree_of({{"shard_0.pt", "10"}, {"shard_1.pt", "10"}, {"shard_2.pt", "10"}});
  host("ada", 0, 1, {{"shard_0.pt", "20"}, {"shard_1.pt", "20"}, {"shard_2.pt", "20"}});
  host("bob", 1, 1, {{"shard_0.pt", "10"}, {"shard_1.pt", "10"}, {"shard_2.pt", "10"}});
  const auto merged = merge(&base);
  ASSERT_TRUE(merged->is_whole()) << merged->why();
  EXPECT_EQ(merged->tree.entries.size(), 3u);
}

TEST_F(GangTree, ASmallerGangLeavesOutTheFilesOfRanksThatAreNoMore) {
  const Tree& base = tree_of({{"old/rank_0.pt", "5"}, {"old/rank_1.pt", "5"}, {"old/rank_2.pt", "5"},
                              {"rank_0.pt", "10"}, {"rank_1.pt", "10"}, {"rank_2.pt", "10"}});
  const auto with = [&](const std::string& zero, const std::string& one) {
    return std::map<std::string, std::string>{{"old/rank_0.pt", "5"}, {"old/rank_1.pt", "5"}, {"old/rank_2.pt", "5"},
                                              {"rank_0.pt", zero}, {"rank_1.pt", one}, {"rank_2.pt", "10"}};
  };
  host("ada", 0, 1, with("20", "10"));
  host("bob", 1, 1, with("10", "20"));
  const auto merged = merge(&base);
  ASSERT_TRUE(merged->is_whole()) << merged->why();
  EXPECT_THAT(files_of(merged->tree),
              ElementsAre("old/rank_0.pt", "old/rank_1.pt", "old/rank_2.pt", "rank_0.pt", "rank_1.pt"));
}

TEST_F(GangTree, ALargerGangWantsTheFilesOfItsNewRanksToo) {
  const Tree& base = tree_of({{"rank_0.pt", "10"}, {"rank_1.pt", "10"}});
  host("ada", 0, 1, {{"rank_0.pt", "20"}, {"rank_1.pt", "10"}});
  host("bob", 1, 1, {{"rank_0.pt", "10"}, {"rank_1.pt", "20"}});
  host("cyd", 2, 1, {{"rank_0.pt", "10"}, {"rank_1.pt", "10"}});
  EXPECT_EQ(merge(&base)->why(), "missing: rank_2.pt again, because other ranks have written theirs");
  members_.pop_back();
  host("cyd", 2, 1, {{"rank_0.pt", "10"}, {"rank_1.pt", "10"}, {"rank_2.pt", "20"}});
  EXPECT_TRUE(merge(&base)->is_whole()) << merge(&base)->why();
}

TEST_F(GangTree, AFileHereAndAFolderThereIsAnError) {
  host("ada", 0, 1, {{"step", "m"}});
  host("bob", 1, 1, {{"step/x", "m"}});
  EXPECT_THAT(merge(), FailsWith(Code::checkpoint_damaged));
}

TEST_F(GangTree, MegatronsPartsAreNumberedByTensorParallelismNotByRank) {
  host("ada", 0, 2, {{"iter_0000100/mp_rank_00/model_optim_rng.pt", "0"},
                     {"iter_0000100/mp_rank_01/model_optim_rng.pt", "1"},
                     {"latest_checkpointed_iteration.txt", "100"}});
  host("bob", 2, 2, {});
  EXPECT_TRUE(merge()->is_whole()) << merge()->why();
}

TEST_F(GangTree, StepsAreReadFromNames) {
  EXPECT_EQ(step_named(tree_of({{"step-100/a", "x"}, {"step-300/a", "x"}})), 300);
  EXPECT_EQ(step_named(tree_of({{"global_step5/mp_rank_00.pt", "x"}})), 5);
  EXPECT_EQ(step_named(tree_of({{"checkpoint-1200/model.safetensors", "x"}})), 1200);
  EXPECT_EQ(step_named(tree_of({{"iter_0000100/mp_rank_00.pt", "x"}})), 100);
  EXPECT_EQ(step_named(tree_of({{"epoch=3-step=300.ckpt", "x"}})), 300);
  EXPECT_EQ(step_named(tree_of({{"ckpt.pt", "x"}, {"rank_3.pt", "x"}})), std::nullopt);
}

TEST_F(GangTree, TheNewestStepThatAllHaveIsTaken) {
  const auto part = [&](const std::string& step) {
    return MemberTree{"", 0, 1, &tree_of({{"step-" + step + "/a", step}}), {}};
  };
  std::vector<std::vector<MemberTree>> members{{part("1"), part("2"), part("3")}, {part("1"), part("2")}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{1, 1}));
  members[1] = {part("7")};
  EXPECT_EQ(newest_common(members), std::nullopt);
  members[1] = {};
  EXPECT_EQ(newest_common(members), std::nullopt);
}

TEST_F(GangTree, WhatTheJobTellsComesBeforeNamesAndWithoutEitherTheNewestCounts) {
  const auto part = [&](const std::string& content, std::optional<std::int64_t> step) {
    return MemberTree{"", 0, 1, &tree_of({{"ckpt.pt", content}}), step};
  };
  std::vector<std::vector<MemberTree>> members{{part("a", 10), part("b", 20)}, {part("c", 10)}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{0, 0}));
  members = {{part("a", {}), part("b", {})}, {part("c", {})}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{1, 0}));
}

TEST_F(GangTree, AMemberThatSavesNothingGoesWithAnything) {
  const MemberTree nothing{"b", 1, 1, &tree_of({}), {}};
  const auto part = [&](const std::string& step) {
    return MemberTree{"a", 0, 1, &tree_of({{"step-" + step + "/model.pt", step}}), {}};
  };
  const std::vector<std::vector<MemberTree>> members{{part("1"), part("2")}, {nothing}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{1, 0}));
}

TEST_F(GangTree, WithoutNamesWhatWasSavedAtOneTimeBelongsTogether) {
  const auto part = [&](const std::string& content, std::int64_t seconds) {
    return MemberTree{"", 0, 1, &tree_of({{"model.bin", content}}), {}, BootTime{seconds * 1'000'000'000}};
  };
  std::vector<std::vector<MemberTree>> members{{part("a", 100), part("b", 130)}, {part("c", 102)}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{0, 0})) << "the second host's newest is of the save before";
  members[1].push_back(part("d", 132));
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{1, 1}));
  members[1].back() = part("d", 115);
  EXPECT_EQ(newest_common(members), std::nullopt) << "as near to the save before as to this one";
  // Settings that were saved once stay.
  members = {{part("a", 300), part("b", 400)}, {part("settings", 10)}};
  EXPECT_EQ(newest_common(members), (std::vector<std::size_t>{1, 0}));
}

TEST_F(GangTree, AFileOfARankIsKnownByItsName) {
  EXPECT_EQ(file_of_a_rank({"", 0, 2, &tree_of({{"step-3/rank_1.pt", "x"}}), {}}), "step-3/rank_1.pt");
  EXPECT_EQ(file_of_a_rank({"", 0, 2, &tree_of({{"step-3/rank_2.pt", "x"}, {"model.pt", "x"}}), {}}), std::nullopt);
}

}  // namespace
}  // namespace gridctl::store::gang_tree_test
