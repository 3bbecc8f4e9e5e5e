// SPDX-License-Identifier: Apache-2.0
// A host costs a bag once, however many of its workers are there.
#include "registry/shared_price.hpp"

#include <gtest/gtest.h>

#include "registry/forget.hpp"
#include "registry/registry.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::registry::shared_price_test {
namespace {

constexpr std::int64_t k_hour_ms = 3'600'000;

WorkerRun run_of(const std::string& host, double from_h, double until_h, double price) {
  const auto ms = [](double hours) { return static_cast<std::int64_t>(hours * k_hour_ms); };
  return {host, ms(from_h), ms(until_h), false, price};
}

TEST(SharedPrice, AHostIsPaidOnceWhileSeveralRunThere) {
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 2, 5)}, 0).usd, 0);
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 2, 5), run_of("b", 0, 2, 5)}, 0).usd, 0) << "two hosts";
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 1, 5), run_of("a", 1, 2, 5)}, 0).usd, 0) << "one after the other";
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 2, 5), run_of("a", 0, 2, 5), run_of("a", 0, 2, 5)}, 0).usd, 20);
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 2, 5), run_of("a", 1, 3, 5)}, 0).usd, 5);
  EXPECT_DOUBLE_EQ(shared_by({run_of("a", 0, 2, 5), run_of("a", 1, 3, 5)}, k_hour_ms * 3 / 2).usd, 2.5) << "of a month that began meanwhile";
}

TEST(SharedPrice, TheDearestOfThemIsPaid) {
  std::vector<WorkerRun> runs{run_of("a", 0, 4, 5), run_of("a", 0, 4, 5)};
  runs[0].changes = {{2 * k_hour_ms, 3}};
  EXPECT_DOUBLE_EQ(shared_by(runs, 0).usd, 20) << "of 5 * 4 + 5 * 2 + 8 * 2, 5 * 2 + 8 * 2 are paid";
  runs[0].pauses = {{0, k_hour_ms}};
  EXPECT_DOUBLE_EQ(shared_by(runs, 0).usd, 15) << "in the first hour only the other one costs";
  runs[1].pauses = {{0, INT64_MAX}};
  EXPECT_DOUBLE_EQ(shared_by(runs, 0).usd, 0);
}

TEST(SharedPrice, WhatGoesOnSharesItFromNowOnToo) {
  std::vector<WorkerRun> runs{run_of("a", 0, 1, 5), run_of("a", 0, 1, 6), run_of("b", 0, 1, 7)};
  EXPECT_DOUBLE_EQ(shared_by(runs, 0).usd_per_hour, 0);
  for (WorkerRun& run : runs) run.goes_on = true;
  EXPECT_DOUBLE_EQ(shared_by(runs, 0).usd_per_hour, 5);
}

// Three workers on host a from 1 s on, at 3.60 USD an hour; the third one is on host b.
class OfABag : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry);
    job::Spec spec;
    spec.name = "bag";
    spec.owner = "ada";
    spec.run = "true";
    spec.tasks = job::Tasks{};
    for (int number = 1; number <= 3; ++number) {
      const JobId id = number == 1 ? leader : twin_id(leader, number);
      if (number > 1) spec.name = "bag-w" + std::to_string(number), spec.twin_of = leader;
      ASSERT_TRUE(registry->submit(id, spec, {0}));
      const auto placed = registry->apply(
          id, {{500}, job::Placed{{job::Member{0, {number < 3 ? "a" : "b"}, EngineKind::process, {}, 1, 0, 3.6}}, "the only one"}});
      ASSERT_TRUE(placed);
      ASSERT_TRUE(registry->apply(id, {{1000}, job::PayloadStarted{placed->state.epoch}}));
    }
  }
  gridctl::testing::TempDir dir;
  Result<Registry> registry = Registry::open(dir.path());
  const JobId leader{"abcdefghijkl2"};
};

TEST_F(OfABag, EveryCountOfMoneySaysTheSame) {
  const WallTime now{1'001'000};  // each of them alone has cost a dollar
  EXPECT_NEAR(registry->spent(leader, now)->usd, 2, 1e-9);
  EXPECT_NEAR(registry->spent(twin_id(leader, 2), now)->usd, 1, 1e-9);
  EXPECT_NEAR(registry->pasts(now)->at(leader.value).usd, 2, 1e-9);
  for (const char* owner : {"", "ada"}) {
    EXPECT_NEAR(registry->spending(owner, {0}, now)->usd, 2, 1e-9);
    EXPECT_NEAR(registry->spending(owner, {0}, now)->usd_per_hour, 7.2, 1e-9);
    EXPECT_NEAR(registry->spending(owner, {501'000}, now)->usd, 1, 1e-9);
  }
  EXPECT_EQ(registry->spending("bob", {0}, now)->usd, 0);
}

TEST_F(OfABag, TwinsThatAreNoWorkersPayEachForItself) {
  job::Spec spec = registry->job(leader)->spec;
  spec.tasks.reset();
  spec.name = "bag-r2";
  const JobId other{"abcdefghijkl3"};
  for (const JobId& id : {other, twin_id(other, 2)}) {
    spec.twin_of = id == other ? JobId{} : other;
    ASSERT_TRUE(registry->submit(id, spec, {0}));
    const auto placed = registry->apply(id, {{500}, job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, 3.6}}, "the only one"}});
    ASSERT_TRUE(registry->apply(id, {{1000}, job::PayloadStarted{placed->state.epoch}}));
  }
  EXPECT_NEAR(registry->spent(other, {1'001'000})->usd, 2, 1e-9);
}

}  // namespace
}  // namespace gridctl::registry::shared_price_test
