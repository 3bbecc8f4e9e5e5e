// SPDX-License-Identifier: Apache-2.0
// Limits of jobs that wait: what others use up for them, and deadlines that pass between two looks.
#include "control/concerns/table.hpp"
#include "scripted_freight.hpp"
#include "two_hosts.hpp"

namespace gridctl::control::limits_concern_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

// Two hosts of eight cores that answer.
class LimitsConcernTest : public testing::TwoHosts, JobListener {
 protected:
  LimitsConcernTest() {
    book.listen(*this);
  }
  void changed(const TrackedJob& job, const job::State& before) override { limits->changed(job, before); }
  void forgotten(const JobId& id) override { limits->forgotten(id); }
  void looks(Duration later = {}) {
    clock.pass(later);
    limits->tick(clock.boot());
  }
  // A host tells of a job that runs there: from then on what it uses is counted.
  void is_heard(const std::string& id, const std::string& where) {
    wire::AttemptStatus status;
    status.job = {id};
    status.epoch = job(id).state().epoch;
    status.phase = wire::AttemptPhase::running;
    wire::PollReply reply;
    reply.attempts = {status};
    static_cast<FleetListener&>(attempts).polled(host(where), reply);
  }

  testing::ScriptedFreight bulk;
  World world{clock, run, net, registry, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  Mover mover{world, book, fleet(), attempts, placement};
  const Controls controls{world, fleet(), book, attempts, placement, mover};
  std::unique_ptr<Concern> limits = make_limits(controls), deadlines = make_deadlines(controls);
};

TEST_F(LimitsConcernTest, ALeaderThatWaitsPaysForItsTwins) {
  submit("leader", [](job::Spec& spec) {
    spec.twins = 2;
    spec.budget_total = 1;
  });
  submit("leaderr2", [](job::Spec& spec) { spec.twin_of = {"leader"}; });
  place("leaderr2", "bob", 6);
  is_heard("leaderr2", "bob");
  looks();
  looks(8min);
  EXPECT_EQ(job("leader").state().limit, "") << "0.80 of 1.00 USD";
  looks(2min);
  EXPECT_EQ(job("leader").state().limit, "budget");
}

TEST_F(LimitsConcernTest, ATwinDoesNotBeginWhenItsLeaderHasUsedUpWhatTheyMaySpend) {
  submit("leader", [](job::Spec& spec) {
    spec.twins = 2;
    spec.budget_total = 1;
  });
  submit("leaderr2", [](job::Spec& spec) { spec.twin_of = {"leader"}; });
  place("leader", "ada", 6);
  clock.pass(5min);
  EXPECT_FALSE(limits->holds(job("leaderr2"))) << "0.50 of 1.00 USD";
  clock.pass(5min);
  EXPECT_TRUE(limits->holds(job("leaderr2")));
}

TEST_F(LimitsConcernTest, ADeadlineThatPassesBetweenTwoLooksEndsWhatWaits) {
  submit("hard", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, 1h, true}; });
  submit("soft", [](job::Spec& spec) { spec.deadline = job::Deadline{{}, 1h, false}; });
  looks();
  looks(59min);
  EXPECT_EQ(job("hard").state().limit, "");
  EXPECT_FALSE(job("soft").state().late);
  looks(1min);
  EXPECT_EQ(job("hard").state().limit, job::k_for_deadline);
  EXPECT_TRUE(job("soft").state().late);
}

// The job was asked to save before it leaves; what is saved after its deadline is no reason to go any more.
TEST_F(LimitsConcernTest, NobodyMovesForADeadlineThatHasPassed) {
  submit("due", [](job::Spec& spec) {
    spec.resources.cpus = 1;
    spec.deadline = job::Deadline{{}, 1h, false};
  });
  place("due", "ada", 0);
  clock.pass(1h - 1ms);
  const std::optional<MoveWish> wish = deadlines->still_wished(job("due"));
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->elsewhere->placement->host, HostName{"bob"});
  clock.pass(1ms);
  EXPECT_FALSE(deadlines->still_wished(job("due")));
}

}  // namespace
}  // namespace gridctl::control::limits_concern_test
