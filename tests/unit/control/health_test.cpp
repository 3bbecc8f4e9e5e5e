// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/health.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "control/reach/request.hpp"

namespace gridctl::control::health_test {
namespace {

using sched::Sign;
using sched::UnitState;
using sched::Weight;

const std::string k_gpu = "GPU-1";

// A host with one GPU that was looked at just now.
struct Scene {
  Scene() {
    Gpu gpu;
    gpu.vendor = Vendor::nvidia;
    gpu.uuid = k_gpu;
    gpu.pci = "00000000:3b:00.0";
    inventory.gpus = {gpu};
    inventory.engines = {{EngineKind::podman, "4.3", true, true, ""}};
    report.boot_id = "one";
    report.taken_at = report.gpus_at = {1'000'000'000'000};
    report.wall_ms = 5'000'000;
    report.disk.total_bytes = 100ull << 30;
    report.disk.free_bytes = 50ull << 30;
    wire::GpuHealth health;
    health.uuid = k_gpu;
    health.pci = "0000:3b:00.0";
    health.memory_total = 24ull << 30;
    health.memory_used = 3ull << 20;
    health.processes.emplace();
    report.gpus = {health};
    before.boot_id = "one";
    context.now = {10'000'000};
  }
  sched::Look look() const { return look_of(report, inventory, before, context); }
  const Sign* sign(const std::string& code) {
    seen = look();
    const auto found =
        std::find_if(seen.signs.begin(), seen.signs.end(), [&](const Sign& s) { return s.code == code; });
    return found == seen.signs.end() ? nullptr : &*found;
  }
  wire::GpuHealth& gpu() { return report.gpus[0]; }
  void event(const std::string& kind, int code, const std::string& pci, std::uint64_t stamp = 500,
             const std::string& text = "said") {
    report.events = {{kind, code, pci, text, stamp, 1000, 1}};
  }

  wire::HealthReport report;
  Inventory inventory;
  sched::HostStanding before;
  HealthContext context;
  sched::Look seen;
};

TEST(HealthSigns, AWellHostShowsNone) {
  Scene scene;
  EXPECT_TRUE(scene.look().signs.empty());
  EXPECT_TRUE(scene.look().busy.empty());
  EXPECT_EQ(scene.look().looked_at, (std::set<std::string>{"", k_gpu}));
}

TEST(HealthSigns, AnXidBelongsToTheGpuAtItsAddress) {
  Scene scene;
  scene.event("xid", 95, "0000:3b:00.0");
  ASSERT_TRUE(scene.sign("xid-95"));
  EXPECT_EQ(scene.sign("xid-95")->unit, k_gpu);
  EXPECT_EQ(scene.sign("xid-95")->weight, Weight::grave);
  EXPECT_EQ(scene.sign("xid-95")->at.ms, 10'000'000 - 1000);
  scene.event("xid", 31, "0000:3b:00.0");
  EXPECT_EQ(scene.sign("xid-31")->weight, Weight::note);
}

TEST(HealthSigns, AnEventIsJudgedOnce) {
  Scene scene;
  scene.event("xid", 95, "0000:3b:00.0", 500);
  EXPECT_EQ(scene.look().log_us, 500u);
  scene.before.log_us = 500;
  EXPECT_FALSE(scene.sign("xid-95"));
  scene.report.boot_id = "two";
  EXPECT_TRUE(scene.sign("xid-95")) << "another boot counts anew";
}

TEST(HealthSigns, TheDriversWishForNothingIsNoWish) {
  Scene scene;
  scene.event("xid", 154, "0000:3b:00.0", 500,
              "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)");
  EXPECT_EQ(scene.sign("xid-154")->weight, Weight::note);
  scene.event("xid", 154, "0000:3b:00.0", 500,
              "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)");
  EXPECT_EQ(scene.sign("xid-154")->weight, Weight::grave);
}

TEST(HealthSigns, AStrangerMakesAGpuBusyAndWhatAJobLeftMakesItBad) {
  Scene scene;
  scene.gpu().processes->push_back({7, "miner", 9ull << 30, false, wire::ProcessOwner::foreign});
  scene.gpu().memory_used = 9ull << 30;
  EXPECT_TRUE(scene.look().signs.empty());
  EXPECT_NE(scene.look().busy.at(k_gpu).find("miner"), std::string::npos);
  scene.gpu().processes->front().draws = true;
  EXPECT_TRUE(scene.look().busy.empty()) << "a desktop";
  scene.gpu().processes->front().owner = wire::ProcessOwner::leftover;
  ASSERT_TRUE(scene.sign("leftover_process"));
  EXPECT_EQ(scene.sign("leftover_process")->weight, Weight::bad);
  scene.gpu().processes->front().owner = wire::ProcessOwner::leased;
  EXPECT_TRUE(scene.look().signs.empty());
}

TEST(HealthSigns, MemoryOfNobodyIsAFaultOnlyAfterAJob) {
  Scene scene;
  scene.gpu().memory_used = 10ull << 30;
  EXPECT_FALSE(scene.sign("leftover_memory"));
  EXPECT_TRUE(scene.look().busy.contains(k_gpu));
  scene.context.vacated = {k_gpu};
  EXPECT_TRUE(scene.sign("leftover_memory"));
}

TEST(HealthSigns, OldFiguresOfGpusAreNotJudged) {
  Scene scene;
  scene.report.gpus_at = {1};
  scene.gpu().remap_failed = true;
  scene.before.busy[k_gpu] = "miner";
  EXPECT_TRUE(scene.look().signs.empty());
  EXPECT_FALSE(scene.look().looked_at.contains(k_gpu));
  EXPECT_TRUE(scene.look().busy.contains(k_gpu)) << "nor forgotten";
}

TEST(HealthSigns, AGpuThatIsNoLongerListedIsGone) {
  Scene scene;
  Gpu other = scene.inventory.gpus[0];
  other.uuid = "GPU-2", other.pci = "00000000:43:00.0";
  scene.inventory.gpus.push_back(other);
  ASSERT_TRUE(scene.sign("gpu_gone"));
  EXPECT_EQ(scene.sign("gpu_gone")->unit, "GPU-2");
  scene.report.gpus.clear();
  EXPECT_FALSE(scene.sign("gpu_gone")) << "a tool that tells of none proves nothing";
}

TEST(HealthSigns, OnlyNewMemoryErrorsAreHeldAgainstAGpu) {
  Scene scene;
  scene.gpu().ecc_uncorrected = 4;
  EXPECT_EQ(scene.sign("ecc_uncorrected")->weight, Weight::note) << "they may be weeks old";
  scene.before.uncorrected[k_gpu] = 4;
  EXPECT_FALSE(scene.sign("ecc_uncorrected"));
  scene.gpu().ecc_uncorrected = 5;
  EXPECT_EQ(scene.sign("ecc_uncorrected")->weight, Weight::bad);
}

TEST(HealthSigns, HungToolsConcernTheGpusOfTheirVendor) {
  Scene scene;
  scene.report.hung = {{"nvidia-smi", false}};
  EXPECT_EQ(scene.sign("driver_hung")->weight, Weight::doubt);
  EXPECT_EQ(scene.sign("driver_hung")->unit, k_gpu);
  scene.report.hung = {{"nvidia-smi", true}};
  EXPECT_EQ(scene.sign("driver_hung")->weight, Weight::bad);
  scene.report.hung = {{"rocm-smi", true}};
  EXPECT_FALSE(scene.sign("driver_hung"));
}

TEST(HealthSigns, TheDiskAndTheClockConcernTheWholeHost) {
  Scene scene;
  scene.report.disk.free_bytes = 1 << 20;
  EXPECT_EQ(scene.sign("disk_full")->weight, Weight::bad);
  scene.report.disk.read_only = true;
  EXPECT_TRUE(scene.sign("disk_read_only"));
  scene.context.clock_offset_ms = 3'600'000;
  EXPECT_EQ(scene.sign("clock")->weight, Weight::bad);
  scene.context.clock_offset_ms = -10'000;
  EXPECT_EQ(scene.sign("clock_off")->weight, Weight::note);
}

TEST(HealthSigns, AnEngineThatDiedIsNotedAndForbidsThatEngineOnly) {
  Scene scene;
  scene.report.engines = {{EngineKind::podman, "no answer"}, {EngineKind::docker, "no daemon"}};
  EXPECT_EQ(scene.sign("engine_podman")->weight, Weight::note);
  EXPECT_FALSE(scene.sign("engine_docker")) << "it never worked there";

  const sched::Look look = look_of(scene.report, scene.inventory, scene.before, scene.context);
  const sched::HostStanding standing = sched::judge(scene.before, look).next;
  sched::HostFacts facts;
  facts.inventory = scene.inventory;
  apply_standing(facts, standing, scene.context.now);
  EXPECT_EQ(facts.quarantined, "");
  ASSERT_EQ(facts.inventory->engines.front().kind, EngineKind::podman);
  EXPECT_NE(facts.inventory->engines.front().problem, "");
}

TEST(HealthSigns, OurOwnWrongClockIsNotTheHostsFault) {
  EXPECT_FALSE(clock_offset({{"a", 3'600'000}}, "a")) << "either may be wrong";
  EXPECT_EQ(clock_offset({{"a", 3'600'000}, {"b", 3'600'100}, {"c", 3'599'000}}, "a"), 1000);
  EXPECT_EQ(clock_offset({{"a", 3'600'000}, {"b", 10}, {"c", -10}}, "a"), 3'600'000);
  EXPECT_FALSE(clock_offset({}, "a"));
}

TEST(HealthSigns, AStepOfOurClockMakesNoHostsClockWrong) {
  HostClocks clocks;
  const WallTime wall{1'000'000'000};
  const BootTime boot{5'000'000'000};
  for (const char* host : {"a", "b", "c"}) clocks.heard(host, 0, wall, boot);
  // Ours was set back by a day; of the three only one has been heard since.
  const WallTime stepped{wall.ms - 86'400'000 + 1000};
  const BootTime later{boot.ns + 1'000'000'000};
  clocks.heard("a", 86'400'000, stepped, later);
  EXPECT_EQ(clocks.offset("a", stepped, later), 0);
  EXPECT_EQ(clocks.offset("b", stepped, later), 0);
  // A host whose own clock is set is still found out.
  clocks.heard("c", 86'400'000 + 3'600'000, stepped, later);
  EXPECT_EQ(clocks.offset("c", stepped, later), 3'600'000);
  EXPECT_FALSE(clocks.offset("d", stepped, later));
}

TEST(HealthSigns, AHostAloneThatNeverAgreedProvesNothing) {
  HostClocks clocks;
  const WallTime wall{1'000'000'000};
  const BootTime boot{5'000'000'000};
  clocks.heard("a", -3'600'000, wall, boot);
  EXPECT_FALSE(clocks.offset("a", wall, boot));
}

TEST(HealthSigns, AHostAloneIsRightAsLongAsItsClockWasNotSet) {
  HostClocks clocks;
  const WallTime wall{1'000'000'000};
  const BootTime boot{5'000'000'000};
  clocks.heard("a", 0, wall, boot);
  const WallTime stepped{wall.ms - 86'400'000};
  clocks.heard("a", 86'400'000, stepped, boot);
  EXPECT_EQ(clocks.offset("a", stepped, boot), 0) << "ours was set";
  clocks.heard("a", 86'400'000, wall, boot);
  EXPECT_EQ(clocks.offset("a", wall, boot), 86'400'000) << "its own was set";
}

// A host that answers with this report.
class OneHost : public wire::Link {
 public:
  explicit OneHost(wire::HealthReport told) : report(std::move(told)) {}
  Result<void> send(const wire::Frame& frame, BootTime) override {
    asked = *wire::parse_health_request(frame.payload);
    stream = frame.stream;
    return {};
  }
  Result<wire::Frame> receive(BootTime) override {
    wire::HealthReply reply;
    reply.host_time = report.taken_at + age;
    reply.report = report;
    reply.under_way = under_way;
    return wire::Frame{wire::FrameKind::reply, stream, wire::encode(reply)};
  }

  wire::HealthReport report;
  Duration age{};
  bool under_way = false;
  wire::HealthRequest asked;
  std::uint32_t stream = 0;
};

TEST(LookBeforeAStart, LooksAnewWhereAGpuIsAskedForAndSeesTheStranger) {
  Scene scene;
  scene.gpu().processes->push_back({4711, "miner", 9ull << 30, false, wire::ProcessOwner::foreign});
  OneHost host(scene.report);
  const auto unfit = unfit_to_start(host, os::system_clock(), scene.inventory, {k_gpu});
  ASSERT_TRUE(unfit);
  EXPECT_TRUE(unfit->busy);
  EXPECT_NE(unfit->why.find("miner"), std::string::npos);
  EXPECT_TRUE(host.asked.gpus);
  EXPECT_EQ(host.asked.max_age, Duration::zero());
  EXPECT_FALSE(unfit_to_start(host, os::system_clock(), scene.inventory, {"GPU-2"})) << "another GPU";
}

TEST(LookBeforeAStart, HardlyWaitsWhereNoGpuIsAskedFor) {
  Scene scene;
  OneHost host(scene.report);
  EXPECT_FALSE(unfit_to_start(host, os::system_clock(), scene.inventory, {}));
  EXPECT_FALSE(host.asked.gpus);
  EXPECT_GT(host.asked.max_age, std::chrono::minutes{1});
  EXPECT_LE(host.asked.wait, std::chrono::seconds{1});
}

TEST(LookBeforeAStart, BelievesNoOldReport) {
  Scene scene;
  scene.report.disk.read_only = true;
  OneHost host(scene.report);
  EXPECT_TRUE(unfit_to_start(host, os::system_clock(), scene.inventory, {}));
  host.age = std::chrono::minutes{10};
  host.under_way = true;
  EXPECT_FALSE(unfit_to_start(host, os::system_clock(), scene.inventory, {})) << "it may have been mended";
}

// A host that answers the look only when it is asked the next thing.
class LateHost : public OneHost {
 public:
  using OneHost::OneHost;
  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    if (stream == 0) return OneHost::send(frame, deadline);
    answers = {
        *OneHost::receive(deadline), {wire::FrameKind::event, 0, ""}, {wire::FrameKind::reply, frame.stream, "{}"}};
    return {};
  }
  Result<wire::Frame> receive(BootTime) override {
    if (answers.empty()) return make_error(Code::timed_out, "it does not answer");
    wire::Frame first = std::move(answers.front());
    answers.erase(answers.begin());
    return first;
  }

  std::vector<wire::Frame> answers;
};

TEST(LookBeforeAStart, ThatWasGivenUpDoesNotSpoilTheStart) {
  Scene scene;
  LateHost host(scene.report);
  EXPECT_FALSE(unfit_to_start(host, os::system_clock(), scene.inventory, {k_gpu}));
  const auto answer = ask(host, 2, "{}", BootTime{});
  ASSERT_TRUE(answer) << answer.error().one_line();
  EXPECT_EQ(*answer, "{}");
}

TEST(HealthStanding, QuarantinedUnitsLeaveTheChoice) {
  sched::HostStanding standing;
  standing.units[k_gpu].state = UnitState::quarantined;
  standing.units[k_gpu].text = "Xid 95";
  standing.busy["GPU-2"] = "miner";
  sched::HostFacts facts;
  apply_standing(facts, standing, {0});
  EXPECT_TRUE(facts.quarantined.empty());
  EXPECT_NE(facts.unhealthy_gpus.at(k_gpu).find("Xid 95"), std::string::npos);
  EXPECT_EQ(facts.busy_gpus, std::vector<std::string>{"GPU-2"});
  standing.units[""].state = UnitState::quarantined;
  standing.units[""].text = "disk full";
  apply_standing(facts, standing, {0});
  EXPECT_NE(facts.quarantined.find("disk full"), std::string::npos);
  standing.units[""].state = UnitState::probation;
  sched::HostFacts later;
  apply_standing(later, standing, {0});
  EXPECT_TRUE(later.on_probation && later.quarantined.empty());
}

}  // namespace
}  // namespace gridctl::control::health_test
