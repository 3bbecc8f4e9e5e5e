// SPDX-License-Identifier: Apache-2.0
#include "agent/use_meter.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "agent/ledger.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::use_meter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(ProcessTimes, AreReadBehindAnyName) {
  const auto times = parse_process_times("7 (a ) b) S 3 7 7 0 -1 4194560 1 0 0 0 100 20 3 4 20 0 1 0 55 0 0");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->parent, 3);
  EXPECT_EQ(times->ticks, 127u);
  EXPECT_FALSE(parse_process_times(""));
  EXPECT_FALSE(parse_process_times("7 (x) S 3"));
}

TEST(ProcessTable, AddsUpAProcessAndItsDescendants) {
  ProcessTable table;
  table.add(10, {1, 5});
  table.add(11, {10, 7});
  table.add(12, {11, 11});
  table.add(20, {1, 1000});
  const ProcessTable::Sum sum = table.below(10);
  EXPECT_EQ(sum.ticks, 23u);
  EXPECT_THAT(sum.pids, UnorderedElementsAre(10, 11, 12));
  EXPECT_THAT(table.below(99).pids, IsEmpty());
  table.add(30, {31, 1});
  table.add(31, {30, 2});  // no kernel shows that
  EXPECT_EQ(table.below(30).ticks, 3u);
}

TEST(ProcessTable, KnowsThisProcess) {
  EXPECT_THAT(ProcessTable::read().below(os::process_id()).pids, ::testing::Contains(os::process_id()));
}

// A lease whose processes are those of this test.
class UseMeterTest : public ::testing::Test {
 protected:
  UseMeterTest() {
    ::setenv("GRIDCTL_LEASE_DIR", dir_.path().c_str(), 1);
    Lease lease = our_lease({"c1"}, {"job"}, {4});
    lease.payload = lease.supervisor = *os::identify(os::process_id());
    lease.deadline = os::system_clock().boot() + std::chrono::hours{1};
    Ledger ledger(lease_directory_(), Machine::real(), os::system_clock());
    EXPECT_THAT(ledger.take(lease, {}), gridctl::testing::IsOk());
  }
  ~UseMeterTest() override { ::unsetenv("GRIDCTL_LEASE_DIR"); }
  [[nodiscard]] os::Path lease_directory_() const { return dir_.path(); }

  static wire::PollReply reply(wire::AttemptPhase phase = wire::AttemptPhase::running, std::int64_t paused = -1) {
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = {4};
    status.phase = phase;
    status.paused_ms_ago = paused;
    wire::PollReply reply;
    reply.attempts = {status};
    return reply;
  }

  gridctl::testing::TempDir dir_;
};

TEST_F(UseMeterTest, TellsOfARunningAttemptOnceForEachMeasurement) {
  UseMeter meter(dir_.path() / "home", {"c1"}, os::system_clock());
  std::atomic<bool> over = false;
  std::thread busy([&] {
    while (!over) continue;
  });
  wire::PollReply told = reply();
  for (int i = 0; i < 200 && !told.attempts[0].use; ++i) {
    const BootTime began = os::system_clock().boot();
    told = reply();
    meter.add_to(told);
    EXPECT_LT(os::system_clock().boot() - began, std::chrono::milliseconds{500}) << "no answer waits for a measurement";
    os::pause_for(std::chrono::milliseconds{50});
  }
  over = true;
  busy.join();
  ASSERT_TRUE(told.attempts[0].use);
  EXPECT_GT(told.attempts[0].use->cpus.value_or(0), 0.1);
  EXPECT_GT(told.attempts[0].use->memory_bytes, 1u << 20);
  EXPECT_THAT(told.attempts[0].use->gpus, IsEmpty());
  told = reply();
  meter.add_to(told);
  EXPECT_FALSE(told.attempts[0].use) << "it is told";
}

TEST_F(UseMeterTest, SaysNothingOfAttemptsThatDoNotRunOrArePaused) {
  UseMeter meter(dir_.path() / "home", {"c1"}, os::system_clock());
  for (int i = 0; i < 30; ++i) {
    wire::PollReply told = reply(i % 2 == 0 ? wire::AttemptPhase::starting : wire::AttemptPhase::running, i % 2 == 0 ? -1 : 5);
    meter.add_to(told);
    ASSERT_FALSE(told.attempts[0].use);
    os::pause_for(std::chrono::milliseconds{50});
  }
}

}  // namespace
}  // namespace gridctl::agent::use_meter_test
