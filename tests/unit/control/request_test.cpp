// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <deque>

#include "control/reach/request.hpp"
#include "hand_clock.hpp"
#include "scripted_answers.hpp"
#include "support/results.hpp"
#include "wire/messages.hpp"

namespace gridctl::control::request_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;

TEST(Ask, PassesOverEventsAndALateLookAndNothingElse) {
  Answers link;
  const auto answer = [&](std::deque<wire::Frame> frames, std::uint32_t stream = 3) {
    link.frames = std::move(frames);
    return ask(link, stream, "{\"op\":\"poll\"}", {5});
  };
  using enum wire::FrameKind;
  EXPECT_EQ(*answer({{event, 0, ""}, {reply, k_health_stream, "late"}, {reply, 3, "{}"}}), "{}");
  EXPECT_EQ(link.sent.back().kind, request);
  EXPECT_EQ(link.sent.back().stream, 3u);
  EXPECT_EQ(link.sent.back().payload, "{\"op\":\"poll\"}");
  EXPECT_THAT(answer({{reply, 4, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(answer({{data, 3, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(answer({{data, k_health_stream, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_EQ(*answer({{reply, k_health_stream, "{}"}}, k_health_stream), "{}") << "now it is what was asked";
  EXPECT_THAT(answer({{reply, 3, wire::error_payload(make_error(Code::busy, "held"))}}), FailsWith(Code::busy));
  EXPECT_THAT(answer({}), FailsWith(Code::timed_out));
}

}  // namespace
}  // namespace gridctl::control::request_test
