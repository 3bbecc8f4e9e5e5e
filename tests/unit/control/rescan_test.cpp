// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/rescan.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "registry/registry.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::rescan_test {
namespace {

Gpu gpu(const std::string& uuid) {
  Gpu gpu;
  gpu.name = "NVIDIA GeForce RTX 4090";
  gpu.uuid = uuid;
  gpu.memory_bytes = 24564ull << 20;
  gpu.driver = "570.1";
  gpu.pcie = {1, 4, 16, 16};
  gpu.power.cap_watts = 450;
  return gpu;
}

Inventory two_gpus() {
  Inventory in;
  in.machine_id = "m1";
  in.boot_id = "b1";
  in.kernel = "6.1";
  in.memory_bytes = 64;
  in.gpus = {gpu("GPU-a"), gpu("GPU-b")};
  in.links = {{0, 1, LinkKind::phb, {}, {}}};
  in.disks = {{"/", "ext4", "/dev/sda1", DiskKind::ssd, 100, 50, false}};
  in.engines = {{EngineKind::docker, "26", false, true, ""}};
  return in;
}

std::vector<std::string> described(const Inventory& before, const Inventory& after) {
  std::vector<std::string> lines;
  for (const InventoryChange& change : inventory_changes(before, after)) lines.push_back(describe(change));
  return lines;
}

TEST(Rescan, FindsNoDifferenceInWhatChangesByItself) {
  const Inventory before = two_gpus();
  Inventory after = before;
  after.boot_id = "b2";
  after.memory_free_bytes = 5;
  after.disk_free_bytes = 7;
  after.disks[0].free_bytes = 1;
  after.facts.clock_wall_ms = 99;
  after.gpus[0].clocks.core_mhz = 2500;
  after.gpus[0].pcie.generation = 4;
  after.gpus[0].heat.now_c = 80;
  after.gpus[0].power.draw_watts = 400;
  after.gpus[0].throttle = std::vector<std::string>{"sw_power_cap"};
  after.gpus[0].gaps = {{"units", GapReason::needs_bench, ""}};
  after.notes = {"x"};
  EXPECT_TRUE(described(before, after).empty());
}

TEST(Rescan, TellsPartsThatCameAndWentAndFactsThatChanged) {
  const Inventory before = two_gpus();
  Inventory after = before;
  after.kernel = "6.8";
  after.gpus = {gpu("GPU-b"), gpu("GPU-c")};
  after.gpus[0].pcie.width = 8;
  after.gpus[0].power.cap_watts = 300;
  after.links = {{0, 1, LinkKind::sys, {}, {}}};
  after.disks.push_back({"/data", "xfs", "/dev/sdb", DiskKind::hdd, 9, 9, false});
  after.engines[0].problem = "docker: no daemon";
  EXPECT_EQ(
      described(before, after),
      (std::vector<std::string>{"gpu GPU-a: gone: NVIDIA GeForce RTX 4090", "gpu GPU-b pcie.width: 16 -> 8",
                                "gpu GPU-b power.cap_watts: 450.0 -> 300.0", "gpu GPU-c: new: NVIDIA GeForce RTX 4090",
                                "disk /data: new: xfs", "engine docker problem: unknown -> docker: no daemon",
                                "link GPU-a GPU-b: gone: phb", "link GPU-b GPU-c: new: sys", "kernel: 6.1 -> 6.8"}));
}

TEST(Rescan, DoesNotCallNewWhatAnOlderAgentDidNotLookFor) {
  Inventory before = two_gpus();
  before.version = 1;
  before.links.clear();
  before.disks.clear();
  before.gpus[0].pcie = {};
  Inventory after = two_gpus();
  after.product = "X";
  after.gpus[0].units = 128;
  EXPECT_TRUE(described(before, after).empty());
  after.gpus[0].driver = "580.1";
  EXPECT_EQ(described(before, after), std::vector<std::string>{"gpu GPU-a driver: 570.1 -> 580.1"});
}

TEST(Rescan, CutsAValueThatIsTooLong) {
  const Inventory before = two_gpus();
  Inventory after = before;
  after.kernel = std::string(500, 'k');
  EXPECT_EQ(described(before, after), std::vector<std::string>{"kernel: 6.1 -> " + std::string(120, 'k') + "…"});
}

TEST(Rescan, KeepsASummaryShort) {
  Inventory after = two_gpus();
  after.gpus.clear();
  after.links.clear();
  after.kernel = "7";
  after.os = "Y";
  const std::string text = summary(inventory_changes(two_gpus(), after));
  EXPECT_NE(text.find("; 2 more"), std::string::npos) << text;
}

class KeepExamined : public ::testing::Test {
 protected:
  KeepExamined() {
    auto opened = registry::Registry::open(directory_.path());
    EXPECT_TRUE(opened);
    registry_.emplace(std::move(opened).value());
    provider_.name = HostName{"ada"};
    provider_.inventory = two_gpus();
    EXPECT_TRUE(registry_->add_provider(provider_));
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> out;
    const auto events = registry_->host_events(HostName{"ada"}, 0);
    EXPECT_TRUE(events);
    for (const registry::HostEvent& event : *events) out.push_back(event.kind);
    return out;
  }
  gridctl::testing::TempDir directory_;
  std::optional<registry::Registry> registry_;
  registry::Provider provider_;
};

TEST_F(KeepExamined, NotesARebootAndWhatIsDifferentSince) {
  registry::Provider found = provider_;
  found.inventory.edit().boot_id = "b2";
  found.inventory.edit().gpus.pop_back();
  found.inventory.edit().links.clear();
  const auto changes = keep_examined(*registry_, found, WallTime{1000});
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->size(), 2u);
  EXPECT_EQ(kinds(), (std::vector<std::string>{"rebooted", "inventory_changed"}));
  EXPECT_EQ(registry_->provider(HostName{"ada"})->inventory->gpus.size(), 1u);
}

TEST_F(KeepExamined, LeavesWhatSomebodyElseWroteMeanwhile) {
  registry::Provider drained = provider_;
  drained.drained = true;
  ASSERT_TRUE(registry_->update_provider(drained));
  ASSERT_TRUE(keep_examined(*registry_, provider_, WallTime{1000}));
  EXPECT_TRUE(registry_->provider(HostName{"ada"})->drained);
  EXPECT_TRUE(kinds().empty());
}

TEST_F(KeepExamined, NotesThatAnotherMachineAnswers) {
  registry::Provider found = provider_;
  found.inventory.edit().machine_id = "m2";
  found.inventory.edit().boot_id = "b9";
  ASSERT_TRUE(keep_examined(*registry_, found, WallTime{1000}));
  EXPECT_EQ(kinds().front(), "machine_replaced");
}

TEST(Contradictions, CompareWhatWasSaidWithWhatIsThere) {
  registry::Provider provider;
  provider.inventory = two_gpus();
  provider.declared_gpus = "RTX_4090:2";
  EXPECT_TRUE(contradictions(provider).empty());
  provider.declared_gpus = "RTX_4090:4";
  EXPECT_EQ(contradictions(provider).size(), 1u);
  provider.declared_gpus = "H100:2";
  EXPECT_EQ(contradictions(provider).size(), 1u);
  provider.declared_gpus.clear();
  provider.engine = "docker";
  provider.inventory.edit().engines[0].problem = "docker: no daemon";
  EXPECT_EQ(contradictions(provider).size(), 1u);
  provider.engine = "auto";
  provider.host_class = "datacenter";
  provider.inventory.edit().gpus[0].name = "NVIDIA GeForce RTX 4090 Laptop GPU";
  EXPECT_EQ(contradictions(provider).size(), 1u);
}

}  // namespace
}  // namespace gridctl::control::rescan_test
