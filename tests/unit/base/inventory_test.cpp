// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/inventory.hpp"
#include "support/results.hpp"

namespace gridctl::inventory_test {
namespace {

Gpu full_gpu(const std::string& uuid) {
  Gpu gpu;
  gpu.vendor = Vendor::amd;
  gpu.name = "AMD Instinct MI300X";
  gpu.uuid = uuid;
  gpu.memory_bytes = 206141652992;
  gpu.driver = "6.10.5";
  gpu.pci = "0000:0c:00.0";
  gpu.index = 3;
  gpu.model = "Instinct MI300X";
  gpu.arch = "gfx942";
  gpu.units = 304;
  gpu.memory_bus_bits = 8192;
  gpu.ecc = true;
  gpu.numa_node = 0;
  gpu.throttle = std::vector<std::string>{"ppt"};
  gpu.clocks = {132, 2100, 900, 1300};
  gpu.power = {141.5, 750, 750, 750};
  gpu.heat = {40, 100, 110};
  gpu.pcie = {5, 5, 16, 16};
  gpu.partition = {true, "CPX", "GPU-parent"};
  gpu.fabric = {7, 512e9};
  return gpu;
}

Inventory full() {
  Inventory in;
  in.machine_id = "m";
  in.boot_id = "b";
  in.hostname = "ada";
  in.kernel = "6.8.0";
  in.arch = "x86_64";
  in.os = "Ubuntu 22.04";
  in.product = "AS-8125GS-TNMR2";
  in.virtualization = "none";
  in.cpu_model = "EPYC";
  in.cpus = 191.5;
  in.cpu = {2, 96, 192, 3700, {"avx2", "avx512f"}, {{0, "0-47", 1ull << 40}, {1, "48-95", 1ull << 40}}};
  in.memory_bytes = 2ull << 40;
  in.memory_free_bytes = 1ull << 40;
  in.disk_free_bytes = 5;
  in.disk_total_bytes = 9;
  in.disks = {{"/", "ext4", "/dev/nvme0n1p2", DiskKind::nvme, 100, 50, false}};
  in.nics = {{"mlx5_0", "ib0", 1, NicKind::infiniband, true, 400e9, "15b3:1021", "0000:18:00.0", 1}};
  in.gpu_direct = {"peermem"};
  in.engines = {{EngineKind::docker, "26.1", false, true, ""}};
  in.gpus = {full_gpu("GPU-1"), full_gpu("GPU-2")};
  in.links = {{0, 1, LinkKind::xgmi, 1, 512e9}};
  in.nvswitch = 0;
  in.cuda = "12.4";
  in.rocm = "6.3.1";
  in.oneapi = "2025.0";
  in.software = {"glibc 2.35", "12.4", "6.3.1", "1.17", {"1.17.4", true, {"nvidia.com/gpu"}}};
  in.notes = {"a note"};
  in.facts.user = "worker";
  in.facts.uid = 1500;
  in.facts.clock_wall_ms = 1700000000000;
  return in;
}

std::string with(std::string_view member) {  // a small inventory of a new agent with one more member
  return std::string(R"({"version":2,"gpus":[{"vendor":"nvidia","uuid":"a"},{"vendor":"nvidia","uuid":"b"}],)") +
         std::string(member) + "}";
}

using gridctl::testing::FailsWith;

TEST(Inventory, SurvivesItsJsonWithEveryFieldSet) {
  Inventory inventory = full();
  inventory.gaps = {{"product", GapReason::denied, "why"}};
  inventory.gpus[0].gaps = {{"units", GapReason::needs_bench, ""}};
  const auto copy = parse_inventory(to_json(inventory));
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, inventory);
}

TEST(Inventory, SurvivesItsJsonWithNothingSet) {
  const auto copy = parse_inventory(to_json(Inventory{}));
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, Inventory{});
}

TEST(Inventory, OfAnAgentBeforeThePartsIsReadWithThemUnknown) {
  const auto old = parse_inventory(
      R"({"machine_id":"m","cpus":4.0,"memory_bytes":1,"engines":[{"kind":"process"}],"notes":["n"],)"
      R"("gpus":[{"vendor":"amd","name":"X","uuid":"u","memory_bytes":7,"driver":"d","pci":"p","index":null}]})");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->version, 1);
  EXPECT_EQ(old->gpus.at(0).name, "X");
  EXPECT_FALSE(old->gpus.at(0).pcie.width);
  EXPECT_FALSE(old->gpus.at(0).throttle);
  EXPECT_FALSE(old->nvswitch);
}

TEST(Inventory, OfANewerAgentIsReadWithoutWhatIsNotKnownHere) {
  const auto newer = parse_inventory(with(R"("quantum":{"bits":3},"nics":[{"kind":"carrier-pigeon","up":true}],)"
                                          R"("gaps":[{"attribute":"os","reason":"on_holiday","detail":""}])"));
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(newer->nics.at(0).kind, NicKind::other);
  EXPECT_EQ(newer->gaps.at(0).reason, GapReason::not_reported);
}

TEST(Inventory, NamesAMakerItDoesNotKnowAsOther) {
  const auto read = parse_inventory(R"({"gpus":[{"vendor":"matrox","uuid":"u"}]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->gpus.at(0).vendor, Vendor::other);
}

TEST(Inventory, RefusesWhatNoMachineHas) {
  const std::string long_text(5000, 'x');
  std::string many = R"({"gpus":[)";
  for (int i = 0; i < 257; ++i) many += std::string(i == 0 ? "" : ",") + R"({"vendor":"amd","uuid":"u"})";
  for (const std::string& bad :
       {std::string("[]"), std::string("{"), std::string(R"({"gpus":{}})"), std::string(R"({"gpus":[7]})"),
        std::string(R"({"gpus":[{"vendor":"amd"}]})"), std::string(R"({"cpus":-1})"), std::string(R"({"cpus":"4"})"),
        std::string(R"({"memory_bytes":-5})"), std::string(R"({"memory_bytes":1.5})"), many + "]}",
        with(R"("hostname":")" + long_text + "\""), with(R"("links":[{"a":0,"b":2,"kind":"sys"}])"),
        with(R"("links":[{"a":1,"b":1,"kind":"sys"}])"), with(R"("links":[{"a":1,"b":0,"kind":"sys"}])"),
        with(R"("nvswitch":-1)"), with(R"("nics":[{"bits_per_second":1e99}])"),
        with(R"("cpu":{"numa":[{"id":18446744073709551615}]})"), with(R"("cpu":[])"), with(R"("notes":[1])")}) {
    const auto read = parse_inventory(bad);
    ASSERT_FALSE(read) << bad.substr(0, 100);
    EXPECT_EQ(read.error().code, Code::protocol_violation);
  }
}

TEST(Inventory, CutAnywhereIsRefusedNotMisread) {
  const std::string whole = to_json(full());
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) EXPECT_FALSE(parse_inventory(whole.substr(0, cut)));
}

TEST(Inventory, WithEveryFieldSetLeavesNothingUnexplained) { EXPECT_TRUE(unexplained(full()).empty()); }

TEST(Inventory, NamesWhatIsNeitherFilledNorExplained) {
  Inventory inventory = full();
  inventory.kernel.clear();
  inventory.gpus[1].pcie.width_max.reset();
  inventory.gpus[0].units.reset();
  add_gap(inventory.gpus[0].gaps, "units", GapReason::needs_bench);
  EXPECT_EQ(unexplained(inventory), (std::vector<std::string>{"kernel", "gpus[1].pcie.width_max"}));
}

TEST(Inventory, KeepsTheFirstReasonWhenTheRestIsExplained) {
  Inventory inventory = full();
  inventory.gpus[0].units.reset();
  inventory.gpus[0].ecc.reset();
  add_gap(inventory.gpus[0].gaps, "units", GapReason::needs_bench);
  explain_rest(inventory, GapReason::not_reported, "nobody said");
  EXPECT_TRUE(unexplained(inventory).empty());
  ASSERT_EQ(inventory.gpus[0].gaps.size(), 2u);
  EXPECT_EQ(inventory.gpus[0].gaps[0].reason, GapReason::needs_bench);
  EXPECT_EQ(find_gap(inventory.gpus[0].gaps, "ecc")->detail, "nobody said");
}

TEST(Inventory, TellsSharedNvlinksFromThoseBetweenTwo) {
  const auto machine = [](std::uint32_t gpus, int lanes) {
    Inventory in;
    for (std::uint32_t i = 0; i < gpus; ++i) in.gpus.push_back(full_gpu(std::to_string(i)));
    for (std::uint32_t a = 0; a < gpus; ++a)
      for (std::uint32_t b = a + 1; b < gpus; ++b) in.links.push_back({a, b, LinkKind::nvlink, lanes, {}});
    return has_nvswitch(in);
  };
  EXPECT_TRUE(machine(8, 18)) << "HGX H100";
  EXPECT_TRUE(machine(8, 12)) << "HGX A100";
  EXPECT_TRUE(machine(16, 6)) << "DGX-2";
  EXPECT_FALSE(machine(4, 6)) << "four H100 wired to each other";
  EXPECT_FALSE(machine(4, 4)) << "four A100 wired to each other";
  EXPECT_FALSE(machine(2, 18)) << "a pair with bridges";
}

TEST(Nvswitches, AreToldOrSeenByMoreLinksThanOneChipHas) {
  Inventory inventory;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.nvswitch = 0;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.nvswitch = 1;
  EXPECT_TRUE(has_nvswitch(inventory));
  inventory.nvswitch.reset();
  inventory.gpus.resize(3);
  inventory.links = {{0, 1, LinkKind::nvlink, 9, {}}, {0, 2, LinkKind::nvlink, 9, {}}};
  EXPECT_FALSE(has_nvswitch(inventory)) << "eighteen is what one chip has";
  inventory.links[1].lanes = 10;
  EXPECT_TRUE(has_nvswitch(inventory));
  inventory.links[1].kind = LinkKind::xgmi;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.links = {{1, 2, LinkKind::nvlink, 9, {}}, {0, 2, LinkKind::nvlink, 10, {}}};
  EXPECT_TRUE(has_nvswitch(inventory)) << "counted at both ends";
  inventory.links = {{0, 7, LinkKind::nvlink, 30, {}}, {7, 0, LinkKind::nvlink, 30, {}}};
  EXPECT_FALSE(has_nvswitch(inventory)) << "to a GPU that is not there";
}

TEST(Kinds, HaveNamesThatComeBack) {
  for (const Vendor one : {Vendor::nvidia, Vendor::amd, Vendor::intel, Vendor::other})
    EXPECT_EQ(parse_vendor(vendor_name(one)).value(), one);
  for (int i = 0; i < 9; ++i) {
    const auto reason = static_cast<GapReason>(i);
    EXPECT_EQ(parse_gap_reason(gap_reason_name(reason)).value(), reason);
    const auto kind = static_cast<LinkKind>(i);
    EXPECT_EQ(parse_link_kind(link_kind_name(kind)).value(), kind);
    EXPECT_EQ(is_fabric(kind), kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::xelink);
  }
  for (const NicKind one : {NicKind::ethernet, NicKind::roce, NicKind::infiniband, NicKind::other})
    EXPECT_EQ(parse_nic_kind(nic_kind_name(one)).value(), one);
  for (const DiskKind one :
       {DiskKind::unknown, DiskKind::nvme, DiskKind::ssd, DiskKind::hdd, DiskKind::network, DiskKind::memory})
    EXPECT_EQ(parse_disk_kind(disk_kind_name(one)).value(), one);
  for (const EngineKind one : {EngineKind::docker, EngineKind::podman, EngineKind::process})
    EXPECT_EQ(parse_engine(engine_name(one)).value(), one);
  const auto unknown = parse_vendor("matrox");
  ASSERT_THAT(unknown, FailsWith(Code::usage));
  EXPECT_EQ(unknown.error().message, "'matrox' is not a GPU vendor: nvidia, amd, intel, other");
  EXPECT_THAT(parse_engine("lxc"), FailsWith(Code::usage));
}

}  // namespace
}  // namespace gridctl::inventory_test
