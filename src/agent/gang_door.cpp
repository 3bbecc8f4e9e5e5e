// SPDX-License-Identifier: Apache-2.0
#include "agent/gang_door.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "os/ready.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_stranger_patience = std::chrono::seconds{5};  // with one who has not proved itself
constexpr std::size_t k_strangers_max = 128;              // open at once; the kernel queues others
constexpr int k_accepts_max = 64;                         // in a row
}  // namespace

// One address with many connections must not keep others out: the oldest connection of the address with the most is
// closed.
void GangDoor::make_room() {
  std::map<std::string, std::size_t> count;
  for (const Stranger& one : strangers_) ++count[one.peer.address()];
  const auto most = std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
  strangers_.erase(std::ranges::find_if(strangers_, [&](const Stranger& one) { return one.peer.address() == most->first; }));
}

Result<void> GangDoor::let_in() {
  for (int i = 0; i < k_accepts_max; ++i) {
    auto peer = listener_.accept(clock_.boot(), clock_);
    if (!peer && strangers_.empty()) return peer.error();
    if (!peer) {  // no descriptors are left
      make_room();
      continue;
    }
    if (!*peer) return {};
    if (strangers_.size() >= k_strangers_max) make_room();
    strangers_.push_back({*std::move(*peer), ListenerProof(token_), clock_.boot() + k_stranger_patience});
  }
  return {};
}

GangDoor::Heard GangDoor::hear(Stranger& stranger) {
  std::array<std::byte, 64> buffer;
  while (stranger.proof.wants() > 0) {
    const auto moved =
        os::read_now(stranger.peer.socket(), std::span(buffer).first(std::min(buffer.size(), stranger.proof.wants())));
    if (!moved || moved->closed) return Heard::gone;
    if (moved->blocked) return Heard::waits;
    Bytes answer;
    if (!stranger.proof.take(ByteView(buffer).first(moved->bytes), answer)) return Heard::gone;
    // 48 bytes always fit into the buffer of a new connection.
    const auto sent = os::write_now(stranger.peer.socket(), answer);
    if (!sent || sent->bytes != answer.size()) return Heard::gone;
  }
  return Heard::proved;
}

Result<std::optional<PeerStream>> GangDoor::next(BootTime deadline) {
  for (;;) {
    const BootTime now = clock_.boot();
    std::erase_if(strangers_, [&](const Stranger& one) { return one.until <= now; });
    for (auto one = strangers_.begin(); one != strangers_.end();) {
      const Heard heard = hear(*one);
      if (heard == Heard::waits) {
        ++one;
        continue;
      }
      std::optional<PeerStream> proved;
      if (heard == Heard::proved) proved.emplace(std::move(one->peer));
      one = strangers_.erase(one);
      if (proved) return proved;
    }
    if (now >= deadline) return std::optional<PeerStream>{};
    BootTime until = deadline;
    std::vector<pollfd> polls{{listener_.socket(), POLLIN, 0}};
    for (const Stranger& one : strangers_) {
      polls.push_back({one.peer.socket(), POLLIN, 0});
      until = std::min(until, one.until);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    (void)::poll(polls.data(), polls.size(), static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 60'000)));
    if ((polls[0].revents & POLLIN) != 0) TRY(let_in());
  }
}

}  // namespace gridctl::agent
