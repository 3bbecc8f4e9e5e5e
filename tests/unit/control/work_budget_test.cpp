// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/reach/work_budget.hpp"
#include "hand_clock.hpp"
#include "scripted_answers.hpp"
#include "support/results.hpp"

namespace gridctl::control::work_budget_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::HandClock;
using ::testing::HasSubstr;

TEST(WorkBudget, GrowsWithWhatIsMovedUpToATotal) {
  HandClock clock;
  WorkBudget budget(clock, {std::chrono::seconds{60}, 1000, std::chrono::hours{1}});
  EXPECT_EQ(budget.until(), clock.boot() + std::chrono::seconds{60});
  budget.moved(30'000);
  EXPECT_EQ(budget.until(), clock.boot() + std::chrono::seconds{90});
  budget.moved(UINT64_MAX / 2);
  EXPECT_EQ(budget.until(), clock.boot() + std::chrono::hours{1});
  clock.pass(std::chrono::hours{1});
  EXPECT_TRUE(budget.is_over());
  EXPECT_EQ(budget.over().code, Code::timed_out);
}

TEST(LinkUnderABudget, CountsWhatIsMovedAndEndsWithIt) {
  HandClock clock;
  auto budget = std::make_shared<WorkBudget>(clock, WorkBudget::Limits{10s, 1000, 1h});
  auto owned = std::make_unique<Answers>();
  Answers& link = *owned;
  const auto bounded = under(budget, std::move(owned));
  const BootTime began = clock.boot();
  using enum wire::FrameKind;
  ASSERT_THAT(bounded->send({request, 1, std::string(5000, 'x')}, began + 1h), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 10s) << "no question takes longer than the work";
  EXPECT_EQ(budget->until(), began + 10s) << "a question moves nothing";
  ASSERT_THAT(bounded->send({data, 1, std::string(5000, 'x')}, began + 3s), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 3s);
  EXPECT_EQ(budget->until(), began + 15s);
  link.frames = {{reply, 1, std::string(5000, 'x')}, {data, 1, std::string(2000, 'x')}};
  ASSERT_THAT(bounded->receive(began + 1h), IsOk());
  EXPECT_EQ(budget->until(), began + 15s);
  ASSERT_THAT(bounded->receive(began + 1h), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 15s);
  EXPECT_EQ(budget->until(), began + 17s);
  budget->allow(3s);
  EXPECT_EQ(budget->until(), began + 20s);
  clock.pass(20s - 1ns);
  EXPECT_FALSE(budget->is_over());
  clock.pass(1ns);
  EXPECT_TRUE(budget->is_over());
  EXPECT_THAT(bounded->send({request, 1, ""}, began + 1h), FailsWith(Code::timed_out));
  const auto late = bounded->receive(began + 1h);
  ASSERT_THAT(late, FailsWith(Code::timed_out));
  EXPECT_THAT(late.error().message, HasSubstr("the host moves too little: 6.8 KiB in 20"));
  EXPECT_EQ(late.error().retry, Retry::same_host_later);
}

}  // namespace
}  // namespace gridctl::control::work_budget_test
