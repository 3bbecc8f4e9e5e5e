// SPDX-License-Identifier: Apache-2.0
#include "lend/gpu_openers.hpp"

#include <gtest/gtest.h>

#include "os/clock.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::lend::gpu_openers_test {
namespace {

struct GpuOpenersTest : ::testing::Test {
  void opens(int pid, const char* path) const {
    const os::Path files = proc / std::to_string(pid) / "fd";
    std::filesystem::create_directories(files);
    std::filesystem::create_symlink(path, files / std::to_string(next++));
  }

  gridctl::testing::TempDir dir;
  os::Path proc = dir / "proc";
  os::Clock& clock = os::system_clock();
  GpuOpeners openers{clock, proc};
  mutable int next = 0;
};

TEST_F(GpuOpenersTest, TellsOfOneThatComesOnce) {
  opens(10, "/dev/nvidia0");  // there before
  EXPECT_FALSE(openers.look());
  opens(11, "/dev/null");
  EXPECT_FALSE(openers.look());
  opens(11, "/dev/nvidia-uvm");
  EXPECT_TRUE(openers.look());
  EXPECT_FALSE(openers.look());
  opens(12, "/dev/dri/renderD128");
  EXPECT_TRUE(openers.look());
  opens(13, "/dev/kfd");
  opens(14, "/dev/nvidia11");
  EXPECT_TRUE(openers.look());
  std::filesystem::remove_all(proc / "14");
  EXPECT_FALSE(openers.look());
  opens(14, "/dev/nvidia0");  // another process of that number
  EXPECT_TRUE(openers.look());
}

TEST_F(GpuOpenersTest, LeavesOtherDevicesAndNamesAlone) {
  EXPECT_FALSE(openers.look());
  opens(20, "/dev/nvidiactl");  // nvidia-smi asks there, too
  opens(20, "/dev/dri/card0");
  opens(20, "/home/me/nvidia0");
  std::filesystem::create_directories(proc / "self" / "fd");
  std::filesystem::create_symlink("/dev/nvidia0", proc / "self" / "fd" / "3");
  EXPECT_FALSE(openers.look());
}

}  // namespace
}  // namespace gridctl::lend::gpu_openers_test
