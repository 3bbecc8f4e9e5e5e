// SPDX-License-Identifier: Apache-2.0
// Disks, processors, software and the kind of machine.
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/cpu.hpp"
#include "probe/disks.hpp"
#include "probe/software.hpp"

namespace gridctl::probe::parts_test {
namespace {

class PartsTest : public ProbeTest {
 protected:
  [[nodiscard]] HostFiles files() const { return HostFiles(root()); }
};

constexpr const char* k_mounts =
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    "23 22 0:21 / /proc rw,nosuid - proc proc rw\n"
    "24 22 0:24 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw\n"
    "25 22 0:25 / /run rw - tmpfs tmpfs rw\n"
    "26 22 259:2 /var/lib/docker /var/lib/docker rw - ext4 /dev/nvme0n1p2 rw\n"
    "27 22 8:1 / /mnt/big\\040disk ro - xfs /dev/sda1 rw\n"
    "28 22 0:44 / /home rw - nfs4 server:/export/home rw\n"
    "29 22 0:45 / /scratch rw - fuse.sshfs me@x: rw\n"
    "30 22 253:0 / /boot rw - ext4 /dev/mapper/boot rw\n"
    "garbage\n31 22 0:1 / /x rw -\n";

TEST_F(PartsTest, KeepsTheMountsThatJobsCouldUse) {
  const std::vector<Mount> mounts = parse_mounts(k_mounts);
  ASSERT_EQ(mounts.size(), 5u);
  EXPECT_EQ(mounts[0].disk.mount, "/");
  EXPECT_EQ(mounts[0].device, "259:2");
  EXPECT_EQ(mounts[1].disk.kind, DiskKind::memory);
  EXPECT_EQ(mounts[2].disk.mount, "/mnt/big disk");
  EXPECT_TRUE(mounts[2].disk.read_only);
  EXPECT_EQ(mounts[3].disk.kind, DiskKind::network);
  EXPECT_EQ(mounts[3].disk.source, "server:/export/home");
  EXPECT_EQ(mounts[4].disk.kind, DiskKind::network);
}

TEST_F(PartsTest, TellsDisksOfFlashFromThoseThatTurn) {
  const auto disk = [&](const std::string& name, const std::string& rotational, const std::string& number) {
    file("/sys/devices/block/" + name + "/queue/rotational", rotational + "\n");
    file("/sys/devices/block/" + name + "/" + name + "1/partition", "1\n");
    std::filesystem::create_directories(root() / "sys/dev/block");
    std::filesystem::create_symlink("../../devices/block/" + name + "/" + name + "1",
                                    root() / "sys/dev/block" / number);
  };
  disk("nvme0n1", "0", "259:2");
  disk("sda", "1", "8:1");
  disk("sdb", "0", "8:17");
  EXPECT_EQ(block_kind(files(), "259:2", ""), DiskKind::nvme);
  EXPECT_EQ(block_kind(files(), "8:1", ""), DiskKind::hdd);
  EXPECT_EQ(block_kind(files(), "8:17", ""), DiskKind::ssd);
  EXPECT_EQ(block_kind(files(), "8:99", ""), DiskKind::unknown);
  // A logical volume on the second: dm-0 with a slave.
  file("/sys/devices/block/dm-0/queue/rotational", "1\n");
  std::filesystem::create_directories(root() / "sys/devices/block/dm-0/slaves");
  std::filesystem::create_symlink("../../sdb/sdb1", root() / "sys/devices/block/dm-0/slaves/sdb1");
  std::filesystem::create_symlink("../../devices/block/dm-0", root() / "sys/dev/block/253:0");
  EXPECT_EQ(block_kind(files(), "253:0", ""), DiskKind::ssd);
}

TEST_F(PartsTest, MeasuresNetworkFileSystemsByAProgramUnderADeadline) {
  file("/proc/self/mountinfo", "28 22 0:44 / /home rw - nfs4 s:/home rw\n29 22 0:45 / /gone rw - nfs s:/gone rw\n");
  tool("stat", "case \"$4\" in /home) echo '4096 1000 250';; *) exec sleep 1000;; esac");
  Inventory inventory;
  add_disks(files(), toolbox(std::chrono::milliseconds{300}), inventory);
  ASSERT_EQ(inventory.disks.size(), 2u);
  EXPECT_EQ(inventory.disks[0].total_bytes, 4096000u);
  EXPECT_EQ(inventory.disks[0].free_bytes, 1024000u);
  EXPECT_EQ(inventory.disks[1].total_bytes, 0u);
  ASSERT_EQ(inventory.notes.size(), 1u);
  EXPECT_NE(inventory.notes[0].find("/gone"), std::string::npos);
}

TEST_F(PartsTest, BelievesNoAbsurdSizes) {
  Disk disk;
  for (const char* bad : {"", "4096", "4096 10", "a b c", "4096 99999999999999999 1", "99999999999 1 1"})
    take_space(bad, disk);
  EXPECT_EQ(disk.total_bytes, 0u);
  take_space("4096 10 20\n", disk);
  EXPECT_EQ(disk.free_bytes, 40960u) << "never more than there is";
}

TEST_F(PartsTest, CountsSocketsCoresAndNodes) {
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

TEST_F(PartsTest, SaysWhyProcessorsAreNotKnown) {
  Inventory inventory;
  add_cpu(files(), inventory);
  for (const char* attribute : {"cpu.max_mhz", "cpu.sockets", "cpu.cores", "cpu.numa", "cpu.features"})
    EXPECT_NE(find_gap(inventory.gaps, attribute), nullptr) << attribute;
}

TEST_F(PartsTest, KnowsTheCLibrary) {
  EXPECT_EQ(parse_libc("glibc 2.36\n", ""), "glibc 2.36");
  EXPECT_EQ(parse_libc("", "ldd (Debian GLIBC 2.36-9+deb12u10) 2.36\nThis is free software"), "glibc 2.36");
  EXPECT_EQ(parse_libc("", "ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35\n"), "glibc 2.35");
  EXPECT_EQ(parse_libc("getconf: GNU_LIBC_VERSION: unknown variable", "musl libc (x86_64)\nVersion 1.2.4\nDynamic"),
            "musl 1.2.4");
  EXPECT_EQ(parse_libc("", ""), "");
}

TEST_F(PartsTest, KnowsWhatHandsGpusToContainers) {
  EXPECT_EQ(parse_container_toolkit("NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c7428470a\n"),
            "1.17.4");
  EXPECT_EQ(parse_container_toolkit("sh: not found"), "");
  EXPECT_EQ(parse_cdi_kind("---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n"),
            "nvidia.com/gpu");
  EXPECT_EQ(parse_cdi_kind("{\"cdiVersion\":\"0.6.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}"), "amd.com/gpu");
  EXPECT_EQ(parse_cdi_kind("kind: \x1b[31m/evil"), "");
  file("/etc/cdi/nvidia.yaml", "kind: \"nvidia.com/gpu\"\n");
  file("/var/run/cdi/again.yaml", "kind: nvidia.com/gpu\n");
  Inventory inventory;
  add_software(files(), {}, "{\"Runtimes\": {\"runc\": {}, \"nvidia\": {}}}", inventory);
  EXPECT_EQ(inventory.software.container_gpus.devices, std::vector<std::string>{"nvidia.com/gpu"});
  EXPECT_EQ(inventory.software.container_gpus.docker, true);
}

TEST_F(PartsTest, FindsInstalledToolkits) {
  file("/usr/local/cuda/version.json", "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.4.1\"}}");
  file("/opt/rocm/share/hip/version", "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=3\nHIP_VERSION_PATCH=42131\n");
  std::filesystem::create_directories(root() / "usr/lib/x86_64-linux-gnu");
  std::filesystem::create_symlink("libze_loader.so.1.17.39", root() / "usr/lib/x86_64-linux-gnu/libze_loader.so.1");
  Inventory inventory;
  add_software(files(), {}, "", inventory);
  EXPECT_EQ(inventory.software.cuda_toolkit, "12.4.1");
  EXPECT_EQ(inventory.software.hip, "6.3.42131");
  EXPECT_EQ(inventory.software.level_zero, "1.17.39");
}

TEST_F(PartsTest, TellsMachinesFromVirtualOnesAndContainers) {
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
TEST_F(PartsTest, AContainersMarkInAMachineOfItsOwnIsNone) {
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

TEST_F(PartsTest, FindsAToolkitWithoutItsVersionFiles) {
  const auto found = [&] {
    Inventory inventory;
    add_software(files(), {}, "", inventory);
    return inventory.software.cuda_toolkit;
  };
  EXPECT_EQ(found(), "");
  file("/usr/include/cuda_runtime_api.h", "#define CUDART_VERSION  11080\n");
  EXPECT_EQ(found(), "11.8") << "a distribution's package";
  std::filesystem::create_directories(root() / "usr/local/cuda-13.0/include");
  std::filesystem::create_directory_symlink("cuda-13.0", root() / "usr/local/cuda");
  EXPECT_EQ(found(), "13.0") << "by the name of its folder";
  file("/usr/local/cuda-13.0/include/cuda_runtime_api.h", "/** */\n#define CUDART_VERSION  13020\n");
  EXPECT_EQ(found(), "13.2");
}

TEST_F(PartsTest, AHypervisorsDiskIsNotCalledRotational) {
  const auto disk = [&](const std::string& name, const std::string& vendor) {
    file("/sys/devices/block/" + name + "/queue/rotational", "1\n");
    if (!vendor.empty()) file("/sys/devices/block/" + name + "/device/vendor", vendor + "\n");
    std::filesystem::create_directories(root() / "sys/dev/block");
    std::filesystem::remove(root() / "sys/dev/block/8:0");
    std::filesystem::create_symlink("../../devices/block/" + name, root() / "sys/dev/block/8:0");
    return block_kind(files(), "8:0", "");
  };
  EXPECT_EQ(disk("vda", ""), DiskKind::unknown);
  EXPECT_EQ(disk("xvda", ""), DiskKind::unknown);
  EXPECT_EQ(disk("sda", "QEMU"), DiskKind::unknown);
  EXPECT_EQ(disk("sdb", "Msft"), DiskKind::unknown);
  EXPECT_EQ(disk("sdc", "ATA"), DiskKind::hdd);
}

TEST_F(PartsTest, WhatIsMountedOverAnotherHidesIt) {
  const auto mounts = parse_mounts("1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:30 / /dev/shm rw - tmpfs tmpfs rw\n"
                                   "3 1 0:31 / /dev/shm rw - tmpfs tmpfs rw\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[1].device, "0:31");
}

}  // namespace
}  // namespace gridctl::probe::parts_test
