// SPDX-License-Identifier: Apache-2.0
#include "os/shared_rate.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <map>
#include <memory>

#include "os/shaping.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::shared_rate_test {
namespace {

constexpr std::uint64_t k_rate = 2'500'000, k_wire = k_rate / 100 * 97;

struct SteppedClock : Clock {
  BootTime now{1'000'000'000};
  [[nodiscard]] BootTime boot() const override { return now; }
  [[nodiscard]] WallTime wall() const override { return {now.ns / 1'000'000}; }
};

std::vector<Sender> of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> shares_and_demands) {
  std::vector<Sender> all;
  for (const auto& [share, demand] : shares_and_demands) all.push_back({"s" + std::to_string(all.size()), share, demand, {}});
  return all;
}

TEST(FairShare, IsAllForOneAloneAndHalfForTwoThatWantMore) {
  EXPECT_EQ(fair_share(k_rate, k_rate, {}), k_rate);
  EXPECT_EQ(fair_share(k_rate, k_rate, of({{k_rate / 2, k_rate}})), k_rate / 2);
  EXPECT_EQ(fair_share(k_rate, k_rate, of({{100'000, 100'000}})), k_rate - 100'000) << "one that wants little leaves the rest";
}

TEST(FairShare, TakesNothingThatAnotherStillHas) {
  EXPECT_EQ(fair_share(k_rate, k_rate, of({{k_rate, k_rate}})), k_rate / 100) << "the least share, until the other has given up its half";
  EXPECT_EQ(fair_share(k_rate, k_rate, of({{k_rate - 500'000, k_rate}})), 500'000u);
}

TEST(FairShare, OfOneThatWantsLittleIsLittle) {
  EXPECT_EQ(fair_share(k_rate, 200'000, of({{100'000, 100'000}})), 200'000u);
  EXPECT_EQ(fair_share(k_rate, 0, {}), k_rate / 100);
}

TEST(Senders, AreReadAsTheyWereWrittenAndForgottenWithTime) {
  const BootTime now{60'000'000'000};
  const std::vector<Sender> all{{"dial.1", 5, 6, {now.ns - 1}}, {"job.2", 7, 8, {now.ns - 3'000'000'001}}, {"job.3", 7, 8, {now.ns + 1}}};
  const std::vector<Sender> read = parse_senders(to_text(all) + "nonsense\nx 1 2\nx -1 2 3\n", now);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "dial.1");
  EXPECT_EQ(read[0].share, 5u);
  EXPECT_EQ(read[0].demand, 6u);
}

// Three senders that start and stop, with looks at different times.
TEST(SharedRate, OfAllTogetherIsNeverMoreThanTheRateAndALittle) {
  const gridctl::testing::TempDir dir;
  SteppedClock clock;
  std::map<std::string, std::unique_ptr<SharedRate>> senders;
  std::map<std::string, std::uint64_t> shares;
  const auto active = [](const std::string& name, int turn) {
    if (name == "a") return turn < 40;
    return name == "b" ? turn >= 10 : turn >= 20 && turn < 30;
  };
  for (int turn = 0; turn < 60; ++turn)
    for (const std::string name : {"a", "b", "c"}) {
      clock.now.ns += 80'000'000;
      auto& sender = senders[name];
      if (!active(name, turn)) {
        sender.reset();
        shares.erase(name);
        continue;
      }
      if (!sender) sender = std::make_unique<SharedRate>(dir / "up", name, SharedRate::Kind::exact, clock);
      shares[name] = sender->share_of(k_rate, shares[name], true);
      std::uint64_t sum = 0;
      for (const auto& [who, share] : shares) sum += share;
      EXPECT_LE(sum, k_wire + 2 * (k_rate / 100)) << turn;
      if (turn == 9 || turn == 59) { EXPECT_EQ(sum, k_wire) << "alone"; }
      if (turn == 19 && shares.size() == 2) { EXPECT_NEAR(static_cast<double>(shares["a"]), k_wire / 2.0, k_rate / 32.0); }
      if (turn == 29 && name == "c") { EXPECT_NEAR(static_cast<double>(shares["c"]), k_wire / 3.0, k_rate / 16.0); }
    }
}

TEST(SharedRate, OfOneThatSendsInBurstsFadesSlowly) {
  const gridctl::testing::TempDir dir;
  SteppedClock clock;
  SharedRate sender(dir / "up", "a", SharedRate::Kind::gaps, clock);
  EXPECT_EQ(sender.share_of(k_rate, 0, false), k_wire / 16);
  EXPECT_EQ(sender.share_of(k_rate, k_wire / 16, true), k_wire);
  EXPECT_EQ(sender.share_of(k_rate, 0, false), k_wire - k_wire / 8);
  for (int i = 0; i < 30; ++i) (void)sender.share_of(k_rate, 0, false);
  EXPECT_EQ(sender.share_of(k_rate, 0, false), k_wire / 16);
}

TEST(SharedRate, LeavesTheLeastWhereItsFileCannotBeUsed) {
  SteppedClock clock;
  SharedRate sender("/nonexistent/up", "a", SharedRate::Kind::exact, clock);
  EXPECT_EQ(sender.share_of(k_rate, 0, true), k_rate / 100);
}

TEST(Shaping, PassesTheLargestPacketOfSlirp4netns) {
  EXPECT_GT(shape_for(125'000).burst, 65'520u + 14u);
  EXPECT_EQ(shape_for(k_rate).rate, k_rate);
  EXPECT_EQ(shape_for(k_rate).burst, k_rate / 16);
  EXPECT_GT(shape_for(1).queue, shape_for(1).burst);
}

TEST(Shaping, IsTriedInANetworkOfItsOwn) {
  const Result<void> tried = try_shaping();
  if (!tried) GTEST_SKIP() << tried.error().message;
  EXPECT_FALSE(shape_network_of(::getpid(), 1000)) << "the network of this machine is nobody's container";
}

}  // namespace
}  // namespace gridctl::os::shared_rate_test
