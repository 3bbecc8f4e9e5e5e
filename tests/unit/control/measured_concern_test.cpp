// SPDX-License-Identifier: Apache-2.0
// GPUs of others are measured before their first job, and the rule ends. bob is lent and has a GPU; ada has none.
#include "control/concerns/table.hpp"
#include "control/measure/unmeasured.hpp"
#include "fake_gpus.hpp"
#include "scripted_freight.hpp"
#include "two_hosts.hpp"

namespace gridctl::control::measured_concern_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Each connection for bulk work ends at the GPUs.
class ToGpus final : public AgentNetwork {
 public:
  ToGpus(AgentNetwork& other, testing::FakeGpus& gpus) : other_(other), gpus_(gpus) {}
  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider& host, BootTime deadline) override {
    return other_.connect(host, deadline);
  }
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider&, BootTime) override {
    if (refuses) return *refuses;
    return transfer::BulkLink{std::make_unique<Line>(gpus_)};
  }
  std::optional<Error> refuses;

 private:
  struct Line final : wire::Link {
    explicit Line(testing::FakeGpus& its) : gpus(its) {}
    Result<void> send(const wire::Frame& frame, BootTime deadline) override { return gpus.send(frame, deadline); }
    Result<wire::Frame> receive(BootTime deadline) override { return gpus.receive(deadline); }
    testing::FakeGpus& gpus;
  };
  AgentNetwork& other_;
  testing::FakeGpus& gpus_;
};

class MeasuredConcernTest : public testing::TwoHosts {
 protected:
  MeasuredConcernTest() {
    change("bob", [](registry::Provider& host) {
      host.labels["lent"] = "true";
      host.inventory.edit().gpus = {testing::plain_gpu("GPU-b")};
    });
    gpus.devices.devices = {testing::device({{"uuid", "GPU-b"}})};
    begin();
    submit("train", one_gpu);
  }
  void change(const std::string& name, const std::function<void(registry::Provider&)>& edit) {
    registry::Provider host = row(name);
    edit(host);
    ASSERT_THAT(registry.update_provider(host), IsOk());
    ASSERT_TRUE(fleet().refresh());
  }
  // A daemon that knows no more than the registry.
  void begin() {
    concerns.clear();
    concerns.push_back(make_measured({world, fleet(), book, attempts, placement, mover}));
    placement.consult(concerns);
  }
  static void one_gpu(job::Spec& spec) { spec.resources.gpus.assign(1, {}); }
  sched::Decision asks(const std::string& id = "train") {
    return placement.decide(job(id), placement.question(job(id)));
  }
  std::string host_of(const std::string& id = "train") {
    const sched::Decision decision = asks(id);
    return decision.placement ? decision.placement->host.value : "";
  }
  std::string why_not_bob(const std::string& id = "train") {
    for (const sched::Rejection& one : asks(id).rejections)
      if (one.host.value == "bob") return one.code + ": " + one.detail;
    return "";
  }
  void looks(Duration later = 0s) {
    clock.pass(later);
    concerns.front()->tick(clock.boot());
  }
  void measures(Duration later = 0s) {
    looks(later);
    run.settle();
  }
  std::vector<std::string> told() {
    std::vector<std::string> texts;
    const auto events = registry.host_events({"bob"}, 0);
    for (const registry::HostEvent& one : *events)
      if (one.kind == "bench") texts.push_back(one.text);
    return texts;
  }

  testing::FakeGpus gpus{clock};
  ToGpus lines{net, gpus};
  testing::ScriptedFreight bulk;
  World world{clock, run, lines, registry, bulk, folders};
  Placement placement{world, book, fleet()};
  Attempts attempts{world, book, fleet(), placement};
  Mover mover{world, book, fleet(), attempts, placement};
  std::vector<std::unique_ptr<Concern>> concerns;
};

TEST_F(MeasuredConcernTest, TheFirstJobWaitsUntilTheGpuIsMeasured) {
  const sched::Decision first = asks();
  EXPECT_FALSE(first.placement);
  EXPECT_TRUE(first.could_ever_fit);
  EXPECT_THAT(why_not_bob(), AllOf(HasSubstr("unmeasured: it is being measured before its first job; about 2m"),
                                   HasSubstr("gridctl job cancel train && gridctl job resume train --unmeasured allow")));
  const std::uint64_t capacity = fleet().capacity();
  measures();
  EXPECT_GT(fleet().capacity(), capacity) << "who waits is asked again";
  EXPECT_EQ(host_of(), "bob");
  ASSERT_TRUE(load_bench_report(registry, {"bob"})->has_value());
  EXPECT_THAT(gpus.tests(), Not(Contains("sustain"))) << "the short one";
  begin();
  ASSERT_TRUE(fleet().refresh());
  EXPECT_EQ(host_of(), "bob") << "for the next daemon, too";
}

TEST_F(MeasuredConcernTest, AGpuThatIsNotWhatItClaimsGetsNoJob) {
  gpus.spoil = [](probe::Words& words) { words.back() ^= 1; };
  EXPECT_EQ(host_of(), "");
  measures();
  EXPECT_THAT(why_not_bob(), HasSubstr("mismatch: "));
}

TEST_F(MeasuredConcernTest, AHostWithoutADriverIsUsedAllTheSameAndThatIsSaidOnce) {
  gpus.devices.devices.clear();
  gpus.devices.problems["cuda"] = "libcuda.so.1 was not found";
  EXPECT_EQ(host_of(), "");
  measures();
  EXPECT_EQ(host_of(), "bob");
  EXPECT_FALSE(load_bench_report(registry, {"bob"})->has_value());
  EXPECT_THAT(load_unmeasured(registry)->at("bob"), HasSubstr("libcuda.so.1 was not found"));
  begin();
  EXPECT_EQ(host_of(), "bob") << "the next daemon knows";
  measures();
  ASSERT_THAT(told(), SizeIs(1));
  EXPECT_THAT(told().front(), AllOf(HasSubstr("libcuda.so.1 was not found"), HasSubstr("jobs use its GPUs all the same")));
}

TEST_F(MeasuredConcernTest, WhatFailsIsTriedThreeTimes) {
  gpus.instead = [](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
    if (op != "bench-list") return std::nullopt;
    return Result<std::string>(make_error(Code::refused, "the owner of this machine uses it"));
  };
  EXPECT_EQ(host_of(), "");
  measures();
  measures(5s);
  EXPECT_EQ(std::count(gpus.asked.begin(), gpus.asked.end(), "bench-list"), 1) << "not at once again";
  measures(20s);
  EXPECT_EQ(host_of(), "");
  measures(20s);
  EXPECT_EQ(host_of(), "bob");
  EXPECT_THAT(told(), Contains(HasSubstr("the owner of this machine uses it")));
}

TEST_F(MeasuredConcernTest, AMeasurementThatNeverEndsEndsTheRule) {
  EXPECT_EQ(host_of(), "");
  looks();  // and nothing comes of it
  looks(10min);
  EXPECT_EQ(host_of(), "");
  looks(1s);
  EXPECT_EQ(host_of(), "bob");
  EXPECT_THAT(told(), Contains(HasSubstr("takes longer than 10m")));
}

TEST_F(MeasuredConcernTest, NothingIsMeasuredWhileAJobRunsThereAndThatEnds) {
  submit("cpus", [](job::Spec&) {});
  place("cpus", "bob", 0);
  EXPECT_EQ(host_of(), "");
  EXPECT_THAT(why_not_bob(), HasSubstr("when nothing else runs there"));
  measures();
  measures(10min);
  EXPECT_THAT(gpus.asked, IsEmpty());
  EXPECT_EQ(host_of(), "");
  measures(1s);
  EXPECT_EQ(host_of(), "bob");
  EXPECT_THAT(told(), Contains(HasSubstr("something else ran there")));
}

TEST_F(MeasuredConcernTest, OneHostIsMeasuredAtATime) {
  change("ada", [](registry::Provider& host) {
    host.host_class = "market";
    host.inventory.edit().gpus = {testing::plain_gpu("GPU-a")};
  });
  gpus.devices.devices.push_back(testing::device({{"uuid", "GPU-a"}}));
  submit("gang", [](job::Spec& spec) {
    one_gpu(spec);
    spec.num_nodes = 2;
    spec.constraints.clear_traffic = true;
  });
  (void)placement.question(job("gang"));  // wants both
  looks();
  EXPECT_THAT(why_not_bob(), HasSubstr("after ada"));
  run.settle();
  measures();
  EXPECT_EQ(asks().fitting, 2u);
  EXPECT_EQ(std::count(gpus.asked.begin(), gpus.asked.end(), "bench-list"), 2);
}

TEST_F(MeasuredConcernTest, AHostThatNobodyWantsIsLeftAlone) {
  change("ada", [](registry::Provider& host) { host.inventory.edit().gpus = {testing::plain_gpu("GPU-a")}; });
  change("bob", [](registry::Provider& host) { host.price_per_hour = 1; });
  EXPECT_EQ(host_of(), "ada") << "a host of one's own, unmeasured as ever";
  measures();
  EXPECT_THAT(gpus.asked, IsEmpty());
}

TEST_F(MeasuredConcernTest, JobsWithoutGpusAndThoseThatAllowItDoNotWait) {
  submit("plain", [](job::Spec& spec) { spec.constraints.providers = {"bob"}; });
  EXPECT_EQ(host_of("plain"), "bob");
  submit("hurried", [](job::Spec& spec) {
    one_gpu(spec);
    spec.constraints.unmeasured = true;
  });
  EXPECT_EQ(host_of("hurried"), "bob");
  measures();
  EXPECT_THAT(gpus.asked, IsEmpty());
}

TEST_F(MeasuredConcernTest, WhatTheUserMeasuresCounts) {
  EXPECT_EQ(host_of(), "");
  BenchReport report;
  report.at = clock.wall();
  ASSERT_THAT(save_bench_report(registry, {"bob"}, report, std::nullopt), IsOk());
  ASSERT_TRUE(fleet().refresh());
  EXPECT_EQ(host_of(), "bob");
  measures();
  EXPECT_THAT(gpus.asked, IsEmpty());
}

}  // namespace
}  // namespace gridctl::control::measured_concern_test
