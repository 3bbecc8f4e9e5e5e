// SPDX-License-Identifier: Apache-2.0
#include "control/reach/stream_call.hpp"

#include <utility>

namespace gridctl::control {

namespace {
constexpr Duration k_silence_look = std::chrono::seconds{1};
constexpr Duration k_silence_max = std::chrono::seconds{20};  // pings are answered each five seconds
}  // namespace

StreamCall::StreamCall(os::Loop& loop, os::Clock& clock, std::unique_ptr<AgentChannel> channel)
    : loop_(loop),
      channel_(std::move(channel)),
      hub_(loop, clock,
           {[this](const wire::Frame& frame) { channel_->send(frame); }, [this] { return channel_->queued_bytes(); }},
           transfer::StreamHub::Side::dialler) {
  channel_->on_room = [this] { hub_.flow(); };
  channel_->listen(
      [this](const wire::Frame& frame) {
        const Result<void> taken = hub_.take(frame);
        if (!taken) lose(taken.error());
      },
      [this](const Error& why) { lose(why); });
  watch_ = loop_.every(k_silence_look, [this] {
    if (hub_.silence() > k_silence_max) lose(make_error(Code::timed_out, "the host does not answer any more"));
  });
}

void StreamCall::lose(const Error& why) {
  if (std::exchange(lost_, true)) return;
  watch_.reset();
  // Later: whoever called us is still at work with the frame.
  const std::weak_ptr<int> alive = life_;
  loop_.post([this, alive, why] {
    if (alive.expired()) return;
    hub_.abandon(why);
    if (const auto told = on_lost; told && !alive.expired()) told(why);
  });
}

}  // namespace gridctl::control
