// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/machine.hpp"
#include "probe/pci.hpp"

namespace gridctl::probe::pci_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ProbeTest, SpellsAddressesAsTheKernelDoes) {
  EXPECT_EQ(sysfs_address("00000000:1A:00.0"), "0000:1a:00.0");
  EXPECT_EQ(sysfs_address("0001:1a:00.0"), "0001:1a:00.0");
  EXPECT_EQ(sysfs_address("00010000:03:00.0"), "10000:03:00.0");
  EXPECT_EQ(sysfs_address("1a:00.0"), "0000:1a:00.0");
  for (const char* bad : {"", "1a", "../../etc", "0000:1a:00", "0000:1a:00.0/..", "123456789:1a:00.0", "g000:1a:00.0"})
    EXPECT_EQ(sysfs_address(bad), "") << bad;
}

TEST_F(ProbeTest, NamesPcieGenerationsByTheirRate) {
  EXPECT_EQ(pcie_generation("2.5 GT/s PCIe"), 1);
  EXPECT_EQ(pcie_generation("16.0 GT/s PCIe"), 4);
  EXPECT_EQ(pcie_generation("32.000000"), 5);
  EXPECT_EQ(pcie_generation("Unknown"), std::nullopt);
  EXPECT_EQ(pcie_generation("17 GT/s"), std::nullopt);
}

TEST_F(ProbeTest, ReadsTheLinkNowAndAtMost) {
  const std::string at = "/sys/bus/pci/devices/0000:1a:00.0/";
  file(at + "current_link_speed", "2.5 GT/s PCIe\n");
  file(at + "max_link_speed", "16.0 GT/s PCIe\n");
  file(at + "current_link_width", "8\n");
  file(at + "max_link_width", "16\n");
  EXPECT_EQ(pcie_link(files(), "00000000:1A:00.0"), (PcieLink{1, 4, 8, 16}));
  file(at + "current_link_width", "255\n");
  EXPECT_EQ(pcie_link(files(), "0000:1a:00.0").width, std::nullopt);
  EXPECT_EQ(pcie_link(files(), "0000:2b:00.0"), PcieLink{});
}

TEST_F(ProbeTest, TellsHowTwoDevicesReachEachOther) {
  const std::string one = "pci0000:17/0000:17:01.0/0000:18:00.0/";
  device(one + "0000:19:00.0/0000:1a:00.0");                            // a port of a switch
  device(one + "0000:19:01.0/0000:1b:00.0");                            // its neighbour
  device(one + "0000:19:02.0/0000:1c:00.0/0000:1d:00.0/0000:1e:00.0");  // a switch below
  device("pci0000:17/0000:17:02.0/0000:20:00.0");                       // same root complex
  device("pci0000:30/0000:30:01.0/0000:31:00.0");                       // another of the node
  device("pci0000:80/0000:80:01.0/0000:81:00.0", "1");                  // the other socket
  const auto path = [&](const char* b) { return pci_path(files(), "0000:1a:00.0", b); };
  EXPECT_EQ(path("0000:1b:00.0"), LinkKind::pix);
  EXPECT_EQ(path("0000:1e:00.0"), LinkKind::pxb);
  EXPECT_EQ(path("0000:20:00.0"), LinkKind::phb);
  EXPECT_EQ(path("0000:31:00.0"), LinkKind::node);
  EXPECT_EQ(path("0000:81:00.0"), LinkKind::sys);
  EXPECT_EQ(path("0000:99:00.0"), LinkKind::unknown);
}

TEST_F(ProbeTest, AddsLinksOnlyWhereNoToolToldOfOne) {
  device("pci0000:17/0000:17:01.0/0000:18:00.0");
  device("pci0000:17/0000:17:02.0/0000:20:00.0");
  device("pci0000:80/0000:80:01.0/0000:81:00.0", "1");
  Inventory inventory;
  inventory.gpus = {gpu("0000:18:00.0"), gpu("0000:20:00.0"), gpu("0000:81:00.0")};
  inventory.links = {{0, 1, LinkKind::nvlink, 4, {}}};
  add_bus_links(files(), inventory);
  ASSERT_EQ(inventory.links.size(), 3u);
  EXPECT_EQ(inventory.links[0].kind, LinkKind::nvlink);
  EXPECT_EQ(inventory.links[1], (GpuLink{0, 2, LinkKind::sys, {}, {}}));
  EXPECT_EQ(inventory.links[2], (GpuLink{1, 2, LinkKind::sys, {}, {}}));
}

TEST_F(ProbeTest, SaysThatAMachineHidesItsNodes) {
  device("pci0000:00/0000:00:05.0", "-1");
  std::vector<Gpu> gpus{gpu("0000:00:05.0"), gpu("0000:00:06.0")};
  complete_from_bus(files(), gpus);
  EXPECT_EQ(find_gap(gpus[0].gaps, "numa_node")->reason, GapReason::not_applicable);
  EXPECT_EQ(find_gap(gpus[1].gaps, "numa_node")->reason, GapReason::not_reported);
}

TEST_F(ProbeTest, CountsNvswitches) {
  for (const char* address : {"0000:c4:00.0", "0000:c5:00.0"}) {
    file(std::string("/sys/bus/pci/devices/") + address + "/vendor", "0x10de\n");
    file(std::string("/sys/bus/pci/devices/") + address + "/class", "0x068000\n");
  }
  file("/sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  EXPECT_EQ(count_nvswitches(files()), 2);
}

TEST_F(ProbeTest, OnlyGraphicsCardsAndAcceleratorsAreGpus) {
  const auto device = [&](const std::string& address, const std::string& kind) {
    file("/sys/bus/pci/devices/" + address + "/vendor", "0x10de\n");
    file("/sys/bus/pci/devices/" + address + "/class", kind + "\n");
  };
  device("0000:01:00.0", "0x030000");
  device("0000:02:00.0", "0x030200");
  device("0000:03:00.0", "0x038000");
  device("0000:04:00.0", "0x120000");
  device("0000:05:00.0", "0x030100");
  device("0000:00:02.0", "0x030000");
  device("0000:06:00.0", "0x068000");
  EXPECT_THAT(pci_gpus(files(), "0x10de"), ElementsAre("0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"));
  EXPECT_THAT(pci_gpus(files(), "0x1002"), IsEmpty());
  EXPECT_EQ(count_nvswitches(files()), 1);
}

TEST_F(ProbeTest, AddressesAreSpeltAsInSys) {
  for (const auto& [text, address] : {std::pair{"00000000:0A:00.0", "0000:0a:00.0"},
                                      {"1:0a:00.0", "0001:0a:00.0"},
                                      {"0a:00.0", "0000:0a:00.0"},
                                      {"10000:0a:00.0", "10000:0a:00.0"},
                                      {"00010000:0a:00.0", "10000:0a:00.0"},
                                      {"000000000:0a:00.0", ""},
                                      {":0a:00.0", ""},
                                      {"0a:00:0", ""},
                                      {"0a.00.0", ""},
                                      {"0000:0a:00.00", ""},
                                      {"0000:0g:00.0", ""},
                                      {"", ""}})
    EXPECT_EQ(sysfs_address(text), address) << text;
}

TEST_F(ProbeTest, LinksOfTheBusAreBelievable) {
  const std::string at = "/sys/bus/pci/devices/0000:0a:00.0";
  file(at + "/current_link_width", "0\n");
  file(at + "/max_link_width", "64\n");
  file(at + "/current_link_speed", "8.0 GT/s PCIe\n");
  file(at + "/max_link_speed", "Unknown\n");
  PcieLink link = pcie_link(files(), "0a:00.0");
  EXPECT_FALSE(link.width);
  EXPECT_EQ(link.width_max, 64);
  EXPECT_EQ(link.generation, 3);
  EXPECT_FALSE(link.generation_max);
  file(at + "/max_link_width", "65\n");
  EXPECT_FALSE(pcie_link(files(), "0a:00.0").width_max);
  EXPECT_EQ(pcie_link(files(), ""), PcieLink{});
  file(at + "/numa_node", "4095\n");
  EXPECT_EQ(pci_numa_node(files(), "0a:00.0"), 4095);
  file(at + "/numa_node", "4096\n");
  EXPECT_FALSE(pci_numa_node(files(), "0a:00.0"));
  EXPECT_FALSE(pci_numa_node(files(), ""));
  for (const auto& [speed, generation] :
       {std::pair{"2.5", 1}, {"5", 2}, {"16.0 GT/s", 4}, {"32", 5}, {"64", 6}, {"128", 7}})
    EXPECT_EQ(pcie_generation(speed), generation);
  EXPECT_FALSE(pcie_generation("7"));
  EXPECT_FALSE(pcie_generation(""));
  EXPECT_TRUE(bus_lacks(files(), "0b:00.0"));
  file(at + "/vendor", "0x10de\n");
  EXPECT_FALSE(bus_lacks(files(), "0a:00.0"));
  EXPECT_FALSE(bus_lacks(files(), "N/A"));
  EXPECT_FALSE(bus_lacks(HostFiles(root() / "nothing"), "0a:00.0")) << "there is no bus to be seen";
}

}  // namespace
}  // namespace gridctl::probe::pci_test
