// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "job/outputs.hpp"

namespace gridctl::job::outputs_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Outputs, AreTakenByHowTheJobEnded) {
  const std::vector<Output> outputs{{"a", OutputWhen::always, {}}, {"s", OutputWhen::success, {}}, {"f", OutputWhen::failure, {}}};
  EXPECT_THAT(outputs_at_end(outputs, true), ElementsAre("a", "s"));
  EXPECT_THAT(outputs_at_end(outputs, false), ElementsAre("a", "f"));
}

TEST(Outputs, AreTakenWhileItRunsAsOftenAsTheMostUrgentWants) {
  const OutputSync none = outputs_while_running({{"a", OutputWhen::always, {}}});
  EXPECT_THAT(none.patterns, IsEmpty());
  EXPECT_EQ(none.every, 0s);
  const OutputSync sync = outputs_while_running({{"a", OutputWhen::always, 60s}, {"b", OutputWhen::always, {}}, {"c", OutputWhen::always, 30s}, {"d", OutputWhen::always, 90s}});
  EXPECT_THAT(sync.patterns, ElementsAre("a", "c", "d"));
  EXPECT_EQ(sync.every, 30s);
}

}  // namespace
}  // namespace gridctl::job::outputs_test
