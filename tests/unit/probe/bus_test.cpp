// SPDX-License-Identifier: Apache-2.0
// The machine as /sys shows it: PCI, network cards, AMD's kernel driver.
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/amd_details.hpp"
#include "probe/intel_details.hpp"
#include "probe/nics.hpp"
#include "probe/pci.hpp"

namespace gridctl::probe::bus_test {
namespace {

class BusTest : public ProbeTest {
 protected:
  [[nodiscard]] HostFiles files() const { return HostFiles(root()); }
  void link(const std::string& path, const std::string& target) const {
    const auto at = root() / path.substr(1);
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_symlink(target, at);
  }
  // A device at the end of a branch of bridges, "pci0000:17/0000:17:01.0/0000:18:00.0".
  void device(const std::string& branch, const std::string& numa = "0") const {
    const std::string address = branch.substr(branch.rfind('/') + 1);
    file("/sys/devices/" + branch + "/numa_node", numa + "\n");
    link("/sys/bus/pci/devices/" + address, "../../../devices/" + branch);
  }
  static Gpu gpu(const std::string& pci) {
    Gpu gpu;
    gpu.uuid = gpu.pci = pci;
    return gpu;
  }
};

TEST_F(BusTest, SpellsAddressesAsTheKernelDoes) {
  EXPECT_EQ(sysfs_address("00000000:1A:00.0"), "0000:1a:00.0");
  EXPECT_EQ(sysfs_address("0001:1a:00.0"), "0001:1a:00.0");
  EXPECT_EQ(sysfs_address("00010000:03:00.0"), "10000:03:00.0");
  EXPECT_EQ(sysfs_address("1a:00.0"), "0000:1a:00.0");
  for (const char* bad : {"", "1a", "../../etc", "0000:1a:00", "0000:1a:00.0/..", "123456789:1a:00.0", "g000:1a:00.0"})
    EXPECT_EQ(sysfs_address(bad), "") << bad;
}

TEST_F(BusTest, NamesPcieGenerationsByTheirRate) {
  EXPECT_EQ(pcie_generation("2.5 GT/s PCIe"), 1);
  EXPECT_EQ(pcie_generation("16.0 GT/s PCIe"), 4);
  EXPECT_EQ(pcie_generation("32.000000"), 5);
  EXPECT_EQ(pcie_generation("Unknown"), std::nullopt);
  EXPECT_EQ(pcie_generation("17 GT/s"), std::nullopt);
}

TEST_F(BusTest, ReadsTheLinkNowAndAtMost) {
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

TEST_F(BusTest, TellsHowTwoDevicesReachEachOther) {
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

TEST_F(BusTest, AddsLinksOnlyWhereNoToolToldOfOne) {
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

TEST_F(BusTest, SaysThatAMachineHidesItsNodes) {
  device("pci0000:00/0000:00:05.0", "-1");
  std::vector<Gpu> gpus{gpu("0000:00:05.0"), gpu("0000:00:06.0")};
  complete_from_bus(files(), gpus);
  EXPECT_EQ(find_gap(gpus[0].gaps, "numa_node")->reason, GapReason::not_applicable);
  EXPECT_EQ(find_gap(gpus[1].gaps, "numa_node")->reason, GapReason::not_reported);
}

TEST_F(BusTest, CountsNvswitches) {
  for (const char* address : {"0000:c4:00.0", "0000:c5:00.0"}) {
    file(std::string("/sys/bus/pci/devices/") + address + "/vendor", "0x10de\n");
    file(std::string("/sys/bus/pci/devices/") + address + "/class", "0x068000\n");
  }
  file("/sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  EXPECT_EQ(count_nvswitches(files()), 2);
}

TEST_F(BusTest, ReadsInfinibandRoceAndEthernet) {
  const auto rdma = [&](const std::string& name, const char* layer, const char* rate, const char* state) {
    const std::string port = "/sys/class/infiniband/" + name + "/ports/1/";
    file(port + "link_layer", std::string(layer) + "\n");
    file(port + "rate", std::string(rate) + "\n");
    file(port + "state", std::string(state) + "\n");
    file("/sys/class/infiniband/" + name + "/hca_type", "MT4129\n");
  };
  rdma("mlx5_0", "InfiniBand", "400 Gb/sec (4X NDR)", "4: ACTIVE");
  rdma("mlx5_1", "Ethernet", "100 Gb/sec (4X EDR)", "1: DOWN");
  file("/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "ens1f0\n");
  file("/sys/class/net/ens1f0/device/vendor", "0x15b3\n");
  file("/sys/class/net/eno1/device/vendor", "0x8086\n");
  file("/sys/class/net/eno1/device/device", "0x1563\n");
  file("/sys/class/net/eno1/operstate", "up\n");
  file("/sys/class/net/eno1/speed", "10000\n");
  file("/sys/class/net/docker0/operstate", "up\n");  // no device beneath: virtual
  const std::vector<Nic> nics = read_nics(files());
  ASSERT_EQ(nics.size(), 3u);
  EXPECT_EQ(nics[0].kind, NicKind::infiniband);
  EXPECT_TRUE(nics[0].up);
  EXPECT_EQ(nics[0].bits_per_second, 400e9);
  EXPECT_EQ(nics[0].model, "MT4129");
  EXPECT_EQ(nics[1].kind, NicKind::roce);
  EXPECT_EQ(nics[1].interface, "ens1f0");
  EXPECT_FALSE(nics[1].up);
  EXPECT_EQ(nics[2], (Nic{"", "eno1", 1, NicKind::ethernet, true, 10e9, "8086:1563", "", {}}));
}

TEST_F(BusTest, ReadsRatesOfInfiniband) {
  EXPECT_EQ(infiniband_rate("200 Gb/sec (4X HDR)"), 200e9);
  EXPECT_EQ(infiniband_rate("2.5 Gb/sec (1X SDR)"), 2.5e9);
  for (const char* bad : {"", "fast", "200 Mb/sec", "-1 Gb/sec", "1e99 Gb/sec"})
    EXPECT_EQ(infiniband_rate(bad), std::nullopt) << bad;
}

TEST_F(BusTest, FindsTheWaysFromNetworkIntoGpuMemory) {
  Inventory inventory;
  add_nics(files(), inventory);
  EXPECT_EQ(find_gap(inventory.gaps, "gpu_direct")->reason, GapReason::not_applicable);
  file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  inventory = {};
  inventory.gpus = {gpu("0000:18:00.0")};
  add_nics(files(), inventory);
  EXPECT_EQ(find_gap(inventory.gaps, "gpu_direct")->reason, GapReason::no_driver);
  file("/sys/module/nvidia_peermem/version", "550\n");
  file("/sys/module/ib_core/version", "1\n");
  file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15\n");
  add_nics(files(), inventory);
  EXPECT_EQ(inventory.gpu_direct, (std::vector<std::string>{"peermem", "dmabuf"}));
}

// Properties as amdkfd prints them for an MI300X; shortened.
constexpr const char* k_kfd_gpu =
    "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\nsimd_per_cu 4\nnum_xcc 8\ngfx_target_version 90402\n"
    "vendor_id 4098\ndevice_id 29857\nlocation_id 3072\ndomain 0\nunique_id 6345289574352174123\n"
    "max_engine_clk_fcompute 2100\n";

TEST_F(BusTest, ReadsAnAmdGpuFromTheKernelWhenNoToolIsInstalled) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  file(nodes + "0/properties", "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\n");
  file(nodes + "1/properties", k_kfd_gpu);
  file(nodes + "1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 206141652992\nwidth 8192\nmem_clk_max 1300\n");
  const std::string device = "/sys/bus/pci/devices/0000:0c:00.0/";
  file(device + "product_name", "AMD Instinct MI300X OAM\n");
  file(device + "hwmon/hwmon3/power1_cap", "750000000\n");
  file(device + "hwmon/hwmon3/power1_cap_default", "750000000\n");
  file(device + "pp_dpm_sclk", "0: 132Mhz *\n1: 2100Mhz\n");
  file(device + "current_compute_partition", "SPX\n");
  file("/sys/module/amdgpu/version", "6.10.5\n");
  VendorReading reading;
  complete_amd(files(), reading);
  ASSERT_EQ(reading.gpus.size(), 1u);
  const Gpu& found = reading.gpus[0];
  EXPECT_EQ(found.name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(found.pci, "0000:0c:00.0");
  EXPECT_EQ(found.arch, "gfx942");
  EXPECT_EQ(found.units, 304u);
  EXPECT_EQ(found.memory_bytes, 206141652992u);
  EXPECT_EQ(found.memory_bus_bits, 8192u);
  EXPECT_EQ(found.clocks.core_mhz, 132u);
  EXPECT_EQ(found.clocks.core_max_mhz, 2100u);
  EXPECT_EQ(found.power.cap_watts, 750);
  EXPECT_EQ(found.power.default_watts, 750);
  EXPECT_EQ(found.partition.enabled, false);
  EXPECT_EQ(found.uuid, "GPU-580eff3fc4403c2b");
  EXPECT_EQ(found.driver, "6.10.5");
}

TEST_F(BusTest, CompletesAnAmdGpuOfAToolByItsAddress) {
  file("/sys/class/kfd/kfd/topology/nodes/1/properties", k_kfd_gpu);
  VendorReading reading;
  reading.gpus = {gpu("0000:0c:00.0"), gpu("0000:22:00.0")};
  reading.gpus[0].arch = "gfx90a";
  complete_amd(files(), reading);
  ASSERT_EQ(reading.gpus.size(), 2u);
  EXPECT_EQ(reading.gpus[0].units, 304u);
  EXPECT_EQ(reading.gpus[0].arch, "gfx90a") << "what the tool said stays";
  EXPECT_EQ(reading.gpus[1].units, std::nullopt);
}

TEST_F(BusTest, ReadsIntelFrequenciesOfBothDrivers) {
  const std::string i915 = "/sys/bus/pci/devices/0000:03:00.0/", xe = "/sys/bus/pci/devices/0000:04:00.0/";
  file(i915 + "drm/card1/gt_RP0_freq_mhz", "2400\n");
  file(i915 + "drm/card1/gt_act_freq_mhz", "600\n");
  file(i915 + "drm/card1/gt/gt0/throttle_reason_status", "1\n");
  file(i915 + "hwmon/hwmon2/power1_max", "190000000\n");
  file(i915 + "hwmon/hwmon2/power1_rated_max", "225000000\n");
  file(xe + "tile0/gt0/freq0/rp0_freq", "2850\n");
  file(xe + "tile0/gt0/freq0/throttle/status", "0\n");
  VendorReading reading;
  reading.gpus = {gpu("0000:03:00.0"), gpu("0000:04:00.0")};
  complete_intel(files(), reading);
  EXPECT_EQ(reading.gpus[0].clocks.core_mhz, 600u);
  EXPECT_EQ(reading.gpus[0].clocks.core_max_mhz, 2400u);
  EXPECT_EQ(reading.gpus[0].throttle, std::vector<std::string>{"throttled"});
  EXPECT_EQ(reading.gpus[0].power.cap_watts, 190);
  EXPECT_EQ(reading.gpus[0].power.default_watts, 225);
  EXPECT_EQ(reading.gpus[1].clocks.core_max_mhz, 2850u);
  EXPECT_TRUE(reading.gpus[1].throttle && reading.gpus[1].throttle->empty());
}

}  // namespace
}  // namespace gridctl::probe::bus_test
