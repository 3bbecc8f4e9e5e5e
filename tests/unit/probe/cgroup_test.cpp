// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fixture.hpp"
#include "probe/cgroup.hpp"

namespace gridctl::probe::cgroup_test {
namespace {

TEST_F(ProbeTest, TheLowestLimitOfAllLevelsCounts) {
  file("/proc/self/cgroup", "0::/a/b\n");
  file("/proc/self/mountinfo", "30 24 0:26 / /cg ro,nosuid - cgroup2 cgroup2 rw\n");
  file("/cg/memory.max", "100\n");
  file("/cg/a/memory.max", "300\n");
  file("/cg/a/b/memory.max", "200\n");
  file("/cg/a/cpu.max", "100000 0\n");
  file("/cg/a/b/cpu.max", "300000 100000\n");
  file("/cg/cpu.max", "150000 100000\n");
  file("/cg/a/b/cgroup.controllers", "cpu pids\n");
  CgroupLimits limits = cgroup_limits(files());
  EXPECT_EQ(limits.memory_bytes, 100u);
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.version, 2);
  EXPECT_FALSE(limits.writable) << "mounted read-only";
  EXPECT_FALSE(limits.delegated) << "memory is missing";
  file("/proc/self/mountinfo", "30 24 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw\n");
  file("/cg/a/b/cgroup.controllers", "memory pids\n");
  limits = cgroup_limits(files());
  EXPECT_TRUE(limits.writable);
  EXPECT_FALSE(limits.delegated) << "cpu is missing";
  file("/proc/self/mountinfo", "short\n30 24 0:26 / /cg rw,nosuid - tmpfs x rw\n");
  limits = cgroup_limits(files());
  EXPECT_EQ(limits.version, 0);
  EXPECT_FALSE(limits.writable);
  EXPECT_FALSE(limits.memory_bytes);
}

TEST_F(ProbeTest, AContainersMountIsItsGroup) {
  file("/proc/self/cgroup", "0::/docker/abc/deep\n");
  file("/proc/self/mountinfo", "30 24 0:26 /docker/abc /cg rw - cgroup2 cgroup2 rw\n");
  file("/cg/deep/memory.max", "7\n");
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, 7u);
  file("/proc/self/cgroup", "0::/../evil\n");
  file("/evil/memory.max", "1\n");
  file("/cg/memory.max", "9\n");
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, 9u) << "what leads out is its top";
}

TEST_F(ProbeTest, VersionOneNeedsBothControllersWritable) {
  file("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  const std::string memory = " - cgroup cgroup rw,memory\n", cpu = " - cgroup cgroup rw,cpu,cpuacct\n";
  file("/proc/self/mountinfo", "31 30 0:27 / /m rw" + memory + "32 30 0:28 / /c ro" + cpu);
  EXPECT_FALSE(cgroup_limits(files()).writable);
  file("/proc/self/mountinfo", "31 30 0:27 / /m rw" + memory + "32 30 0:28 / /c rw" + cpu);
  EXPECT_TRUE(cgroup_limits(files()).writable);
  file("/m/x/memory.limit_in_bytes", std::to_string(1ull << 60));
  EXPECT_FALSE(cgroup_limits(files()).memory_bytes);
  file("/m/x/memory.limit_in_bytes", std::to_string((1ull << 60) - 1));
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, (1ull << 60) - 1);
  file("/c/x/cpu.cfs_quota_us", "50000\n");
  EXPECT_FALSE(cgroup_limits(files()).cpus);
  file("/c/x/cpu.cfs_period_us", "0\n");
  EXPECT_FALSE(cgroup_limits(files()).cpus);
  file("/c/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_limits(files()).cpus, 0.5);
}

}  // namespace
}  // namespace gridctl::probe::cgroup_test
