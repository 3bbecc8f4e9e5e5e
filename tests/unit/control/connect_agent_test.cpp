// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/connect_agent.hpp"
#include "hand_clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::connect_agent_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;

TEST(TargetOf, IsReachedAsItWasRegistered) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  ASSERT_THAT(os::write_file_durably(dir / "key", "k"), IsOk());
  registry::Provider provider;
  provider.address = "me@192.0.2.7:2222";
  provider.identities = {(dir / "key").string()};
  provider.transport = "ssh";
  const auto target = target_of(provider, paths);
  ASSERT_THAT(target, IsOk());
  EXPECT_EQ(target->user, "me");
  EXPECT_EQ(target->host, "192.0.2.7");
  EXPECT_EQ(target->port, 2222);
  EXPECT_THAT(target->identities, ElementsAre(os::Path(dir / "key")));
  EXPECT_EQ(target->known_hosts, paths.known_hosts());
  EXPECT_EQ(target->transport, *ssh::parse_transport("ssh"));
  provider.jump = "gate@192.0.2.1";
  EXPECT_EQ(target_of(provider, paths)->jump, "gate@192.0.2.1");
  provider.transport = "pigeon";
  EXPECT_EQ(target_of(provider, paths)->transport, ssh::TransportKind::automatic);
}

}  // namespace
}  // namespace gridctl::control::connect_agent_test
