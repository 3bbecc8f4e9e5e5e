// SPDX-License-Identifier: Apache-2.0
#include "probe/preflight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <gmock/gmock.h>

namespace gridctl::probe::preflight_test {
namespace {
using ::testing::HasSubstr;

constexpr WallTime k_now{1'795'000'000'000};

Inventory healthy() {
  Inventory inventory;
  inventory.disk_free_bytes = 100ull << 30;
  inventory.disk_total_bytes = 200ull << 30;
  inventory.engines = {{EngineKind::docker, "27.3.1", false, true, ""},
                       {EngineKind::podman, "", false, false, "podman: not installed"},
                       {EngineKind::process, "", false, false, ""}};
  inventory.facts.user = "ada";
  inventory.facts.home_path = "/home/ada/.gridctl";
  inventory.facts.home_file_system = "ext4";
  inventory.facts.home_writable = true;
  inventory.facts.shm_bytes = 8ull << 30;
  inventory.facts.cgroup_version = 2;
  inventory.facts.clock_wall_ms = k_now.ms;
  return inventory;
}

Finding find(const std::vector<Finding>& findings, const std::string& point) {
  const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.point == point; });
  return at == findings.end() ? Finding{} : *at;
}

void expect_failure(const Inventory& inventory, const std::string& point, const std::string& fix_part,
                    std::optional<EngineKind> wanted = std::nullopt) {
  const Finding finding = find(preflight(inventory, wanted, k_now), point);
  EXPECT_EQ(finding.point, point);
  EXPECT_FALSE(finding.ok);
  EXPECT_NE(finding.fix.find(fix_part), std::string::npos) << finding.fix;
}

TEST(Preflight, OfAHealthyHostPasses) {
  const auto findings = preflight(healthy(), std::nullopt, k_now);
  EXPECT_TRUE(passed(findings));
  for (const Finding& finding : findings) {
    EXPECT_TRUE(finding.ok) << finding.point << ": " << finding.detail;
    EXPECT_EQ(finding.fix, "");
  }
}

TEST(Preflight, EveryFailureNamesACommand) {
  Inventory broken;
  broken.engines = {{EngineKind::docker, "", false, false, "docker: not installed"}};
  broken.facts.home_path = "/home/ada/.gridctl";
  for (const Finding& finding : preflight(broken, EngineKind::docker, k_now)) {
    EXPECT_FALSE(finding.ok) << finding.point;
    EXPECT_FALSE(finding.fix.empty()) << finding.point;
  }
  EXPECT_FALSE(passed(preflight(broken, EngineKind::docker, k_now)));
}

TEST(Preflight, JudgesTheHome) {
  Inventory inventory = healthy();
  inventory.facts.home_noexec = true;
  expect_failure(inventory, "home", "remount,exec");
  inventory.facts.home_writable = false;
  expect_failure(inventory, "home", "chown ada /home/ada/.gridctl");
}

TEST(Preflight, WantsAGibibyteOfDisk) {
  Inventory inventory = healthy();
  inventory.disk_free_bytes = (1ull << 30) - 1;
  expect_failure(inventory, "disk", "du -xh");
}

TEST(Preflight, TakesTheFixFromTheEnginesProblem) {
  Inventory inventory = healthy();
  inventory.engines[0].problem =
      "docker: permission denied on /var/run/docker.sock: add the user to group docker: sudo usermod -aG docker ada";
  expect_failure(inventory, "engine", "sudo usermod -aG docker ada", EngineKind::docker);
  expect_failure(inventory, "engine", "sudo apt-get install podman", EngineKind::podman);
  ASSERT_NE(choose_engine(inventory, std::nullopt), nullptr);
  EXPECT_EQ(choose_engine(inventory, std::nullopt)->kind, EngineKind::process)
      << "any engine will do when none is named";
}

TEST(Preflight, NamesTheReasonThatIsKnownInsteadOfAnotherProgram) {
  Inventory inventory = healthy();
  inventory.engines = {{EngineKind::docker, "", false, false,
                        "docker: permission denied on /var/run/docker.sock: add the user to group docker: sudo usermod "
                        "-aG docker ada"},
                       {EngineKind::podman, "", false, false, "podman: not installed"},
                       {EngineKind::process, "", false, false, ""}};
  expect_failure(inventory, "limits", "sudo usermod -aG docker ada", std::nullopt);
  inventory.engines[0].problem = "docker: not installed";
  inventory.engines[1].problem = "podman: no answer within 10s";
  expect_failure(inventory, "limits", "podman info", std::nullopt);
}

TEST(Preflight, WantsSubordinateIdsOnlyForRootlessPodman) {
  Inventory inventory = healthy();
  inventory.engines[1] = {EngineKind::podman, "4.3.1", true, true, ""};
  expect_failure(inventory, "subuid", "apt-get install uidmap", EngineKind::podman);
  inventory.facts.newuidmap = true;
  EXPECT_TRUE(passed(preflight(inventory, EngineKind::podman, k_now))) << "it is only a warning";
  expect_failure(inventory, "subuid", "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ada",
                 EngineKind::podman);
  EXPECT_EQ(find(preflight(inventory, EngineKind::docker, k_now), "subuid").point, "");
}

TEST(Preflight, LetsJobsRunWithoutLimitsButSaysSo) {
  Inventory inventory = healthy();
  inventory.engines[1] = {EngineKind::podman, "4.3.1", true, false, ""};
  inventory.facts.subuid = inventory.facts.newuidmap = true;
  expect_failure(inventory, "limits", "Delegate=cpu", EngineKind::podman);
  inventory.facts.cgroup_version = 1;
  expect_failure(inventory, "limits", "systemd.unified_cgroup_hierarchy=1", EngineKind::podman);
  EXPECT_TRUE(passed(preflight(inventory, EngineKind::podman, k_now)));
}

TEST(Preflight, WarnsThatPlainProcessesAreNotIsolated) {
  const Finding warning = find(preflight(healthy(), EngineKind::process, k_now), "isolation");
  EXPECT_FALSE(warning.ok);
  EXPECT_FALSE(warning.required) << "jobs run in spite of it";
  EXPECT_NE(warning.detail.find("a job can do what ada can"), std::string::npos) << warning.detail;
  EXPECT_TRUE(find(preflight(healthy(), EngineKind::docker, k_now), "isolation").ok);
  const Finding either = find(preflight(healthy(), std::nullopt, k_now), "isolation");
  EXPECT_NE(either.detail.find("jobs without one are not isolated"), std::string::npos) << either.detail;
}

TEST(Preflight, SaysWhichJobsRunInContainers) {
  const auto said = [](std::optional<EngineKind> wanted) {
    return find(preflight(healthy(), wanted, k_now), "isolation").detail;
  };
  EXPECT_EQ(said(EngineKind::docker), "jobs run in containers");
  EXPECT_EQ(said(std::nullopt), "jobs with an image run in containers; jobs without one are not isolated");
  Inventory nameless = healthy();
  nameless.facts.user.clear();
  EXPECT_NE(find(preflight(nameless, EngineKind::process, k_now), "isolation").detail.find("what the login's user can"),
            std::string::npos);
}

TEST(Preflight, NamesTheEngineAsItIs) {
  Inventory inventory = healthy();
  const auto said = [&](EngineKind kind) { return find(preflight(inventory, kind, k_now), "engine").detail; };
  EXPECT_EQ(said(EngineKind::docker), "docker 27.3.1");
  EXPECT_EQ(said(EngineKind::process), "process");
  inventory.engines[1] = {EngineKind::podman, "4.3.1", true, true, ""};
  EXPECT_EQ(said(EngineKind::podman), "podman 4.3.1, rootless");
  EXPECT_EQ(find(preflight(inventory, EngineKind::docker, k_now), "limits").detail, "docker enforces memory and CPU limits");
  inventory.engines.clear();
  EXPECT_EQ(said(EngineKind::docker), "no engine was checked");
}

TEST(Preflight, MendsWhatIsInstalledBeforeItInstallsAnother) {
  const Engine missing{EngineKind::docker, "", false, false, "docker: not installed"};
  const Engine broken{EngineKind::podman, "", false, false, "podman: no OCI runtime: sudo apt-get install crun"};
  const Engine third{EngineKind::process, "", false, false, "process: broken too: sudo true"};
  Inventory inventory = healthy();
  for (const std::vector<Engine>& engines : {std::vector<Engine>{missing, broken, third}, {broken, missing, third}}) {
    inventory.engines = engines;
    const Finding finding = find(preflight(inventory, std::nullopt, k_now), "engine");
    EXPECT_FALSE(finding.ok);
    EXPECT_TRUE(finding.required);
    EXPECT_EQ(finding.fix, "sudo apt-get install crun");
    EXPECT_NE(finding.detail.find("docker: not installed"), std::string::npos) << finding.detail;
    EXPECT_NE(finding.detail.find("; "), std::string::npos) << finding.detail;
  }
  inventory.engines = {missing};
  EXPECT_EQ(find(preflight(inventory, std::nullopt, k_now), "engine").fix, "sudo apt-get install docker.io");
}

TEST(Preflight, JudgesAtItsBounds) {
  Inventory inventory = healthy();
  inventory.disk_free_bytes = 1ull << 30;
  EXPECT_TRUE(find(preflight(inventory, std::nullopt, k_now), "disk").ok);
  inventory.facts.cgroup_version = 1;
  inventory.engines[0].limits_enforced = false;
  expect_failure(inventory, "limits", "Delegate=cpu", EngineKind::docker);
  inventory = healthy();
  const auto clock = [&](std::int64_t off) {
    inventory.facts.clock_wall_ms = k_now.ms + off;
    return find(preflight(inventory, std::nullopt, k_now), "clock").detail;
  };
  EXPECT_NE(clock(3'600'000).find("1h ahead of this machine's"), std::string::npos) << clock(3'600'000);
  EXPECT_NE(clock(-3'600'000).find("1h behind this machine's"), std::string::npos) << clock(-3'600'000);
  EXPECT_EQ(clock(1000).find("machine's"), std::string::npos);
}

TEST(Preflight, TellsOfGpusInOneWord) {
  Inventory inventory = healthy();
  EXPECT_EQ(find(preflight(inventory, std::nullopt, k_now), "gpu").point, "") << "there are none";
  inventory.gpus.resize(2);
  inventory.gpus[0].name = "H100";
  EXPECT_EQ(find(preflight(inventory, std::nullopt, k_now), "gpu").detail, "2 x H100");
  inventory.notes = {"disks: something"};
  EXPECT_TRUE(find(preflight(inventory, std::nullopt, k_now), "gpu").ok) << "that is not about GPUs";
  for (const char* note : {"nvidia-smi: odd", "amd-smi: odd", "rocm-smi: odd", "intel: odd", "xpu-smi: odd"}) {
    inventory.notes = {note};
    const Finding finding = find(preflight(inventory, std::nullopt, k_now), "gpu");
    EXPECT_FALSE(finding.ok) << note;
    EXPECT_EQ(finding.fix + ": odd", note);
  }
  inventory.notes = {"nvidia: no driver: sudo apt-get install nvidia-driver"};
  EXPECT_EQ(find(preflight(inventory, std::nullopt, k_now), "gpu").fix, "sudo apt-get install nvidia-driver");
}

TEST(Preflight, SaysInAWordWhyAHostIsUnfit) {
  Inventory inventory = healthy();
  EXPECT_EQ(unfit_reason(inventory), "");
  inventory.disk_free_bytes = (1ull << 30) - 1;
  EXPECT_NE(unfit_reason(inventory).find("its disk has "), std::string::npos);
  inventory.facts.home_noexec = true;
  EXPECT_NE(unfit_reason(inventory).find("noexec"), std::string::npos);
  inventory.facts.home_noexec = false;
  inventory.facts.home_writable = false;
  inventory.facts.home_problem = "read-only";
  EXPECT_EQ(unfit_reason(inventory), "/home/ada/.gridctl cannot be written: read-only");
  inventory.facts.home_path.clear();
  EXPECT_EQ(unfit_reason(inventory), "") << "it was not looked at";
}

TEST(Preflight, ComparesTheClocks) {
  Inventory inventory = healthy();
  inventory.facts.clock_wall_ms = k_now.ms - 3600 * 1000;
  expect_failure(inventory, "clock", "timedatectl set-ntp true");
  inventory.facts.clock_wall_ms = 0;
  EXPECT_FALSE(find(preflight(inventory), "clock").ok);
}

TEST(Preflight, WantsSharedMemory) {
  Inventory inventory = healthy();
  inventory.facts.shm_bytes = 1 << 20;
  expect_failure(inventory, "shm", "mount -o remount");
  inventory.facts.shm_bytes = 0;
  expect_failure(inventory, "shm", "mount -t tmpfs");
}

TEST(Preflight, ShowsGpusThatCannotBeUsed) {
  Inventory inventory = healthy();
  inventory.notes = {"nvidia-smi: the driver was updated under a running kernel module: reboot needed"};
  expect_failure(inventory, "gpu", "sudo reboot");
}

TEST(Preflight, JudgesInventoriesOfOlderAgentsByWhatTheyHave) {
  Inventory inventory = healthy();
  inventory.facts = {};
  EXPECT_TRUE(passed(preflight(inventory, std::nullopt, k_now)));
}

Inventory fit() {
  Inventory inventory;
  inventory.disk_free_bytes = 1ull << 30;
  inventory.disk_total_bytes = 2ull << 30;
  inventory.facts.home_path = "/home/ada/.gridctl";
  inventory.facts.home_writable = true;
  return inventory;
}

TEST(PreflightLimits, UnfitIsWhatCannotHoldAJob) {
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

TEST(PreflightLimits, ClocksMayDifferByFiveMinutes) {
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

TEST(PreflightLimits, SharedMemoryOfSixtyFourMebibytes) {
  Inventory inventory = fit();
  inventory.facts.shm_bytes = 64u << 20;
  EXPECT_TRUE(finding(inventory, "shm").ok);
  inventory.facts.shm_bytes -= 1;
  EXPECT_THAT(finding(inventory, "shm").detail, HasSubstr("has only"));
}

TEST(PreflightLimits, NotesAboutGpusHaveTheirCommand) {
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

TEST(PreflightLimits, EnginesAreChosenInTheirOrder) {
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

}  // namespace
}  // namespace gridctl::probe::preflight_test
