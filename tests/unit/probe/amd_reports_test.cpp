// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/amd_reports.hpp"

namespace gridctl::probe::amd_reports_test {
namespace {

// Properties as amdkfd prints them for an MI300X; shortened.
constexpr const char* k_kfd_gpu =
    "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\nsimd_per_cu 4\nnum_xcc 8\ngfx_target_version 90402\n"
    "vendor_id 4098\ndevice_id 29857\nlocation_id 3072\ndomain 0\nunique_id 6345289574352174123\n"
    "max_engine_clk_fcompute 2100\n";

TEST_F(ProbeTest, ReadsAnAmdGpuFromTheKernelWhenNoToolIsInstalled) {
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

TEST_F(ProbeTest, CompletesAnAmdGpuOfAToolByItsAddress) {
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

}  // namespace
}  // namespace gridctl::probe::amd_reports_test
