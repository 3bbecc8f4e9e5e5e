// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_use.hpp"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace gridctl::probe::gpu_use_test
