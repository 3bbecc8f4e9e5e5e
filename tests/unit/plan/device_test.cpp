// SPDX-License-Identifier: Apache-2.0
#include "plan/device.hpp"

#include <gtest/gtest.h>

namespace gridctl::plan::device_test {
namespace {

TEST(Machines, OfDesksAreNotThoseOfDataCentres) {
  const auto cluster = [](const char* name, int each) {
    const sched::GpuModel* const row = *gpu_named(name);
    return cluster_of(device_of(*row), row, each);
  };
  for (const char* name : {"RTX 3090", "RTX A6000", "A10", "RTX 5090", "RTX 4090"})
    EXPECT_EQ(cluster(name, 1).device.gpu_class, GpuClass::other) << name;
  EXPECT_EQ(cluster("A100 PCIe 80GB", 1).device.gpu_class, GpuClass::ampere);
  EXPECT_DOUBLE_EQ(cluster("A100 PCIe 80GB", 2).node_link, 300e9) << "a bridge joins two";
  EXPECT_DOUBLE_EQ(cluster("A100 PCIe 80GB", 8).node_link, 25e9);
  EXPECT_DOUBLE_EQ(cluster("RTX 3090", 2).node_link, 25e9) << "mostly there is none";
  EXPECT_DOUBLE_EQ(cluster("A100 SXM4 80GB", 8).node_link, 300e9);
}

TEST(Machines, LinksAreSaidInBits) {
  EXPECT_DOUBLE_EQ(bytes_per_second_of("1Gbps").value(), 125e6);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("400 Gbit/s").value(), 50e9);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("2.5gb/s").value(), 312.5e6);
  EXPECT_DOUBLE_EQ(bytes_per_second_of("100mbit/s").value(), 12.5e6);
  for (const char* wrong : {"", "1", "fast", "-1Gbps", "0Gbps", "1GB", "Gbps", "nan Gbps"})
    EXPECT_FALSE(bytes_per_second_of(wrong)) << wrong;
}

}  // namespace
}  // namespace gridctl::plan::device_test
