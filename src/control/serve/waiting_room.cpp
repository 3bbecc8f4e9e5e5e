// SPDX-License-Identifier: Apache-2.0
#include "control/serve/waiting_room.hpp"

#include <array>
#include <vector>

#include "control/serve/balancer_text.hpp"
#include "os/ready.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_wait_max = std::chrono::seconds{k_hold_seconds};
}  // namespace

WaitingRoom::WaitingRoom(os::Loop& loop, os::Clock& clock, os::Listener listener)
    : loop_(loop), clock_(clock), listener_(std::move(listener)) {
  accepts_ = loop_.watch(listener_.fd.get(), {true, false}, [this](os::Interest) { take_in(); });
}

void WaitingRoom::take_in() {
  while (auto socket = os::accept_local(listener_)) {
    const int fd = socket->get();
    const bool full = static_cast<int>(guests_.size()) >= k_held_max;
    Guest& guest = guests_[fd];
    guest.socket = *std::move(socket);
    guest.since = clock_.boot();
    guest.watch = loop_.watch(fd, {true, false}, [this, fd](os::Interest) { read(fd); });
    if (full) leave(fd, k_given_up_answer);
  }
}

// The content of the request does not matter here: HAProxy has it.
void WaitingRoom::read(int fd) {
  std::array<std::byte, 16384> piece{};
  const Result<os::Moved> moved = os::read_now(fd, piece);
  if (!moved || moved->closed) guests_.erase(fd);
}

void WaitingRoom::leave(int fd, std::string_view answer) {
  (void)os::write_now(fd, as_bytes(answer));  // shorter than the socket's buffer
  guests_.erase(fd);
}

void WaitingRoom::tick(bool ready) {
  const BootTime now = clock_.boot();
  std::vector<int> leaving;
  for (const auto& [fd, guest] : guests_)
    if (ready || now - guest.since > k_wait_max) leaving.push_back(fd);
  for (const int fd : leaving) leave(fd, ready ? k_ask_again_answer : k_given_up_answer);
}

}  // namespace gridctl::control
