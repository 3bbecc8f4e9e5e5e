// SPDX-License-Identifier: Apache-2.0
#include "control/reach/agent_link.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "os/net.hpp"

namespace gridctl::control {
namespace {

constexpr std::size_t k_read_bytes = 64 * 1024;
constexpr std::size_t k_taken_in_max = 8u << 20;  // frames waiting to be received: eight of the largest
constexpr std::size_t k_output_max = 8u << 20;    // heartbeats are under 1 KiB: a host that reads never gets there
constexpr std::size_t k_turn_bytes = 256 * 1024;  // then other hosts get their turn of the loop
constexpr Duration k_look_again = std::chrono::milliseconds{250};  // another thread may have taken what we wait for
constexpr Duration k_heartbeat = std::chrono::seconds{5};

Error ended_error(const ssh::Channel& channel) {
  const std::string words{trim(channel.stderr_tail())};
  return make_error(Code::host_unreachable, "the agent on " + channel.peer() + " closed the connection" +
                                                (words.empty() ? "" : ": " + sanitize(words, 300)));
}

Error too_late(const ssh::Channel& channel, const char* what) {
  return make_error(Code::timed_out, channel.peer() + " did not " + what + " in time");
}

}  // namespace

Result<bool> wait_for_channel(const ssh::Channel& channel, bool output_pending, BootTime deadline, os::Clock& clock) {
  std::vector<os::Poll> polls;
  for (const ssh::Watched& watched : channel.wants(output_pending)) polls.push_back({watched.fd, watched.interest, {}});
  return os::wait_any(polls, std::min(deadline, clock.boot() + k_look_again), clock);
}

Result<std::size_t> read_blocking(ssh::Channel& channel, std::span<std::byte> into, BootTime deadline,
                                  os::Clock& clock) {
  for (;;) {
    TRY_ASSIGN(const auto count, channel.read(into));
    if (count) return *count;
    if (clock.boot() >= deadline) return too_late(channel, "answer");
    TRY(wait_for_channel(channel, !channel.flushed(), deadline, clock));
    channel.keepalive(clock.boot());
  }
}

Result<bool> BlockingLink::take_in() {
  if (ended_ || decoder_.buffered() >= k_taken_in_max) return false;
  std::array<std::byte, k_read_bytes> buffer;
  TRY_ASSIGN(const auto count, channel_->read(buffer));
  if (!count) return false;
  ended_ = *count == 0;
  decoder_.feed(ByteView{buffer}.first(*count));
  return !ended_;
}

Result<void> BlockingLink::pause(bool output_pending, BootTime deadline) {
  std::vector<os::Poll> polls;
  {
    const os::MutexLock lock(mutex_);
    channel_->keepalive(clock_.boot());
    const bool full = output_pending && (ended_ || decoder_.buffered() >= k_taken_in_max);
    for (const ssh::Watched& watched : channel_->wants(output_pending))
      if (!full || watched.interest.write) polls.push_back({watched.fd, watched.interest, {}});
    if (full)
      for (os::Poll& poll : polls) poll.want.read = false;
  }
  TRY(os::wait_any(polls, std::min(deadline, clock_.boot() + k_look_again), clock_));
  return {};
}

Result<void> BlockingLink::send(const wire::Frame& frame, BootTime deadline) {
  const std::string bytes = wire::encode(frame);
  ByteView rest = as_bytes(bytes);
  for (;;) {
    {
      const os::MutexLock lock(mutex_);
      TRY_ASSIGN(const auto count, channel_->write(rest));
      if (count) rest = rest.subspan(*count);
      if (rest.empty() && channel_->flushed()) return {};
      if (count && *count > 0) continue;
      TRY(take_in());
    }
    if (clock_.boot() >= deadline) return too_late(channel(), "take what we sent");
    TRY(pause(true, deadline));
  }
}

Result<wire::Frame> BlockingLink::receive(BootTime deadline) {
  for (;;) {
    {
      const os::MutexLock lock(mutex_);
      TRY_ASSIGN(auto frame, decoder_.next());
      if (frame) return *std::move(frame);
      if (ended_) return ended_error(*channel_);
      TRY_ASSIGN(const bool more, take_in());
      if (more || ended_) continue;
    }
    if (clock_.boot() >= deadline) return too_late(channel(), "answer");
    TRY(pause(false, deadline));
  }
}

LoopLink::LoopLink(os::Loop& loop, os::Clock& clock, AgentSession session)
    : loop_(loop), clock_(clock), session_(std::move(session)), self_(std::make_shared<LoopLink*>(this)) {
  // Notices ends that no descriptor shows, e.g. of an ssh program on kernels without pidfd.
  heartbeat_ = loop_.every(k_heartbeat, [this] {
    session_.channel->keepalive(clock_.boot());
    turn();
  });
  later();
}

LoopLink::~LoopLink() {
  watches_.clear();  // before the channel closes its descriptors
  heartbeat_.reset();
}

void LoopLink::later() {
  if (posted_) return;
  posted_ = true;
  loop_.post([weak = std::weak_ptr<LoopLink*>(self_)] {
    if (weak.expired()) return;
    LoopLink* const link = *weak.lock();  // not held: a callback may destroy the link, and then that must be seen
    link->posted_ = false;
    link->turn();
  });
}

void LoopLink::send(const wire::Frame& frame) {
  if (closed_) return;
  output_ += wire::encode(frame);
  later();
}

void LoopLink::turn() {
  if (closed_) return;
  const std::weak_ptr<LoopLink*> alive = self_;
  if (output_.size() > k_output_max)
    return close(make_error(Code::host_unreachable, session_.channel->peer() + " does not read what we send"));
  if (!read_turn()) return;
  if (!output_.empty()) {
    flush();
    // Writing takes in what has come meanwhile, often the answer to what was written: no descriptor announces it again.
    if (alive.expired() || closed_ || !read_turn()) return;
    if (output_.empty() && on_room) on_room();
  }
  follow_wants();
}

// The channel may hold bytes that no descriptor announces, until a read says "nothing now".
bool LoopLink::read_turn() {
  if (!deliver()) return false;
  std::array<std::byte, k_read_bytes> buffer;
  for (std::size_t total = 0; total < k_turn_bytes;) {
    const auto count = session_.channel->read(buffer);
    if (!count) return close(count.error()), false;
    if (!*count) return true;
    if (**count == 0) return close(ended_error(*session_.channel)), false;
    session_.decoder.feed(ByteView{buffer}.first(**count));
    total += **count;
    if (!deliver()) return false;
  }
  later();
  return true;
}

bool LoopLink::deliver() {
  const std::weak_ptr<LoopLink*> alive = self_;
  for (;;) {
    auto frame = session_.decoder.next();
    if (!frame) return close(frame.error()), false;
    if (!*frame) return true;
    if (on_frame) on_frame(**frame);
    if (alive.expired() || closed_) return false;
  }
}

void LoopLink::flush() {
  std::size_t sent = 0;
  while (sent < output_.size()) {
    const auto count = session_.channel->write(as_bytes(std::string_view{output_}.substr(sent)));
    if (!count) return close(count.error());
    if (!*count) break;
    sent += **count;
  }
  output_.erase(0, sent);
}

void LoopLink::follow_wants() {
  std::map<int, os::Interest> wanted;
  for (const ssh::Watched& watched : session_.channel->wants(!output_.empty())) wanted[watched.fd] = watched.interest;
  std::erase_if(watches_, [&](const auto& item) { return !wanted.contains(item.first); });
  for (const auto& [fd, interest] : wanted) {
    const auto found = watches_.find(fd);
    if (found == watches_.end()) {
      watches_[fd] = {interest, loop_.watch(fd, interest, [this](os::Interest) { turn(); })};
    } else if (!(found->second.first == interest)) {
      found->second.first = interest;
      loop_.change(found->second.second, interest);
    }
  }
}

void LoopLink::close(const Error& error) {
  if (closed_) return;
  closed_ = true;
  watches_.clear();
  heartbeat_.reset();
  // A copy: the callback may destroy this.
  const auto report = on_closed;
  const Error reason = error;
  if (report) report(reason);
}

}  // namespace gridctl::control
