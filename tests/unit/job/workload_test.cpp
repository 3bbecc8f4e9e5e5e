// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "job/workload.hpp"

namespace gridctl::job::workload_test {
namespace {

TEST(Workload, ExchangesTwoBytesForEachParameterUnlessItIsSaid) {
  Workload workload;
  EXPECT_FALSE(exchange_bytes(workload));
  workload.params = 7e9;
  EXPECT_EQ(exchange_bytes(workload), 14e9);
  workload.exchange_bytes = 100;
  EXPECT_EQ(exchange_bytes(workload), 100);
}

}  // namespace
}  // namespace gridctl::job::workload_test
