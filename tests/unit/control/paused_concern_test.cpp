// SPDX-License-Identifier: Apache-2.0
// A host tells that a job is paused, or is not any more, and writing that down fails: the next telling makes it good.
#include "control/concerns/table.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"
#include "support/forwarded_records.hpp"

namespace gridctl::control::paused_concern_test {
namespace {

using gridctl::testing::Fate, gridctl::testing::Point;
using namespace std::chrono_literals;

struct PausedConcernTest : testing::FollowedJobs, ::testing::WithParamInterface<Fate> {
  PausedConcernTest() {
    add("ada");
    EXPECT_TRUE(fleet().refresh());
    tick();
    submit("job", [](job::Spec&) {});
    place("job", "ada", 1);
  }
  void tells(std::int64_t paused_ms_ago) {
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = job("job").state().epoch;
    status.phase = wire::AttemptPhase::running;
    status.paused_ms_ago = paused_ms_ago;
    wire::PollReply reply;
    reply.attempts = {status};
    dynamic_cast<FleetListener&>(*concern).polled(host("ada"), reply);
  }

  gridctl::testing::FailingRecords records{registry};
  testing::ScriptedFreight bulk;
  World world{clock, run, net, records, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  Mover mover{world, book, fleet(), attempts, placement};
  std::unique_ptr<Concern> concern = make_paused({world, fleet(), book, attempts, placement, mover});
};

TEST_P(PausedConcernTest, APauseThatCouldNotBeWrittenIsWrittenWhenItIsToldAgain) {
  records.fates[Point::records_begin_pause] = {GetParam()};
  tells(1000);
  EXPECT_FALSE(job("job").paused) << "it counts when it is written";
  clock.pass(5s);
  tells(6000);
  ASSERT_TRUE(registry.paused({"job"}).value().has_value());
  EXPECT_TRUE(job("job").paused);
}

TEST_P(PausedConcernTest, AnEndThatCouldNotBeWrittenIsWrittenWhenItIsToldAgain) {
  tells(1000);
  records.fates[Point::records_end_pause] = {GetParam()};
  tells(-1);
  EXPECT_TRUE(job("job").paused);
  tells(-1);
  EXPECT_FALSE(registry.paused({"job"}).value().has_value());
  EXPECT_FALSE(job("job").paused);
}

INSTANTIATE_TEST_SUITE_P(Writes, PausedConcernTest, ::testing::Values(Fate::fails, Fate::lost),
                         [](const auto& one) { return one.param == Fate::lost ? "LosesItsAnswer" : "Fails"; });

}  // namespace
}  // namespace gridctl::control::paused_concern_test
