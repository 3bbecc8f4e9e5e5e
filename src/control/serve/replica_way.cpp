// SPDX-License-Identifier: Apache-2.0
#include "control/serve/replica_way.hpp"

#include <algorithm>
#include <utility>

#include "os/log.hpp"

namespace gridctl::control {

namespace {
using std::chrono::milliseconds;
constexpr Duration k_beat = milliseconds{500};    // between two signs of life that are asked for
constexpr Duration k_doubt = milliseconds{1500};  // of silence: no new request goes there
constexpr Duration k_lost = std::chrono::seconds{3};
constexpr Duration k_stall = std::chrono::seconds{1};  // we did not run ourselves: the silence may be ours
constexpr Duration k_again = milliseconds{500}, k_again_max = std::chrono::seconds{5};
}  // namespace

ReplicaWay::ReplicaWay(os::Loop& loop, os::Clock& clock, os::Pool& pool, Enter enter, std::string socket)
    : loop_(loop), clock_(clock), pool_(pool), enter_(std::move(enter)), socket_(std::move(socket)), pause_(k_again) {}

void ReplicaWay::follow(std::optional<ReplicaPlace> place) {
  const bool other = !place || !place_ || place->epoch != place_->epoch;
  place_ = std::move(place);
  if (!other) return;
  drop(place_ ? "the replica has moved" : "the replica is not running");
  connecting_ = false;  // where it was, which may be a dead host
  again_at_ = {};
  pause_ = k_again;
}

bool ReplicaWay::is_doubtful() const {
  return std::min(call_->streams().silence(), clock_.boot() - judged_from_) > k_doubt;
}

void ReplicaWay::tick(BootTime now) {
  if (now - std::exchange(ticked_, now) > k_stall) judged_from_ = now;
  if (call_ != nullptr && std::min(call_->streams().silence(), now - judged_from_) > k_lost) {
    drop("its host has been silent for " + format_duration(k_lost));
    os::log(os::LogLevel::warn, socket_ + ": " + trouble_);
  }
  if (call_ == nullptr && place_ && !connecting_ && now >= again_at_) connect();
}

void ReplicaWay::connect() {
  connecting_ = true;
  pool_.submit([this, place = *place_] {
    auto made = std::make_shared<Result<std::unique_ptr<AgentChannel>>>(enter_(place));
    loop_.post([this, epoch = place.epoch, made] { connected(epoch, std::move(*made)); });
  });
}

void ReplicaWay::connected(Epoch epoch, Result<std::unique_ptr<AgentChannel>> channel) {
  if (!place_ || place_->epoch != epoch || call_ != nullptr) return;  // it has moved meanwhile
  connecting_ = false;
  Result<os::Listener> listener = channel ? os::listen_at(socket_) : Result<os::Listener>(channel.error());
  if (!listener) {
    trouble_ = listener.error().one_line();
    os::log(os::LogLevel::info, socket_ + ": " + trouble_);
    again_at_ = clock_.boot() + pause_;
    pause_ = std::min(pause_ * 2, k_again_max);
    return;
  }
  pause_ = k_again;
  trouble_.clear();
  judged_from_ = clock_.boot();
  call_ = std::make_unique<StreamCall>(loop_, clock_, *std::move(channel));
  call_->streams().ask_every(k_beat);
  call_->on_lost = [this](const Error& why) {
    drop(why.one_line());
    os::log(os::LogLevel::warn, socket_ + ": " + trouble_);
  };
  listener_ = *std::move(listener);
  accepts_ = loop_.watch(listener_->fd.get(), {true, false}, [this](os::Interest) { take_in(); });
}

void ReplicaWay::take_in() {
  while (auto socket = listener_ ? os::accept_local(*listener_) : std::nullopt) {
    wire::StreamOpen open;
    open.kind = wire::StreamKind::port;
    open.port = place_ ? place_->port : 0;
    transfer::StreamEnds ends;
    ends.source = *std::move(socket);
    ends.duplex = true;
    transfer::StreamEvents events;
    const auto answered = std::make_shared<bool>(false);
    events.answered = [answered](const wire::StreamAnswer&) { *answered = true; };
    events.closed = [this, answered](const wire::StreamEnd& end) {
      if (end.error && !*answered && listener_ && on_refused) on_refused();
    };
    call_->streams().open(open, std::move(ends), std::move(events));
  }
}

std::uint32_t ReplicaWay::run(const wire::StreamOpen& request, transfer::StreamEnds ends, transfer::StreamEvents events) {
  const std::uint32_t stream = call_->streams().open(request, std::move(ends), std::move(events));
  call_->streams().finish(stream, {});  // it reads nothing
  return stream;
}

void ReplicaWay::end(std::uint32_t stream, const Error& why) {
  if (call_ != nullptr && call_->streams().has(stream)) call_->streams().reset(stream, why);
}

void ReplicaWay::drop(const std::string& why) {
  trouble_ = why;
  if (call_ != nullptr && on_refused) on_refused();  // before HAProxy meets a closed door
  accepts_.reset();
  listener_.reset();
  if (call_ == nullptr) return;
  call_->on_lost = nullptr;
  call_->streams().abandon(make_error(Code::host_unreachable, why));
  loop_.post([gone = std::shared_ptr<StreamCall>(std::move(call_))] {});
  again_at_ = clock_.boot() + k_again;
}

}  // namespace gridctl::control
