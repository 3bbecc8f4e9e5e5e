// SPDX-License-Identifier: Apache-2.0
// What a benchmark's report tells to queries, listings and the inventory that is shown.
#include <gtest/gtest.h>

#include "control/measure/bench.hpp"
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

}  // namespace
}  // namespace gridctl::control::bench_report_test
