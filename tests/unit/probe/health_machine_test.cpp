// SPDX-License-Identifier: Apache-2.0
#include "probe/health_machine.hpp"

#include <gmock/gmock.h>

#include "fixture.hpp"
#include "probe/facts.hpp"

namespace gridctl::probe::health_machine_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HealthMachine, DisksOfPartitions) {
  for (const auto& [partition, disk] : {std::pair{"sda", "sda"},
                                        {"sda1", "sda"},
                                        {"nvme0n1p1", "nvme0n1"},
                                        {"md0", "md0"},
                                        {"md0p1", "md0"},
                                        {"dm-3", "dm-3"},
                                        {"loop7", "loop7"},
                                        {"mmcblk1", "mmcblk1"},
                                        {"xp1", "xp"},
                                        {"p1", "p"},
                                        {"12", "12"},
                                        {"", ""}})
    EXPECT_EQ(whole_disk(partition), disk) << partition;
}

TEST(HealthMachine, TheSourceOfAMountIsThatOfTheInnermost) {
  const std::string mounts =
      "22 1 8:3 / / rw - ext4 /dev/sda3 rw\n"
      "30 22 8:1 / /data rw - ext4 /dev/sdb1 rw\n"
      "31 22 8:1 / /data rw - ext4 /dev/sdc1 rw\n"
      "32 22 8:1 / /database rw - ext4 /dev/sdd1 rw\n"
      "x y - z\n"
      "33 22 8:1 / /data/x rw - ext4\n";
  EXPECT_EQ(mount_of_path(mounts, "/home").source, "/dev/sda3");
  EXPECT_EQ(mount_of_path(mounts, "/data").source, "/dev/sdc1");
  EXPECT_EQ(mount_of_path(mounts, "/data/x/y").source, "/dev/sdc1") << "a line without its source tells nothing";
  EXPECT_EQ(mount_of_path(mounts, "/database").source, "/dev/sdd1");
  EXPECT_EQ(mount_of_path(mounts, "/datab").source, "/dev/sda3");
  EXPECT_EQ(mount_of_path("30 22 8:1 / /data rw - ext4 /dev/sdb1 rw\n", "/x").source, "");
}

TEST(HealthMachine, PressureAndErrorsWithinTheirLimits) {
  EXPECT_EQ(parse_pressure("some avg10=1 avg60=0.00 x"), 0.0);
  EXPECT_EQ(parse_pressure("some avg10=1 avg60=100 x"), 100.0);
  for (const char* odd : {"", "full avg60=1", "some avg10=1", "some avg60=100.1", "some avg60=-1", "some avg60=x"})
    EXPECT_FALSE(parse_pressure(odd)) << odd;
  EXPECT_EQ(parse_ras_count("ue: 3\nce: 4\n")->uncorrected, 3u);
  EXPECT_FALSE(parse_ras_count("ue: 3\n"));
  EXPECT_FALSE(parse_ras_count("ce: 3\n"));
  EXPECT_FALSE(parse_fdinfo("drm-driver: xe\n"));
  EXPECT_FALSE(parse_fdinfo("drm-pdev: 0000:03:00.0\n"));
  EXPECT_EQ(
      parse_fdinfo(
          "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-total-local0: 1 KiB\ndrm-memory-vram: 7\ndrm-total-gtt: 9 KiB\n")
          ->memory_bytes,
      1031u);
}

TEST_F(ProbeTest, StuckToolsAreThoseOfGpusOnly) {
  file("/proc/uptime", "1000.50 3000.00\n");
  const auto stat = [&](const std::string& name, int started, char state = 'D') {
    file("/proc/9/stat", "9 (" + name + ") " + state + " 1 9 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " +
                             std::to_string(started) + " 0 0\n");
    return stuck_tools(files(), std::chrono::seconds{15});
  };
  EXPECT_THAT(stat("rocm-smi", 98'400), ElementsAre("rocm-smi"));
  EXPECT_THAT(stat("rocm-smi", 98'500), IsEmpty()) << "fifteen seconds, not more";
  EXPECT_THAT(stat("rocm-smi", 100'100), IsEmpty()) << "of another clock";
  EXPECT_THAT(stat("vim", 1), IsEmpty());
  EXPECT_THAT(stat("rocm-smi", 1, 'R'), IsEmpty());
  stat("rocm-smi", 1);
  std::filesystem::copy(root() / "proc/9", root() / "proc/10", std::filesystem::copy_options::recursive);
  EXPECT_THAT(stuck_tools(files(), std::chrono::seconds{15}), ElementsAre("rocm-smi")) << "named once";
  file("/proc/uptime", "");
  EXPECT_THAT(stuck_tools(files(), std::chrono::seconds{15}), IsEmpty());
}

TEST_F(ProbeTest, LoadIsReadOrLeftAlone) {
  wire::HealthReport report;
  file("/proc/loadavg", "-1 0 0\n");
  read_load(files(), report);
  EXPECT_EQ(report.load1, 0);
  file("/proc/loadavg", "0.00 0 0\n");
  read_load(files(), report);
  EXPECT_EQ(report.load1, 0);
  EXPECT_FALSE(report.memory_pressure);
  file("/proc/stat", "cpu  1 2 3 4 5 6 7\n");
  EXPECT_FALSE(busy_ticks(files()));
  file("/proc/stat", "cpu0 1 2 3 4 5 6 7 8\n");
  EXPECT_FALSE(busy_ticks(files()));
  file("/proc/stat", "cpu  1 2 4 8 16 32 64 128\n");
  EXPECT_EQ(busy_ticks(files()), 1u + 2 + 4 + 32 + 64 + 128);
}

}  // namespace
}  // namespace gridctl::probe::health_machine_test
