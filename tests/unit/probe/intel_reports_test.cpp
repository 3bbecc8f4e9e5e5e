// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/intel_reports.hpp"

namespace gridctl::probe::intel_reports_test {
namespace {

TEST_F(ProbeTest, ReadsIntelFrequenciesOfBothDrivers) {
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
}  // namespace gridctl::probe::intel_reports_test
