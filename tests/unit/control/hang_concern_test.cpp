// SPDX-License-Identifier: Apache-2.0
// Jobs on one host that hang: what the concern asks of the host, tells and does, and what it leaves alone.
#include "control/concerns/table.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"
#include "wire/insight.hpp"

namespace gridctl::control::hang_concern_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoneHang : public testing::FollowedJobs {
 protected:
  LoneHang() {
    add("ada");
    tick();
    bulk.script.answers("stacks");
    bulk.script.more["stacks"] = {{wire::FrameKind::data, 0, "in futex()"},
                                  {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{10, {}})}};
    placement_.emplace(world(), book, fleet());
    attempts_.emplace(world(), book, fleet(), *placement_);
    mover_.emplace(world(), book, fleet(), *attempts_, *placement_);
    concern = make_hangs({world(), fleet(), book, *attempts_, *placement_, *mover_});
  }
  [[nodiscard]] World world() { return {clock, run, net, registry, bulk, folders}; }
  void begin(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}, std::vector<std::string> gpus = {"GPU-1"}) {
    submit("lone", shape);
    book.apply({"lone"}, job::Placed{{job::Member{0, {"ada"}, EngineKind::process, std::move(gpus), 4, 0, 0}}, "the only one"});
    start("lone");
    run.settle();
  }
  void polls(const std::function<void(wire::AttemptStatus&)>& change) {
    wire::AttemptStatus status;
    status.job = {"lone"};
    status.epoch = job("lone").state().epoch;
    status.phase = wire::AttemptPhase::running;
    status.log_bytes = lines;
    change(status);
    wire::PollReply reply;
    reply.attempts = {status};
    dynamic_cast<FleetListener&>(*concern).polled(host("ada"), reply);
    concern->tick(clock.boot());
    run.settle();
  }
  // For so long, measured every ten seconds: the GPU's percentage, and processors.
  void computes(Duration time, std::optional<int> percent, double cpus = 0.5) {
    for (Duration past{}; past < time; past += 10s) {
      clock.pass(10s);
      const bool gpu = !job("lone").state().attempt()->lead().gpu_uuids.empty();
      polls([&](wire::AttemptStatus& status) {
        status.use = Use{0, cpus, 1 << 20, {}};
        if (gpu) status.use->gpus = {GpuUse{percent, {}, {}, {}}};
      });
    }
  }
  std::vector<std::string> told(const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events({"lone"}, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.host.value + ": " + event.text);
    return texts;
  }

  testing::ScriptedFreight bulk;
  std::uint64_t lines = 0;
  std::optional<Placement> placement_;
  std::optional<Attempts> attempts_;
  std::optional<Mover> mover_;
  std::unique_ptr<Concern> concern;
};

TEST_F(LoneHang, IsToldOnceWithItsStacksAndLeftRunning) {
  begin();
  computes(1h, 90);
  computes(10min, 0);
  EXPECT_THAT(told("hangs"), IsEmpty());
  computes(10min, 0);
  EXPECT_THAT(told("stacks"), ElementsAre("ada: in futex()"));
  EXPECT_THAT(told("hangs"), ElementsAre(HasSubstr("ada: no output, no checkpoint and idle GPUs for 10m")));
  EXPECT_NE(job("lone").in<job::Running>(), nullptr) << "nobody asked for a restart";
  computes(5min, 90);
  computes(1h, 0);
  EXPECT_EQ(told("hangs").size(), 1u) << "it has paused for so long before";
  computes(1min, 0);
  EXPECT_EQ(told("hangs").size(), 2u) << "another one is told, too";
}

TEST_F(LoneHang, IsRestartedWhereTheFileSaysSo) {
  begin([](job::Spec& spec) {
    spec.recovery.restart_one = true;
    spec.recovery.hang_after = 1min;
  });
  computes(5min, 90);
  computes(2min, 0);
  EXPECT_NE(job("lone").in<job::Stopping>(), nullptr);
  EXPECT_THAT(job("lone").state().reason_text, HasSubstr("idle GPUs"));
}

TEST_F(LoneHang, OfAJobWithoutGpusIsSeenAtItsProcessors) {
  begin([](job::Spec&) {}, {});
  computes(5min, {}, 3.9);
  computes(11min, {}, 0.01);
  EXPECT_THAT(told("hangs"), ElementsAre(HasSubstr("idle processors")));
}

TEST_F(LoneHang, IsNotConcludedFromWhatNobodyMeasures) {
  begin();
  computes(5min, 90);
  for (int i = 0; i < 500; ++i) {  // an agent of before, or a tool that hangs
    clock.pass(10s);
    polls([](wire::AttemptStatus&) {});
  }
  EXPECT_THAT(told("hangs"), IsEmpty());
  computes(2h, std::nullopt, 0);
  EXPECT_THAT(told("hangs"), IsEmpty()) << "idle processors do not show that a GPU is idle";
}

TEST_F(LoneHang, IsNotConcludedFromTheTimeThatThisMachineSlept) {
  begin([](job::Spec& spec) {
    spec.recovery.restart_one = true;
    spec.recovery.hang_after = 30s;
  });
  computes(5min, 90);
  clock.pass(50s);
  concern->tick(clock.boot());
  run.settle();
  EXPECT_NE(job("lone").in<job::Running>(), nullptr);
  EXPECT_THAT(told("stacks"), IsEmpty());
  computes(40s, 0);
  EXPECT_NE(job("lone").in<job::Stopping>(), nullptr) << "from then on it is judged again";
}

TEST_F(LoneHang, IsNotConcludedOfAJobThatPrintsIsPausedOrServes) {
  begin();
  computes(5min, 90);
  for (int i = 0; i < 20; ++i) {
    computes(9min, 0);
    ++lines;
  }
  EXPECT_THAT(told("hangs"), IsEmpty());
  for (int i = 0; i < 500; ++i) {
    clock.pass(10s);
    polls([](wire::AttemptStatus& status) { status.paused_ms_ago = 1; });
  }
  EXPECT_THAT(told("hangs"), IsEmpty());
}

}  // namespace
}  // namespace gridctl::control::hang_concern_test
