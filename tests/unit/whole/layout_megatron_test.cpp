// SPDX-License-Identifier: Apache-2.0
// Megatron's directories: iter_NNNNNNN/mp_rank_TT_PPP/model_optim_rng.pt and the file that names the newest.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"

namespace gridctl::whole::layout_megatron_test {
namespace {

using ::testing::HasSubstr;

class Megatron : public ::testing::Test {
 protected:
  Directory dir;

  void save_rank(const std::string& iteration, const std::string& rank) {
    dir.pass(10);
    dir.save(iteration + "/mp_rank_" + rank + "/model_optim_rng.pt",
             store::testing::torch_zip({{"m/data.pkl", "keys of " + rank}, {"m/data/0", std::string(500, 'x')}}));
  }
  void save(const std::string& iteration, const std::string& newest) {
    for (const char* rank : {"00_000", "00_001", "01_000", "01_001"}) save_rank(iteration, rank);
    track(newest);
  }
  void track(const std::string& newest) {
    dir.pass(10);
    dir.save("latest_checkpointed_iteration.txt", newest);
  }
  Unit unit(const std::string& path) {
    for (const Unit& one : find_units(dir.listing.files, dir.access()))
      if (one.layout == "megatron" && one.path == path) return one;
    ADD_FAILURE() << "no unit " << path;
    return {};
  }
  Unit tracker() { return unit("latest_checkpointed_iteration.txt"); }
};

TEST_F(Megatron, IsWholeWhenTheTrackerNamesAnIterationWithAllItsRanks) {
  save("iter_0000010", "10");
  EXPECT_TRUE(unit("iter_0000010").whole) << unit("iter_0000010").why;
  EXPECT_TRUE(tracker().whole) << tracker().why;
  EXPECT_EQ(tracker().names, "iter_0000010");
}

TEST_F(Megatron, WaitsForTheTracker) {
  save("iter_0000010", "10");
  for (const char* rank : {"00_000", "00_001", "01_000", "01_001"}) save_rank("iter_0000020", rank);
  EXPECT_FALSE(unit("iter_0000020").whole);
  EXPECT_THAT(unit("iter_0000020").why, HasSubstr("does not name it yet"));
  EXPECT_TRUE(unit("iter_0000010").whole);
  track("20\n");
  EXPECT_TRUE(unit("iter_0000020").whole) << unit("iter_0000020").why;
  EXPECT_EQ(tracker().names, "iter_0000020");
}

TEST_F(Megatron, HasARankForEveryPairOfTensorAndPipeline) {
  save("iter_0000010", "10");
  dir.remove("iter_0000010/mp_rank_01_000/model_optim_rng.pt");
  EXPECT_FALSE(unit("iter_0000010").whole);
  EXPECT_THAT(unit("iter_0000010").why, HasSubstr("mp_rank_01_000"));
  EXPECT_FALSE(tracker().whole) << "what it names is not there";
  EXPECT_THAT(tracker().why, HasSubstr("names iteration 10"));
}

TEST_F(Megatron, TrackerThatNamesWhatIsNotThereIsNotWhole) {
  save("iter_0000010", "30");
  EXPECT_TRUE(unit("iter_0000010").whole);
  EXPECT_FALSE(tracker().whole);
  EXPECT_EQ(tracker().names, "");
}

TEST_F(Megatron, ReleaseIsTheIterationOfWeightsAlone) {
  save("iter_0000010", "release");
  EXPECT_TRUE(tracker().whole) << tracker().why;
}

}  // namespace
}  // namespace gridctl::whole::layout_megatron_test
