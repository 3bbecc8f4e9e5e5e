// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "control/serve/gateway_files.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::gateway_files_test {
namespace {
using namespace std::chrono_literals;

job::Service patient() {
  job::Service service;
  service.initial_delay = 10s;
  return service;
}

TEST(Readiness, AServerThatIsNeverReadyIsLateAfterItsInitialDelay) {
  ReadyClock clock;
  for (int second = 0; second < 10; ++second) clock.see(Epoch{3}, true, false, 1s, patient());
  EXPECT_FALSE(clock.told().late);
  clock.see(Epoch{3}, true, false, 1s, patient());
  EXPECT_EQ(clock.told(), (ReplicaTold{Epoch{3}, false, true}));
  clock.see(Epoch{4}, true, false, 1s, patient());
  EXPECT_EQ(clock.told(), (ReplicaTold{Epoch{4}, false, false})) << "the next attempt has its own time";
}

TEST(Readiness, TimeWithoutAWayToTheHostDoesNotCount) {
  ReadyClock clock;
  clock.see(Epoch{1}, true, false, 8h, patient());  // this machine slept
  for (int second = 0; second < 100; ++second) clock.see(Epoch{1}, false, false, 1s, patient());
  EXPECT_FALSE(clock.told().late);
}

TEST(Readiness, AServerThatWasReadyHasTheTimeAgain) {
  ReadyClock clock;
  for (int round = 0; round < 3; ++round) {
    for (int second = 0; second < 9; ++second) clock.see(Epoch{1}, true, false, 1s, patient());
    clock.see(Epoch{1}, true, true, 1s, patient());
  }
  EXPECT_EQ(clock.told(), (ReplicaTold{Epoch{1}, true, false}));
  EXPECT_EQ(patience_with_server(job::Service{}, true), 2min);
  EXPECT_EQ(patience_with_server(job::Service{}, false), 20min);
}

TEST(Readiness, TheGatewaysFileIsReadAsWritten) {
  const gridctl::testing::TempDir folder;
  const GatewayFiles files{folder.path()};
  EXPECT_FALSE(read_gateway(files));
  const GatewayInfo info{12, 8000, "", "1.2", {{Epoch{3}, true, false}, {}}};
  ASSERT_TRUE(save_gateway(files, info));
  EXPECT_EQ(read_gateway(files), info);
  ASSERT_TRUE(os::write_file_atomically(files.info(), R"({"pid":1,"port":2,"trouble":"x"})"));
  EXPECT_EQ(read_gateway(files), (GatewayInfo{1, 2, "x", "", {}})) << "of an earlier gridctl";
}

}  // namespace
}  // namespace gridctl::control::gateway_files_test
