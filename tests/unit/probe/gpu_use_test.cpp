// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_use.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

namespace gridctl::probe::gpu_use_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ToolAnswer printed(const std::string& out) {
  ToolAnswer answer;
  answer.tool = "nvidia-smi";
  answer.found = answer.answered = true;
  answer.exit_code = 0;
  answer.out = out;
  return answer;
}

TEST(GpuUse, IsReadFromTheRowsOfNvidiaSmi) {
  EXPECT_THAT(read_nvidia_use(printed("GPU-a, 97, 71000, 81559, 64\nGPU-b, 0, 3, 81559, 31\n")),
              ElementsAre(Pair("GPU-a", GpuUse{97, 71000ull << 20, 81559ull << 20, 64}),
                          Pair("GPU-b", GpuUse{0, 3ull << 20, 81559ull << 20, 31})));
}

TEST(GpuUse, LeavesOutWhatTheToolDoesNotTell) {
  EXPECT_THAT(read_nvidia_use(printed("GPU-a, [N/A], [N/A], 81559, [Unknown Error]\n")),
              ElementsAre(Pair("GPU-a", GpuUse{{}, {}, 81559ull << 20, {}})));
  EXPECT_THAT(read_nvidia_use(printed("GPU-a, 101, -3, x, 99999\n")), ElementsAre(Pair("GPU-a", GpuUse{})));
}

TEST(GpuUse, PassesOverWhatIsNoRow) {
  EXPECT_THAT(read_nvidia_use(printed("Unable to determine the device handle for GPU0\nGPU-a, 1, 2\n, 1, 2, 3, 4\n")), IsEmpty());
  EXPECT_THAT(read_nvidia_use({}), IsEmpty());
}

class KernelUse : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    const os::Path at = root_.path() / path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  void card(const std::string& name, const std::string& vendor, const std::string& pci) {
    file("sys/class/drm/" + name + "/device/vendor", vendor + "\n");
    file("sys/class/drm/" + name + "/device/uevent", "PCI_SLOT_NAME=" + pci + "\n");
  }
  gridctl::testing::TempDir root_;
  HostFiles files_{root_.path()};
};

TEST_F(KernelUse, OfAnAmdGpuStandsThereByBothOfItsNames) {
  card("card1", "0x1002", "0000:C3:00.0");
  card("card1-DP-1", "0x1002", "0000:C3:00.0");
  const std::string device = "sys/class/drm/card1/device/";
  file(device + "unique_id", "4162405e51bb99b0\n");
  file(device + "gpu_busy_percent", "83\n");
  file(device + "mem_info_vram_used", "30000000000\n");
  file(device + "mem_info_vram_total", "68702699520\n");
  file(device + "hwmon/hwmon3/temp1_input", "47000\n");
  const GpuUse use{83, 30'000'000'000, 68'702'699'520, 47};
  EXPECT_THAT(kernel_gpu_use(files_), ElementsAre(Pair("GPU-4162405e51bb99b0", use), Pair("0000:c3:00.0", use)));
}

TEST_F(KernelUse, LeavesOutWhatTheKernelDoesNotTell) {
  card("card0", "0x1002", "0000:01:00.0");
  file("sys/class/drm/card0/device/gpu_busy_percent", "101\n");
  card("card1", "0x8086", "0000:03:00.0");
  card("card2", "0x8086", "0000:04:00.0");
  file("sys/class/drm/card2/device/hwmon/hwmon1/temp1_input", "61000\n");
  card("card3", "0x10de", "0000:05:00.0");
  EXPECT_THAT(kernel_gpu_use(files_), ElementsAre(Pair("0000:01:00.0", GpuUse{}), Pair("0000:04:00.0", GpuUse{{}, {}, {}, 61})));
}

TEST_F(KernelUse, IsEmptyWithoutDrivers) { EXPECT_THAT(kernel_gpu_use(files_), IsEmpty()); }

}  // namespace
}  // namespace gridctl::probe::gpu_use_test
