// SPDX-License-Identifier: Apache-2.0
#include "agent/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/results.hpp"

namespace gridctl::agent {
namespace {

using ::testing::ElementsAre;
using wire::ToldStep;

TEST(Steps, AreReadFromLinesThatHaveThem) {
  EXPECT_THAT(
      parse_steps("{\"step\": 1, \"rank\": 5, \"step_s\": 0.5}\n"
                  "nonsense\n{\"loss\": 1}\n[1]\n{\"step\": \"x\"}\n{\"step\": 1e300}\n{\"step\": 2, \"rank\": -1}\n"
                  "{\"step\": 2, \"step_s\": -1}\n{\"step\": 3",
                  4),
      ElementsAre(ToldStep{5, 1, 0.5}, ToldStep{4, 2, {}}));
}

TEST(Steps, OfManyTheNewestAreKept) {
  std::string lines;
  for (int step = 0; step < 3000; ++step) lines += "{\"step\": " + std::to_string(step) + "}\n";
  const auto steps = parse_steps(lines, 0);
  ASSERT_EQ(steps.size(), wire::k_steps_max);
  EXPECT_EQ(steps.back().step, 2999);
}

TEST(Steps, TravelWhole) {
  const wire::StepsReply reply{{{1, 7, 0.25}, {2, 7, {}}}, 99};
  const auto back = wire::parse_steps_reply(wire::encode(reply));
  ASSERT_THAT(back, testing::IsOk());
  EXPECT_EQ(back->steps, reply.steps);
  EXPECT_EQ(back->log_bytes, 99u);
  EXPECT_THAT(wire::parse_steps_reply("{\"steps\":[{\"rank\":1}],\"log_bytes\":0}"),
              testing::FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::agent
