// SPDX-License-Identifier: Apache-2.0
#include "control/follow/bag_link.hpp"

#include <algorithm>
#include <utility>

#include "control/reach/pace.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_connect_pause = std::chrono::seconds{2};
constexpr Duration k_link_patience = std::chrono::seconds{15};  // beyond what the host may wait
}  // namespace

void BagLink::tick(BootTime now) {
  if ((then_ || then_output_) && now - asked_at_ > patience_) close(make_error(Code::timed_out, "no answer from the workers of bags"));
  if (channel_ != nullptr || connecting_ || now < next_try_) return;
  connecting_ = true;
  world_.run.run({os::Lane::Kind::login, provider_.name.value}, [self = shared_from_this(), deadline = now + k_deploy_max]() mutable {
    using Channel = Result<std::unique_ptr<AgentChannel>>;
    auto channel = std::make_shared<Channel>(self->world_.net.connect(self->provider_, deadline));
    os::Executor& run = self->world_.run;
    run.post([self = std::move(self), channel] { self->take_over(std::move(*channel)); });
  });
}

void BagLink::take_over(Result<std::unique_ptr<AgentChannel>> channel) {
  connecting_ = false;
  next_try_ = world_.clock.boot() + k_connect_pause;
  if (!channel) return;  // the heartbeat says whether the host is there
  life_->heard(world_.clock.boot());
  const auto& features = (*channel)->hello().features;
  if (std::find(features.begin(), features.end(), wire::k_bags_feature) == features.end()) return;
  channel_ = *std::move(channel);
  const std::weak_ptr<BagLink> weak = weak_from_this();
  channel_->listen(
      [weak](const wire::Frame& frame) {
        if (const auto self = weak.lock()) self->on_frame(frame);
      },
      [weak](const Error& error) {
        if (const auto self = weak.lock()) self->close(error);
      });
}

void BagLink::ask(const wire::BagRequest& request, Then then) {
  then_ = std::move(then);
  send(wire::encode(request), request.wait + request.gather + k_link_patience);
}

void BagLink::ask_output(const wire::LogRequest& request, ThenOutput then) {
  then_output_ = std::move(then);
  output_ = {};
  output_max_ = 0;
  output_wanted_ = request.max_bytes;
  send(wire::encode_bag_output(request), k_link_patience);
}

void BagLink::send(const std::string& payload, Duration patience) {
  asked_at_ = world_.clock.boot();
  patience_ = patience;
  channel_->send({wire::FrameKind::request, ++stream_, payload});
}

void BagLink::on_output_frame(const wire::Frame& frame) {
  const auto broken = [this] {
    close(make_error(Code::protocol_violation, "the agent sent output that was not asked for"));
  };
  if (frame.kind == wire::FrameKind::reply) {
    if (const std::optional<Error> error = wire::payload_error(frame.payload))
      return std::exchange(then_output_, nullptr)(*error);
    const Result<wire::LogReply> reply = wire::parse_log_reply(frame.payload);
    if (!reply || output_max_ > 0) return broken();
    output_.offset = reply->offset;
    output_max_ = output_wanted_;
  } else if (frame.kind == wire::FrameKind::data) {
    if (output_.bytes.size() + frame.payload.size() > output_max_) return broken();
    output_.bytes += frame.payload;
  } else {
    const Result<wire::EndRecord> end = wire::parse_end(frame.payload);
    if (!end || end->error || end->bytes != output_.bytes.size()) return broken();
    std::exchange(then_output_, nullptr)(std::move(output_));
  }
}

void BagLink::on_frame(const wire::Frame& frame) {
  life_->heard(world_.clock.boot());
  if (frame.kind == wire::FrameKind::event) return;
  if (then_output_ && frame.stream == stream_) return on_output_frame(frame);
  if (!then_ || frame.stream != stream_ || frame.kind != wire::FrameKind::reply)
    return close(make_error(Code::protocol_violation, "the agent answered a question that was not asked"));
  const Then then = std::exchange(then_, nullptr);
  if (const std::optional<Error> error = wire::payload_error(frame.payload)) return then(*error);
  const Result<wire::BagReply> reply = wire::parse_bag_reply(frame.payload);
  if (!reply) close(reply.error());
  then(reply);
}

void BagLink::close(const Error& why) {
  channel_.reset();
  if (const Then then = std::exchange(then_, nullptr)) then(why);
  if (const ThenOutput then = std::exchange(then_output_, nullptr)) then(why);
}

}  // namespace gridctl::control
