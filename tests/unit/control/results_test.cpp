// SPDX-License-Identifier: Apache-2.0
#include "control/follow/results.hpp"

#include <gmock/gmock.h>

#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::results_test {
namespace {

using gridctl::testing::IsOk;
using job::Output, job::OutputWhen;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Results, AreWhatTheJobWantsAtSuchAnEnd) {
  const std::vector<Output> outputs{{"a"}, {"b", OutputWhen::success}, {"c", OutputWhen::failure}};
  EXPECT_THAT(wanted_at_end(outputs, true, {}).patterns, ElementsAre("a", "b"));
  EXPECT_THAT(wanted_at_end(outputs, false, {}).patterns, ElementsAre("a", "c"));
  EXPECT_TRUE(wanted_at_end({{"b", OutputWhen::success}}, false, {}).nothing);
  const ResultsWanted rest = wanted_at_end({}, false, {});
  EXPECT_FALSE(rest.tree || rest.nothing) << "what is left is counted, and stays on its host";
}

TEST(Results, AreToldInAFewWords) {
  EXPECT_EQ(files_in_words(1, 5, {"a.txt"}), "1 file, 5 B (a.txt)");
  EXPECT_EQ(files_in_words(5, 0, {"a", "b\033[31m", "c", "d"}), "5 files, 0 B (a, b^[[31m, c, …)");
}

TEST(Results, OfAJobAreWrittenDownWithTheCommandThatFetchesThem) {
  const gridctl::testing::TempDir state;
  Result<registry::Registry> registry = registry::Registry::open(state.path());
  ASSERT_THAT(registry, IsOk());
  job::Spec spec;
  spec.name = "x";
  spec.run = "true";
  ASSERT_TRUE(registry->submit({"j1"}, spec, {1000}));
  GatheredResults gathered;
  ASSERT_THAT(keep_results(*registry, {"j1"}, {1}, {"ada"}, {}, gathered, true, {2000}), IsOk());
  const std::optional<registry::Results> nothing = *registry->results({"j1"});
  ASSERT_TRUE(nothing) << "that nothing was left was seen";
  EXPECT_EQ(nothing->files, 0u);
  gathered.reply.files = 3;
  gathered.reply.bytes = 10;
  gathered.reply.names = {"a", "b", "c"};
  ASSERT_THAT(keep_results(*registry, {"j1"}, {1}, {"ada"}, {}, gathered, true, {2000}), IsOk());
  const auto known = registry->results({"j1"});
  ASSERT_TRUE(known && *known && (*known)->left);
  EXPECT_EQ((*known)->left->host.value, "ada");
  EXPECT_EQ((*known)->left->until.ms, 2000 + 24 * 3'600'000);
  const auto events = registry->events({"j1"}, 0, 0);
  EXPECT_THAT(events->back().text,
              HasSubstr("3 files, 10 B (a, b, c) outside the checkpoint, kept on ada for 1d: gridctl job pull j1"));
}

}  // namespace
}  // namespace gridctl::control::results_test
