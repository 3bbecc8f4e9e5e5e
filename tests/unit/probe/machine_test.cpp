// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fixture.hpp"
#include "probe/cgroup.hpp"
#include "probe/machine.hpp"

namespace gridctl::probe::machine_test {
namespace {

TEST(Machine, CountsCpuLists) {
  EXPECT_EQ(parse_cpu_list("0").size(), 1u);
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n").size(), 7u);
  for (const char* bad : {"", "x", "3-0", "0-", "-1", "0-99999999", "1,,2"})
    EXPECT_EQ(parse_cpu_list(bad).size(), 0u) << bad;
}

TEST(Machine, ReadsNamesOfCpuAndSystem) {
  EXPECT_EQ(parse_cpu_model("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\n"), "AMD EPYC 7763");
  EXPECT_EQ(parse_cpu_model(""), "");
  EXPECT_EQ(parse_pretty_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=Alpine\n"), "Alpine");
  EXPECT_EQ(parse_memory_total("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), 24576000ull << 10);
}

class MachineFiles : public ProbeTest {};

TEST_F(MachineFiles, ObeysAffinityAndCgroupV2Limits) {
  file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n");
  file("/sys/devices/system/cpu/online", "0-15\n");
  file("/proc/meminfo", "MemTotal: 33554432 kB\n");
  file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
  file("/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  file("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  file("/sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "8589934592\n");
  file("/sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "250000 100000\n");
  file("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope/cgroup.controllers", "cpu memory pids\n");
  Inventory inventory;
  read_machine(HostFiles(root()), home(), inventory);
  EXPECT_DOUBLE_EQ(inventory.cpus, 2.5);
  EXPECT_EQ(inventory.memory_bytes, 8ull << 30);
  EXPECT_GT(inventory.disk_total_bytes, 0u);
  const CgroupLimits limits = cgroup_limits(HostFiles(root()));
  EXPECT_EQ(limits.version, 2);
  EXPECT_TRUE(limits.delegated);
}

TEST_F(MachineFiles, ObeysCgroupV1LimitsOfAContainer) {
  file("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
  file("/proc/meminfo", "MemTotal: 33554432 kB\n");
  file("/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
  file("/proc/self/mountinfo",
       "31 30 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
       "32 30 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
  file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n");
  file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Inventory inventory;
  read_machine(HostFiles(root()), home(), inventory);
  EXPECT_DOUBLE_EQ(inventory.cpus, 1.5);
  EXPECT_EQ(inventory.memory_bytes, 4ull << 30);
  EXPECT_FALSE(cgroup_limits(HostFiles(root())).writable);
}

TEST_F(MachineFiles, TakesNoLimitForNone) {
  file("/proc/self/cgroup", "5:memory:/\n4:cpu,cpuacct:/\n");
  file("/proc/self/mountinfo",
       "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = cgroup_limits(HostFiles(root()));
  EXPECT_EQ(limits.version, 1);
  EXPECT_TRUE(limits.writable);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cpus);
}

TEST_F(MachineFiles, OfAnEmptyRootGiveNotesAndNoGuesses) {
  Inventory inventory;
  read_machine(HostFiles(root()), home(), inventory);
  EXPECT_EQ(inventory.cpus, 0);
  EXPECT_EQ(inventory.memory_bytes, 0u);
  EXPECT_EQ(inventory.machine_id, "");
  EXPECT_EQ(inventory.notes.size(), 3u);
}

TEST_F(MachineFiles, ShowGpusOnTheBus) {
  const auto device = [&](const std::string& address, const std::string& vendor, const std::string& kind) {
    file("/sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    file("/sys/bus/pci/devices/" + address + "/class", kind + "\n");
  };
  device("0000:01:00.0", "0x10de", "0x030200");
  device("0000:01:00.1", "0x10de", "0x040300");  // its sound
  device("0000:00:02.0", "0x8086", "0x030000");  // inside the processor
  device("0000:83:00.0", "0x1002", "0x120000");
  EXPECT_EQ(pci_gpus(HostFiles(root()), "0x10de"), std::vector<std::string>{"0000:01:00.0"});
  EXPECT_TRUE(pci_gpus(HostFiles(root()), "0x8086").empty());
  EXPECT_EQ(pci_gpus(HostFiles(root()), "0x1002"), std::vector<std::string>{"0000:83:00.0"});
}

TEST_F(MachineFiles, TellTheVersionsOfInstalledToolkits) {
  file("/opt/rocm-6.2.4/.info/version", "6.2.4-1\n");
  file("/opt/intel/oneapi/compiler/2024.2/x", "");
  file("/opt/intel/oneapi/compiler/2025.0/x", "");
  file("/opt/intel/oneapi/compiler/latest/x", "");
  EXPECT_EQ(k_amd.installed_toolkit(HostFiles(root())), "6.2.4");
  EXPECT_EQ(k_intel.installed_toolkit(HostFiles(root())), "2025.0");
}

TEST_F(ProbeTest, UsableProcessorsAreTheFewerOnesAndTheQuota) {
  const auto usable = [&](const std::string& allowed, const std::string& online) {
    file("/proc/self/status", "Cpus_allowed_list:\t" + allowed + "\n");
    file("/sys/devices/system/cpu/online", online + "\n");
    Inventory inventory;
    read_machine(files(), home(), inventory);
    return inventory.cpus;
  };
  EXPECT_EQ(usable("0-7", "0-3"), 4);
  EXPECT_EQ(usable("0-1", "0-3"), 2);
  EXPECT_EQ(usable("", "0-3"), 4);
  EXPECT_EQ(usable("0-1", ""), 2);
  file("/proc/self/cgroup", "0::/\n");
  file("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  file("/cg/cpu.max", "123456 100000\n");
  EXPECT_EQ(usable("0-7", "0-7"), 1.23);
  file("/cg/cpu.max", "900000 100000\n");
  EXPECT_EQ(usable("0-7", "0-7"), 8) << "a quota above is none";
  file("/cg/memory.max", "5000\n");
  file("/proc/meminfo", "MemTotal: 4 kB\n");
  Inventory inventory;
  read_machine(files(), home(), inventory);
  EXPECT_EQ(inventory.memory_bytes, 4096u);
  file("/proc/meminfo", "");
  read_machine(files(), home(), inventory = {});
  EXPECT_EQ(inventory.memory_bytes, 5000u) << "better than nothing";
}

TEST_F(ProbeTest, NamesAreReadAsTheyStand) {
  EXPECT_EQ(parse_cpu_list("65535").size(), 1u);
  EXPECT_EQ(parse_cpu_list("65536").size(), 0u);
  EXPECT_EQ(parse_cpu_list("0-65535").size(), 65536u);
  EXPECT_EQ(parse_cpu_list("0-65535,1").size(), 0u);
  EXPECT_EQ(parse_cpu_list("5-5").size(), 1u);
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME='A b'\n"), "A b");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=\"A b'\n"), "\"A b'");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=\"\n"), "\"");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAMES=x\n"), "");
  EXPECT_EQ(parse_cpu_model("Model\t\t: Raspberry Pi\nHardware : BCM\n"), "Raspberry Pi");
  EXPECT_EQ(parse_cpu_model("model name2 : x\nuarch : sifive,u74\n"), "sifive,u74");
}

}  // namespace
}  // namespace gridctl::probe::machine_test
