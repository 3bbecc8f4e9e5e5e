// SPDX-License-Identifier: Apache-2.0
// The edges of what is read of a host's health, its packages and its fitness, and of links that are measured.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "probe/bench_challenge.hpp"
#include "probe/cgroup.hpp"
#include "probe/cpu.hpp"
#include "probe/disks.hpp"
#include "probe/facts.hpp"
#include "probe/health.hpp"
#include "probe/health_machine.hpp"
#include "probe/health_nvidia.hpp"
#include "probe/health_packages.hpp"
#include "probe/intel_details.hpp"
#include "probe/machine.hpp"
#include "probe/netperf.hpp"
#include "probe/nics.hpp"
#include "probe/pci.hpp"
#include "probe/preflight.hpp"
#include "probe/software.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe::health_edges_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// --- health ---------------------------------------------------------------------------------------------------------

TEST(HealthEdges, DisksOfPartitions) {
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

TEST(HealthEdges, TheSourceOfAMountIsThatOfTheInnermost) {
  const std::string mounts =
      "22 1 8:3 / / rw - ext4 /dev/sda3 rw\n"
      "30 22 8:1 / /data rw - ext4 /dev/sdb1 rw\n"
      "31 22 8:1 / /data rw - ext4 /dev/sdc1 rw\n"
      "32 22 8:1 / /database rw - ext4 /dev/sdd1 rw\n"
      "x y - z\n"
      "33 22 8:1 / /data/x rw - ext4\n";
  EXPECT_EQ(mount_source(mounts, "/home"), "/dev/sda3");
  EXPECT_EQ(mount_source(mounts, "/data"), "/dev/sdc1");
  EXPECT_EQ(mount_source(mounts, "/data/x/y"), "/dev/sdc1") << "a line without its source tells nothing";
  EXPECT_EQ(mount_source(mounts, "/database"), "/dev/sdd1");
  EXPECT_EQ(mount_source(mounts, "/datab"), "/dev/sda3");
  EXPECT_EQ(mount_source("30 22 8:1 / /data rw - ext4 /dev/sdb1 rw\n", "/x"), "");
}

TEST(HealthEdges, PressureAndErrorsWithinTheirLimits) {
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

class HealthEdgesTest : public ProbeTest {
 protected:
  HealthOptions health_options() const {
    HealthOptions options;
    options.root = root();
    options.home = home();
    options.toolbox = toolbox();
    std::filesystem::create_directories(home());
    return options;
  }
};

TEST_F(HealthEdgesTest, AReportSaysWhyThereIsNoLog) {
  HealthOptions options = health_options();
  file("/proc/sys/kernel/random/boot_id", "boot\n");
  options.log.problem = "denied " + std::string(wire::k_health_text_max, 'x');
  wire::HealthReport report = take_health(os::system_clock(), options);
  EXPECT_THAT(report.log_gap, ::testing::StartsWith("denied"));
  EXPECT_EQ(report.log_gap.size(), wire::k_health_text_max);
  EXPECT_EQ(report.boot_id, "boot");
  EXPECT_GT(report.wall_ms, 0);
  EXPECT_GT(report.taken_at.ns, 0);
  EXPECT_THAT(report.events, IsEmpty());
  options.log.problem.clear();
  options.log.text = "4,1,5000000,-;Out of memory: Killed process 7 (x)\n";
  options.log.now_us = 6'000'000;
  report = take_health(os::system_clock(), options);
  EXPECT_EQ(report.log_gap, "");
  ASSERT_EQ(report.events.size(), 1u);
  EXPECT_EQ(report.events[0].kind, "oom");
  EXPECT_EQ(report.events[0].age_ms, 1000);
  EXPECT_TRUE(std::filesystem::is_empty(home())) << "what was tried is gone";
}

TEST_F(HealthEdgesTest, EnginesAndTheDriveAreAskedWhereThatIsWanted) {
  file("/proc/self/mountinfo", "22 1 8:3 / / rw - ext4 /dev/sda3 rw\n");
  tool("docker", "echo '{\"ServerVersion\":\"27\"}'");
  tool("podman", "echo broken >&2; exit 125");
  tool("smartctl", "[ \"$*\" = '-H -j /dev/sda' ] && echo '{\"smart_status\":{\"passed\":false}}'");
  HealthOptions options = health_options();
  EXPECT_THAT(take_health(os::system_clock(), options).engines, IsEmpty());
  options.engines = true;
  const auto report = take_health(os::system_clock(), options);
  ASSERT_EQ(report.engines.size(), 2u);
  EXPECT_EQ(report.engines[0].kind, EngineKind::docker);
  EXPECT_EQ(report.engines[0].problem, "");
  EXPECT_THAT(report.engines[1].problem, HasSubstr("broken"));
  EXPECT_THAT(report.disk.drive_problem, HasSubstr("SMART"));
  EXPECT_EQ(report.gpus_at.ns, 0);
  tool("smartctl", "echo '{\"smart_status\":{\"passed\":true}}'");
  EXPECT_EQ(take_health(os::system_clock(), options).disk.drive_problem, "");
  file("/sys/block/sda/device/state", "offline\n");
  EXPECT_EQ(take_health(os::system_clock(), options).disk.drive_problem, "sda is offline");
  file("/sys/block/sda/device/state", "running\n");
  EXPECT_EQ(take_health(os::system_clock(), options).disk.drive_problem, "");
}

TEST_F(HealthEdgesTest, PackagesAreReadWhereThatIsWanted) {
  tool("dpkg-query", "printf 'runc\\t1.1.5\\n'; exit 1");
  tool("ssh", "echo 'OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL' >&2");
  file("/proc/version", "Linux version 6.1 (Debian 12) #1 SMP Debian 6.1.119-1 (2024)\n");
  HealthOptions options = health_options();
  EXPECT_THAT(take_health(os::system_clock(), options).packages, IsEmpty());
  options.packages = true;
  const auto packages = take_health(os::system_clock(), options).packages;
  ASSERT_EQ(packages.size(), 3u);
  EXPECT_EQ(packages[0].name + packages[0].version, "runc1.1.5");
  EXPECT_EQ(packages[1].version, "1:9.2p1-2+deb12u7");
  EXPECT_EQ(packages[2].version, "6.1.119-1");
}

TEST_F(HealthEdgesTest, StuckToolsAreThoseOfGpusOnly) {
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

TEST_F(HealthEdgesTest, LoadIsReadOrLeftAlone) {
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

// --- the kernel's log -----------------------------------------------------------------------------------------------

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

// --- NVIDIA's report ------------------------------------------------------------------------------------------------

wire::GpuHealth gpu_of(const std::string& inside) {
  ToolAnswer answer;
  answer.found = answer.answered = true;
  answer.exit_code = 0;
  answer.out = "<nvidia_smi_log><gpu id=\"00000000:01:00.0\">" + inside + "</gpu></nvidia_smi_log>";
  const auto gpus = read_nvidia_health(answer);
  EXPECT_EQ(gpus.size(), 1u);
  return gpus.empty() ? wire::GpuHealth{} : gpus[0];
}

TEST(NvidiaReport, SaysWhatMustBeDone) {
  const auto action = [](const std::string& word) {
    return gpu_of("<gpu_recovery_action>" + word + "</gpu_recovery_action>").recovery;
  };
  EXPECT_EQ(action("None"), "");
  EXPECT_EQ(action("Drain and Reset"), "reset");
  EXPECT_EQ(action("Drain P2P"), "drain");
  EXPECT_EQ(action("Node Reboot"), "reboot");
  EXPECT_EQ(action("GPU Reset"), "reset");
  const auto status = [](const std::string& reset, const std::string& drain) {
    return gpu_of("<gpu_reset_status><reset_required>" + reset + "</reset_required><drain_and_reset_recommended>" +
                  drain + "</drain_and_reset_recommended></gpu_reset_status>")
        .recovery;
  };
  EXPECT_EQ(status("No", "No"), "");
  EXPECT_EQ(status("No", "Yes"), "drain");
  EXPECT_EQ(status("Yes", "Yes"), "reset");
}

TEST(NvidiaReport, CountsBothKindsOfErrorsAndRemaps) {
  const auto gpu = gpu_of(
      "<ecc_errors><volatile><double_bit><total>2</total></double_bit><single_bit><total>5</total></single_bit>"
      "<dram_uncorrectable>N/A</dram_uncorrectable></volatile></ecc_errors><retired_pages><pending_retirement>Yes"
      "</pending_retirement></retired_pages><remapped_rows><remapped_row_failure>No</remapped_row_failure></"
      "remapped_rows>");
  EXPECT_EQ(gpu.ecc_uncorrected, 2u);
  EXPECT_EQ(gpu.ecc_corrected, 5u);
  EXPECT_EQ(gpu.remap_pending, true);
  EXPECT_EQ(gpu.remap_failed, false);
  const auto newer = gpu_of(
      "<remapped_rows><remapped_row_pending>No</remapped_row_pending></remapped_rows>"
      "<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>");
  EXPECT_EQ(newer.remap_pending, false) << "rows speak before pages";
  EXPECT_FALSE(newer.ecc_corrected);
  EXPECT_FALSE(newer.processes);
  EXPECT_FALSE(gpu_of("<processes>N/A</processes>").processes);
  EXPECT_TRUE(gpu_of("<processes></processes>").processes);
  const auto throttled = gpu_of(
      "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
      "<clocks_event_reason_applications_clocks_setting>Active</clocks_event_reason_applications_clocks_setting>"
      "<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>"
      "<clocks_event_reason_hw_slowdown>Active</clocks_event_reason_hw_slowdown></clocks_event_reasons>");
  EXPECT_THAT(throttled.throttle, ElementsAre("hw_slowdown"));
}

TEST(NvidiaReport, NamesGpusThatAreLostOnce) {
  ToolAnswer answer;
  answer.found = answer.answered = true;
  answer.exit_code = 15;
  answer.out = "<nvidia_smi_log><gpu id=\"00000000:01:00.0\"></gpu></nvidia_smi_log>";
  answer.err =
      "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n"
      "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error\nother\n";
  const auto gpus = read_nvidia_health(answer);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_THAT(gpus[0].problem, HasSubstr("GPU is lost"));
  EXPECT_EQ(gpus[1].pci, "0000:02:00.0");
  answer.answered = false;
  EXPECT_THAT(read_nvidia_health(answer), IsEmpty());
}

// --- packages -------------------------------------------------------------------------------------------------------

TEST(PackageEdges, VersionsCompareByEpochUpstreamAndRevision) {
  for (const auto& [a, b] : {std::pair{"1.0~rc1", "1.0"},
                             {"1.0", "1.0a"},
                             {"1.0a", "1.0+"},
                             {"1.9", "1.10"},
                             {"9", "1:1"},
                             {"1.0-1", "1.0-2"},
                             {"1.0", "1.0-1"},
                             {"1.0-1", "1.0.1"},
                             {"a", "b"},
                             {"1.08", "1.9"}}) {
    EXPECT_LT(compare_debian(a, b), 0) << a << " " << b;
    EXPECT_GT(compare_debian(b, a), 0) << a << " " << b;
  }
  for (const auto& [a, b] : {std::pair{"1.01", "1.1"}, {"0:1", "1"}, {"1.0-0", "1.0"}})
    EXPECT_EQ(compare_debian(a, b), 0) << a;
  EXPECT_EQ(upstream_version("1:9.2p1+dfsg~x-2"), "9.2p1");
}

TEST(PackageEdges, ExposureAtTheEdgesOfARange) {
  const Advisory advisory{"CVE-1", "x", "1.0", "2.0", "bookworm 1.5-1+deb12u2, trixie -", "text"};
  const auto of = [&](const std::string& version, bool packaged) {
    return exposure(advisory, {"x", version, packaged});
  };
  EXPECT_EQ(of("0.9", false), Exposure::none);
  EXPECT_EQ(of("1.0", false), Exposure::likely);
  EXPECT_EQ(of("1.9", false), Exposure::likely);
  EXPECT_EQ(of("2.0", false), Exposure::none);
  EXPECT_EQ(of("1.5", true), Exposure::unclear) << "it may be patched";
  EXPECT_EQ(of("1.5-1+deb12u1", true), Exposure::likely);
  EXPECT_EQ(of("1.5-1+deb12u2", true), Exposure::none);
  EXPECT_EQ(of("1.5-1+deb13u1", true), Exposure::none);
  EXPECT_EQ(of("1.5-1+deb11u1", true), Exposure::unclear) << "of this release nobody says anything";
  EXPECT_EQ(of("1.5-1~debian.12", true), Exposure::likely) << "the maker's own package";
  EXPECT_EQ(exposure(advisory, {"y", "1.5", false}), Exposure::none);
}

// --- preflight ------------------------------------------------------------------------------------------------------

Inventory fit() {
  Inventory inventory;
  inventory.disk_free_bytes = 1ull << 30;
  inventory.disk_total_bytes = 2ull << 30;
  inventory.facts.home_path = "/home/ada/.gridctl";
  inventory.facts.home_writable = true;
  return inventory;
}

TEST(PreflightEdges, UnfitIsWhatCannotHoldAJob) {
  EXPECT_EQ(unfit_reason(fit()), "");
  Inventory inventory = fit();
  inventory.disk_free_bytes -= 1;
  EXPECT_THAT(unfit_reason(inventory), HasSubstr("its disk has"));
  inventory = fit();
  inventory.facts.home_noexec = true;
  EXPECT_THAT(unfit_reason(inventory), HasSubstr("noexec"));
  inventory.facts.home_writable = false;
  inventory.facts.home_problem = "Permission denied";
  EXPECT_EQ(unfit_reason(inventory), "/home/ada/.gridctl cannot be written: Permission denied");
  inventory.facts.home_path.clear();
  EXPECT_EQ(unfit_reason(inventory), "") << "it was not looked at";
}

Finding finding(const Inventory& inventory, const std::string& point, std::optional<WallTime> now = std::nullopt,
                std::optional<EngineKind> wanted = std::nullopt) {
  for (const Finding& one : preflight(inventory, wanted, now))
    if (one.point == point) return one;
  return {};
}

TEST(PreflightEdges, ClocksMayDifferByFiveMinutes) {
  constexpr WallTime k_now{1'795'000'000'000};
  Inventory inventory = fit();
  for (const std::int64_t off : {300'000, -300'000, 0}) {
    inventory.facts.clock_wall_ms = k_now.ms + off;
    EXPECT_TRUE(finding(inventory, "clock", k_now).ok) << off;
  }
  inventory.facts.clock_wall_ms = k_now.ms + 300'001;
  EXPECT_THAT(finding(inventory, "clock", k_now).detail, HasSubstr("5m ahead of"));
  inventory.facts.clock_wall_ms = k_now.ms - 300'001;
  EXPECT_THAT(finding(inventory, "clock", k_now).detail, HasSubstr("5m behind"));
  inventory.facts.clock_wall_ms = 1'704'067'200'000;
  EXPECT_TRUE(finding(inventory, "clock").ok);
  inventory.facts.clock_wall_ms -= 1;
  EXPECT_THAT(finding(inventory, "clock").detail, HasSubstr("2023-12-31"));
}

TEST(PreflightEdges, SharedMemoryOfSixtyFourMebibytes) {
  Inventory inventory = fit();
  inventory.facts.shm_bytes = 64u << 20;
  EXPECT_TRUE(finding(inventory, "shm").ok);
  inventory.facts.shm_bytes -= 1;
  EXPECT_THAT(finding(inventory, "shm").detail, HasSubstr("has only"));
}

TEST(PreflightEdges, NotesAboutGpusHaveTheirCommand) {
  Inventory inventory = fit();
  EXPECT_EQ(finding(inventory, "gpu").point, "");
  inventory.notes = {"the disk is slow"};
  inventory.gpus.emplace_back().name = "A100";
  EXPECT_EQ(finding(inventory, "gpu").detail, "1 x A100");
  for (const auto& [note, fix] : {std::pair{"amd: 1 GPU: sudo apt-get install x", "sudo apt-get install x"},
                                  {"rocm-smi: odd", "rocm-smi"},
                                  {"intel: reboot needed", "sudo reboot"},
                                  {"xpu-smi: odd", "xpu-smi"},
                                  {"nvidia-smi: odd", "nvidia-smi"}}) {
    inventory.notes = {note};
    EXPECT_EQ(finding(inventory, "gpu").fix, fix) << note;
    EXPECT_FALSE(finding(inventory, "gpu").ok);
  }
}

TEST(PreflightEdges, EnginesAreChosenInTheirOrder) {
  Inventory inventory = fit();
  EXPECT_EQ(choose_engine(inventory, std::nullopt), nullptr);
  EXPECT_EQ(finding(inventory, "engine").detail, "no engine was checked");
  inventory.engines = {{EngineKind::podman, "4", true, true, ""}, {EngineKind::docker, "27", false, true, ""}};
  EXPECT_EQ(choose_engine(inventory, std::nullopt)->kind, EngineKind::docker);
  EXPECT_EQ(choose_engine(inventory, EngineKind::podman)->kind, EngineKind::podman);
  EXPECT_EQ(finding(inventory, "engine", {}, EngineKind::podman).detail, "podman 4, rootless");
  EXPECT_EQ(finding(inventory, "engine").detail, "docker 27");
  EXPECT_TRUE(finding(inventory, "limits").ok);
  inventory.engines = {{EngineKind::docker, "", false, false, "docker: not installed"},
                       {EngineKind::podman, "", false, false, "podman: broken"}};
  EXPECT_EQ(finding(inventory, "engine").detail, "docker: not installed; podman: broken");
  EXPECT_EQ(finding(inventory, "engine").fix, "podman info") << "what is there is nearer to working";
  std::swap(inventory.engines[0], inventory.engines[1]);
  EXPECT_EQ(finding(inventory, "engine").fix, "podman info");
  inventory.engines = {{EngineKind::docker, "", false, false, "docker: not installed"}};
  EXPECT_EQ(finding(inventory, "engine").fix, "sudo apt-get install docker.io");
}

// --- measuring links ------------------------------------------------------------------------------------------------

TEST(RateEdges, AStepThatTellsIsSentOnceMore) {
  using namespace std::chrono_literals;
  RateSteps steps(1ull << 30, 100s, 0ms);
  EXPECT_EQ(steps.next(), k_rate_first);
  steps.took(k_rate_first, 149ms);
  EXPECT_EQ(steps.next(), k_rate_first * k_rate_growth) << "too short to tell";
  steps.took(k_rate_first * k_rate_growth, 150ms);
  EXPECT_EQ(steps.next(), k_rate_first * k_rate_growth) << "the same again";
  steps.took(k_rate_first * k_rate_growth, 149ms);
  EXPECT_EQ(steps.bytes(), 9 * k_rate_first);
  RateSteps slow(1ull << 30, 100s, 100ms);
  slow.took(k_rate_first, 1099ms);
  EXPECT_NE(slow.next(), k_rate_first) << "ten round trips are not over";
  RateSteps enough(1ull << 30, 100s, 100ms);
  enough.took(k_rate_first, 1100ms);
  EXPECT_EQ(enough.next(), k_rate_first);
  EXPECT_NEAR(enough.bits_per_second().value(), 64 * 1024 * 8, 1) << "less one round trip";
  RateSteps exact(k_rate_first, 100s, 0ms);
  EXPECT_EQ(exact.next(), k_rate_first);
  RateSteps short_of(k_rate_first - 1, 100s, 0ms);
  EXPECT_EQ(short_of.next(), std::nullopt);
  RateSteps no_time(1ull << 30, 0s, 0ms);
  EXPECT_EQ(no_time.next(), std::nullopt);
}

TEST(RateEdges, ATallyTellsEveryMarkAndNothingElse) {
  Bytes bytes(3 * 4096);
  const auto tally = [&](std::size_t piece) {
    Tally sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      sum.add(ByteView(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    return sum.value();
  };
  const std::uint64_t whole = tally(bytes.size());
  EXPECT_EQ(tally(7), whole);
  EXPECT_EQ(tally(4096), whole);
  bytes[8] = bytes[4095] = std::byte{1};
  EXPECT_EQ(tally(bytes.size()), whole) << "outside of the marks";
  bytes[4096 + 7] = std::byte{1};
  EXPECT_NE(tally(bytes.size()), whole);
}

TEST(IntelTopology, LinksEachPairOfFirstTilesOnce) {
  std::vector<Gpu> gpus(3);
  for (int i = 0; i < 3; ++i) gpus[static_cast<std::size_t>(i)].index = i + 4;
  const std::string head = "          GPU 4/0 GPU 4/1 GPU 5/0 GPU 6/0 CPU Affinity\n";
  const std::vector<GpuLink> links = read_xpu_topology("words before\n" + head +
                                                           "GPU 4/0   S       MDF     XL8     NODE    0-3\n"
                                                           "GPU 4/1   MDF     S       XL16    XL16    0-3\n"
                                                           "GPU 5/0   XL8     XL16    S       SYS     0-3\n"
                                                           "GPU 6/0   NODE    XL16    SYS     S       0-3\n",
                                                       gpus);
  ASSERT_EQ(links.size(), 3u);
  const auto is = [](const GpuLink& link, std::uint32_t a, std::uint32_t b, LinkKind kind) {
    return link.a == a && link.b == b && link.kind == kind;
  };
  EXPECT_TRUE(is(links[0], 0, 1, LinkKind::xelink));
  EXPECT_EQ(links[0].lanes, 8);
  EXPECT_TRUE(is(links[1], 0, 2, LinkKind::node));
  EXPECT_TRUE(is(links[2], 1, 2, LinkKind::sys));
  const std::string rows = "GPU 4/0 S XL*\nGPU 5/0 XL1000 S\n";
  EXPECT_TRUE(read_xpu_topology(rows, gpus).empty()) << "a row before any head";
  const std::vector<GpuLink> two = read_xpu_topology("GPU 4/0 GPU 5/0\n" + rows, gpus);
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(two[0].kind, LinkKind::xelink);
  EXPECT_EQ(two[0].lanes, GpuLink{}.lanes) << "by way of another tile";
  EXPECT_TRUE(read_xpu_topology("GPU 4/0 GPU 5/0\nGPU 4/0 S ODD\nGPU 5/0 ODD S\n", gpus).empty());
  EXPECT_TRUE(read_xpu_topology("GPU 7/0 GPU 8/0\nGPU 7/0 S SYS\n", gpus).empty()) << "of no GPU that is known";
  EXPECT_EQ(read_xpu_topology("GPU 4/0 GPU 5/0\nGPU 4/0 S XL999\n", gpus)[0].lanes, 999);
}

}  // namespace
}  // namespace gridctl::probe::health_edges_test
