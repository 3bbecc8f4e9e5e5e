// SPDX-License-Identifier: Apache-2.0

#include "base/metrics.hpp"

namespace gridctl::metrics_test {
namespace {

TEST(Names, OfMetricsAreShortAndPlain) {
  EXPECT_TRUE(is_metric_name(std::string(64, 'x')));
  EXPECT_TRUE(is_metric_name("Loss/train:1.0_a-b"));
  for (const std::string& odd : {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a\n")})
    EXPECT_FALSE(is_metric_name(odd)) << odd;
}

}  // namespace
}  // namespace gridctl::metrics_test
