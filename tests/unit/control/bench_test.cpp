// SPDX-License-Identifier: Apache-2.0
// What a benchmark asks of a host, and what stands in its report.
#include "control/measure/bench.hpp"

#include <gmock/gmock.h>

#include "control/measure/bench_device.hpp"
#include "fake_gpus.hpp"
#include "support/results.hpp"

namespace gridctl::control::bench_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::device;
using testing::FakeGpus;
using testing::HandClock;
using testing::plain_gpu;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Bench : public ::testing::Test {
 protected:
  Bench() {
    talk.link = &gpus;
    talk.clock = &clock;
    talk.draw = [this] { return ++drawn * 0x9e3779b97f4a7c15u; };
    inventory.gpus = {plain_gpu("GPU-a")};
    gpus.devices.devices = {device({{"uuid", "a"}})};
    options.under_load = 2ms;
  }
  Result<BenchReport> measure(const std::optional<BenchReport>& before = {}) {
    return bench(talk, inventory, options, before);
  }
  GpuBench only(const std::optional<BenchReport>& before = {}) {
    const auto report = measure(before);
    EXPECT_THAT(report, IsOk());
    EXPECT_THAT(report->gpus, SizeIs(1));
    return report->gpus.at(0);
  }
  static GpuBench former(double rate) {
    GpuBench bench;
    bench.gpu = plain_gpu("GPU-a");
    bench.trends["memory_read_gbs"] = {{rate, rate, rate}, rate};
    bench.figures["peer_gbs"] = 77;
    bench.figures["fma_tflops"] = -1;
    return bench;
  }

  HandClock clock;
  FakeGpus gpus{clock};
  std::uint64_t drawn = 0;
  BenchTalk talk;
  Inventory inventory;
  BenchOptions options;
};

TEST_F(Bench, MeasuresTheHostAndEachGpu) {
  std::vector<std::string> lines;
  options.progress = [&](const std::string& line) { lines.push_back(line); };
  const WallTime began = clock.wall();
  const auto report = measure();
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->at, began);
  EXPECT_FALSE(report->quick);
  EXPECT_EQ(report->host, gpus.host);
  EXPECT_EQ(gpus.part, 800ms);
  EXPECT_THAT(report->problems, IsEmpty());
  ASSERT_THAT(report->gpus, SizeIs(1));
  EXPECT_EQ(report->gpus[0].gpu.uuid, "GPU-a");
  EXPECT_EQ(report->verdict(), sched::VerdictKind::unverified) << report->summary();
  EXPECT_THAT(gpus.tests(), ElementsAre("fill", "gemm", "fma", "rates", "memory", "copies", "sustain"));
  EXPECT_THAT(lines, ElementsAre("processors, memory and disk", "Test GPU: filling and hashing memory",
                                 "Test GPU: matrices", "Test GPU: fp32", "Test GPU: peak rates",
                                 "Test GPU: memory bandwidth", "Test GPU: copies", HasSubstr("under load")));
}

TEST_F(Bench, TakesTheShortestOfFiveRoundTrips) {
  gpus.round_trips = {9ms, 4ms, 8ms, 6ms, 5ms, 1ms};
  EXPECT_DOUBLE_EQ(measure()->round_trip_ms, 4);
  EXPECT_EQ(std::count(gpus.asked.begin(), gpus.asked.end(), "poll"), 5);
}

TEST_F(Bench, IsShorterWhenItShallBeQuick) {
  options.quick = true;
  EXPECT_TRUE(measure()->quick);
  EXPECT_EQ(gpus.part, 300ms);
  EXPECT_THAT(gpus.tests(), ElementsAre("fill", "gemm", "fma", "rates", "memory", "copies"));
}

TEST_F(Bench, KeepsBetweenJobsWhatItDoesNotMeasureAnew) {
  options.challenges_only = true;
  BenchReport before;
  before.host = {{"cpu_gflops", 5}};
  before.quick = true;
  before.gpus = {former(3000), former(3000), former(3000)};
  before.gpus[1].gpu.uuid = "GPU-b";
  before.gpus[2].gpu.name = "Another GPU in its place";
  const auto report = measure(before);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(gpus.tests(), ElementsAre("fill", "gemm", "fma"));
  EXPECT_THAT(gpus.asked, ::testing::Not(Contains("bench-host")));
  EXPECT_EQ(report->host, before.host);
  EXPECT_TRUE(report->quick);
  ASSERT_THAT(report->gpus, SizeIs(3)) << "those that were not tested stay";
  EXPECT_EQ(report->gpus[0].figures.at("peer_gbs"), 77);
  EXPECT_GT(report->gpus[0].figures.at("fma_tflops"), 0) << "a new figure counts more than the former one";
  EXPECT_EQ(report->gpus[1].gpu.uuid, "GPU-b");
  EXPECT_EQ(report->gpus[2].gpu.name, "Another GPU in its place");
}

TEST_F(Bench, BeginsAnewWhenEverythingIsMeasured) {
  BenchReport before;
  before.gpus = {former(3000)};
  const auto report = measure(before);
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT(report->gpus, SizeIs(1));
  EXPECT_FALSE(report->gpus[0].figures.contains("peer_gbs"));
}

TEST_F(Bench, TellsWhatTheHostCouldNotMeasureAndGoesOn) {
  gpus.instead = [](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
    if (op != "bench-host") return std::nullopt;
    return Result<std::string>(make_error(Code::io, "the disk is full"));
  };
  const auto report = measure();
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->problems, ElementsAre(HasSubstr("the disk is full")));
  EXPECT_THAT(report->host, IsEmpty());
  EXPECT_THAT(report->gpus, SizeIs(1));
}

TEST_F(Bench, EndsWithTheLink) {
  const Error gone = make_error(Code::host_unreachable, "gone");
  for (const char* last : {"poll", "bench-host", "bench-list", "health", "bench-begin", "bench-seed"}) {
    gpus.lost.reset();
    gpus.instead = [&](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
      if (op == last) gpus.lost = gone;
      return std::nullopt;
    };
    EXPECT_THAT(measure(), FailsWith(Code::host_unreachable)) << last;
  }
  gpus.lost.reset();
  gpus.broken = gone;
  EXPECT_THAT(measure(), FailsWith(Code::host_unreachable));
}

TEST_F(Bench, EndsWhenTheHostFallsSilent) {
  gpus.instead = [&](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
    gpus.silent = op == "bench-seed";
    return std::nullopt;
  };
  EXPECT_THAT(measure(), FailsWith(Code::timed_out));
}

TEST_F(Bench, PassesOverFramesThatNobodyWaitsFor) {
  gpus.noise = true;
  EXPECT_EQ(only().verdict.kind, sched::VerdictKind::unverified);
}

TEST_F(Bench, TestsTheGpusThatWereAskedFor) {
  inventory.gpus.push_back(plain_gpu("GPU-b"));
  gpus.devices.devices.push_back(device({{"uuid", "b"}}));
  options.gpus = {"GPU-b"};
  const GpuBench bench = only();
  EXPECT_EQ(bench.gpu.uuid, "GPU-b");
  EXPECT_EQ(gpus.begun.front().index, 1u);
  EXPECT_EQ(gpus.begun.front().gpu, "GPU-b");
}

TEST_F(Bench, TellsThatAGpuIsInUseAndJudgesItNot) {
  gpus.instead = [](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
    if (op != "bench-begin") return std::nullopt;
    return Result<std::string>(make_error(Code::busy, "job train holds it"));
  };
  const auto report = measure();
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->gpus, IsEmpty());
  EXPECT_THAT(report->problems, ElementsAre(HasSubstr("Test GPU: job train holds it")));
}

TEST_F(Bench, ShowsWhatAHostWithoutDeclaredGpusHas) {
  inventory.gpus.clear();
  gpus.devices.devices = {device({{"backend", "opencl"}, {"name", "pocl"}, {"kind", "cpu"}})};
  gpus.devices.problems = {{"cuda", "no library"}};
  gpus.facts.texts["kind"] = "cpu";
  const auto report = measure();
  ASSERT_THAT(report, IsOk());
  ASSERT_THAT(report->gpus, SizeIs(1));
  EXPECT_EQ(report->gpus[0].gpu.name, "pocl");
  EXPECT_EQ(report->gpus[0].gpu.vendor, Vendor::other);
  EXPECT_EQ(report->gpus[0].backend, "opencl");
  EXPECT_EQ(report->verdict(), sched::VerdictKind::ok);
  EXPECT_THAT(report->problems, ElementsAre("cuda: no library"));
  EXPECT_THAT(gpus.asked, ::testing::Not(Contains("health"))) << "there is nothing to look at";
  EXPECT_FALSE(report->gpus[0].figures.contains("units")) << "a processor has none";
}

TEST_F(Bench, FollowsEachFigureOverTheRuns) {
  BenchReport before;
  before.gpus = {former(3000)};
  EXPECT_THAT(only(before).trends.at("memory_read_gbs").last, ElementsAre(3000, 3000, 3000, 3000));
  before.gpus[0].gpu.uuid = "GPU-z";
  EXPECT_THAT(only(before).trends.at("memory_read_gbs").last, ElementsAre(3000)) << "another device";
  before.gpus[0].gpu = plain_gpu("GPU-a");
  before.gpus[0].gpu.name = "Other";
  EXPECT_THAT(only(before).trends.at("memory_read_gbs").last, ElementsAre(3000)) << "another model";
}

TEST_F(Bench, CallsAGpuThatHasBecomeSlowerDegraded) {
  BenchReport before;
  before.gpus = {former(4000)};
  before.gpus[0].trends["memory_read_gbs"] = {{4000, 3000, 3000}, 4000};
  const GpuBench slow = only(before);
  EXPECT_EQ(slow.verdict.kind, sched::VerdictKind::degraded);
  ASSERT_FALSE(slow.verdict.findings.empty());
  EXPECT_EQ(slow.verdict.findings.front().what, "drift") << "before what was found to be good";
  EXPECT_THAT(slow.verdict.findings.front().text, HasSubstr("memory_read_gbs is 21 % lower than usual"));
  gpus.rates["memory"]["read_gbs"] = 3800;
  before.gpus[0].trends["memory_read_gbs"] = {{4000, 3800, 3800}, 4000};
  EXPECT_EQ(only(before).verdict.kind, sched::VerdictKind::unverified) << "a twentieth is noise";
}

TEST_F(Bench, CountsWhatOthersHoldOfAGpu) {
  gpus.facts.numbers["memory_bytes"] = 4e9;  // of which 8 KiB are filled
  const auto verdict = [&](const wire::GpuHealth& health) {
    gpus.health.report.emplace();
    gpus.health.report->gpus = {health};
    return only().verdict.kind;
  };
  using enum sched::VerdictKind;
  wire::GpuHealth seen;
  seen.uuid = "GPU-a";
  EXPECT_EQ(verdict(seen), mismatch) << "nobody holds the rest";
  seen.memory_used = 1ull << 30;
  EXPECT_EQ(verdict(seen), mismatch) << "as much as a driver may use";
  seen.memory_used = 3'900'000'000;
  EXPECT_EQ(verdict(seen), unverified);
  seen.partitioned = true;
  EXPECT_EQ(verdict(seen), mismatch) << "they may sit on any part";
  seen.partitioned = false;
  seen.processes.emplace();
  EXPECT_EQ(verdict(seen), mismatch) << "the tools see no process";
  seen.processes = {{1, "game", 1'800'000'000}, {2, "other", 2'100'000'000}};
  EXPECT_EQ(verdict(seen), unverified);
  (*seen.processes)[0].draws = true;
  EXPECT_EQ(verdict(seen), degraded) << "a desktop's part is not counted";
  (*seen.processes)[0].draws = false;
  (*seen.processes)[0].owner = wire::ProcessOwner::leased;
  EXPECT_EQ(verdict(seen), degraded) << "a lease is known";
  (*seen.processes)[0].owner = wire::ProcessOwner::leftover;
  EXPECT_EQ(verdict(seen), unverified);
  seen.uuid = "GPU-b";
  EXPECT_EQ(verdict(seen), mismatch) << "of another GPU";
  seen.uuid = "";
  seen.pci = "0000:3b:00.0";
  EXPECT_EQ(verdict(seen), mismatch);
  inventory.gpus[0].pci = "00000000:3B:00.0";
  EXPECT_EQ(verdict(seen), unverified) << "by its address";
}

TEST(BenchTargets, AreTheDevicesThatTheDriverShows) {
  Inventory inventory;
  inventory.gpus = {plain_gpu("GPU-AA"), plain_gpu("", "00000000:02:00.0"), plain_gpu("GPU-none")};
  wire::BenchDevices devices;
  devices.devices = {device({{"backend", "opencl"}, {"uuid", "aa"}}), device({{"pci", "0000:02:00.0"}, {"uuid", "zz"}}),
                     device({{"uuid", "aa"}}), device({{"uuid", "bb"}})};
  const auto targets = targets_of(inventory, devices);
  ASSERT_THAT(targets, SizeIs(3));
  EXPECT_EQ(targets[0].index, 1u) << "counted among those of CUDA";
  EXPECT_EQ(targets[0].backend, "cuda");
  EXPECT_EQ(targets[1].index, 0u);
  EXPECT_EQ(targets[1].backend, "cuda");
  EXPECT_EQ(targets[2].backend, "");
  EXPECT_EQ(targets[2].missing, "its CUDA driver shows no such device, although its tools list Test GPU");
  EXPECT_FALSE(targets[2].unproven);
}

TEST(BenchTargets, AreTakenInOrderWhereTheDriverNamesNothing) {
  Inventory inventory;
  inventory.gpus = {plain_gpu(""), plain_gpu("")};
  for (Gpu& gpu : inventory.gpus) gpu.vendor = Vendor::amd;
  inventory.gpus[1].vendor = Vendor::intel;
  wire::BenchDevices devices;
  devices.devices = {device({{"backend", "opencl"}, {"kind", "cpu"}, {"vendor", "Intel(R) Corporation"}}),
                     device({{"backend", "opencl"}, {"vendor", "Intel(R) Corporation"}}),
                     device({{"backend", "opencl"}, {"vendor", "Advanced Micro Devices, Inc."}}),
                     device({{"backend", "opencl"}, {"vendor", "AMD"}})};
  const auto targets = targets_of(inventory, devices);
  EXPECT_EQ(targets[0].index, 2u);
  EXPECT_EQ(targets[1].index, 1u) << "no processor";
  devices.devices = {devices.devices[3]};
  const auto fewer = targets_of(inventory, devices);
  EXPECT_EQ(fewer[0].backend, "opencl");
  EXPECT_EQ(fewer[1].backend, "") << "one device is not two";
  EXPECT_THAT(fewer[1].missing, HasSubstr("OpenCL driver shows no such device"));
  EXPECT_FALSE(fewer[1].unproven);
}

TEST(BenchTargets, SayWhyNoTestCanRun) {
  Inventory inventory;
  inventory.gpus = {plain_gpu("GPU-a"), plain_gpu("GPU-b")};
  inventory.gpus[1].vendor = Vendor::amd;
  wire::BenchDevices devices;
  devices.problems = {{"cuda", "libcuda.so.1 is not there"}, {"opencl", "no platform"}};
  const auto targets = targets_of(inventory, devices);
  EXPECT_EQ(targets[0].missing, "could not test Test GPU: libcuda.so.1 is not there");
  EXPECT_FALSE(targets[0].unproven) << "NVIDIA's tools come with it";
  EXPECT_EQ(targets[1].missing, "could not test Test GPU: no platform");
  EXPECT_TRUE(targets[1].unproven);
}

TEST(BenchTargets, KnowTheirNeighboursAndWhichOfThemAreLinked) {
  Inventory inventory;
  inventory.gpus = {plain_gpu("GPU-a"), plain_gpu("GPU-b"), plain_gpu("GPU-c")};
  inventory.gpus[2].vendor = Vendor::amd;
  inventory.links = {{0, 1, LinkKind::nvlink, {}, {}}, {0, 2, LinkKind::phb, {}, {}}};
  wire::BenchDevices devices;
  devices.devices = {device({{"uuid", "b"}}), device({{"uuid", "a"}}), device({{"backend", "opencl"}, {"uuid", "c"}})};
  auto targets = targets_of(inventory, devices);
  ASSERT_THAT(targets[0].neighbours, SizeIs(1)) << "OpenCL copies nothing between devices";
  EXPECT_EQ(targets[0].neighbours[0].uuid, "GPU-b");
  EXPECT_EQ(targets[0].neighbours[0].index, 0u);
  EXPECT_EQ(targets[0].neighbours[0].place, 1u);
  EXPECT_TRUE(targets[0].neighbours[0].linked);
  ASSERT_THAT(targets[1].neighbours, SizeIs(1));
  EXPECT_EQ(targets[1].neighbours[0].place, 0u);
  EXPECT_TRUE(targets[1].neighbours[0].linked);
  EXPECT_THAT(targets[2].neighbours, IsEmpty());
  inventory.links = {{0, 1, LinkKind::phb, {}, {}}};
  EXPECT_FALSE(targets_of(inventory, devices)[0].neighbours[0].linked) << "by way of PCIe";
}

}  // namespace
}  // namespace gridctl::control::bench_test
