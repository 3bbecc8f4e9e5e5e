// SPDX-License-Identifier: Apache-2.0
#include "control/follow/insight.hpp"

#include "base/text.hpp"
#include "control/follow/read_output.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/request.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint32_t k_insight_stream = 2;
constexpr Duration k_insight_wait = std::chrono::seconds{40};  // the host itself gives up after 20
constexpr int k_frames_max = 64;
constexpr std::size_t k_stack_lines = 80;  // of one host

// Receives data frames up to the end record.
Result<std::string> receive_text(wire::Link& link, std::size_t bytes_max, BootTime deadline) {
  std::string text;
  for (int frames = 0; frames < k_frames_max; ++frames) {
    TRY_ASSIGN(const wire::Frame frame, link.receive(deadline));
    if (frame.stream != k_insight_stream) continue;  // an event
    if (frame.kind == wire::FrameKind::end) {
      TRY_ASSIGN(const wire::EndRecord record, wire::parse_end(frame.payload));
      return record.error ? Result<std::string>(*record.error) : std::move(text);
    }
    if (frame.kind != wire::FrameKind::data || text.size() + frame.payload.size() > bytes_max) break;
    text += frame.payload;
  }
  return make_error(Code::protocol_violation, "the agent sent something other than the stacks of the processes");
}

}  // namespace

Result<std::string> stacks_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  const BootTime deadline = world.clock.boot() + k_insight_wait;
  TRY(ask(*link.link, k_insight_stream, wire::encode(wire::StacksRequest{job, epoch}), deadline));
  return receive_text(*link.link, wire::k_stacks_bytes_max, deadline);
}

std::string stack_lines(const Result<std::string>& stacks) {
  if (!stacks) return "no stacks: " + stacks.error().one_line();
  std::vector<std::string> lines = split_lines(*stacks);
  const std::size_t all = lines.size();
  lines.resize(std::min(all, k_stack_lines));
  for (std::string& line : lines) line = sanitize(line, 200);
  if (all > k_stack_lines) lines.push_back("(" + std::to_string(all - k_stack_lines) + " more lines)");
  return join(lines, "\n");
}

Result<void> fetch_metrics(const World& world, const HostReach& host, const JobId& job, Epoch epoch,
                           AttemptNumber attempt) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  return read_output(*link.link, world.clock, world.folders, {job, epoch, attempt, k_metrics_rank}, k_metrics_bytes_max);
}

Result<wire::StepsReply> steps_on(const World& world, const HostReach& host, const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  const BootTime deadline = world.clock.boot() + k_insight_wait;
  TRY_ASSIGN(const std::string reply,
             ask(*link.link, k_insight_stream, wire::encode(wire::StepsRequest{job, epoch}), deadline));
  return wire::parse_steps_reply(reply);
}

}  // namespace gridctl::control
