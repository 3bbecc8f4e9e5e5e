// SPDX-License-Identifier: Apache-2.0
// What a host of a gang needs of a checkpoint. The .metadata files are those of a real torch: tests/data/shards/make.py.
#include "store/local_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "store/pickle.hpp"
#include "support/results.hpp"

namespace gridctl::store::local_part_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

Bytes bytes_of(const std::string& text) {
  const ByteView view = as_bytes(text);
  return {view.begin(), view.end()};
}

std::string golden(const std::string& name) {
  std::ifstream file(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/shards/" + name + ".metadata", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> own(const std::string& name, std::uint32_t world = 4) {
  const std::string metadata = golden(name);
  const auto shards = shards_of_one_rank(as_bytes(metadata), world);
  EXPECT_THAT(shards, IsOk());
  return shards ? *shards : std::set<std::string>{};
}

// Files with nothing in them but the metadata.
class LocalPart : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& content = "x") {
    for (std::size_t cut = path.find('/'); cut != std::string::npos; cut = path.find('/', cut + 1))
      entries_[path.substr(0, cut)] = Entry{EntryKind::directory, 0755, path.substr(0, cut), 0, {}, ""};
    entries_[path] = Entry{EntryKind::file, 0644, path, content.size(), {}, ""};
    contents_[path] = content;
  }
  void torch_step(const std::string& folder, const std::string& metadata, std::uint32_t world = 4) {
    file(folder + "/.metadata", metadata);
    for (std::uint32_t rank = 0; rank < world; ++rank) file(folder + "/__" + std::to_string(rank) + "_0.distcp");
  }
  [[nodiscard]] std::vector<std::string> part(RankRange ranks, std::uint32_t world = 4) const {
    Tree tree;
    for (const auto& [path, entry] : entries_) tree.entries.push_back(entry);
    const ReadFile read = [this](const Entry& entry) -> Result<Bytes> {
      if (contents_.at(entry.path) == "damaged") return make_error(Code::checkpoint_damaged, "a chunk is damaged");
      return bytes_of(contents_.at(entry.path));
    };
    std::vector<std::string> files;
    for (const Entry& entry : local_part(tree, ranks, world, read).entries)
      if (entry.kind == EntryKind::file) files.push_back(entry.path);
    return files;
  }

  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> contents_;
};

TEST_F(LocalPart, OfTorchsShardsAHostIsGivenItsOwnAndThoseWithSharedValues) {
  EXPECT_THAT(own("lowest"), ElementsAre("__1_0.distcp", "__2_0.distcp", "__3_0.distcp"));
  torch_step("step-7", golden("lowest"));
  EXPECT_THAT(part({0, 2}), ElementsAre("step-7/.metadata", "step-7/__0_0.distcp", "step-7/__1_0.distcp"));
  EXPECT_THAT(part({2, 2}), ElementsAre("step-7/.metadata", "step-7/__0_0.distcp", "step-7/__2_0.distcp", "step-7/__3_0.distcp"));
}

TEST_F(LocalPart, SharedValuesThatTorchSpreadsOverItsShardsAreNeededByAll) {
  EXPECT_THAT(own("spread"), ElementsAre("__0_0.distcp"));
  torch_step("step-7", golden("spread"));
  EXPECT_THAT(part({0, 2}), ElementsAre("step-7/.metadata", "step-7/__0_0.distcp", "step-7/__1_0.distcp",
                                        "step-7/__2_0.distcp", "step-7/__3_0.distcp"));
  EXPECT_THAT(part({2, 2}), ElementsAre("step-7/.metadata", "step-7/__1_0.distcp", "step-7/__2_0.distcp", "step-7/__3_0.distcp"));
}

TEST_F(LocalPart, AShardThatTwoRanksHoldGoesToAll) { EXPECT_THAT(own("hybrid"), IsEmpty()); }

TEST_F(LocalPart, ATensorOfWhichARankHasNothingIsStillEachRanksOwn) {
  EXPECT_THAT(own("short"), ElementsAre("__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"));
}

TEST_F(LocalPart, AnotherNumberOfRanksNeedsEverything) {
  torch_step("step-7", golden("lowest"));
  file("step-7/rank_0.pt"), file("step-7/rank_1.pt"), file("step-7/rank_2.pt"), file("step-7/rank_3.pt");
  EXPECT_EQ(part({0, 1}, 3).size(), entries_.size() - 1);
  EXPECT_EQ(part({0, 1}, 5).size(), entries_.size() - 1);
  EXPECT_EQ(part({0, 1}, 1).size(), entries_.size() - 1);
  EXPECT_EQ(part({0, 1}, 4).size(), 3u);
}

TEST_F(LocalPart, MetadataThatNobodyCanReadSendsEverything) {
  EXPECT_THAT(shards_of_one_rank(as_bytes("no pickle"), 4), FailsWith(Code::unsupported));
  EXPECT_THAT(shards_of_one_rank({}, 4), FailsWith(Code::unsupported));
  torch_step("a", "no pickle");
  torch_step("b", "damaged");
  EXPECT_EQ(part({2, 2}).size(), 10u);
}

TEST_F(LocalPart, EachStepIsJudgedByItself) {
  torch_step("step-7", golden("lowest"));
  torch_step("step-8", golden("hybrid"));
  EXPECT_EQ(part({3, 1}).size(), 3u + 5u);
}

TEST_F(LocalPart, OfFilesThatEachRankWritesAHostIsGivenItsOwn) {
  for (const char* rank : {"0", "1", "2", "3"}) file(std::string("s/random_states_") + rank + ".pkl");
  file("s/model.pt");
  EXPECT_THAT(part({2, 2}), ElementsAre("s/model.pt", "s/random_states_2.pkl", "s/random_states_3.pkl"));
}

TEST_F(LocalPart, FilesOfWhichOneIsMissingAreNotEachRanksOwn) {
  for (const char* rank : {"0", "1", "3"}) file(std::string("s/rank_") + rank + ".pt");
  EXPECT_EQ(part({2, 2}).size(), 3u);
}

TEST_F(LocalPart, DeepSpeedsRanksLookForTheFilesOfAll) {
  file("latest");
  for (const char* rank : {"0", "1", "2", "3"}) {
    file(std::string("s/zero_pp_rank_") + rank + "_mp_rank_00_optim_states.pt");
    file(std::string("s/bf16_zero_pp_rank_") + rank + "_mp_rank_00_optim_states.pt");
  }
  EXPECT_EQ(part({1, 1}).size(), 9u);
}

// Every cut and every changed byte of a real file, of a long one every seventh: an answer or a refusal, never anything
// else.
TEST(Pickle, SurvivesDamage) {
  for (const auto& [name, stride] : {std::pair{"hybrid", 1u}, std::pair{"spread", 7u}}) {
    const std::string whole = golden(name);
    const auto metadata = Pickle::parse(as_bytes(whole));
    ASSERT_THAT(metadata, IsOk());
    EXPECT_TRUE(metadata->root().is("Metadata"));
    EXPECT_EQ(metadata->root().field("nothing"), nullptr);
    for (std::size_t size = 0; size < whole.size(); size += stride)
      EXPECT_THAT(Pickle::parse(as_bytes(whole.substr(0, size))), Not(IsOk())) << size;
    for (std::size_t at = 0; at < whole.size(); at += stride) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
      (void)shards_of_one_rank(as_bytes(changed), 4);
    }
  }
}

TEST(Pickle, ReadsNumbersOfEverySize) {
  using namespace std::string_literals;
  // pickle.dumps([0, 255, 65535, -1, 2**40, -2**40, 1.5, True, None, 'é'], protocol=4)
  const std::string list =
      "\x80\x04\x95\x31\x00\x00\x00\x00\x00\x00\x00]\x94(K\x00K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
      "\x8a\x06\x00\x00\x00\x00\x00\xffG?\xf8\x00\x00\x00\x00\x00\x00\x88N\x8c\x02\xc3\xa9\x94""e."s;
  const auto parsed = Pickle::parse(as_bytes(list));
  ASSERT_THAT(parsed, IsOk());
  std::vector<std::int64_t> numbers;
  for (const PickleValue* one : parsed->root().items) numbers.push_back(one->integer);
  EXPECT_THAT(numbers, ElementsAre(0, 255, 65535, -1, 1ll << 40, -(1ll << 40), 0, 1, 0, 0));
  EXPECT_EQ(parsed->root().items.back()->text, "é");
  EXPECT_THAT(Pickle::parse(as_bytes("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s)), FailsWith(Code::unsupported));
  EXPECT_THAT(Pickle::parse(as_bytes("u."s)), FailsWith(Code::unsupported));
  EXPECT_THAT(Pickle::parse(as_bytes("(0u."s)), FailsWith(Code::unsupported));
}

TEST(Pickle, OfAFewBytesForEachLongNameIsRefused) {
  using namespace std::string_literals;
  std::string many = "cm\n" + std::string(480, 'n') + "\nq\0"s;
  for (int i = 0; i < 200'000; ++i) many += "h\0)R0"s;  // each makes an object of that class
  EXPECT_THAT(Pickle::parse(as_bytes(many + "h\0."s)), FailsWith(Code::unsupported)) << "96 MB of a megabyte";
  EXPECT_THAT(Pickle::parse(as_bytes(many.substr(0, 486 + 5 * 1000) + "h\0."s)), IsOk());
}

}  // namespace
}  // namespace gridctl::store::local_part_test
