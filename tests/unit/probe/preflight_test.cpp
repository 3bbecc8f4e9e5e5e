// SPDX-License-Identifier: Apache-2.0
#include "probe/preflight.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gridctl::probe {
namespace {

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

}  // namespace
}  // namespace gridctl::probe
