// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/disks.hpp"

namespace gridctl::probe::disks_test {
namespace {

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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ProbeTest, KeepsTheMountsThatJobsCouldUse) {
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

TEST_F(ProbeTest, TellsDisksOfFlashFromThoseThatTurn) {
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

TEST_F(ProbeTest, MeasuresNetworkFileSystemsByAProgramUnderADeadline) {
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

TEST_F(ProbeTest, BelievesNoAbsurdSizes) {
  Disk disk;
  for (const char* bad : {"", "4096", "4096 10", "a b c", "4096 99999999999999999 1", "99999999999 1 1"})
    take_space(bad, disk);
  EXPECT_EQ(disk.total_bytes, 0u);
  take_space("4096 10 20\n", disk);
  EXPECT_EQ(disk.free_bytes, 40960u) << "never more than there is";
}

TEST_F(ProbeTest, AHypervisorsDiskIsNotCalledRotational) {
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

TEST_F(ProbeTest, WhatIsMountedOverAnotherHidesIt) {
  const auto mounts = parse_mounts("1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:30 / /dev/shm rw - tmpfs tmpfs rw\n"
                                   "3 1 0:31 / /dev/shm rw - tmpfs tmpfs rw\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[1].device, "0:31");
}

TEST(DiskEdges, MountsThatJobsCouldNotUseAreLeftOut) {
  const auto mounts = [](const std::string& point, const std::string& kind = "ext4",
                         const std::string& options = "rw") {
    return parse_mounts("22 1 259:2 / " + point + " " + options + ",relatime shared:1 - " + kind + " /dev/x rw\n");
  };
  EXPECT_EQ(mounts("/data").size(), 1u);
  EXPECT_FALSE(mounts("/data")[0].disk.read_only);
  EXPECT_TRUE(mounts("/data", "ext4", "ro")[0].disk.read_only);
  for (const char* point : {"/proc", "/proc/x", "/sys/x", "/run/user/1", "/snap/a", "/boot", "/boot/efi",
                            "/var/lib/docker/x", "/var/lib/containers", "/var/lib/kubelet/x"})
    EXPECT_THAT(mounts(point), IsEmpty()) << point;
  EXPECT_EQ(mounts("/running").size(), 1u) << "another folder";
  EXPECT_EQ(mounts("/dev/shm", "tmpfs").size(), 1u);
  EXPECT_THAT(mounts("/dev/x", "tmpfs"), IsEmpty());
  EXPECT_EQ(mounts("/x", "ramfs")[0].disk.kind, DiskKind::memory);
  EXPECT_EQ(mounts("/x", "fuse.s3fs")[0].disk.kind, DiskKind::network);
  EXPECT_THAT(mounts("/x", "squashfs"), IsEmpty());
  EXPECT_EQ(mounts("/" + std::string(1023, 'x')).size(), 1u);
  EXPECT_THAT(mounts("/" + std::string(1024, 'x')), IsEmpty());
}

TEST(DiskEdges, SizesUpToWhatThereMayBe) {
  Disk disk;
  take_space("1073741824 1 1", disk);
  EXPECT_EQ(disk.total_bytes, 1u << 30);
  take_space("1073741825 9 9", disk);
  EXPECT_EQ(disk.total_bytes, 1u << 30);
  take_space("1 8589934592 5", disk);
  EXPECT_EQ(disk.total_bytes, 1ull << 33);
  EXPECT_EQ(disk.free_bytes, 5u);
  take_space("1 8589934593 5", disk);
  EXPECT_EQ(disk.total_bytes, 1ull << 33);
}

TEST_F(ProbeTest, DisksWithoutANumberAreFoundByTheirSource) {
  file("/sys/class/block/sdb/queue/rotational", "0\n");
  EXPECT_EQ(block_kind(files(), "0:44", "/dev/sdb"), DiskKind::ssd);
  EXPECT_EQ(block_kind(files(), "0:44", "tank/data"), DiskKind::unknown);
  file("/sys/class/block/sdc/queue/rotational", "?\n");
  EXPECT_EQ(block_kind(files(), "0:44", "/dev/sdc"), DiskKind::unknown);
}

TEST_F(ProbeTest, SmallDisksOfMemoryAreLeftOut) {
  Inventory inventory;
  add_disks(files(), toolbox(), inventory);
  EXPECT_NE(find_gap(inventory.gaps, "disks"), nullptr);
  file("/proc/self/mountinfo", "28 22 0:44 / /dev/shm rw - tmpfs tmpfs rw\n29 22 0:45 / /far rw - nfs s:/x rw\n");
  tool("stat", "exit 1");
  inventory = {};
  add_disks(files(), toolbox(), inventory);
  ASSERT_EQ(inventory.disks.size(), 1u) << "a disk of memory whose size is not known";
  EXPECT_EQ(inventory.disks[0].mount, "/far");
  EXPECT_THAT(inventory.notes, ElementsAre(HasSubstr("/far does not answer")));
}

}  // namespace
}  // namespace gridctl::probe::disks_test
