// SPDX-License-Identifier: Apache-2.0
// The rooms, wired: what reaches concerns, what is read anew and when, which hosts' GPUs are tested again.
#include "control/daemon/controller.hpp"

#include "control/daemon/gpu_rechecks.hpp"
#include "followed_jobs.hpp"
#include "new_polls.hpp"
#include "registry/registry.hpp"
#include "scripted_freight.hpp"

namespace gridctl::control::controller_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Noter : Concern {
  void tick(BootTime) override { ++ticks; }
  void found(const TrackedJob& job) override { heard.push_back("found " + job.id().value); }
  void changed(const TrackedJob& job, const job::State&) override { heard.push_back("changed " + job.id().value); }
  void forgotten(const JobId& id) override { heard.push_back("forgotten " + id.value); }
  void shape(const TrackedJob& asking, Question&) const override { shaped.push_back(asking.id().value); }
  int ticks = 0;
  std::vector<std::string> heard;
  mutable std::vector<std::string> shaped;
  static inline Noter* last = nullptr;
};

std::unique_ptr<Concern> make_noter(const Controls&) {
  auto noter = std::make_unique<Noter>();
  Noter::last = noter.get();
  return noter;
}
constexpr ConcernMaker k_noter[] = {make_noter};

class Controlled : public testing::FleetTest {
 protected:
  Controller& begin() {
    controller_.emplace(World{clock, run, net, registry, bulk, folders}, Settings{Duration::zero(), 1s}, k_noter);
    EXPECT_THAT(controller_->start(), IsOk());
    run.settle();
    return *controller_;
  }
  void second(Duration time = 1s) {
    clock.pass(time);
    run.fire();
    run.settle();
  }
  // By another process.
  void submit(const std::string& id) {
    job::Spec spec;
    spec.name = id;
    spec.run = "true";
    EXPECT_THAT(others.submit({id}, spec, clock.wall()), IsOk());
  }
  static Noter& noter() { return *Noter::last; }

  testing::ScriptedFreight bulk;
  testing::NewPolls polls;
  registry::Registry others = *registry::Registry::open(dir.path());
  std::optional<Controller> controller_;
};

TEST_F(Controlled, FollowsWhatIsThereAtItsBegin) {
  submit("early");
  Controller& controller = begin();
  EXPECT_NE(controller.book().find({"early"}), nullptr);
  EXPECT_FALSE(controller.is_idle());
  EXPECT_TRUE(controller.has_work());
  EXPECT_THAT(noter().heard, ElementsAre("found early", "changed early"));
  EXPECT_EQ(noter().ticks, 1);
}

TEST_F(Controlled, AsksConcernsAgainInItsRhythm) {
  begin();
  for (int i = 0; i < 3; ++i) second();
  EXPECT_EQ(noter().ticks, 4);
}

TEST_F(Controlled, ReadsWhatOthersWriteWithTheNextTick) {
  Controller& controller = begin();
  EXPECT_TRUE(controller.is_idle());
  submit("late");
  registry::Provider provider;
  provider.name = {"ada"};
  ASSERT_THAT(others.add_provider(provider), IsOk());
  EXPECT_TRUE(controller.has_work());
  second();
  EXPECT_NE(controller.book().find({"late"}), nullptr);
  EXPECT_NE(controller.fleet().find({"ada"}), nullptr);
  ASSERT_THAT(others.apply({"late"}, {clock.wall(), job::CancelRequested{}}), IsOk());
  second();
  second();
  EXPECT_THAT(noter().heard, Contains("forgotten late"));
  EXPECT_TRUE(controller.is_idle());
}

TEST_F(Controlled, PlacesAJobWhenItsHostsAreThereAndLetsConcernsShapeTheQuestion) {
  add("ada");
  bulk.script.answers("prepare", wire::encode(wire::PrepareReply{{1}, "boot"}));
  bulk.script.answers("start", wire::encode(wire::StartReply{}));
  registry::Provider ada = row("ada");
  ada.inventory.edit().cpus = 8;
  ada.inventory.edit().engines = {{EngineKind::process, "", false, false, ""}};
  ASSERT_THAT(registry.update_provider(ada), IsOk());
  Controller& controller = begin();
  submit("job");
  for (int i = 0; i < 15; ++i) {
    second();
    if (polls.came(line("ada"))) answer("ada");
  }
  EXPECT_THAT(noter().shaped, Contains("job"));
  const TrackedJob* job = controller.book().find({"job"});
  ASSERT_NE(job, nullptr);
  ASSERT_NE(job->state().attempt(), nullptr) << job->state().reason_text;
  EXPECT_EQ(job->state().attempt()->lead().host.value, "ada");
  EXPECT_THAT(bulk.reached, Contains("ada")) << "it is launched";
}

TEST_F(Controlled, SavesWhatItHasSeenOfHostsAtItsEnd) {
  add("ada");
  Controller& controller = begin();
  for (int i = 0; i < 30; ++i) {
    second();
    if (polls.came(line("ada"))) answer("ada");
  }
  controller.save();
  EXPECT_TRUE(others.provider({"ada"})->last_seen_at);
  EXPECT_THAT(*others.host_spans({"ada"}), ::testing::SizeIs(1));
}

// --- GPUs that are tested again --------------------------------------------------------------------------------------

class IdleGpus : public testing::FollowedJobs {
 protected:
  IdleGpus() {
    for (const char* name : {"ada", "bob"}) {
      add(name);
      registry::Provider provider = row(name);
      Gpu gpu;
      gpu.uuid = std::string("GPU-") + name;
      provider.inventory.edit().gpus = {gpu};
      EXPECT_THAT(registry.update_provider(provider), IsOk());
    }
    EXPECT_TRUE(fleet().refresh());
    tick();
    tick();
  }
  void measured(const std::string& name) {
    BenchReport report;
    report.at = {1};
    EXPECT_THAT(save_bench_report(registry, {name}, report, {}), IsOk());
  }
  void holds(const std::string& name, const std::vector<std::string>& gpus) {
    wire::HeldShare share;
    share.gpu_uuids = gpus;
    answer(name, std::vector{share});
  }
  // Those that are tested when two periods have passed.
  std::vector<std::string> tested() {
    rechecks.tick(clock.boot());
    rechecks.tick(clock.boot() + 20h);
    return std::exchange(begun, {});
  }

  std::vector<std::string> begun;
  GpuRechecks rechecks{run, clock, registry, fleet(), book,
                       [this](const FleetHost& host) {
                         begun.push_back(host.provider.name.value);
                         return HostAccess{host.provider, nullptr, &clock};
                       },
                       10h};
};

TEST_F(IdleGpus, AreTestedOneHostAtATime) {
  measured("ada");
  measured("bob");
  EXPECT_THAT(tested(), ElementsAre("ada"));
  EXPECT_THAT(tested(), IsEmpty()) << "that one is under way";
}

TEST_F(IdleGpus, OfAHostThatNobodyHasMeasuredHoldUpNoOther) {
  measured("bob");
  EXPECT_THAT(tested(), ElementsAre("bob"));
}

TEST_F(IdleGpus, AreThoseThatNobodyHolds) {
  measured("ada");
  holds("ada", {"GPU-ada"});
  EXPECT_THAT(tested(), IsEmpty());
  tick(1min);
  holds("ada", {});
  EXPECT_THAT(tested(), ElementsAre("ada")) << "who holds cores only is not disturbed";
}

TEST_F(IdleGpus, AreNotThoseOfAHostWithAnAttemptOfOurs) {
  measured("ada");
  submit("job");
  place("job", "ada", 0);
  EXPECT_THAT(tested(), IsEmpty());
  end("job", {job::EndKind::exited, 0, 0, "", 0});
  book.apply({"job"}, job::Collected{{1}, ""});
  EXPECT_THAT(tested(), ElementsAre("ada"));
}

TEST_F(IdleGpus, AreNotThoseOfAHostThatDoesNotAnswer) {
  measured("ada");
  line("ada").on_closed(make_error(Code::host_unreachable, "gone"));
  EXPECT_THAT(tested(), IsEmpty());
}

}  // namespace
}  // namespace gridctl::control::controller_test
