// SPDX-License-Identifier: Apache-2.0
// A standby is a help for a job that runs: nothing of it is left on a host once the job has ended.
#include "control/concerns/table.hpp"
#include "scripted_freight.hpp"
#include "two_hosts.hpp"

namespace gridctl::control::standby_concern_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

// A job that runs on ada and has saved once; bob could take it.
class StandbyConcernTest : public testing::TwoHosts, JobListener {
 protected:
  StandbyConcernTest() {
    wire::PrepareReply prepared;
    prepared.boot_id = "boot";
    bulk.script.answers("prepare", wire::encode(prepared));
    bulk.script.answers("start", wire::encode(wire::StartReply{}));
    for (const char* name : {"stop", "clean", "standby"}) bulk.script.answers(name);
    book.listen(*this);
    submit("warm", [](job::Spec& spec) {
      spec.resources.cpus = 1;
      spec.checkpoint.standby = true;
    });
    place("warm", "ada", 0, false);
    run.settle();
    start("warm");
    run.settle();
    save(1);
    bulk.script.asked.clear();
    bulk.reached.clear();
  }
  void changed(const TrackedJob& job, const job::State& before) override { concern->changed(job, before); }
  void forgotten(const JobId& id) override { concern->forgotten(id); }

  void save(std::uint64_t number) {
    registry::Checkpoint saved;
    saved.job = {"warm"};
    saved.epoch = job("warm").state().epoch;
    saved.attempt = job("warm").state().attempt()->number;
    saved.root = testing::tree(static_cast<int>(number));
    saved.created_at = clock.wall();
    saved.host_number = number;
    const auto committed = registry.commit_checkpoint(saved);
    ASSERT_THAT(committed, IsOk());
    book.take({"warm"}, committed->step);
  }
  void succeeds() {
    const Epoch epoch = job("warm").state().epoch;
    end("warm", {job::EndKind::exited, 0, 0, "", 0});
    book.apply({"warm"}, job::Collected{epoch, ""});
    ASSERT_EQ(job("warm").state().visible(), job::JobState::succeeded);
  }
  void looks() { concern->tick(clock.boot()); }
  // Tells what hosts were asked about standbys since the last time, each by the newest request: "keep", "forget".
  std::vector<std::string> standbys() {
    std::vector<std::string> found;
    for (const std::string& name : std::exchange(bulk.script.asked, {})) {
      if (name != "standby") continue;
      const auto request = wire::parse_standby(bulk.script.payloads[name]);
      EXPECT_THAT(request, IsOk());
      EXPECT_EQ(request->job, JobId{"warm"});
      found.emplace_back(request->root ? "keep" : "forget");
    }
    return found;
  }

  testing::ScriptedFreight bulk;
  World world{clock, run, net, registry, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  Mover mover{world, book, fleet(), attempts, placement};
  std::unique_ptr<Concern> concern = make_standby_concern({world, fleet(), book, attempts, placement, mover});
};

TEST_F(StandbyConcernTest, IsForgottenWhereItLiesWhenTheJobEnds) {
  looks();
  run.settle();
  EXPECT_THAT(standbys(), ::testing::ElementsAre("keep"));
  succeeds();
  run.settle();
  EXPECT_THAT(standbys(), ::testing::ElementsAre("forget"));
  EXPECT_EQ(bulk.reached.front(), "bob");
}

// Else it would be sent there for ever, as if no other host were left.
TEST_F(StandbyConcernTest, IsNoReasonToGoToAHostThatHasRefusedTheJob) {
  looks();
  run.settle();
  const auto preferred = [&] {
    Question asked = placement.question(job("warm"));
    concern->shape(job("warm"), asked);
    return asked.preference ? asked.preference->host.value : "";
  };
  book.apply({"warm"}, job::HostLost{job("warm").state().epoch, 1min, 0});
  EXPECT_EQ(preferred(), "bob");
  place("warm", "bob", 0, false);
  book.apply({"warm"}, job::LaunchFailed{.epoch = job("warm").state().epoch, .detail = "not today", .kind = job::EndKind::absent});
  EXPECT_EQ(preferred(), "");
}

TEST_F(StandbyConcernTest, WhatHostsMayHaveThoughItIsToldAsFailedIsTakenBack) {
  bulk.script.replies["standby"] = {make_error(Code::timed_out, "no answer in time")};
  looks();
  run.settle();
  EXPECT_THAT(standbys(), ::testing::Contains("forget"));
}

TEST_F(StandbyConcernTest, ThatBecomesReadyAfterTheJobsEndIsForgottenToo) {
  bulk.fails_reaching = [this](const HostReach& host) -> std::optional<Error> {
    if (host.provider.name.value == "bob" && job("warm").in<job::Running>() != nullptr) succeeds();  // while it is copied
    return std::nullopt;
  };
  looks();
  run.settle();
  EXPECT_THAT(bulk.script.asked, ::testing::Contains("standby").Times(2));
  EXPECT_THAT(standbys(), ::testing::Contains("forget")) << "it was the last word";
}

TEST_F(StandbyConcernTest, ThatBecomesReadyWhereTheJobHasStartedMeanwhileIsForgotten) {
  bool moved = false;
  bulk.fails_reaching = [&](const HostReach& host) -> std::optional<Error> {
    if (host.provider.name.value == "ada") return make_error(Code::host_unreachable, "no route");
    if (std::exchange(moved, true)) return std::nullopt;
    book.apply({"warm"}, job::HostLost{job("warm").state().epoch, 1min, 0});  // while it is copied
    place("warm", "bob", 0);
    return std::nullopt;
  };
  looks();
  run.settle();
  EXPECT_THAT(standbys(), ::testing::ElementsAre("keep"));
  ASSERT_NE(job("warm").in<job::Running>(), nullptr);
  bulk.reached.clear();
  clock.pass(5s);
  looks();
  run.settle();
  EXPECT_THAT(standbys(), ::testing::ElementsAre("forget")) << "the attempt had started without it";
  EXPECT_THAT(bulk.reached, ::testing::Contains("bob"));
}

}  // namespace
}  // namespace gridctl::control::standby_concern_test
