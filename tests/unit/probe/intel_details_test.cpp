// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/intel_details.hpp"

namespace gridctl::probe::intel_details_test {
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

}  // namespace
}  // namespace gridctl::probe::intel_details_test
