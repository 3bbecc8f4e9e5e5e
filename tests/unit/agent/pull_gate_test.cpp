// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "agent/pull_gate.hpp"

namespace gridctl::agent::pull_gate_test {
namespace {

TEST(PullGate, OpensTunnelsOnly) {
  EXPECT_EQ(parse_tunnel_request("CONNECT ghcr.io:443 HTTP/1.1\r\nHost: x"), (GateTarget{"ghcr.io", 443}));
  EXPECT_EQ(parse_tunnel_request("CONNECT [2001:db8::1]:5000 HTTP/1.1"), (GateTarget{"2001:db8::1", 5000}));
  for (const char* other : {"GET http://192.168.1.1/reboot HTTP/1.1", "CONNECT ghcr.io HTTP/1.1", "CONNECT :443 HTTP/1.1", "CONNECT a:0 HTTP/1.1",
                            "CONNECT a:443", "CONNECT a b:443 HTTP/1.1", "CONNECT u@a:443 HTTP/1.1", "CONNECT a:70000 HTTP/1.1", ""})
    EXPECT_EQ(parse_tunnel_request(other), std::nullopt) << other;
}

}  // namespace
}  // namespace gridctl::agent::pull_gate_test
