// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/connect_agent.hpp"
#include "hand_clock.hpp"

namespace gridctl::control::embedded_agent_test {
namespace {

using namespace std::chrono_literals;

TEST(AgentImages, AreThoseThatAreCarried) {
  for (const AgentImage& image : agent_images()) {
    EXPECT_TRUE(image.arch == "x86_64" || image.arch == "aarch64") << image.arch;
    EXPECT_EQ(image.sha256_hex.size(), 64u);
  }
}

}  // namespace
}  // namespace gridctl::control::embedded_agent_test
