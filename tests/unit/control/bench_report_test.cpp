// SPDX-License-Identifier: Apache-2.0
// What a benchmark's report tells to queries, listings and the inventory that is shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "control/measure/bench.hpp"
#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "measured_hosts.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::bench_report_test {
namespace {

Gpu h100(const char* uuid) {
  Gpu gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.uuid = uuid;
  gpu.gaps = {{"units", GapReason::needs_bench, "nvidia-smi does not report it"},
              {"memory_bus_bits", GapReason::needs_bench, "nvidia-smi does not report it"}};
  return gpu;
}

BenchReport report_of_two() {
  BenchReport report;
  report.host["disk_write_mbs"] = 2500;
  for (const char* uuid : {"GPU-0", "GPU-1"}) {
    GpuBench bench;
    bench.gpu = h100(uuid);
    bench.figures = {{"gemm16_tflops", 400}, {"fp32_tflops", 60}, {"memory_read_gbs", 3000},
                     {"h2d_gbs", 50},        {"units", 132},      {"memory_bus_bits", 5120}};
    report.gpus.push_back(bench);
  }
  report.gpus[1].figures["memory_read_gbs"] = 2900;
  return report;
}

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::IsEmpty;
using enum sched::VerdictKind;

GpuBench gpu(const std::string& uuid, sched::VerdictKind kind, const std::string& text = "", const std::string& cause = "") {
  GpuBench bench;
  bench.gpu.uuid = uuid;
  bench.gpu.name = "NVIDIA H100 80GB HBM3";
  bench.gpu.model = "H100";
  bench.verdict.kind = kind;
  bench.verdict.cause = cause;
  if (!text.empty()) bench.verdict.findings = {{kind, "driver", text}};
  return bench;
}

TEST(BenchReport, GivesQueriesTheirUnits) {
  BenchReport report = report_of_two();
  auto figures = figures_of(report);
  EXPECT_EQ(figures.at("total_flops"), 800) << "16-bit matrices of all GPUs";
  EXPECT_EQ(figures.at("gpu_mem_bw"), 2900) << "of the slowest";
  EXPECT_EQ(figures.at("pcie_bw"), 50);
  EXPECT_EQ(figures.at("disk_bw"), 2.5) << "GB/s";
  EXPECT_EQ(figures.at("verified"), 1);
  EXPECT_EQ(figures.at("bench_drift"), 0);
  report.gpus[1].verdict.kind = sched::VerdictKind::mismatch;
  report.gpus[0].trends["fp32_tflops"] = {{80, 80, 80}, 100};
  report.gpus[0].figures.erase("gemm16_tflops");
  report.gpus[1].figures.erase("gemm16_tflops");
  figures = figures_of(report);
  EXPECT_EQ(figures.at("verified"), 0);
  EXPECT_EQ(figures.at("verdict"), sched::verdict_figure(sched::VerdictKind::mismatch));
  EXPECT_NEAR(figures.at("bench_drift"), 0.2, 1e-9) << "how much slower";
  EXPECT_FALSE(figures.contains("total_flops"));
}

TEST(BenchReport, FillsWhatNoToolTold) {
  BenchReport report = report_of_two();
  report.gpus[1].verdict.kind = sched::VerdictKind::mismatch;
  Inventory inventory;
  inventory.gpus = {h100("GPU-0"), h100("GPU-1")};
  const Measured measured = fill_measured(inventory, report);
  EXPECT_EQ(inventory.gpus[0].units, 132u);
  EXPECT_EQ(inventory.gpus[0].memory_bus_bits, 5120u);
  EXPECT_TRUE(inventory.gpus[0].gaps.empty());
  EXPECT_EQ(measured.at("GPU-0").size(), 2u);
  EXPECT_FALSE(inventory.gpus[1].units) << "a liar's word fills nothing";
  EXPECT_EQ(inventory.gpus[1].gaps.size(), 2u);
  inventory.gpus[0].units = 114;
  EXPECT_TRUE(fill_measured(inventory, report).empty());
  EXPECT_EQ(inventory.gpus[0].units, 114u) << "what a tool told stays";
}

TEST(BenchReport, IsInTheRegistryUnderTheNamesOfQueries) {
  gridctl::testing::TempDir folder;
  auto registry = registry::Registry::open(folder.path());
  ASSERT_TRUE(registry) << registry.error().one_line();
  registry::Provider provider;
  provider.name = HostName{"ada"};
  ASSERT_TRUE(registry->add_provider(provider));
  const BenchReport before = report_of_two();
  ASSERT_TRUE(save_bench_report(*registry, provider.name, before, {}));
  EXPECT_EQ(registry->provider(provider.name)->figures.at("total_flops"), 800);
  BenchReport now = before;
  for (GpuBench& gpu : now.gpus) gpu.figures.erase("gemm16_tflops");
  ASSERT_TRUE(save_bench_report(*registry, provider.name, now, before));
  const auto figures = registry->provider(provider.name)->figures;
  EXPECT_FALSE(figures.contains("total_flops")) << "what is no longer measured is forgotten";
  EXPECT_EQ(figures.at("verified"), 1);
}

TEST(BenchReport, ADiskIsWhatItsSpeedSays) {
  const auto kind = [](DiskKind told, double read_mbs) {
    Inventory inventory;
    inventory.facts.home_path = "/home/worker/.gridctl";
    inventory.disks = {{"/data", "ext4", "/dev/vdb", DiskKind::hdd}, {"/", "ext4", "/dev/vda", told}};
    BenchReport report;
    report.host["disk_read_mbs"] = read_mbs;
    const Measured measured = fill_measured(inventory, report);
    EXPECT_EQ(inventory.disks[0].kind, DiskKind::hdd) << "only the one with our home was measured";
    EXPECT_EQ(measured.contains(""), inventory.disks[1].kind != told);
    return inventory.disks[1].kind;
  };
  EXPECT_EQ(kind(DiskKind::unknown, 1500), DiskKind::nvme);
  EXPECT_EQ(kind(DiskKind::hdd, 1500), DiskKind::nvme);
  EXPECT_EQ(kind(DiskKind::hdd, 480), DiskKind::ssd);
  EXPECT_EQ(kind(DiskKind::hdd, 180), DiskKind::hdd);
  EXPECT_EQ(kind(DiskKind::ssd, 1500), DiskKind::ssd) << "the kernel knows that one";
}

TEST(BenchSummary, TellsTheGravestVerdictAndItsReason) {
  BenchReport report;
  EXPECT_EQ(report.summary(), "no GPU");
  EXPECT_EQ(report.verdict(), ok);
  report.gpus = {gpu("a", ok, "fine")};
  EXPECT_EQ(report.summary(), "ok, H100");
  EXPECT_EQ(report.mismatch(), "");
  report.gpus.push_back(gpu("b", degraded, "slow", "power cap"));
  EXPECT_EQ(report.summary(), "degraded: power cap, H100 (2 devices)");
  EXPECT_EQ(report.verdict(), degraded);
  EXPECT_EQ(report.mismatch(), "") << "a slow one may be used";
  report.gpus[0] = gpu("a", mismatch, "another device");
  report.gpus[0].gpu.model.clear();
  EXPECT_EQ(report.summary(), "mismatch: another device, NVIDIA H100 80GB HBM3 (2 devices)");
  EXPECT_EQ(report.mismatch(), "NVIDIA H100 80GB HBM3: another device");
  report.gpus = {gpu("a", suspect)};
  EXPECT_EQ(report.summary(), "suspect, H100");
}

TEST(BenchJson, ReturnsWhatItWasGiven) {
  BenchReport report;
  report.at = k_now;
  report.quick = true;
  report.round_trip_ms = 2.5;
  report.host = {{"cpu_gflops", 9}};
  report.problems = {"cuda: none"};
  report.gpus = {gpu("a", degraded, "slow", "cap")};
  GpuBench& one = report.gpus[0];
  one.backend = "cuda";
  one.gpu.memory_bytes = 80;
  one.figures = {{"fp32_tflops", 60}};
  one.trends["fp32_tflops"] = {{59, 60}, 60};
  one.verdict.notes = {"a note"};
  one.transcripts = {{"gemm", k_now, 3, 4, {{"groups", 2}}, "ab", {1}, {7}, 1.5, 1.25, "right"}};
  const auto back = parse_bench_report(to_json(report));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(to_json(*back), to_json(report));
  EXPECT_EQ(back->at, k_now);
  EXPECT_TRUE(back->quick);
  EXPECT_EQ(back->gpus[0].verdict, one.verdict);
  EXPECT_EQ(back->gpus[0].trends, one.trends);
  EXPECT_EQ(back->gpus[0].transcripts[0].words, one.transcripts[0].words);
  EXPECT_EQ(back->gpus[0].gpu.memory_bytes, 80u);
  EXPECT_THAT(parse_bench_report("no JSON"), FailsWith(Code::state_unreadable));
  one.transcripts.assign(1000, one.transcripts[0]);
  for (BenchTranscript& transcript : one.transcripts) transcript.outcome = std::string(1000, 'x');
  EXPECT_LT(to_json(report).size(), 900u * 1024) << "the registry takes no more";
  EXPECT_THAT(parse_bench_report(to_json(report))->gpus[0].transcripts, IsEmpty());
}

TEST_F(Kept, ABenchmarkIsNewsOnlyWhenItSaysSomethingElse) {
  BenchReport report;
  report.at = k_now;
  report.gpus = {gpu("a", ok)};
  ASSERT_THAT(save_bench_report(registry, {"ada"}, report, {}), IsOk());
  EXPECT_EQ(events("ada"), 1u);
  ASSERT_THAT(save_bench_report(registry, {"ada"}, report, report), IsOk());
  EXPECT_EQ(events("ada"), 1u);
  BenchReport bad = report;
  bad.gpus[0] = gpu("a", mismatch, "another device");
  ASSERT_THAT(save_bench_report(registry, {"ada"}, bad, report), IsOk());
  EXPECT_EQ(events("ada"), 2u);
  EXPECT_EQ(registry.host_events({"ada"}, 0)->back().text, bad.summary());
  EXPECT_EQ((*load_bench_report(registry, {"ada"}))->mismatch(), bad.mismatch());
  EXPECT_FALSE(load_bench_report(registry, {"bob"})->has_value());
  ASSERT_THAT(registry.save_host_report({{"bob"}, "bench", k_now, "no JSON"}), IsOk());
  EXPECT_FALSE(load_bench_report(registry, {"bob"})->has_value()) << "what cannot be read is none";
}

TEST_F(Kept, TheSchedulerHearsOfHostsThatAreNotWhatTheyAreDeclaredToBe) {
  BenchReport good, bad;
  good.gpus = {gpu("a", ok)};
  good.problems = {"the word \"mismatch\" in a text"};
  bad.gpus = {gpu("a", mismatch, "another device")};
  ASSERT_THAT(save_bench_report(registry, {"ada"}, bad, {}), IsOk());
  ASSERT_THAT(save_bench_report(registry, {"bob"}, good, {}), IsOk());
  std::vector<sched::HostFacts> hosts(2);
  hosts[0].name = {"bob"}, hosts[1].name = {"ada"};
  ASSERT_THAT(apply_bench(registry, hosts), IsOk());
  EXPECT_EQ(hosts[0].mismatch, "");
  EXPECT_EQ(hosts[1].mismatch, "H100: another device");
}

}  // namespace
}  // namespace gridctl::control::bench_report_test
