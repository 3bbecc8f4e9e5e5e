// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "probe/nics.hpp"

namespace gridctl::probe::nics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ProbeTest, ReadsInfinibandRoceAndEthernet) {
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

TEST_F(ProbeTest, ReadsRatesOfInfiniband) {
  EXPECT_EQ(infiniband_rate("200 Gb/sec (4X HDR)"), 200e9);
  EXPECT_EQ(infiniband_rate("2.5 Gb/sec (1X SDR)"), 2.5e9);
  for (const char* bad : {"", "fast", "200 Mb/sec", "-1 Gb/sec", "1e99 Gb/sec"})
    EXPECT_EQ(infiniband_rate(bad), std::nullopt) << bad;
}

TEST_F(ProbeTest, FindsTheWaysFromNetworkIntoGpuMemory) {
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

TEST_F(ProbeTest, NetworkCardsHaveBelievableRates) {
  const auto card = [&](const std::string& name, const std::string& speed) {
    file("/sys/class/net/" + name + "/device/vendor", "0x8086\n");
    file("/sys/class/net/" + name + "/device/device", "0x1572\n");
    file("/sys/class/net/" + name + "/speed", speed + "\n");
    file("/sys/class/net/" + name + "/operstate", name == "a" ? "up\n" : "down\n");
  };
  card("a", "10000");
  card("b", "0");
  card("c", "10000000");
  file("/sys/class/net/c/type", "32\n");
  file("/sys/class/net/lo/speed", "1\n");
  const std::vector<Nic> nics = read_nics(files());
  ASSERT_EQ(nics.size(), 3u) << "loopback has no device";
  EXPECT_EQ(nics[0].bits_per_second, 1e10);
  EXPECT_TRUE(nics[0].up);
  EXPECT_EQ(nics[0].model, "8086:1572");
  EXPECT_EQ(nics[0].kind, NicKind::ethernet);
  EXPECT_FALSE(nics[1].bits_per_second);
  EXPECT_FALSE(nics[1].up);
  EXPECT_FALSE(nics[2].bits_per_second);
  EXPECT_EQ(nics[2].kind, NicKind::infiniband);
  EXPECT_EQ(infiniband_rate("100 Gb/sec (4X EDR)"), 1e11);
  EXPECT_EQ(infiniband_rate("100000 Gb/sec"), 1e14);
  for (const char* odd : {"0 Gb/sec", "-1 Gb/sec", "100001 Gb/sec", "100 Mb/sec", "", "x"})
    EXPECT_FALSE(infiniband_rate(odd)) << odd;
}

TEST_F(ProbeTest, WaysIntoGpuMemoryNeedBothEnds) {
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  const auto ways = [&](Vendor vendor) {
    Inventory inventory;
    inventory.gpus.emplace_back().vendor = vendor;
    add_nics(files(), inventory);
    return inventory.gpu_direct;
  };
  EXPECT_THAT(ways(Vendor::amd), IsEmpty());
  file("/sys/module/ib_core/x", "");
  EXPECT_THAT(ways(Vendor::amd), ElementsAre("dmabuf"));
  EXPECT_THAT(ways(Vendor::nvidia), IsEmpty());
  file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module\n");
  EXPECT_THAT(ways(Vendor::nvidia), ElementsAre("dmabuf"));
  file("/sys/module/ib_peer_mem/x", "");
  EXPECT_THAT(ways(Vendor::nvidia), ElementsAre("peermem", "dmabuf"));
  Inventory none;
  add_nics(files(), none);
  EXPECT_EQ(find_gap(none.gaps, "gpu_direct")->detail, "no GPU");
}

}  // namespace
}  // namespace gridctl::probe::nics_test
