// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/software.hpp"

namespace gridctl::probe::platform_test {
namespace {

TEST_F(ProbeTest, TellsMachinesFromVirtualOnesAndContainers) {
  const auto kind = [&](const char* maker, const char* product, const char* flags) {
    file("/sys/class/dmi/id/sys_vendor", std::string(maker) + "\n");
    file("/sys/class/dmi/id/product_name", std::string(product) + "\n");
    file("/proc/cpuinfo", std::string("flags : ") + flags + "\n");
    Inventory inventory;
    add_platform(files(), inventory);
    return inventory.product + " | " + inventory.virtualization;
  };
  EXPECT_EQ(kind("NVIDIA", "DGXA100 920-23687-2530-000", "fpu"), "NVIDIA DGXA100 920-23687-2530-000 | none");
  EXPECT_EQ(kind("QEMU", "Standard PC", "fpu hypervisor"), "QEMU Standard PC | kvm");
  EXPECT_EQ(kind("Amazon EC2", "p4d.24xlarge", "fpu hypervisor"), "Amazon EC2 p4d.24xlarge | kvm");
  EXPECT_EQ(kind("Amazon EC2", "i3.metal", "fpu"), "Amazon EC2 i3.metal | none");
  EXPECT_EQ(kind("Somebody", "Cloud", "fpu hypervisor"), "Somebody Cloud | virtual machine");
  file("/.dockerenv", "");
  EXPECT_EQ(kind("QEMU", "Standard PC", "fpu"), "QEMU Standard PC | docker");
}

// Images for virtual machines are often made from container images, and keep their marks.
TEST_F(ProbeTest, AContainersMarkInAMachineOfItsOwnIsNone) {
  const auto kind = [&] {
    Inventory inventory;
    add_platform(files(), inventory);
    return inventory.virtualization;
  };
  const auto link = [&](const char* name, const char* target) {
    std::filesystem::create_directories(root() / "proc/self/ns");
    std::filesystem::remove(root() / "proc/self/ns" / name);
    std::filesystem::create_symlink(target, root() / "proc/self/ns" / name);
  };
  const auto in_first_namespaces = [&](bool first) {
    link("pid", first ? "pid:[4026531836]" : "pid:[4026532511]");
    link("uts", "uts:[4026531838]");
    link("ipc", "ipc:[4026531839]");
  };
  file("/.dockerenv", "");
  file("/proc/cpuinfo", "flags : fpu hypervisor\n");
  file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock \n");
  file("/proc/sys/kernel/osrelease", "6.18.44-fc-v657-gpu\n");
  in_first_namespaces(false);
  EXPECT_EQ(kind(), "docker");
  in_first_namespaces(true);
  EXPECT_EQ(kind(), "firecracker");
  file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(kind(), "kvm");
  file("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  EXPECT_EQ(kind(), "wsl");
  in_first_namespaces(false);
  EXPECT_EQ(kind(), "docker") << "Docker Desktop";
  file("/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n");
  EXPECT_EQ(kind(), "gvisor");
  file("/proc/version", "Linux version 6.1.0\n");
  std::filesystem::remove(root() / ".dockerenv");
  file("/dev/lxd/sock", "");
  EXPECT_EQ(kind(), "lxc");
}

TEST_F(ProbeTest, MachinesAreToldByTheirMaker) {
  const auto kind = [&](const std::string& maker, const std::string& product, const std::string& cpuinfo = "") {
    file("/sys/class/dmi/id/sys_vendor", maker + "\n");
    file("/sys/class/dmi/id/product_name", product + "\n");
    file("/proc/cpuinfo", cpuinfo);
    Inventory inventory;
    add_platform(files(), inventory);
    return inventory.product + "|" + inventory.virtualization;
  };
  EXPECT_EQ(kind("Microsoft Corporation", "Virtual Machine"), "Microsoft Corporation Virtual Machine|hyperv");
  EXPECT_EQ(kind("Microsoft Corporation", "Surface"), "Microsoft Corporation Surface|");
  EXPECT_EQ(kind("Dell", "Dell R750", "flags : fpu\n"), "Dell R750|none");
  EXPECT_EQ(kind("", "Board"), "Board|");
  EXPECT_EQ(kind("VMware, Inc.", "VMware7,1"), "VMware, Inc. VMware7,1|vmware");
  file("/proc/device-tree/model", "Raspberry Pi\n");
  EXPECT_EQ(kind("", ""), "Raspberry Pi|");
  file("/run/systemd/container", "lxc\n");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|lxc");
  file("/var/run/secrets/kubernetes.io/x", "");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|kubernetes");
  file("/run/.containerenv", "");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|podman");
}

}  // namespace
}  // namespace gridctl::probe::platform_test
