// SPDX-License-Identifier: Apache-2.0
// The agent for ARM hosts, run by an emulator: what it says of itself, how it greets, what it sees.
#include <gtest/gtest.h>

#include "base/inventory.hpp"
#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "integration/agent_client.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::testing::cross_test {
namespace {

constexpr const char* k_emulator = "qemu-aarch64-static";

class ArmAgent : public ::testing::Test {
 protected:
  void SetUp() override {
    const os::Path agent = GRIDCTL_BINARY_DIR "/aarch64/bin/gridctl-agent.stripped";
    if (!os::exists(agent))
      GTEST_SKIP() << "no agent for aarch64 was built; scripts/install-deps cross installs its compiler and libraries";
    if (!os::find_program(k_emulator)) GTEST_SKIP() << k_emulator << " is not installed; scripts/install-deps cross";
    host_ = {folder_ / "home", folder_ / "leases", {}, {k_emulator, agent.string()}};
    const auto bytes = os::read_file(agent);
    ASSERT_THAT(bytes, IsOk());
    hash_ = to_hex(crypto::sha256(as_bytes(*bytes)));
  }

  TempDir folder_;
  AgentHost host_;
  std::string hash_;
};

TEST_F(ArmAgent, KnowsItsOwnHash) {
  std::vector<std::string> command = host_.command;
  command.emplace_back("--self-hash");
  const auto said = os::run(command);
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(trim(said->out), hash_) << said->err;
}

TEST_F(ArmAgent, GreetsAndTakesInventory) {
  AgentClient agent(host_, ControllerId{"cross"});
  EXPECT_EQ(agent.hello().build, hash_);
  EXPECT_FALSE(agent.hello().boot_id.empty());
  const auto reply = agent.call(wire::encode_plain("probe"));
  ASSERT_THAT(reply, IsOk());
  const auto inventory = parse_inventory(*reply);
  ASSERT_THAT(inventory, IsOk());
  EXPECT_EQ(inventory->arch, "aarch64");
  EXPECT_GT(inventory->memory_bytes, 0u);
  EXPECT_GT(inventory->cpus, 0);
}

}  // namespace
}  // namespace gridctl::testing::cross_test
