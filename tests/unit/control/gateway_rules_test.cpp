// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_rules.hpp"

#include <gtest/gtest.h>

namespace gridctl::control {
namespace {
using namespace std::chrono_literals;

job::Service rules_service() {
  job::Service service;
  service.replicas_min = 1;
  service.sleeps = true;
  service.scale_concurrency = 4;
  service.down_after = 10s;
  return service;
}

GatewayInfo told_by(const GatewayRules& rules) {
  GatewayInfo info;
  rules.tell(info);
  return info;
}

TEST(GatewayRules, ReplicasThatLeaveAreDrainedAndToldAsSuch) {
  GatewayRules rules(rules_service(), 2, 3, {});
  ReplicaSight sight{Epoch{4}, true, true, false, false};
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::ready);
  EXPECT_TRUE(told_by(rules).replicas[0].ready);
  EXPECT_FALSE(told_by(rules).replicas[0].drained);
  sight.dismissed = true;
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::drain);
  EXPECT_FALSE(told_by(rules).replicas[0].drained) << "requests are under way";
  sight.idle = true;
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::drain);
  EXPECT_TRUE(told_by(rules).replicas[0].drained);
  sight.reachable = false;
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::out);
  ServiceSeen seen;
  seen.replicas.resize(3);
  seen.stops = true;
  rules.take(seen);
  EXPECT_TRUE(rules.stops());
  EXPECT_EQ(rules.see(1, {Epoch{2}, true, true, false, false}, 1s), ServerState::drain);
}

TEST(GatewayRules, WhileTheServiceSleepsAnAdditionalReplicaMayProveANewVersion) {
  GatewayInfo before;
  before.wanted = 1;
  before.asleep = true;
  GatewayRules rules(rules_service(), 2, 3, before);
  EXPECT_TRUE(told_by(rules).asleep);
  EXPECT_EQ(rules.see(0, {Epoch{1}, true, true, false, false}, 1s), ServerState::drain);
  EXPECT_EQ(rules.see(1, {Epoch{1}, true, true, false, false}, 1s), ServerState::drain);
  EXPECT_EQ(rules.see(2, {Epoch{1}, true, true, false, false}, 1s), ServerState::ready);
}

}  // namespace
}  // namespace gridctl::control
