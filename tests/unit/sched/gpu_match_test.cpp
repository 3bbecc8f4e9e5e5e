// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/gpu_match.hpp"

#include <gtest/gtest.h>

namespace gridctl::sched::gpu_match_test {
namespace {

TEST(GpuName, MatchesTheSpellingsPeopleUse) {
  const std::pair<const char*, const char*> same[] = {
      {"A100", "NVIDIA A100-SXM4-80GB"},
      {"A100", "NVIDIA A100 80GB PCIe"},
      {"a100", "A100-SXM4-40GB"},
      {"A100-80GB", "NVIDIA A100-SXM4-80GB"},
      {"A100-SXM4", "NVIDIA A100-SXM4-80GB"},
      {"NVIDIA A100", "A100-SXM4-80GB"},
      {"H100", "NVIDIA H100 80GB HBM3"},
      {"H100", "NVIDIA H100 PCIe"},
      {"H100_NVL", "NVIDIA H100 NVL"},
      {"H200", "NVIDIA H200"},
      {"RTX4090", "NVIDIA GeForce RTX 4090"},
      {"RTX_4090", "NVIDIA GeForce RTX 4090"},
      {"rtx 4090", "NVIDIA GeForce RTX 4090"},
      {"4090", "NVIDIA GeForce RTX 4090"},
      {"GeForce RTX 3090", "GeForce RTX 3090"},
      {"RTX3090-Ti", "NVIDIA GeForce RTX 3090 Ti"},
      {"RTX4060Ti", "NVIDIA GeForce RTX 4060 Ti 16 GB"},
      {"V100", "Tesla V100-SXM2-16GB"},
      {"Tesla V100", "V100-SXM2-16GB"},
      {"T4", "Tesla T4"},
      {"RTXA6000", "NVIDIA RTX A6000"},
      {"A6000", "NVIDIA RTX A6000"},
      {"RTX6000-Ada", "NVIDIA RTX 6000 Ada Generation"},
      {"MI300X", "AMD Instinct MI300X"},
      {"MI300X", "AMD Instinct MI300X OAM"},
      {"RX 7900 XTX", "AMD Radeon RX 7900 XTX"},
      {"7900XTX", "Radeon RX 7900 XTX"},
      {"A770", "Intel(R) Arc(TM) A770 Graphics"},
      {"Arc A770", "Intel(R) Arc(TM) A770 Graphics"},
      {"Max1550", "Intel(R) Data Center GPU Max 1550"},
      {"RTX 4090 Laptop", "NVIDIA GeForce RTX 4090 Laptop GPU"},
      {"rtx4090laptop", "NVIDIA GeForce RTX 4090 Laptop GPU"},
  };
  for (const auto& [wanted, product] : same)
    EXPECT_TRUE(gpu_name_matches(wanted, product)) << wanted << " / " << product;
}

TEST(GpuName, NeverGuessesBetweenDifferentModels) {
  const std::pair<const char*, const char*> different[] = {
      {"RTX4090", "NVIDIA GeForce RTX 4090 Laptop GPU"},
      {"RTX 4090 Laptop", "NVIDIA GeForce RTX 4090"},
      {"4090", "NVIDIA GeForce RTX 4090 Laptop GPU"},
      {"RTX4090", "NVIDIA GeForce RTX 4090 D"},
      {"RTX4070", "NVIDIA GeForce RTX 4070 Ti"},
      {"RTX4070Ti", "NVIDIA GeForce RTX 4070 Ti SUPER"},
      {"RTX4070Ti", "NVIDIA GeForce RTX 4070"},
      {"A10", "NVIDIA A100-SXM4-80GB"},
      {"A10", "NVIDIA A10G"},
      {"L4", "NVIDIA L40S"},
      {"L40", "NVIDIA L40S"},
      {"H100", "NVIDIA H200"},
      {"RTX6000", "NVIDIA RTX 6000 Ada Generation"},
      {"RTX6000-Ada", "Quadro RTX 6000"},
      {"A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"},
      {"RX 7900 XT", "AMD Radeon RX 7900 XTX"},
      {"GTX 4090", "NVIDIA GeForce RTX 4090"},
      {"MI300X", "AMD Instinct MI300A"},
      {"RTX2070", "NVIDIA GeForce RTX 2070 with Max-Q Design"},
      {"", "NVIDIA H100"},
      {"NVIDIA", "NVIDIA H100"},
      {"H100", ""},
  };
  for (const auto& [wanted, product] : different)
    EXPECT_FALSE(gpu_name_matches(wanted, product)) << wanted << " / " << product;
}

TEST(GpuName, IsQuickOnHostileNames) {
  std::string product;
  for (int i = 0; i < 5000; ++i) product += "pcie ";
  EXPECT_FALSE(gpu_name_matches("pciepciepciepciepciepciex", product));
}

struct Board {
  const char* name;
  std::uint64_t mib;  // as the driver reports it
  std::uint64_t nominal_gb;
};
TEST(GpuMemory, ReportedSizesCountAsTheirNominalOnes) {
  for (const Board& board : {Board{"NVIDIA A100-SXM4-80GB", 81920, 80},
                             {"NVIDIA H200", 143771, 141},
                             {"NVIDIA GeForce RTX 4090", 24564, 24},
                             {"NVIDIA L4", 23034, 24},
                             {"NVIDIA A10G", 22731, 24},
                             {"Tesla T4", 15109, 16},
                             {"Tesla V100-SXM2-32GB", 32510, 32},
                             {"Tesla K80", 11441, 12}}) {
    const Gpu gpu{Vendor::nvidia, board.name, "GPU-1", board.mib << 20, "", "", {}};
    const std::uint64_t size = board.nominal_gb * 1'000'000'000;
    EXPECT_EQ(match_gpu({{}, {}, size, std::nullopt, 1, 1}, gpu), GpuMismatch::none) << board.name;
    EXPECT_EQ(match_gpu({{}, {}, std::nullopt, size, 1, 1}, gpu), GpuMismatch::none) << board.name;
    EXPECT_EQ(match_gpu({{}, {}, size * 5 / 4, std::nullopt, 1, 1}, gpu), GpuMismatch::memory) << board.name;
    EXPECT_EQ(match_gpu({{}, {}, std::nullopt, size * 4 / 5, 1, 1}, gpu), GpuMismatch::memory) << board.name;
  }
}

TEST(GpuMemory, ASizeWithinANameIsARequestForThatSize) {
  const Gpu big{Vendor::nvidia, "NVIDIA H100 PCIe", "GPU-1", 81559ull << 20, "", "", {}};
  const Gpu small{Vendor::nvidia, "NVIDIA A100-SXM4-40GB", "GPU-2", 40960ull << 20, "", "", {}};
  EXPECT_EQ(match_gpu({{}, {"H100-80GB"}, {}, {}, 1, 1}, big), GpuMismatch::none);
  EXPECT_EQ(match_gpu({{}, {"A100-80GB"}, {}, {}, 1, 1}, small), GpuMismatch::memory);
  EXPECT_EQ(match_gpu({{}, {"A100-80GB", "A100-40GB"}, {}, {}, 1, 1}, small), GpuMismatch::none);
  EXPECT_EQ(match_gpu({Vendor::amd, {}, {}, {}, 1, 1}, small), GpuMismatch::vendor);
  EXPECT_EQ(match_gpu({{}, {"H100"}, {}, {}, 1, 1}, small), GpuMismatch::name);
}

TEST(GpuName, TheModelThatWasFoundAnswersToItsOwnName) {
  Gpu gpu{Vendor::nvidia, "NVIDIA H100 80GB HBM3", "GPU-1", 81559ull << 20, "", "", {}};
  gpu.model = "H100 SXM5 80GB";
  EXPECT_EQ(match_gpu({{}, {"H100-SXM5-80GB"}, {}, {}, 1, 1}, gpu), GpuMismatch::none) << "as emitted job files ask";
  EXPECT_EQ(match_gpu({{}, {"H100-PCIe-80GB"}, {}, {}, 1, 1}, gpu), GpuMismatch::name);
  gpu.model.clear();
  EXPECT_EQ(match_gpu({{}, {"H100-SXM5-80GB"}, {}, {}, 1, 1}, gpu), GpuMismatch::name);
}

TEST(GpuRequest, IsDescribedAsItIsWritten) {
  EXPECT_EQ(describe(job::GpuRequest{Vendor::nvidia, {"A100", "H100"}, 40'000'000'000, {}, 2, 2}),
            "nvidia:A100,H100:40GB..:2");
  EXPECT_EQ(describe(job::GpuRequest{{}, {}, 24'000'000'000, 24'000'000'000, 2, 8}), "24GB:2..8");
  EXPECT_EQ(describe(job::GpuRequest{{}, {}, {}, {}, 1, 1}), "1 GPU");
  EXPECT_EQ(describe(job::GpuRequest{{}, {"H100"}, {}, 80ull << 30, 1, 1}), "H100:..80GiB");
}
}  // namespace
}  // namespace gridctl::sched::gpu_match_test
