// SPDX-License-Identifier: Apache-2.0
#include "probe/health.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "fixture.hpp"
#include "probe/health_machine.hpp"
#include "probe/health_nvidia.hpp"

namespace gridctl::probe::health_test {
namespace {

using ::testing::IsEmpty;
using ::testing::HasSubstr;

using wire::GpuHealth;
using wire::KernelEvent;

std::string sample(const std::string& name) {
  std::ostringstream out;
  out << std::ifstream(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/health/" + name, std::ios::binary).rdbuf();
  return out.str();
}

ToolAnswer answered(const std::string& out, const std::string& err = "", int code = 0) {
  ToolAnswer answer;
  answer.tool = "nvidia-smi";
  answer.found = answer.answered = true;
  answer.exit_code = code;
  answer.out = out;
  answer.err = err;
  return answer;
}

TEST(NvidiaHealth, ABusyAndABrokenGpuAreToldApart) {
  const auto gpus = read_nvidia_health(answered(sample("h100-busy.xml")));
  ASSERT_EQ(gpus.size(), 2u);
  const GpuHealth& busy = gpus[0];
  EXPECT_EQ(busy.uuid, "GPU-aaaaaaaa-0000-1111-2222-333333333333");
  EXPECT_EQ(busy.pci, "0000:1b:00.0");
  EXPECT_EQ(busy.memory_total, 81559ull << 20);
  EXPECT_EQ(busy.memory_used, 65720ull << 20);
  EXPECT_EQ(busy.throttle, (std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"}));
  EXPECT_EQ(busy.temperature_c, 87);
  EXPECT_EQ(busy.ecc_uncorrected, 3u) << "since the driver was loaded, not of its whole life";
  EXPECT_EQ(busy.ecc_corrected, 177u);
  EXPECT_EQ(busy.remap_pending, true);
  EXPECT_EQ(busy.remap_failed, false);
  EXPECT_EQ(busy.recovery, "");
  ASSERT_TRUE(busy.processes);
  ASSERT_EQ(busy.processes->size(), 2u);
  EXPECT_EQ(busy.processes->at(0).name, "python3");
  EXPECT_EQ(busy.processes->at(0).memory_bytes, 65000ull << 20);
  EXPECT_FALSE(busy.processes->at(0).draws);
  EXPECT_TRUE(busy.processes->at(1).draws);
  EXPECT_EQ(gpus[1].recovery, "reboot");
  EXPECT_EQ(gpus[1].remap_failed, true);
  EXPECT_TRUE(gpus[1].processes && gpus[1].processes->empty());
}

TEST(NvidiaHealth, ErrorsThatWereCorrectedAreCountedApart) {
  const auto gpus = read_nvidia_health(answered(
      "<nvidia_smi_log><gpu id=\"00000000:01:00.0\"><ecc_errors><volatile><sram_correctable>3</sram_correctable>"
      "<sram_uncorrectable_parity>0</sram_uncorrectable_parity><dram_correctable>4</dram_correctable>"
      "<dram_uncorrectable>1</dram_uncorrectable><sram_threshold_exceeded>9</sram_threshold_exceeded></volatile>"
      "</ecc_errors></gpu></nvidia_smi_log>"));
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].ecc_corrected, 7u);
  EXPECT_EQ(gpus[0].ecc_uncorrected, 1u);
}

TEST(NvidiaHealth, AnOldDriverIsUnderstoodToo) {
  const auto gpus = read_nvidia_health(answered(sample("v100-old-driver.xml")));
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].ecc_uncorrected, 2u);
  EXPECT_EQ(gpus[0].ecc_corrected, 4u);
  EXPECT_EQ(gpus[0].remap_pending, true);
  EXPECT_EQ(gpus[0].throttle, std::vector<std::string>{"hw_slowdown"}) << "idle clocks are no throttle";
  EXPECT_FALSE(gpus[0].processes) << "it may not see them";
  EXPECT_FALSE(gpus[0].temperature_c);
}

TEST(NvidiaHealth, ALostGpuIsNamedByTheComplaint) {
  const auto gpus = read_nvidia_health(answered(
      "", "Unable to determine the device handle for GPU0: 0000:0A:00.0: GPU is lost. Reboot to recover\n", 15));
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].pci, "0000:0a:00.0");
  EXPECT_NE(gpus[0].problem.find("GPU is lost"), std::string::npos);
}

TEST(NvidiaHealth, ADriverThatDoesNotWorkSaysWhy) {
  const auto gpus =
      read_nvidia_health(answered("Failed to initialize NVML: Driver/library version mismatch\n", "", 18));
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_TRUE(gpus[0].uuid.empty() && gpus[0].pci.empty());
  EXPECT_NE(gpus[0].problem.find("version mismatch"), std::string::npos);
  EXPECT_TRUE(read_nvidia_health(answered("| NVIDIA-SMI of another kind |")).empty());
}

TEST(NvidiaHealth, DamagedOutputIsReadAsFarAsItGoes) {
  const std::string whole = sample("h100-busy.xml");
  std::mt19937 random(3);
  for (int turn = 0; turn < 500; ++turn) {
    std::string damaged = whole.substr(0, random() % whole.size());
    for (int bytes = 0; bytes < 4 && !damaged.empty(); ++bytes)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    for (const GpuHealth& gpu : read_nvidia_health(answered(damaged))) EXPECT_LE(gpu.uuid.size(), 128u);
  }
}

const KernelEvent* find(const std::vector<KernelEvent>& events, const std::string& kind, int code = 0) {
  const auto found = std::find_if(events.begin(), events.end(),
                                  [&](const KernelEvent& e) { return e.kind == kind && e.code == code; });
  return found == events.end() ? nullptr : &*found;
}

TEST(KernelLog, EveryKindIsFoundInKmsgAndNothingElse) {
  const auto events = read_kernel_log(sample("kmsg"), LogForm::kmsg, 100'000'000);
  const KernelEvent* thirteen = find(events, "xid", 13);
  ASSERT_TRUE(thirteen);
  EXPECT_EQ(thirteen->count, 2);
  EXPECT_EQ(thirteen->pci, "0000:3b:00.0");
  EXPECT_EQ(thirteen->stamp_us, 91'000'000u);
  EXPECT_EQ(thirteen->age_ms, 9000);
  ASSERT_TRUE(find(events, "xid", 94)) << "with a MIG instance in its address";
  ASSERT_TRUE(find(events, "xid", 79));
  EXPECT_EQ(find(events, "xid", 79)->count, 2) << "said in both of the driver's ways";
  ASSERT_TRUE(find(events, "sxid", 12028));
  ASSERT_TRUE(find(events, "ras"));
  EXPECT_EQ(find(events, "ras")->count, 1) << "an all-clear is no error";
  for (const char* kind : {"gpu_hang", "gpu_reset", "gpu_lost", "fs_error", "disk_error", "hung_task", "machine_check",
                           "memory_error", "pcie_fatal"})
    EXPECT_TRUE(find(events, kind)) << kind;
  EXPECT_EQ(find(events, "memory_error")->count, 1) << "a corrected error is none";
  EXPECT_FALSE(find(events, "gpu_fault"));
}

TEST(KernelLog, TheJournalIsReadAndOtherProgramsAreNotBelieved) {
  const auto events = read_kernel_log(sample("journal"), LogForm::journal, 200'000'000);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].code, 79);
  EXPECT_EQ(events[0].count, 1);
  EXPECT_EQ(events[0].stamp_us, 93'000'100u);
  EXPECT_EQ(events[1].kind, "oom");
}

TEST(KernelLog, AFloodKeepsTheNewestAndStaysBounded) {
  std::string log;
  for (int code = 1; code <= 500; ++code)
    log += "4," + std::to_string(code) + "," + std::to_string(code) +
           ",-;NVRM: Xid (PCI:0000:3b:00): " + std::to_string(code) + ", x\n";
  const auto events = read_kernel_log(log, LogForm::kmsg, 1000);
  EXPECT_EQ(events.size(), wire::k_health_events_max);
  EXPECT_EQ(events.back().code, 500);
}

TEST(KernelLog, AnyBytesAreBorne) {
  const std::string whole = sample("kmsg");
  std::mt19937 random(11);
  for (int turn = 0; turn < 300; ++turn) {
    std::string damaged = whole;
    for (int bytes = 0; bytes < 20; ++bytes) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    for (const LogForm form : {LogForm::kmsg, LogForm::journal})
      for (const KernelEvent& event : read_kernel_log(damaged, form, random())) {
        EXPECT_LE(event.text.size(), wire::k_health_text_max);
        EXPECT_GE(event.code, 0);
      }
  }
}

class HealthTest : public ProbeTest {
 protected:
  void amd_card() const {
    file("/sys/class/drm/card1/device/vendor", "0x1002\n");
    file("/sys/class/drm/card1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:C3:00.0\n");
    file("/sys/class/drm/card1/device/mem_info_vram_total", "68702699520\n");
    file("/sys/class/drm/card1/device/mem_info_vram_used", "30000000000\n");
    file("/sys/class/drm/card1/device/hwmon/hwmon3/temp1_input", "47000\n");
    file("/sys/class/drm/card1/device/ras/umc_err_count", "ue: 3\nce: 10\n");
    file("/sys/class/drm/card1/device/ras/gfx_err_count", "ue: 1\nce: 0\n");
    file("/sys/class/drm/card1-HDMI-A-1/status", "connected\n");
    file("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    file("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51140\n");
    file("/sys/class/kfd/kfd/topology/nodes/1/properties", "cpu_cores_count 0\nlocation_id 49920\ndomain 0\n");
    file("/sys/class/kfd/kfd/proc/4711/vram_51140", "29000000000\n");
    file("/sys/class/kfd/kfd/proc/12/vram_51140", "0\n");
    file("/proc/4711/comm", "python3\n");
  }
  [[nodiscard]] HealthOptions health_options(Duration deadline = std::chrono::seconds{5}) const {
    HealthOptions options;
    options.root = root();
    options.home = home();
    options.toolbox = toolbox(deadline);
    options.gpu_tools = true;
    options.log.problem = "not asked";
    std::filesystem::create_directories(home());
    return options;
  }
};

TEST_F(HealthTest, AmdTellsByItsFilesWhoHoldsItsMemory) {
  amd_card();
  const auto gpus = amd_health(files());
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].pci, "0000:c3:00.0");
  EXPECT_EQ(gpus[0].memory_used, 30000000000u);
  EXPECT_EQ(gpus[0].ecc_uncorrected, 4u);
  EXPECT_EQ(gpus[0].ecc_corrected, 10u);
  EXPECT_EQ(gpus[0].temperature_c, 47);
  ASSERT_TRUE(gpus[0].processes);
  ASSERT_EQ(gpus[0].processes->size(), 1u);
  EXPECT_EQ(gpus[0].processes->at(0).pid, 4711);
  EXPECT_EQ(gpus[0].processes->at(0).name, "python3");
}

TEST_F(HealthTest, IntelTellsByTheProcessesOfItsUsers) {
  file("/sys/class/drm/card0/device/vendor", "0x8086\n");
  file("/sys/class/drm/card0/device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
  file("/proc/77/comm", "train\n");
  const std::string info =
      "pos:\t0\ndrm-driver:\txe\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t7\n"
      "drm-total-vram0:\t1024 KiB\ndrm-shared-vram0:\t0\n";
  file("/proc/77/fdinfo/4", info);
  file("/proc/77/fdinfo/5", info);
  file("/proc/78/fdinfo/1", "pos:\t0\nflags:\t02\n");
  const auto gpus = intel_health(files());
  ASSERT_EQ(gpus.size(), 1u);
  ASSERT_TRUE(gpus[0].processes);
  ASSERT_EQ(gpus[0].processes->size(), 1u);
  EXPECT_EQ(gpus[0].processes->at(0).memory_bytes, 1024u * 1024u) << "two descriptors of one client";
}

TEST_F(HealthTest, AToolThatHangsInTheKernelIsSeenWhoeverStartedIt) {
  file("/proc/uptime", "1000.50 3000.00\n");
  const auto stat = [](char state, int started) {
    return std::string("9 (nvidia-smi) ") + state + " 1 9 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " +
           std::to_string(started) + " 0 0\n";
  };
  file("/proc/9/stat", stat('D', 90'000));
  EXPECT_EQ(stuck_tools(files(), std::chrono::seconds{15}), std::vector<std::string>{"nvidia-smi"});
  file("/proc/9/stat", stat('D', 99'900));
  EXPECT_TRUE(stuck_tools(files(), std::chrono::seconds{15}).empty()) << "it may be slow";
  file("/proc/9/stat", stat('S', 90'000));
  EXPECT_TRUE(stuck_tools(files(), std::chrono::seconds{15}).empty()) << "it can be killed";
}

TEST_F(HealthTest, AToolStuckInTheKernelIsNotStartedAgain) {
  tool("nvidia-smi", "touch " + (root() / "started").string() + "; echo");
  file("/proc/uptime", "1000.50 3000.00\n");
  file("/proc/9/stat", "9 (nvidia-smi) D 1 9 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 90000 0 0\n");
  const auto report = take_health(os::system_clock(), health_options());
  ASSERT_EQ(report.hung.size(), 1u);
  EXPECT_TRUE(report.hung[0].in_kernel);
  EXPECT_FALSE(std::filesystem::exists(root() / "started"));
}

TEST_F(HealthTest, EachToolThatIsStuckIsToldOnce) {
  file("/proc/uptime", "1000.50 3000.00\n");
  for (const auto& [pid, name] : {std::pair{"9", "nvidia-smi"}, {"10", "nvidia-smi"}, {"11", "amd-smi"}})
    file(std::string("/proc/") + pid + "/stat",
         std::string(pid) + " (" + name + ") D 1 9 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 90000 0 0\n");
  std::vector<std::string> hung;
  for (const auto& tool : take_health(os::system_clock(), health_options()).hung) hung.push_back(tool.tool);
  EXPECT_THAT(hung, ::testing::UnorderedElementsAre("nvidia-smi", "amd-smi"));
}

TEST_F(HealthTest, AToolThatGivesNoAnswerIsAHungDriverAndTheRestIsTold) {
  tool("nvidia-smi", "sleep 60");
  const auto report = take_health(os::system_clock(), health_options(std::chrono::milliseconds{200}));
  ASSERT_EQ(report.hung.size(), 1u);
  EXPECT_EQ(report.hung[0].tool, "nvidia-smi");
  EXPECT_FALSE(report.hung[0].in_kernel);
  EXPECT_TRUE(report.gpus.empty());
  EXPECT_TRUE(report.disk.write_problem.empty()) << report.disk.write_problem;
  EXPECT_GT(report.disk.total_bytes, 0u);
}

TEST_F(HealthTest, ASkippedToolIsToldOfAsHungAndNotRun) {
  tool("nvidia-smi", "touch " + (root() / "started").string());
  HealthOptions options = health_options();
  options.skip_tools = {"nvidia-smi"};
  EXPECT_EQ(take_health(os::system_clock(), options).hung.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(root() / "started"));
}

TEST_F(HealthTest, BesideAJobNoToolIsRun) {
  tool("nvidia-smi", "touch " + (root() / "started").string());
  HealthOptions options = health_options();
  options.gpu_tools = false;
  EXPECT_EQ(take_health(os::system_clock(), options).gpus_at.ns, 0);
  EXPECT_FALSE(std::filesystem::exists(root() / "started"));
}

TEST_F(HealthTest, AHomeThatCannotBeWrittenIsSaid) {
  HealthOptions options = health_options();
  options.home = "/proc/nothing";
  EXPECT_FALSE(take_health(os::system_clock(), options).disk.write_problem.empty());
}

TEST_F(HealthTest, LoadAndMemoryAreRead) {
  file("/proc/meminfo", "MemTotal:       16384 kB\nMemFree:        1000 kB\nMemAvailable:    8192 kB\n");
  file("/proc/pressure/memory", "some avg10=1.00 avg60=61.25 avg300=3.00 total=9\nfull avg10=0.00 avg60=0.00\n");
  file("/proc/loadavg", "3.75 2.00 1.00 1/100 4711\n");
  file("/sys/devices/system/cpu/online", "0-7\n");
  file("/proc/stat", "cpu  10 1 5 1000 50 2 3 4 0 0\ncpu0 1 1 1 1\n");
  wire::HealthReport report;
  read_load(files(), report);
  EXPECT_EQ(report.memory_available, 8192u * 1024u);
  EXPECT_EQ(report.memory_pressure, 61.25);
  EXPECT_EQ(report.load1, 3.75);
  EXPECT_EQ(report.cpus, 8);
  EXPECT_EQ(busy_ticks(files()), 25u);
}

TEST_F(HealthTest, TheDisksOwnComplaintsAreFound) {
  file("/proc/self/mountinfo",
       "22 1 8:3 / / rw,relatime shared:1 - ext4 /dev/sda3 rw\n"
       "30 22 259:2 / " +
           home().parent_path().string() + " ro,relatime - ext4 /dev/nvme0n1p2 ro\n");
  file("/sys/fs/ext4/nvme0n1p2/errors_count", "4\n");
  file("/sys/class/nvme/nvme0/state", "dead\n");
  std::filesystem::create_directories(home());
  wire::DiskHealth disk;
  read_disk_health(files(), home(), disk);
  EXPECT_TRUE(disk.read_only);
  EXPECT_EQ(disk.file_system_errors, 4u);
  EXPECT_EQ(disk.drive_problem, "nvme0 is dead");
  EXPECT_EQ(whole_disk("sda3"), "sda");
  EXPECT_EQ(whole_disk("nvme0n1p12"), "nvme0n1");
  EXPECT_EQ(whole_disk("nvme0n1"), "nvme0n1");
  EXPECT_EQ(whole_disk("mmcblk0p1"), "mmcblk0");
  EXPECT_EQ(whole_disk("vda"), "vda");
}

TEST(HungTools, TheyAreTriedAgainAtGrowingIntervals) {
  const BootTime then{1'000'000'000};
  EXPECT_TRUE(may_try({}, then));
  EXPECT_FALSE(may_try({1, then}, then + std::chrono::seconds{59}));
  EXPECT_TRUE(may_try({1, then}, then + std::chrono::seconds{60}));
  EXPECT_FALSE(may_try({4, then}, then + std::chrono::minutes{7}));
  EXPECT_TRUE(may_try({4, then}, then + std::chrono::minutes{8}));
  EXPECT_TRUE(may_try({1000, then}, then + std::chrono::hours{1})) << "at most an hour";
}

// --- one GPU of NVIDIA's report ----------------------------------------------------------------------------------------

GpuHealth only_gpu(const std::string& inside) {
  const auto gpus = read_nvidia_health(answered("<nvidia_smi_log><gpu id=\"00000000:01:00.0\">" + inside + "</gpu></nvidia_smi_log>"));
  EXPECT_EQ(gpus.size(), 1u);
  return gpus.empty() ? GpuHealth{} : gpus[0];
}

TEST(NvidiaGpu, CountsNothingThatIsNoCountOfErrors) {
  const auto gpu = only_gpu(
      "<ecc_errors><volatile><sram_threshold_exceeded>1</sram_threshold_exceeded><correctable_note>3</correctable_note>"
      "<dram_correctable>4</dram_correctable><sram_correctable>2</sram_correctable>"
      "<sram_uncorrectable_parity>5</sram_uncorrectable_parity><sram_uncorrectable_secded>6</sram_uncorrectable_secded>"
      "</volatile><aggregate><dram_correctable>900</dram_correctable></aggregate></ecc_errors>");
  EXPECT_EQ(gpu.ecc_corrected, 6u);
  EXPECT_EQ(gpu.ecc_uncorrected, 11u);
}

TEST(NvidiaGpu, TellsEachProcessAndItsMemory) {
  const auto gpu = only_gpu(
      "<processes><process_info><pid>77</pid><type>C</type><process_name>python</process_name><used_memory>3 MiB"
      "</used_memory></process_info><process_info><pid>78</pid><type>G</type><process_name>N/A</process_name>"
      "<used_memory>N/A</used_memory></process_info></processes>");
  ASSERT_TRUE(gpu.processes);
  ASSERT_EQ(gpu.processes->size(), 2u);
  EXPECT_EQ((*gpu.processes)[0].pid, 77);
  EXPECT_EQ((*gpu.processes)[0].name, "python");
  EXPECT_EQ((*gpu.processes)[0].memory_bytes, 3u << 20);
  EXPECT_FALSE((*gpu.processes)[0].draws);
  EXPECT_TRUE((*gpu.processes)[1].draws);
  EXPECT_EQ((*gpu.processes)[1].name, "");
  EXPECT_EQ((*gpu.processes)[1].memory_bytes, 0u);
}

TEST(NvidiaGpu, BelievesNoImpossibleHeat) {
  const auto heat = [](const std::string& text) {
    return only_gpu("<temperature><gpu_temp>" + text + "</gpu_temp></temperature>").temperature_c;
  };
  EXPECT_EQ(heat("31 C"), 31);
  EXPECT_EQ(heat("999 C"), 999);
  EXPECT_EQ(heat("1000 C"), std::nullopt);
  EXPECT_EQ(heat("N/A"), std::nullopt);
}

class HealthReport : public ProbeTest {
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

TEST_F(HealthReport, AReportSaysWhyThereIsNoLog) {
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

TEST_F(HealthReport, EnginesAndTheDriveAreAskedWhereThatIsWanted) {
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

TEST_F(HealthReport, PackagesAreReadWhereThatIsWanted) {
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

}  // namespace
}  // namespace gridctl::probe::health_test
