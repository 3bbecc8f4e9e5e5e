// SPDX-License-Identifier: Apache-2.0
// A job on a borrowed host has a complete checkpoint within its first hour, or it is said that it has none. bob is lent.
#include "control/concerns/table.hpp"
#include "control/follow/drilled.hpp"
#include "scripted_freight.hpp"
#include "two_hosts.hpp"

namespace gridctl::control::proven_concern_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProvenConcernTest : public testing::TwoHosts {
 protected:
  ProvenConcernTest() {
    registry::Provider host = row("bob");
    host.labels["lent"] = "true";
    EXPECT_THAT(registry.update_provider(host), IsOk());
    EXPECT_TRUE(fleet().refresh());
    begin();
  }
  void begin() {
    concerns.clear();
    concerns.push_back(make_proven({world, fleet(), book, attempts, placement, mover}));
    placement.consult(concerns);
  }
  void runs(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}, const std::string& where = "bob") {
    submit("train", shape);
    place("train", where, 0);
    looks();
  }
  // So much later, with a look each minute.
  void looks(Duration later = 0s) {
    for (const BootTime end = clock.boot() + later;;) {
      concerns.front()->tick(clock.boot());
      run.settle();
      if (clock.boot() >= end) return;
      clock.pass(std::min<Duration>(1min, end - clock.boot()));
    }
  }
  void save(const std::function<void(registry::Checkpoint&)>& shape = [](registry::Checkpoint&) {}) {
    registry::Checkpoint saved;
    saved.job = {"train"};
    saved.epoch = job("train").state().epoch;
    saved.attempt = job("train").state().attempt()->number;
    saved.root = testing::tree(++saves_);
    saved.created_at = clock.wall();
    saved.host_number = static_cast<std::uint64_t>(saves_);
    shape(saved);
    const auto committed = registry.commit_checkpoint(saved);
    ASSERT_THAT(committed, IsOk());
    book.take({"train"}, committed->step);
  }
  void is_lost() {
    book.apply({"train"}, job::HostLost{job("train").state().epoch, 90s});
    book.apply({"train"}, job::Collected{job("train").state().epoch, ""});
    ASSERT_NE(job("train").in<job::Waiting>(), nullptr);
  }
  std::string why_not_bob() {
    const Question asked = placement.question(job("train"));
    const sched::Decision decision = sched::place(asked.spec, asked.hosts, {}, asked.known);
    for (const sched::Rejection& one : decision.rejections)
      if (one.host.value == "bob") return one.code + ": " + one.detail;
    return "";
  }
  std::vector<std::string> told() {
    std::vector<std::string> kinds;
    const auto events = registry.events({"train"}, 0, 0);
    for (const registry::EventRecord& one : *events)
      if (one.kind == "save_asked" || one.kind == "unproven" || one.kind == "proven") kinds.push_back(one.kind);
    return kinds;
  }
  Duration interval_there() { return host("bob").use.wants.front().attempt.tempo.interval; }

  testing::ScriptedFreight bulk;
  World world{clock, run, net, registry, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  Mover mover{world, book, fleet(), attempts, placement};
  std::vector<std::unique_ptr<Concern>> concerns;

 private:
  int saves_ = 0;
};

TEST_F(ProvenConcernTest, AJobThatDoesNotSaveIsAskedToAndThenItIsSaid) {
  runs();
  const Duration usual = placement.interval_of(job("train")).every;
  looks(39min);
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_EQ(why_not_bob(), "");
  looks(1min);
  EXPECT_THAT(told(), ElementsAre("save_asked"));
  EXPECT_EQ(interval_there(), 1min);
  EXPECT_GT(usual, 1min);
  looks(20min);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven"));
  EXPECT_NE(job("train").in<job::Running>(), nullptr) << "nobody's work is thrown away";
  EXPECT_THAT(*registry.explanation({"train"}), Contains(HasSubstr("this attempt continues")));
  EXPECT_THAT(*registry.no_checkpoint({"train"}), HasSubstr("this attempt continues")) << "job show warns";
  looks(1h);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven")) << "once";
  is_lost();
  EXPECT_THAT(why_not_bob(), AllOf(HasSubstr("unproven: "), HasSubstr("gridctl job cancel train && gridctl job resume train --unproven allow")));
  const Question asked = placement.question(job("train"));
  EXPECT_EQ(sched::place(asked.spec, asked.hosts, {}, asked.known).placement->host.value, "ada");
  looks(58min);
  EXPECT_NE(why_not_bob(), "");
  looks(2min);
  EXPECT_EQ(why_not_bob(), "") << "the rule ends: no other host has taken it";
}

TEST_F(ProvenConcernTest, ACheckpointThatIsCompleteIsEnough) {
  runs();
  looks(30min);
  save();
  looks(2h);
  EXPECT_THAT(told(), IsEmpty());
  is_lost();
  EXPECT_EQ(why_not_bob(), "");
}

TEST_F(ProvenConcernTest, OneThatMayBeHalfWrittenProvesNothing) {
  runs();
  looks(30min);
  save([](registry::Checkpoint& one) { one.provisional = true; });
  looks(30min);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven"));
}

TEST_F(ProvenConcernTest, WhoHasSavedHasHisIntervalBack) {
  runs([](job::Spec& spec) {
    spec.checkpoint.interval = job::CheckpointPolicy::Interval::fixed;
    spec.checkpoint.every = 2h;
  });
  looks(40min);
  EXPECT_EQ(interval_there(), 1min);
  save();
  looks(1min);
  EXPECT_EQ(interval_there(), 2h);
  looks(2h);
  EXPECT_THAT(told(), ElementsAre("save_asked"));
}

TEST_F(ProvenConcernTest, ACheckpointAfterTheHourEndsTheRule) {
  runs();
  looks(70min);
  save();
  looks(1min);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven", "proven"));
  EXPECT_EQ(*registry.no_checkpoint({"train"}), "");
  is_lost();
  EXPECT_EQ(why_not_bob(), "");
}

TEST_F(ProvenConcernTest, TheTimeOfFormerAttemptsCounts) {
  runs();
  looks(35min);
  is_lost();
  EXPECT_EQ(why_not_bob(), "");
  place("train", "bob", 0);
  begin();
  looks(10min);
  EXPECT_THAT(told(), ElementsAre("save_asked"));
  looks(15min);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven"));
}

TEST_F(ProvenConcernTest, TheNextDaemonGoesOnWithIt) {
  runs();
  looks(70min);
  begin();
  looks(10min);
  EXPECT_THAT(told(), ElementsAre("save_asked", "unproven")) << "neither is said twice";
  EXPECT_EQ(interval_there(), 1min);
  save();
  looks(1min);
  EXPECT_GT(interval_there(), 1min);
}

TEST_F(ProvenConcernTest, ADrillThatWasPassedIsEnough) {
  runs();
  registry::Drill drill;
  drill.name = "train";
  drill.id = {"drill"};
  drill.verdict = "yes";
  drill.fingerprint = resume_fingerprint(job("train").spec());
  ASSERT_THAT(registry.save_drill(drill), IsOk());
  looks(2h);
  EXPECT_THAT(told(), IsEmpty());
}

struct NotConcerned : ProvenConcernTest, ::testing::WithParamInterface<int> {};

TEST_P(NotConcerned, RunsAsItLikes) {
  const auto shape = [](job::Spec& spec) {
    if (GetParam() == 0) spec.constraints.unproven = true;
    if (GetParam() == 1) spec.max_duration = 1h;
    if (GetParam() == 2) spec.workload.work = 30min;
    if (GetParam() == 3) spec.service.emplace();
    if (GetParam() == 4) spec.tasks.emplace();
  };
  runs(shape, GetParam() == 5 ? "ada" : "bob");
  looks(2h);
  EXPECT_THAT(told(), IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Jobs, NotConcerned, ::testing::Range(0, 6));

}  // namespace
}  // namespace gridctl::control::proven_concern_test
