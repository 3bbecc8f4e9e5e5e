// SPDX-License-Identifier: Apache-2.0
// A real agent, its GPU helper, and an OpenCL driver that runs on processors (PoCL); and hosts that lie.
#include <gtest/gtest.h>

#include <random>

#include "control/measure/bench.hpp"
#include "control/measure/bench_device.hpp"
#include "integration/agent_client.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::bench_test {
namespace {

using testing::AgentClient;
using testing::AgentHost;
using gridctl::testing::TempDir;

// Stands still while a size is tried that the host chose when it was held up: nothing can be told from the time it
// took.
struct HaltingClock : os::Clock {
  [[nodiscard]] BootTime boot() const override { return halted ? halted_at : os::system_clock().boot(); }
  [[nodiscard]] WallTime wall() const override { return os::system_clock().wall(); }
  void halt() { halted_at = os::system_clock().boot(), halted = true; }
  bool halted = false;
  BootTime halted_at{};
};

class Bench : public ::testing::Test {
 protected:
  Bench() {
    host_.home = folder_.path() / "home";
    host_.leases = folder_.path() / "leases";
  }
  // The host's GPU helper loads a libOpenCL that calls the processor a big GPU, and lies as told.
  void lie(const std::string& how) {
    host_.environment["LD_LIBRARY_PATH"] = GRIDCTL_LYING_OPENCL;
    host_.environment["GRIDCTL_LIE"] = how;
    host_.environment["GRIDCTL_LIE_FILE"] = (folder_.path() / "recorded").string();
  }
  static Inventory declared_mi300x() {
    Inventory inventory;
    Gpu gpu;
    gpu.vendor = Vendor::amd;
    gpu.name = "AMD Instinct MI300X OAM";
    gpu.model = "Instinct MI300X";
    gpu.uuid = "GPU-lying";
    gpu.pci = "0000:83:00.0";
    gpu.memory_bytes = 206141652992ull;
    inventory.gpus = {gpu};
    return inventory;
  }
  Result<BenchReport> run(const Inventory& inventory, const std::optional<BenchReport>& before = {}) {
    AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
    BenchTalk talk;
    talk.link = &client.link();
    talk.clock = &clock_;
    int drawn = 0;  // of the test that runs: the first is what it computes from, then parts of its answer are checked
    talk.draw = [&] {
      if (++drawn == 2) clock_.halted = false;
      return engine_();
    };
    BenchOptions options;
    options.progress = [&](const std::string& step) {
      drawn = 0;
      if (!halted_at_.empty() && step.ends_with(halted_at_)) clock_.halt();
    };
    options.challenges_only = true;
    options.fill_bytes_max = fill_bytes_max_;
    return bench(talk, inventory, options, before);
  }
  bool has_opencl() {
    AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
    const auto listed = client.call(wire::encode_plain("bench-list"));
    EXPECT_TRUE(listed) << listed.error().one_line();
    if (!listed) return false;
    const auto devices = wire::parse_bench_devices(*listed);
    EXPECT_TRUE(devices);
    return devices && !devices->devices.empty();
  }
  static bool has_finding(const GpuBench& gpu, const std::string& what, sched::VerdictKind kind) {
    for (const sched::GpuFinding& finding : gpu.verdict.findings)
      if (finding.what == what && finding.kind == kind) return true;
    return false;
  }
  static std::string told(const GpuBench& gpu) {
    std::string text(sched::verdict_name(gpu.verdict.kind));
    for (const sched::GpuFinding& finding : gpu.verdict.findings) text += "\n" + finding.what + ": " + finding.text;
    for (const std::string& note : gpu.verdict.notes) text += "\nnote: " + note;
    return text;
  }

  TempDir folder_;
  AgentHost host_;
  std::mt19937_64 engine_{20261121};
  std::uint64_t fill_bytes_max_ = 32u << 20;
  HaltingClock clock_;
  std::string halted_at_;  // a step of the test, see HaltingClock
};

#define NEEDS_OPENCL() \
  if (!has_opencl()) GTEST_SKIP() << "no OpenCL driver here: install pocl-opencl-icd"

TEST_F(Bench, AnHonestProcessorAnswersEveryChallenge) {
  NEEDS_OPENCL();
  const auto report = run({});
  ASSERT_TRUE(report) << report.error().one_line();
  ASSERT_FALSE(report->gpus.empty());
  const GpuBench& gpu = report->gpus[0];
  EXPECT_EQ(gpu.verdict.kind, sched::VerdictKind::ok) << told(gpu);
  ASSERT_GE(gpu.transcripts.size(), 3u) << told(gpu);
  for (const BenchTranscript& one : gpu.transcripts) {
    EXPECT_EQ(one.outcome, "right") << one.test;
    EXPECT_FALSE(one.parts.empty());
    EXPECT_EQ(one.answer_sha256.size(), 64u);
    EXPECT_GT(one.seconds_here, 0);
  }
  EXPECT_GT(gpu.figures.at("gemm_fp32_tflops"), 0);
  // It survives its JSON, and the trends go on.
  const auto back = parse_bench_report(to_json(*report));
  ASSERT_TRUE(back) << back.error().one_line();
  EXPECT_EQ(to_json(*back), to_json(*report));
  const auto again = run({}, *back);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->gpus[0].trends.at("gemm_fp32_tflops").last.size(), 2u);
}

TEST_F(Bench, TheHelperAndItsLeaseAreGoneAfterwards) {
  NEEDS_OPENCL();
  AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
  wire::BenchBegin begin{
      "fma", "opencl", 0, "GPU-mine", {{"target_ms", 10}, {"warm_up_ms", 10}}, std::chrono::seconds{60}};
  ASSERT_TRUE(client.call(wire::encode(begin)));
  {
    AgentClient other(host_, ControllerId{"bbcdefghabcdefghabcdefghab"});
    const auto refused = other.call(wire::encode(begin));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::busy) << "a GPU under test is nobody else's";
  }
  ASSERT_TRUE(client.call(wire::encode(wire::BenchSeed{1})));
  const auto last = client.call(wire::encode(wire::BenchSeed{0}));
  ASSERT_TRUE(last);
  EXPECT_TRUE(wire::parse_bench_stage(*last)->done);
  AgentClient other(host_, ControllerId{"bbcdefghabcdefghabcdefghab"});
  EXPECT_TRUE(other.call(wire::encode(begin))) << "the lease was given back with the end of the test";
}

// Two devices of a CUDA driver that works on the processor.
TEST_F(Bench, ACopyBetweenTwoGpusLeasesBoth) {
  host_.environment["LD_LIBRARY_PATH"] = GRIDCTL_BINARY_DIR "/tests/unit/gpubench/driver";
  AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
  const wire::BenchBegin copy{"peer", "cuda", 0, "GPU-a", {{"peer", 1}}, std::chrono::seconds{60}, "GPU-b"};
  const auto ready = client.call(wire::encode(copy));
  ASSERT_TRUE(ready) << ready.error().one_line();
  AgentClient other(host_, ControllerId{"bbcdefghabcdefghabcdefghab"});
  const wire::BenchBegin second{"copies", "cuda", 1, "GPU-b", {}, std::chrono::seconds{60}, ""};
  EXPECT_EQ(other.call(wire::encode(second)).error().code, Code::busy);
  const auto copied = client.call(wire::encode(wire::BenchSeed{1}));
  ASSERT_TRUE(copied) << copied.error().one_line();
  EXPECT_GT(wire::parse_bench_stage(*copied)->number("peer_gbs"), 0);
  EXPECT_TRUE(other.call(wire::encode(second))) << "both were given back";
}

TEST_F(Bench, ATestThatHangsIsKilledAtItsDeadline) {
  NEEDS_OPENCL();
  AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
  const wire::BenchBegin begin{"sustain", "opencl", 0, "", {{"seconds", 600}}, std::chrono::seconds{3}};
  ASSERT_TRUE(client.call(wire::encode(begin)));
  const auto late = client.call(wire::encode(wire::BenchSeed{1}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::timed_out);
  EXPECT_FALSE(client.call(wire::encode(wire::BenchSeed{1}))) << "it is gone";
}

TEST_F(Bench, AGpuThatNoDriverShowsIsAMismatch) {
  Inventory inventory;
  Gpu gpu;
  gpu.vendor = Vendor::nvidia;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.model = "H100 SXM5 80GB";
  gpu.uuid = "GPU-11111111-2222-3333-4444-555555555555";
  inventory.gpus = {gpu};
  const auto report = run(inventory);
  ASSERT_TRUE(report) << report.error().one_line();
  ASSERT_EQ(report->gpus.size(), 1u);
  EXPECT_EQ(report->gpus[0].verdict.kind, sched::VerdictKind::mismatch) << told(report->gpus[0]);
  EXPECT_NE(report->mismatch().find("H100"), std::string::npos);
}

TEST_F(Bench, ASlowDeviceThatClaimsToBeABigOneIsAMismatch) {
  lie("gpu");
  NEEDS_OPENCL();
  const auto report = run(declared_mi300x());
  ASSERT_TRUE(report) << report.error().one_line();
  const GpuBench& gpu = report->gpus.at(0);
  EXPECT_EQ(gpu.backend, "opencl");
  EXPECT_EQ(gpu.verdict.kind, sched::VerdictKind::mismatch) << told(gpu);
  EXPECT_TRUE(has_finding(gpu, "fp32", sched::VerdictKind::mismatch)) << told(gpu);
  for (const BenchTranscript& one : gpu.transcripts) EXPECT_EQ(one.outcome, "right") << one.test;
}

TEST_F(Bench, WhatIsTooShortToBeTimedIsTriedAgainWithMore) {
  NEEDS_OPENCL();
  halted_at_ = "fp32";
  const auto work = [](const BenchTranscript& one) { return one.sizes.at("groups") * one.sizes.at("steps"); };
  double more = 0;
  for (int turn = 0; turn < 4 && more < 2; ++turn) {  // a processor that is needed elsewhere meanwhile does less in the same time
    const auto report = run({});
    ASSERT_TRUE(report) << report.error().one_line();
    const GpuBench& gpu = report->gpus.at(0);
    std::vector<BenchTranscript> tries;
    std::copy_if(gpu.transcripts.begin(), gpu.transcripts.end(), std::back_inserter(tries),
                 [](const BenchTranscript& one) { return one.test == "fma"; });
    ASSERT_GE(tries.size(), 2u) << told(gpu);
    EXPECT_EQ(tries[0].seconds_here, 0);
    EXPECT_GT(gpu.figures.at("fma_tflops"), 0);
    more = static_cast<double>(work(tries[1])) / static_cast<double>(work(tries[0]));
  }
  EXPECT_GE(more, 2);
}

TEST_F(Bench, AClockThatRunsSlowMakesNothingFaster) {
  lie("gpu");
  NEEDS_OPENCL();
  host_.environment["LD_PRELOAD"] = GRIDCTL_SLOW_CLOCK;
  const auto report = run(declared_mi300x());
  ASSERT_TRUE(report) << report.error().one_line();
  const GpuBench& gpu = report->gpus.at(0);
  EXPECT_TRUE(has_finding(gpu, "fp32", sched::VerdictKind::mismatch)) << told(gpu);
  EXPECT_TRUE(has_finding(gpu, "clock", sched::VerdictKind::suspect)) << told(gpu);
}

// What its own tools say of other programs: here those of a host that has a GPU's stub in its PATH.
TEST_F(Bench, AnotherProcessOnTheGpuIsNamedAsTheCause) {
  lie("gpu");
  NEEDS_OPENCL();
  const os::Path tools = folder_.path() / "tools";
  ASSERT_TRUE(os::make_directories(tools));
  ASSERT_TRUE(os::write_file_atomically(tools / "nvidia-smi", R"(#!/bin/sh
cat <<XML
<?xml version="1.0" ?>
<nvidia_smi_log><gpu id="00000000:83:00.0"><product_name>Shared</product_name><uuid>GPU-shared</uuid>
<fb_memory_usage><total>24576 MiB</total><used>9100 MiB</used></fb_memory_usage>
<processes><process_info><pid>1</pid><type>C</type><process_name>miner</process_name><used_memory>9000 MiB</used_memory>
</process_info></processes></gpu></nvidia_smi_log>
XML
)",
                                        0755));
  host_.environment["PATH"] = tools.string() + ":/usr/bin:/bin";
  Inventory inventory = declared_mi300x();
  inventory.gpus[0].uuid = "GPU-shared";
  const auto report = run(inventory);
  ASSERT_TRUE(report) << report.error().one_line();
  const GpuBench& gpu = report->gpus.at(0);
  EXPECT_EQ(gpu.verdict.kind, sched::VerdictKind::degraded) << told(gpu);
  EXPECT_NE(gpu.verdict.cause.find("another process holds"), std::string::npos) << told(gpu);
}

TEST_F(Bench, MemoryThatIsNotThereIsFound) {
  lie("vram");
  NEEDS_OPENCL();
  fill_bytes_max_ = 512u << 20;  // eight buffers, of which all but the first are one
  const auto report = run(declared_mi300x());
  ASSERT_TRUE(report) << report.error().one_line();
  const GpuBench& gpu = report->gpus.at(0);
  EXPECT_EQ(gpu.verdict.kind, sched::VerdictKind::mismatch);
  EXPECT_TRUE(has_finding(gpu, "answer", sched::VerdictKind::mismatch)) << told(gpu);
  ASSERT_FALSE(gpu.transcripts.empty());
  EXPECT_NE(gpu.transcripts[0].outcome.find("memory challenge is wrong"), std::string::npos) << told(gpu);
}

TEST_F(Bench, AChangedResultIsFound) {
  lie("tamper");
  NEEDS_OPENCL();
  const auto report = run(declared_mi300x());
  ASSERT_TRUE(report) << report.error().one_line();
  EXPECT_TRUE(has_finding(report->gpus.at(0), "answer", sched::VerdictKind::mismatch)) << told(report->gpus[0]);
}

TEST_F(Bench, AReplayedAnswerIsFound) {
  lie("replay");
  NEEDS_OPENCL();
  const auto first = run(declared_mi300x());
  ASSERT_TRUE(first) << first.error().one_line();
  const auto second = run(declared_mi300x());
  ASSERT_TRUE(second) << second.error().one_line();
  EXPECT_TRUE(has_finding(second->gpus.at(0), "answer", sched::VerdictKind::mismatch)) << told(second->gpus[0]);
}

TEST_F(Bench, TheHostItselfIsMeasured) {
  AgentClient client(host_, ControllerId{"abcdefghabcdefghabcdefghab"});
  const auto answered = client.call(wire::encode(wire::BenchHost{std::chrono::milliseconds{50}}));
  ASSERT_TRUE(answered) << answered.error().one_line();
  const auto stage = wire::parse_bench_stage(*answered);
  ASSERT_TRUE(stage);
  for (const char* name : {"cpu_gflops", "cpu_all_gflops", "memory_copy_gbs", "disk_write_mbs", "disk_sync_ms"})
    EXPECT_GT(stage->number(name), 0) << name;
}

}  // namespace
}  // namespace gridctl::control::bench_test
