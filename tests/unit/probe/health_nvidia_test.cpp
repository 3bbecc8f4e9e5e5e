// SPDX-License-Identifier: Apache-2.0
#include "probe/health_nvidia.hpp"

#include <gmock/gmock.h>

namespace gridctl::probe::health_nvidia_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

wire::GpuHealth gpu_of(const std::string& inside) {
  ToolAnswer answer;
  answer.found = answer.answered = true;
  answer.exit_code = 0;
  answer.out = "<nvidia_smi_log><gpu id=\"00000000:01:00.0\">" + inside + "</gpu></nvidia_smi_log>";
  const auto gpus = read_nvidia_health(answer);
  EXPECT_EQ(gpus.size(), 1u);
  return gpus.empty() ? wire::GpuHealth{} : gpus[0];
}

TEST(NvidiaReport, SaysWhatMustBeDone) {
  const auto action = [](const std::string& word) {
    return gpu_of("<gpu_recovery_action>" + word + "</gpu_recovery_action>").recovery;
  };
  EXPECT_EQ(action("None"), "");
  EXPECT_EQ(action("Drain and Reset"), "reset");
  EXPECT_EQ(action("Drain P2P"), "drain");
  EXPECT_EQ(action("Node Reboot"), "reboot");
  EXPECT_EQ(action("GPU Reset"), "reset");
  const auto status = [](const std::string& reset, const std::string& drain) {
    return gpu_of("<gpu_reset_status><reset_required>" + reset + "</reset_required><drain_and_reset_recommended>" +
                  drain + "</drain_and_reset_recommended></gpu_reset_status>")
        .recovery;
  };
  EXPECT_EQ(status("No", "No"), "");
  EXPECT_EQ(status("No", "Yes"), "drain");
  EXPECT_EQ(status("Yes", "Yes"), "reset");
}

TEST(NvidiaReport, CountsBothKindsOfErrorsAndRemaps) {
  const auto gpu = gpu_of(
      "<ecc_errors><volatile><double_bit><total>2</total></double_bit><single_bit><total>5</total></single_bit>"
      "<dram_uncorrectable>N/A</dram_uncorrectable></volatile></ecc_errors><retired_pages><pending_retirement>Yes"
      "</pending_retirement></retired_pages><remapped_rows><remapped_row_failure>No</remapped_row_failure></"
      "remapped_rows>");
  EXPECT_EQ(gpu.ecc_uncorrected, 2u);
  EXPECT_EQ(gpu.ecc_corrected, 5u);
  EXPECT_EQ(gpu.remap_pending, true);
  EXPECT_EQ(gpu.remap_failed, false);
  const auto newer = gpu_of(
      "<remapped_rows><remapped_row_pending>No</remapped_row_pending></remapped_rows>"
      "<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>");
  EXPECT_EQ(newer.remap_pending, false) << "rows speak before pages";
  EXPECT_FALSE(newer.ecc_corrected);
  EXPECT_FALSE(newer.processes);
  EXPECT_FALSE(gpu_of("<processes>N/A</processes>").processes);
  EXPECT_TRUE(gpu_of("<processes></processes>").processes);
  const auto throttled = gpu_of(
      "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
      "<clocks_event_reason_applications_clocks_setting>Active</clocks_event_reason_applications_clocks_setting>"
      "<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>"
      "<clocks_event_reason_hw_slowdown>Active</clocks_event_reason_hw_slowdown></clocks_event_reasons>");
  EXPECT_THAT(throttled.throttle, ElementsAre("hw_slowdown"));
}

TEST(NvidiaReport, NamesGpusThatAreLostOnce) {
  ToolAnswer answer;
  answer.found = answer.answered = true;
  answer.exit_code = 15;
  answer.out = "<nvidia_smi_log><gpu id=\"00000000:01:00.0\"></gpu></nvidia_smi_log>";
  answer.err =
      "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n"
      "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error\nother\n";
  const auto gpus = read_nvidia_health(answer);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_THAT(gpus[0].problem, HasSubstr("GPU is lost"));
  EXPECT_EQ(gpus[1].pci, "0000:02:00.0");
  answer.answered = false;
  EXPECT_THAT(read_nvidia_health(answer), IsEmpty());
}

}  // namespace
}  // namespace gridctl::probe::health_nvidia_test
