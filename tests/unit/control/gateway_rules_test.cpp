// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/serve/command_probe.hpp"

namespace gridctl::control::gateway_rules_test {
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

TEST(GatewayRules, AReplicaWhoseCommandFailsFinishesWhatItHas) {
  job::Service service;
  service.initial_delay = 3s;
  GatewayRules rules(service, 1, 2, {});
  ReplicaSight sight{Epoch{4}, true, true, false, false, "exit code 1"};
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::drain);
  EXPECT_FALSE(told_by(rules).replicas[0].ready);
  EXPECT_EQ(told_by(rules).replicas[0].unfit, "exit code 1");
  for (int i = 0; i < 4; ++i) (void)rules.see(0, sight, 1s);
  EXPECT_TRUE(told_by(rules).replicas[0].late) << "it has never been fit";
  sight.unfit.clear();
  EXPECT_EQ(rules.see(0, sight, 1s), ServerState::ready);
  EXPECT_TRUE(told_by(rules).replicas[0].ready);
  EXPECT_FALSE(told_by(rules).replicas[0].late);
}

TEST(CommandVerdict, TwoRunsInARowDecide) {
  CommandVerdict verdict;
  EXPECT_THAT(verdict.unfit(), ::testing::HasSubstr("not passed twice"));
  verdict.failed("exit code 1");
  EXPECT_EQ(verdict.unfit(), "the probe's command: exit code 1") << "one is enough while it has never been fit";
  verdict.passed();
  EXPECT_NE(verdict.unfit(), "");
  verdict.passed();
  EXPECT_EQ(verdict.unfit(), "");
  verdict.failed("exit code 2");
  EXPECT_EQ(verdict.unfit(), "");
  verdict.passed();
  verdict.failed("exit code 2");
  EXPECT_EQ(verdict.unfit(), "") << "not in a row";
  verdict.failed("exit code 3");
  EXPECT_EQ(verdict.unfit(), "the probe's command: exit code 3");
}

TEST(CommandVerdict, AFailureSaysWhatTheCommandSaidLast) {
  wire::StreamEnd end;
  end.exit_code = 127;
  EXPECT_EQ(probe_failure(end, "a\nsh: 1: curl: not found\n"), "exit code 127: sh: 1: curl: not found");
  end.signal = 9;
  EXPECT_EQ(probe_failure(end, ""), "ended by signal 9");
  end.error = make_error(Code::unsupported, "the owner does not allow it");
  EXPECT_EQ(probe_failure(end, "x"), "the owner does not allow it");
  EXPECT_EQ(probe_failure({.exit_code = 1}, "\x1b[31mred" + std::string(500, 'x')).find('\x1b'), std::string::npos);
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
}  // namespace gridctl::control::gateway_rules_test
