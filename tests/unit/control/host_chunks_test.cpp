// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/host_chunks.hpp"
#include "hand_clock.hpp"
#include "support/results.hpp"

namespace gridctl::control::host_chunks_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(HostChunks, WhatAHostWastedIsForgottenAfterADay) {
  HostChunks host;
  const BootTime began{1};
  host.wasted(11, began);
  EXPECT_THAT(host.may_send(11, began), IsOk());
  EXPECT_THAT(host.may_send(10, began), FailsWith(Code::refused));
  EXPECT_THAT(host.may_send(10, began + 24h), FailsWith(Code::refused));
  EXPECT_THAT(host.may_send(10, began + 24h + 1ns), IsOk());
  host.wasted(5, began + 24h);
  EXPECT_THAT(host.may_send(15, began + 24h), FailsWith(Code::refused)) << "it adds up";
  host.wasted(5, began + 48h + 1ns);
  EXPECT_THAT(host.may_send(5, began + 48h + 1ns), IsOk()) << "and begins anew";
}

}  // namespace
}  // namespace gridctl::control::host_chunks_test
