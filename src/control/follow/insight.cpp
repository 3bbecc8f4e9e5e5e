// SPDX-License-Identifier: Apache-2.0
#include "control/follow/insight.hpp"

#include "control/reach/pace.hpp"
#include "transfer/stream.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint32_t k_insight_stream = 2;
constexpr Duration k_insight_wait = std::chrono::seconds{40};  // the host itself gives up after 20
}  // namespace

Result<std::string> stacks_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  transfer::Conversation with{*link.link, world.clock, k_insight_wait};
  TRY(with.send(wire::FrameKind::request, k_insight_stream, wire::encode(wire::StacksRequest{job, epoch})));
  TRY(with.reply(k_insight_stream));
  TRY_ASSIGN(const Bytes text, with.data(k_insight_stream, wire::k_stacks_bytes_max));
  return std::string(as_text(text));
}

Result<wire::StepsReply> steps_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  transfer::Conversation with{*link.link, world.clock, k_insight_wait};
  TRY(with.send(wire::FrameKind::request, k_insight_stream, wire::encode(wire::StepsRequest{job, epoch})));
  TRY_ASSIGN(const std::string reply, with.reply(k_insight_stream));
  return wire::parse_steps_reply(reply);
}

}  // namespace gridctl::control
