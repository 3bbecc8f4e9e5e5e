// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"
#include "job/last_step.hpp"
#include "job/state.hpp"

namespace gridctl::job::last_step_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LastStep, TakesThePlaceOfTheTasksAtOnceAndEndsTheJobAsTheyDid) {
  for (const Overtaken how : {Overtaken::tasks_done, Overtaken::tasks_failed}) {
    Moving job;
    job.run_on("a");
    job.happen(MoveRequested{job.state.epoch, std::string(k_for_tasks)});
    EXPECT_THAT(job.effects_due(), ElementsAre("stop/1/0"));
    EXPECT_EQ(std::get<Stopping>(job.state.phase).grace, Duration::zero());
    job.stopped();
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase));
    EXPECT_EQ(job.state.lost, Duration::zero());
    EXPECT_EQ(job.state.visible(), JobState::pending);
    job.happen(NotPlaced{true, "files are put together", true});
    EXPECT_GT(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
    job.happen(MoveWithdrawn{});
    EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
    job.run_on("b");
    job.happen(AttemptEnded{job.state.epoch, {EndKind::exited, 0, 0, ""}});
    const Epoch epoch = job.state.epoch;
    job.happen(TwinSucceeded{"so they ended", how});
    job.happen(Collected{epoch, ""});
    EXPECT_EQ(job.state.visible(), how == Overtaken::tasks_failed ? JobState::failed : JobState::succeeded);
    EXPECT_EQ(job.state.reason, overtaken_name(how));
    EXPECT_EQ(job.state.reason_text, "so they ended");
    EXPECT_EQ(job.rows.back().state, "succeeded");
  }
}

TEST(LastStep, IsLeftForTasksThatWereAddedWhileItEnded) {
  for (const int exit_code : {0, 7}) {
    Moving job;
    job.run_on("a");
    job.happen(AttemptEnded{job.state.epoch, {EndKind::exited, exit_code, 0, ""}});
    job.happen(MoveRequested{job.state.epoch, std::string(k_for_tasks)});
    EXPECT_EQ(std::get<Collecting>(job.state.phase).moving, k_for_tasks);
    job.happen(Collected{job.state.epoch, ""});
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase));
    EXPECT_THAT(job.state.failures, ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace gridctl::job::last_step_test
