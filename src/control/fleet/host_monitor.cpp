// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/host_monitor.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "os/random.hpp"
#include "wire/network.hpp"

namespace gridctl::control {

namespace {
constexpr int k_drift = 2000;                                  // clocks drift by one part in so many at most
constexpr Duration k_hardly = std::chrono::milliseconds{300};  // as any link and loop may take
}  // namespace

Duration Transit::took(BootTime sent, BootTime got) {
  const Duration apart{got.ns - sent.ns};
  if (!least_) begun_ = got;
  least_ = least_ ? std::min(apart, *least_ + (got - last_) / k_drift) : apart;
  last_ = got;
  return std::min(apart - *least_, got - begun_);
}

void make_older(wire::PollReply& reply, Duration late) {
  if (late < k_hardly) return;
  const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(late).count();
  for (wire::AttemptStatus& status : reply.attempts) wire::make_older(status, ms);
}

namespace {
constexpr Duration k_ping_pause = std::chrono::seconds{60};  // some 200 bytes each way: 0.6 MB a day
constexpr int k_quick_pings = 5;                             // after each login, to begin with a fair figure
constexpr Duration k_first_pause = std::chrono::milliseconds{500};
constexpr Duration k_fast_failure = std::chrono::seconds{1};
constexpr Duration k_quick_pause = std::chrono::milliseconds{100};
constexpr int k_quick_retries_max = 30;  // with the login's own time, some ten seconds
}  // namespace

HostMonitor::HostMonitor(os::Executor& run, AgentNetwork& net, os::Clock& clock, registry::Provider provider,
                         Listener listener)
    : run_(run),
      net_(net),
      clock_(clock),
      provider_(std::move(provider)),
      listener_(std::move(listener)),
      heard_agent_at_(clock.boot()) {}

void HostMonitor::set_wants(std::vector<Want> wants, Duration heartbeat) {
  const bool changed = !(wants == wants_);
  wants_ = std::move(wants);
  if (heartbeat < heartbeat_ || changed) next_poll_ = std::min(next_poll_, clock_.boot());
  heartbeat_ = heartbeat;
}

void HostMonitor::expect(const std::string& peer_key, const Shared<Inventory>& inventory) {
  if (provider_.peer_key != peer_key) next_connect_ = std::min(next_connect_, clock_.boot());
  provider_.peer_key = peer_key;
  provider_.inventory = inventory;
}

void HostMonitor::poll_now() { next_poll_ = clock_.boot(); }

Duration HostMonitor::longest_lease() const {
  Duration longest{};
  for (const Want& want : wants_) longest = std::max(longest, want.lease);
  return longest;
}

void HostMonitor::heard(BootTime at) {
  if (at.ns == 0 || (last_answer_ && at <= *last_answer_)) return;
  last_answer_ = at;
  silence_.answered(at);
}

void HostMonitor::tick(BootTime now, bool others_answer) {
  // A host that was not asked is not silent; time between polls does not count.
  const bool asked = link_ == nullptr || !asked_.empty();
  silence_.tick(now, asked && others_answer);
  if (link_ == nullptr) {
    if (!connecting_ && now >= next_connect_) connect(now);
    return;
  }
  if (!asked_.empty() && now - asked_since_ > std::max(k_answer_patience, heartbeat_ * k_patience_beats)) {
    drop(make_error(Code::timed_out, "no answer from the agent for " + format_duration(now - asked_since_)));
    return;
  }
  if (now >= next_poll_ && asked_.empty()) send_polls(now);
}

void HostMonitor::connect(BootTime now) {
  connecting_ = true;
  connect_began_ = now;
  const os::Lane lane{os::Lane::Kind::login, provider_.name.value};
  run_.run(lane, [self = shared_from_this(), provider = provider_, deadline = now + k_deploy_max]() mutable {
    using Channel = Result<std::unique_ptr<AgentChannel>>;
    auto channel = std::make_shared<Channel>(self->net_.connect(provider, deadline));
    os::Executor& run = self->run_;
    // The callback is moved because the last reference must not end on this thread: the loop watches the connection.
    run.post([self = std::move(self), channel] { self->take_over(std::move(*channel)); });
  });
}

void HostMonitor::take_over(Result<std::unique_ptr<AgentChannel>> session) {
  connecting_ = false;
  tried_ = true;
  const BootTime now = clock_.boot();
  if (!session) {
    // A host that answered at once, but wrongly (an agent killed in its greeting, sshd restarting), is retried at once,
    // but not for ever. When only a person can help, haste is pointless.
    const bool answered_fast = now - connect_began_ < k_fast_failure && session.error().retry != Retry::needs_user;
    quick_retries_ = answered_fast && !wants_.empty() ? quick_retries_ + 1 : 0;
    const bool at_once = quick_retries_ > 0 && quick_retries_ <= k_quick_retries_max;
    // A host with jobs is retried about as often as it would be polled: the pause must not use up `lost_after`.
    const Duration longest = wants_.empty() ? k_reconnect_max : std::max(heartbeat_, k_first_pause);
    reconnect_pause_ = std::clamp(reconnect_pause_ * 2, k_first_pause, longest);
    next_connect_ = now + (at_once ? k_quick_pause : reconnect_pause_);
    trouble_ = session.error().one_line();
    // The host's SSH server answers and its key proves its identity: a refused login is not silence. Otherwise, a
    // missing ssh-agent would look like a dead host and start the job twice. But once our leases there have expired,
    // its attempts have ended, and waiting longer would help no one.
    if (session.error().code == Code::auth_refused && now - heard_agent_at_ < longest_lease()) heard(now);
    listener_.failed(session.error());
    return;
  }
  reconnect_pause_ = Duration::zero();
  quick_retries_ = 0;
  trouble_.clear();
  asked_.clear();
  const wire::AgentHello hello = (*session)->hello();
  echo_ = hello.host_time;
  echo_heard_ = now;
  transit_ = {};
  transit_.took(hello.host_time, now);
  last_answer_ = now;
  heard_agent_at_ = now;
  silence_.answered(now);
  knows_links_ = std::find(hello.features.begin(), hello.features.end(), wire::k_links_feature) != hello.features.end();
  quick_pings_ = k_quick_pings;
  next_ping_ = now;
  knows_health_ = std::find(hello.features.begin(), hello.features.end(), "health") != hello.features.end();
  link_ = *std::move(session);
  const std::weak_ptr<HostMonitor> weak = weak_from_this();
  link_->listen(
      [weak](const wire::Frame& frame) {
        if (const auto self = weak.lock()) self->on_frame(frame);
      },
      [weak](const Error& error) {
        if (const auto self = weak.lock()) self->drop(error);
      });
  next_poll_ = now;
  listener_.connected(hello);
}

void HostMonitor::drop(const Error& error) {
  if (link_ == nullptr) return;
  link_.reset();
  asked_.clear();
  trouble_ = error.one_line();
  next_connect_ = clock_.boot();  // the first try is at once: a broken connection says nothing about the host
  listener_.failed(error);
}

void HostMonitor::send(Asked asked, std::string payload) {
  asked.stream = next_stream_++;
  if (asked_.empty()) asked_since_ = clock_.boot();
  wire::Frame frame{wire::FrameKind::request, asked.stream, std::move(payload)};
  asked_.push_back(std::move(asked));
  link_->send(frame);
}

void HostMonitor::heard_time(wire::PollReply& reply) {
  const BootTime now = clock_.boot();
  const Duration late = transit_.took(reply.host_time, now);
  make_older(reply, late);
  if (reply.host_time <= echo_) return;
  echo_ = reply.host_time;
  echo_heard_ = now - late;  // the host counts what is left of its limits from the echo
}

namespace {
std::optional<wire::Allowance> allowance_of(const std::optional<HostMonitor::AttemptLimits>& limits, BootTime echo_heard) {
  if (!limits) return std::nullopt;
  const auto left = [&](const std::optional<BootTime>& until) {
    return until ? std::optional{std::max(*until - echo_heard, Duration{})} : std::nullopt;
  };
  return wire::Allowance{left(limits->run_until), limits->run_limit, left(limits->time_until)};
}
}  // namespace

void HostMonitor::send_polls(BootTime now) {
  next_poll_ = now + heartbeat_;
  std::map<Duration, wire::PollRequest> by_lease;
  for (const Want& want : wants_) {
    wire::PollRequest& request = by_lease[want.lease];
    request.lease = want.lease;
    request.attempts.push_back(want.attempt);
    request.attempts.back().allowance = allowance_of(want.limits, echo_heard_);
  }
  if (by_lease.empty()) by_lease[Duration::zero()] = {};
  for (auto& [lease, request] : by_lease) {
    request.echo = echo_;
    send({}, wire::encode(request));
  }
}

bool HostMonitor::request_log(const wire::LogRequest& request) {
  if (link_ == nullptr) return false;
  for (const Asked& asked : asked_)
    if (asked.log) return false;
  Asked asked;
  asked.log = request;
  send(std::move(asked), wire::encode(request));
  return true;
}

bool HostMonitor::request_health(const wire::HealthRequest& request) {
  if (link_ == nullptr || !knows_health_) return false;
  if (std::any_of(asked_.begin(), asked_.end(), [](const Asked& asked) { return asked.health; })) return false;
  Asked asked;
  asked.health = true;
  asked.sent = clock_.boot();
  send(std::move(asked), wire::encode(request));
  return true;
}

void HostMonitor::on_health_frame(const wire::Frame& frame, BootTime sent) {
  if (wire::payload_error(frame.payload)) return;  // it cannot tell now; the heartbeat says whether it is there
  const Result<wire::HealthReply> reply = wire::parse_health_reply(frame.payload);
  if (!reply) return drop(reply.error());
  if (listener_.told_health) listener_.told_health(*reply, clock_.boot() - sent);
}

void HostMonitor::on_frame(const wire::Frame& frame) {
  last_answer_ = clock_.boot();  // whatever it says: it is alive
  heard_agent_at_ = *last_answer_;
  silence_.answered(*last_answer_);
  if (frame.kind == wire::FrameKind::event) {
    Result<wire::PollReply> reply = wire::parse_poll_reply(frame.payload);
    if (!reply) return drop(reply.error());
    heard_time(*reply);
    if (ends_at_) reply->ends_in = *ends_at_ - clock_.boot();  // an event is about an attempt, not about its host
    return listener_.polled(*reply);
  }
  if (asked_.empty() || asked_.front().stream != frame.stream)
    return drop(make_error(Code::protocol_violation, "the agent answered a question that was not asked"));
  asked_since_ = clock_.boot();
  if (asked_.front().ping) return on_pong(frame);
  if (asked_.front().log) return on_log_frame(asked_.front(), frame);
  if (frame.kind != wire::FrameKind::reply)
    return drop(make_error(Code::protocol_violation, "the agent sent data instead of a reply"));
  const bool health = asked_.front().health;
  const BootTime sent = asked_.front().sent;
  asked_.pop_front();
  if (health) return on_health_frame(frame, sent);
  if (std::optional<Error> error = wire::payload_error(frame.payload)) return drop(*error);
  Result<wire::PollReply> reply = wire::parse_poll_reply(frame.payload);
  if (!reply) return drop(reply.error());
  heard_time(*reply);
  ends_at_.reset();
  if (reply->ends_in) ends_at_ = clock_.boot() + *reply->ends_in;
  listener_.polled(*reply);
  send_ping(clock_.boot());
}

// The host does no work for a ping, so its time is the link's (and the loops'). The nonce is drawn now, so that no host
// can answer before it was asked.
void HostMonitor::send_ping(BootTime now) {
  if (link_ == nullptr || !knows_links_ || !listener_.pinged || !asked_.empty() || now < next_ping_) return;
  quick_pings_ = std::max(0, quick_pings_ - 1);
  next_ping_ = quick_pings_ > 0 ? now : now + k_ping_pause;
  Asked asked;
  asked.ping = os::random_u64();
  asked.sent = now;
  const std::string payload = wire::encode_ping({*asked.ping});
  send(std::move(asked), payload);
}

void HostMonitor::on_pong(const wire::Frame& frame) {
  const Asked asked = std::move(asked_.front());
  asked_.pop_front();
  const Result<wire::PingMessage> pong = wire::parse_pong(frame.payload);
  if (frame.kind != wire::FrameKind::reply || !pong || pong->nonce != *asked.ping)
    return drop(make_error(Code::protocol_violation, "the agent answered a ping with something else"));
  listener_.pinged(*last_answer_ - asked.sent);
  if (quick_pings_ > 0) send_ping(*last_answer_);
}

void HostMonitor::on_log_frame(Asked& asked, const wire::Frame& frame) {
  if (frame.kind == wire::FrameKind::reply) {
    if (wire::payload_error(frame.payload)) {  // nothing there (yet, or any more): no trouble of the host's
      asked_.pop_front();
      return;
    }
    Result<wire::LogReply> reply = wire::parse_log_reply(frame.payload);
    if (!reply) return drop(reply.error());
    asked.log_offset = reply->offset;
    asked.log_reply_seen = true;
    return;
  }
  if (!asked.log_reply_seen) return drop(make_error(Code::protocol_violation, "the agent sent data before its reply"));
  if (frame.kind == wire::FrameKind::data) {
    if (asked.log_bytes.size() + frame.payload.size() > asked.log->max_bytes)
      return drop(make_error(Code::protocol_violation, "the agent sent more output than was asked for"));
    asked.log_bytes += frame.payload;
    return;
  }
  Asked whole = std::move(asked);
  asked_.pop_front();
  Result<wire::EndRecord> end = wire::parse_end(frame.payload);
  if (!end) return drop(end.error());
  if (!end->error && end->bytes == whole.log_bytes.size())
    listener_.logged(*whole.log, whole.log_offset, whole.log_bytes);
}

}  // namespace gridctl::control
