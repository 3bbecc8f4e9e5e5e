// SPDX-License-Identifier: Apache-2.0
// A job that stands aside returns: when the one that it made room for has ended, went elsewhere or found no place, also
// when its host refuses at first, and when the daemon has changed meanwhile.
#include "control/follow/stand_aside.hpp"

#include "followed_jobs.hpp"
#include "scripted_freight.hpp"
#include "wire/pause.hpp"

namespace gridctl::control::stand_aside_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// `low` runs on ada's only GPU and stands aside for `urgent`.
class StandAsideTest : public testing::FollowedJobs {
 protected:
  StandAsideTest() {
    for (const char* name : {"ada", "bob"}) add(name);
    EXPECT_TRUE(fleet().refresh());
    tick();
    wire::PrepareReply prepared;
    prepared.boot_id = "boot";
    bulk.script.answers("prepare", wire::encode(prepared));
    bulk.script.answers("start", wire::encode(wire::StartReply{}));
    for (const char* name : {"stop", "clean"}) bulk.script.answers(name);
    bulk.script.answers("pause", wire::encode(wire::PauseReply{}));
    submit("low");
    takes("low", "ada");
    submit("urgent", [](job::Spec& spec) {
      spec.priority = 10;
      spec.max_duration = 10min;
    });
    sched::Preemption plan;
    plan.placement.host = {"ada"};
    plan.jobs = {{"low"}};
    aside.begin(job("urgent"), plan);
    run.settle();
    EXPECT_THAT(orders(), ElementsAre("leave"));
  }
  void takes(const std::string& id, const std::string& host) {
    book.apply({id}, job::Placed{{job::Member{0, {host}, EngineKind::process, {"GPU-1"}, 1, 0, 0}}, "the only one"});
    run.settle();
    start(id);
    run.settle();
    ASSERT_NE(job(id).in<job::Running>(), nullptr);
  }
  void ends(const std::string& id) {
    const Epoch epoch = job(id).state().epoch;
    end(id, {job::EndKind::exited, 0, 0, "", 0});
    book.apply({id}, job::Collected{epoch, ""});
  }
  void looks(StandAside& by, Duration later = {}) {
    clock.pass(later);
    by.tick(clock.boot());
    run.settle();
  }
  void looks(Duration later = {}) { looks(aside, later); }
  // Tells what ada was asked since the last time, each by the newest request: "leave", "return".
  std::vector<std::string> orders() {
    std::vector<std::string> found;
    for (const std::string& name : std::exchange(bulk.script.asked, {})) {
      if (name != "pause") continue;
      const auto request = wire::parse_pause(bulk.script.payloads[name]);
      EXPECT_THAT(request, gridctl::testing::IsOk());
      EXPECT_EQ(request->job, JobId{"low"});
      EXPECT_EQ(request->epoch, job("low").state().epoch);
      found.emplace_back(request->resume ? "return" : "leave");
    }
    return found;
  }
  [[nodiscard]] bool stands_aside() { return aside.is_aside({"low"}) && job("low").aside; }

  testing::ScriptedFreight bulk;
  World world{clock, run, net, registry, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  StandAside aside{world, book, fleet(), attempts};
};

TEST_F(StandAsideTest, ItReturnsWhenTheUrgentJobHasEnded) {
  looks();
  takes("urgent", "ada");
  looks(5min);
  EXPECT_THAT(orders(), ElementsAre()) << "it is needed";
  EXPECT_TRUE(stands_aside());
  ends("urgent");
  looks();
  EXPECT_THAT(orders(), ElementsAre("return"));
  EXPECT_FALSE(aside.is_aside({"low"}) || job("low").aside);
  looks(1min);
  EXPECT_THAT(orders(), ElementsAre()) << "once";
}

TEST_F(StandAsideTest, ItReturnsWhenTheUrgentJobFindsNoPlace) {
  looks();
  looks(119s);
  EXPECT_THAT(orders(), ElementsAre()) << "it may find its place yet";
  looks(1s);
  EXPECT_THAT(orders(), ElementsAre("return"));
  EXPECT_FALSE(aside.is_aside({"low"}));
}

TEST_F(StandAsideTest, ItReturnsWhenTheUrgentJobRunsElsewhere) {
  takes("urgent", "bob");
  looks();
  EXPECT_THAT(orders(), ElementsAre("return"));
}

TEST_F(StandAsideTest, ARefusedReturnIsAskedForAgain) {
  takes("urgent", "ada");
  ends("urgent");
  bulk.script.replies["pause"] = {make_error(Code::busy, "other programs use the GPU"), wire::encode(wire::PauseReply{})};
  looks();
  EXPECT_THAT(orders(), ElementsAre("return"));
  EXPECT_TRUE(stands_aside());
  looks(4s);
  EXPECT_THAT(orders(), ElementsAre());
  looks(1s);
  EXPECT_THAT(orders(), ElementsAre("return"));
  EXPECT_FALSE(stands_aside());
}

TEST_F(StandAsideTest, ADaemonThatStartsLaterLetsItReturn) {
  takes("urgent", "ada");
  ends("urgent");
  StandAside later(world, book, fleet(), attempts);
  looks(later);
  EXPECT_THAT(orders(), ElementsAre("return"));
  EXPECT_FALSE(later.is_aside({"low"}));
}

}  // namespace
}  // namespace gridctl::control::stand_aside_test
