// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::metrics_steps_test {
namespace {

using ::testing::ElementsAre;
using wire::ToldStep;

TEST(Steps, AreReadFromLinesThatHaveThem) {
  EXPECT_THAT(parse_steps("{\"step\": 1, \"rank\": 5, \"step_s\": 0.5}\n"
                          "nonsense\n{\"loss\": 1}\n[1]\n{\"step\": \"x\"}\n{\"step\": 1e300}\n{\"step\": 2, \"rank\": -1}\n"
                          "{\"step\": 2, \"step_s\": -1}\n{\"step\": 3",
                          4),
              ElementsAre(ToldStep{5, 1, 0.5}, ToldStep{4, 2, {}}));
}

TEST(Steps, AreTakenUpToTheirLimits) {
  const auto read = [](const std::string& line) { return parse_steps(line + "\n", 7); };
  EXPECT_THAT(read("{\"step\": 999999999999999}"), ElementsAre(ToldStep{7, 999'999'999'999'999, {}}));
  EXPECT_THAT(read("{\"step\": -5}"), ElementsAre(ToldStep{7, -5, {}}));
  EXPECT_TRUE(read("{\"step\": 1000000000000000}").empty());
  EXPECT_TRUE(read("{\"step\": -1000000000000000}").empty());
  EXPECT_THAT(read("{\"step\": 1, \"rank\": 1000000}"), ElementsAre(ToldStep{1'000'000, 1, {}}));
  EXPECT_THAT(read("{\"step\": 1, \"rank\": 0}"), ElementsAre(ToldStep{0, 1, {}}));
  EXPECT_TRUE(read("{\"step\": 1, \"rank\": 1000001}").empty());
  EXPECT_THAT(read("{\"step\": 1, \"rank\": \"x\"}"), ElementsAre(ToldStep{7, 1, {}}));
  EXPECT_THAT(read("{\"step\": 1, \"step_s\": 0}"), ElementsAre(ToldStep{7, 1, 0.0}));
  EXPECT_THAT(read("{\"step\": 1, \"step_s\": 1e15}"), ElementsAre(ToldStep{7, 1, {}}));
  const std::string longest = "{\"step\": 1" + std::string(8 * 1024 - 11, ' ') + "}";
  ASSERT_EQ(longest.size(), 8u * 1024);
  EXPECT_EQ(read(longest).size(), 1u);
  EXPECT_TRUE(read(longest + " ").empty());
}

TEST(Steps, AreThoseOfTheNewestLaunchAndOfTheHostsOwnRanks) {
  const gridctl::testing::TempDir dir;
  const AttemptDir attempt{dir / "job/1"};
  EXPECT_THAT(steps_of(attempt), gridctl::testing::FailsWith(Code::not_found));
  wire::AttemptSpec spec;
  spec.job = {"job"};
  spec.epoch = Epoch{1};
  ASSERT_THAT(os::make_directories(attempt.run(1)), gridctl::testing::IsOk());
  ASSERT_THAT(os::make_directories(attempt.run(2)), gridctl::testing::IsOk());
  ASSERT_THAT(os::make_directories(attempt.log()), gridctl::testing::IsOk());
  ASSERT_THAT(os::write_file_atomically(attempt.spec_file(), wire::encode(spec)), gridctl::testing::IsOk());
  ASSERT_THAT(os::write_file_atomically(attempt.run(1) / "metrics", "{\"step\": 1}\n"), gridctl::testing::IsOk());
  ASSERT_THAT(os::write_file_atomically(attempt.run(2) / "metrics", "{\"step\": 2}\n"), gridctl::testing::IsOk());
  ASSERT_THAT(os::write_file_atomically(attempt.log() / "00000000000000000000", "12345"), gridctl::testing::IsOk());
  const auto alone = steps_of(attempt);
  ASSERT_THAT(alone, gridctl::testing::IsOk());
  EXPECT_THAT(alone->steps, ElementsAre(ToldStep{0, 2, {}}));
  EXPECT_EQ(alone->log_bytes, 5u);
  spec.gang.emplace();
  spec.gang->members = {{"a", "10.0.0.1", 3}, {"b", "10.0.0.2", 2}};
  spec.gang->node_rank = 1;
  spec.gang->port = 20'000;
  spec.gang->ports = 8;
  ASSERT_THAT(os::write_file_atomically(attempt.spec_file(), wire::encode(spec)), gridctl::testing::IsOk());
  const auto second = steps_of(attempt);
  ASSERT_THAT(second, gridctl::testing::IsOk());
  EXPECT_THAT(second->steps, ElementsAre(ToldStep{3, 2, {}}));
}

TEST(Steps, OfManyTheNewestAreKept) {
  std::string lines;
  for (int step = 0; step < 3000; ++step) lines += "{\"step\": " + std::to_string(step) + "}\n";
  const auto steps = parse_steps(lines, 0);
  ASSERT_EQ(steps.size(), wire::k_steps_max);
  EXPECT_EQ(steps.back().step, 2999);
  EXPECT_EQ(steps.front().step, 3000 - static_cast<std::int64_t>(wire::k_steps_max));
}

TEST(Steps, TravelWhole) {
  const wire::StepsReply reply{{{1, 7, 0.25}, {2, 7, {}}}, 99};
  const auto back = wire::parse_steps_reply(wire::encode(reply));
  ASSERT_THAT(back, gridctl::testing::IsOk());
  EXPECT_EQ(back->steps, reply.steps);
  EXPECT_EQ(back->log_bytes, 99u);
  EXPECT_THAT(wire::parse_steps_reply("{\"steps\":[{\"rank\":1}],\"log_bytes\":0}"),
              gridctl::testing::FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::agent::metrics_steps_test
