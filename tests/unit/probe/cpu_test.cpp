// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/cpu.hpp"

namespace gridctl::probe::cpu_test {
namespace {

using ::testing::ElementsAre;

TEST_F(ProbeTest, CountsSocketsCoresAndNodes) {
  file("/sys/devices/system/cpu/online", "0-7\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    file(at + "physical_package_id", std::to_string(cpu / 2 % 2) + "\n");
    file(at + "core_id", std::to_string(cpu % 2) + "\n");  // threads 4 to 7 are the second of each core
  }
  file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
  file("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1024 kB\nNode 0 MemFree: 1 kB\n");
  file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  file("/sys/devices/system/node/possible", "0-1\n");
  file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000\n");
  file("/proc/cpuinfo", "model name : X\nflags\t\t: fpu avx avx2 fma avx512f hypervisor\n");
  const CpuLayout cpu = read_cpu(files());
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 4);
  EXPECT_EQ(cpu.threads, 8);
  EXPECT_EQ(cpu.max_mhz, 3700u);
  EXPECT_EQ(cpu.features, (std::vector<std::string>{"avx", "avx2", "fma", "avx512f"}));
  EXPECT_EQ(cpu.numa, (std::vector<NumaNode>{{0, "0-1,4-5", 1 << 20}, {1, "2-3,6-7", 0}}));
}

TEST_F(ProbeTest, SaysWhyProcessorsAreNotKnown) {
  Inventory inventory;
  add_cpu(files(), inventory);
  for (const char* attribute : {"cpu.max_mhz", "cpu.sockets", "cpu.cores", "cpu.numa", "cpu.features"})
    EXPECT_NE(find_gap(inventory.gaps, attribute), nullptr) << attribute;
}

TEST_F(ProbeTest, ProcessorsAreCountedOnlyWhereAllTell) {
  file("/sys/devices/system/cpu/online", "0-1\n");
  for (const char* cpu : {"0", "1"})
    file(std::string("/sys/devices/system/cpu/cpu") + cpu + "/topology/physical_package_id", "0\n");
  file("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
  EXPECT_EQ(read_cpu(files()).threads, 2);
  EXPECT_FALSE(read_cpu(files()).cores) << "one says nothing";
  file("/sys/devices/system/cpu/cpu1/topology/core_id", "1\n");
  EXPECT_EQ(read_cpu(files()).cores, 2);
  for (const auto& [khz, mhz] : {std::pair{"99999", std::optional<std::uint32_t>()},
                                 {"100000", 100},
                                 {"99999999", 99999},
                                 {"100000000", std::nullopt}}) {
    file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", khz);
    EXPECT_EQ(read_cpu(files()).max_mhz, mhz) << khz;
  }
  file("/sys/devices/system/node/node4096/cpulist", "0\n");
  file("/sys/devices/system/node/node4097/cpulist", "0\n");
  file("/sys/devices/system/node/nodex/cpulist", "0\n");
  file("/sys/devices/system/node/node2/cpulist", "0\n");
  const CpuLayout cpu = read_cpu(files());
  ASSERT_EQ(cpu.numa.size(), 2u);
  EXPECT_EQ(cpu.numa[0].id, 2) << "in the order of their numbers";
  EXPECT_EQ(cpu.numa[1].id, 4096);
  EXPECT_THAT(parse_cpu_features("x: avx\nFeatures : asimd sve avx\nflags : fma\n"),
              ElementsAre("avx", "asimd", "sve"));
}

TEST_F(ProbeTest, FreeMemoryIsNoMoreThanThereIs) {
  file("/proc/meminfo", "MemTotal: 16 kB\nMemAvailable: 8 kB\n");
  Inventory inventory;
  add_cpu(files(), inventory);
  EXPECT_EQ(inventory.memory_free_bytes, 8192u);
  inventory.memory_bytes = 4096;
  add_cpu(files(), inventory);
  EXPECT_EQ(inventory.memory_free_bytes, 4096u);
  EXPECT_NE(find_gap(inventory.gaps, "cpu.numa"), nullptr);
}

}  // namespace
}  // namespace gridctl::probe::cpu_test
