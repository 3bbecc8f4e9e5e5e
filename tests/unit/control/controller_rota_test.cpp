// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/controller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control::controller_rota_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class HandClock : public os::Clock {
 public:
  BootTime boot() const override { return now; }
  WallTime wall() const override { return {}; }
  BootTime now{1};
};

class Slow : public Concern {
 public:
  Slow(HandClock& clock, Duration takes) : clock_(clock), takes_(takes) {}
  Duration period() const override { return 3s; }
  void tick(BootTime now) override {
    at.push_back((now.ns - 1) / 1'000'000'000);
    clock_.now = clock_.now + takes_;
  }
  std::vector<std::int64_t> at;  // seconds

 private:
  HandClock& clock_;
  const Duration takes_;
};

std::vector<std::int64_t> asked_at(Duration takes) {
  HandClock clock;
  std::vector<std::unique_ptr<Concern>> concerns;
  concerns.push_back(std::make_unique<Slow>(clock, takes));
  Rota rota(clock);
  for (int second = 0; second <= 100; ++second) {
    clock.now = BootTime{1} + std::chrono::seconds{second};
    rota.tick(clock.now, concerns);
  }
  return static_cast<Slow&>(*concerns.front()).at;
}

TEST(Rota, AsksEachConcernInItsRhythm) {
  const std::vector<std::int64_t> at = asked_at(0s);
  EXPECT_EQ(at.size(), 34u);
  EXPECT_EQ(at[1], 3);
  EXPECT_EQ(asked_at(150ms), at);  // a twentieth of its period
}

TEST(Rota, AConcernThatTakesLongHasATwentiethOfTheTime) { EXPECT_THAT(asked_at(2s), ElementsAre(0, 40, 80)); }

TEST(Rota, ASleepOfThisMachineDoesNotCount) { EXPECT_THAT(asked_at(10h), ElementsAre(0, 60)); }

TEST(Rota, ASlowConcernHoldsUpNoOther) {
  HandClock clock;
  std::vector<std::unique_ptr<Concern>> concerns;
  concerns.push_back(std::make_unique<Slow>(clock, 2s));
  concerns.push_back(std::make_unique<Slow>(clock, 0s));
  Rota rota(clock);
  for (int second = 0; second <= 9; ++second) {
    clock.now = BootTime{1} + std::chrono::seconds{second};
    rota.tick(clock.now, concerns);
  }
  EXPECT_THAT(static_cast<Slow&>(*concerns[1]).at, ElementsAre(0, 3, 6, 9));
}

}  // namespace
}  // namespace gridctl::control::controller_rota_test
