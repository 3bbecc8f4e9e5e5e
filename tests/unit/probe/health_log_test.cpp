// SPDX-License-Identifier: Apache-2.0
#include "probe/health_log.hpp"

#include <gtest/gtest.h>

namespace gridctl::probe::health_log_test {
namespace {

TEST(LogLines, AreSortedByWhatTheySay) {
  for (const auto& [text, kind] : {std::pair{"NVRM: Xid (PCI:0000:3b:00): 79, x", "xid"},
                                   {"NVRM: Xid (PCI:0000:3b:00): 0, x", ""},
                                   {"NVRM: Xid (PCI:0000:3b:00): 1000001, x", ""},
                                   {"NVRM: GPU has fallen off the bus", "xid"},
                                   {"nvidia-nvswitch0: SXid (PCI:0000:3b:00): 12, x", "sxid"},
                                   {"amdgpu 0000:03:00.0: 1 uncorrectable hardware errors detected in umc", "ras"},
                                   {"amdgpu 0000:03:00.0: 1 new uncorrectable hardware errors detected in umc", "ras"},
                                   {"amdgpu 0000:03:00.0: 0 uncorrectable hardware errors detected in umc", ""},
                                   {"amdgpu 0000:03:00.0: no uncorrectable hardware errors detected in umc", ""},
                                   {"amdgpu: GPU Recovery Failed: -19", "gpu_lost"},
                                   {"amdgpu: GPU reset end with ret = -110", "gpu_lost"},
                                   {"amdgpu: ASIC reset failed", "gpu_lost"},
                                   {"amdgpu: device wedged, needs help", "gpu_lost"},
                                   {"amdgpu: device wedged, but recovered", ""},
                                   {"amdgpu: GPU reset begin!", "gpu_reset"},
                                   {"[drm:x [amdgpu]] *ERROR* ring gfx timeout", "gpu_hang"},
                                   {"amdgpu: ring gfx", ""},
                                   {"amdgpu: [gfxhub] page fault", "gpu_fault"},
                                   {"i915 0000:00:02.0: wedged", "gpu_lost"},
                                   {"xe 0000:03:00.0: Timedout job", "gpu_hang"},
                                   {"xe 0000:03:00.0: Engine reset", "gpu_reset"},
                                   {"i915 x: Resetting chip for y", "gpu_reset"},
                                   {"[drm] GPU HANG: ecode 9", "gpu_hang"},
                                   {"xe x: CAT error", "gpu_fault"},
                                   {"xe x: Fault response: Unsuccessful", "gpu_fault"},
                                   {"mce: [Hardware Error]: Uncorrected", "machine_check"},
                                   {"mce: [Hardware Error]: |UC|", "machine_check"},
                                   {"mce: [Hardware Error]: fatal", "machine_check"},
                                   {"mce: [Hardware Error]: corrected", ""},
                                   {"mce: Uncorrected", ""},
                                   {"EDAC MC0: 1 UE x", "memory_error"},
                                   {"EDAC MC0: 1 CE x", ""},
                                   {"x EDAC 1 UE x", ""},
                                   {"pcieport: AER: Uncorrected (Fatal) error", "pcie_fatal"},
                                   {"pcieport: AER: Uncorrected (Non-Fatal) error", ""},
                                   {"EXT4-fs error (device sda)", "fs_error"},
                                   {"EXT4-fs (sda): Remounting filesystem read-only", "fs_error"},
                                   {"XFS (sda): Corruption detected", "fs_error"},
                                   {"XFS (sda): fine", ""},
                                   {"BTRFS error (device sda)", "fs_error"},
                                   {"BTRFS info (device sda)", ""},
                                   {"blk_update_request: I/O error, dev sda", "disk_error"},
                                   {"Buffer I/O error on dev sda", "disk_error"},
                                   {"nvme nvme0: controller is down", "disk_error"},
                                   {"nvme nvme0: Removing after probe failure", "disk_error"},
                                   {"nvme nvme0: fine", ""},
                                   {"INFO: task x blocked for more than 120 seconds", "hung_task"},
                                   {"Out of memory: Killed process 7", "oom"},
                                   {"x Out of memory: Killed process 7", ""},
                                   {"", ""}})
    EXPECT_EQ(read_log_line(text).kind, kind) << text;
}

TEST(LogLines, NameTheirDevice) {
  const auto pci = [](const std::string& place) { return read_log_line("Out of memory: Killed process " + place).pci; };
  EXPECT_EQ(pci("0000:3B:00.7"), "0000:3b:00.7");
  EXPECT_EQ(pci("0000:3b:00.8"), "0000:3b:00.0") << "there is no eighth function";
  EXPECT_EQ(pci("0000:3b:00"), "0000:3b:00.0");
  EXPECT_EQ(pci("10000:3b:00.1"), "") << "in the midst of another number";
  EXPECT_EQ(pci("0000:3b:0"), "");
  EXPECT_EQ(pci("0000-3b:00.0"), "");
  EXPECT_EQ(pci("0000:3b-00.0"), "");
  EXPECT_EQ(pci("000g:3b:00.0 00ff:AA:1f.1"), "00ff:aa:1f.1");
}

TEST(LogLines, OfEachFormHaveTheirStamp) {
  const auto stamp = [](const std::string& line, LogForm form) -> std::int64_t {
    const auto lines = split_log(line, form);
    return lines.empty() ? -1 : static_cast<std::int64_t>(lines[0].stamp_us);
  };
  EXPECT_EQ(stamp("6,1,77,-;x", LogForm::kmsg), 77);
  EXPECT_EQ(stamp("6,1;x", LogForm::kmsg), -1);
  EXPECT_EQ(stamp("6,1,x,-;x", LogForm::kmsg), -1);
  EXPECT_EQ(stamp("6,1,77,-", LogForm::kmsg), -1);
  EXPECT_EQ(stamp("<4>[    1.000002] host kernel: x", LogForm::journal), 1'000'002);
  EXPECT_EQ(stamp("12345678[1.000002] host kernel: x", LogForm::journal), 1'000'002);
  EXPECT_EQ(stamp("123456789[1.000002] host kernel: x", LogForm::journal), -1);
  EXPECT_EQ(stamp("[1.00002] host kernel: x", LogForm::journal), -1);
  EXPECT_EQ(stamp("[1000002] host kernel: x", LogForm::journal), -1);
  EXPECT_EQ(stamp("]1.000002[ host kernel: x", LogForm::journal), -1);
  EXPECT_EQ(stamp("[9223372036854.000000] host kernel: x", LogForm::journal), 9223372036854000000);
  EXPECT_EQ(stamp("[9223372036855.000000] host kernel: x", LogForm::journal), -1);
  EXPECT_EQ(stamp("[    1.000002] host kernel: x", LogForm::journal), 1'000'002);
  EXPECT_EQ(stamp("[    1.000002] host sshd[7]: x", LogForm::journal), -1);
  EXPECT_EQ(split_log("6,1,1,-;a\n\n6,1,2,-;b", LogForm::kmsg).size(), 2u);
  const auto future = read_kernel_log("6,1,9000,-;Out of memory: Killed process\n", LogForm::kmsg, 5);
  ASSERT_EQ(future.size(), 1u);
  EXPECT_EQ(future[0].age_ms, 0) << "not from the future";
}

}  // namespace
}  // namespace gridctl::probe::health_log_test
