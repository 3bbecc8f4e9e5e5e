// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/gpu_spec.hpp"

#include <gtest/gtest.h>

namespace gridctl::sched::gpu_spec_test {
namespace {
using job::GpuRequest;
constexpr std::uint64_t k_gb = 1'000'000'000;

TEST(GpuSpec, ReadsEveryPartAndEveryOmission) {
  const std::pair<const char*, GpuRequest> cases[] = {
      {"A100", {{}, {"A100"}, {}, {}, 1, 1}},
      {"H100:8", {{}, {"H100"}, {}, {}, 8, 8}},
      {"A100-80GB:4", {{}, {"A100-80GB"}, {}, {}, 4, 4}},
      {"A100:80GB", {{}, {"A100"}, 80 * k_gb, 80 * k_gb, 1, 1}},
      {"A100:40GB..80GB:2..8", {{}, {"A100"}, 40 * k_gb, 80 * k_gb, 2, 8}},
      {"24GB..", {{}, {}, 24 * k_gb, {}, 1, 1}},
      {"..80GB:2", {{}, {}, {}, 80 * k_gb, 2, 2}},
      {"16..32GB", {{}, {}, 16 * k_gb, 32 * k_gb, 1, 1}},
      {"24GiB", {{}, {}, 24ull << 30, 24ull << 30, 1, 1}},
      {"nvidia", {Vendor::nvidia, {}, {}, {}, 1, 1}},
      {"amd:MI300X:4", {Vendor::amd, {"MI300X"}, {}, {}, 4, 4}},
      {"NVIDIA:A100, H100:40GB..:2", {Vendor::nvidia, {"A100", "H100"}, 40 * k_gb, {}, 2, 2}},
      {"2", {{}, {}, {}, {}, 2, 2}},
      {"2..", {{}, {}, {}, {}, 2, 256}},
      {"..4", {{}, {}, {}, {}, 1, 4}},
      {"RTX 4090 Laptop", {{}, {"RTX 4090 Laptop"}, {}, {}, 1, 1}},
  };
  for (const auto& [text, expected] : cases) {
    const auto request = parse_gpu_spec(text);
    ASSERT_TRUE(request) << text << ": " << request.error().message;
    EXPECT_EQ(*request, expected) << text;
  }
}

TEST(GpuSpec, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"",
                           " ",
                           ":",
                           "A100:",
                           ":2",
                           "A100::2",
                           "A100:2:2",
                           "2:A100",
                           "40GB:A100",
                           "A100:0",
                           "A100:300",
                           "A100:1.5",
                           "A100:-1",
                           "A100:2..1",
                           "A100:8GB..4GB",
                           "40..4.4",  // no unit
                           "A100,",
                           "A100;x",
                           "tpu-v4-8",
                           "4090",
                           "..",
                           "nvidia:amd",
                           "A100:02",
                           "A100:99999999999GB",
                           "A100:99999999999999999999"}) {
    const auto request = parse_gpu_spec(text);
    EXPECT_FALSE(request) << text;
    if (request) continue;
    EXPECT_EQ(request.error().code, Code::usage);
    EXPECT_NE(request.error().message.find("expected vendor:names:memory:count"), std::string::npos)
        << request.error().message;
  }
  EXPECT_NE(parse_gpu_spec("4090").error().message.find("did you mean 'RTX4090'?"), std::string::npos);
}
}  // namespace
}  // namespace gridctl::sched::gpu_spec_test
