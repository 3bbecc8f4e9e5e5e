// SPDX-License-Identifier: Apache-2.0
// Connects two hosts by TCP for a few seconds: numeric addresses only, every wait ends at a deadline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

class PeerStream {
 public:
  PeerStream(os::Fd socket, std::string address, BootTime deadline, const os::Clock& clock);
  [[nodiscard]] Result<void> read(std::span<std::byte> into);  // all of it
  [[nodiscard]] Result<void> write(ByteView bytes);
  void set_deadline(BootTime deadline) { deadline_ = deadline; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const os::Clock& clock() const { return *clock_; }
  [[nodiscard]] int socket() const { return socket_.get(); }  // never blocks

 private:
  os::Fd socket_;
  std::string address_;  // of the peer
  BootTime deadline_;
  const os::Clock* clock_;
};

// `elapsed`: the time of the handshake. Errors say why not in a few words: "connection refused", "no answer".
struct Connected {
  os::Fd socket;
  Duration elapsed{};
};
[[nodiscard]] Result<Connected> connect_numeric(const std::string& address, std::uint16_t port, BootTime deadline,
                                                const os::Clock& clock);

// Listens on every address of this host until it is destroyed.
class PeerListener {
 public:
  // Without a port, the kernel chooses one. `busy` if another process already listens on it.
  [[nodiscard]] static Result<PeerListener> open(std::uint16_t port = 0);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int socket() const { return socket_.get(); }
  // Returns the next peer; nullopt if none connected before the deadline.
  [[nodiscard]] Result<std::optional<PeerStream>> accept(BootTime deadline, const os::Clock& clock);

 private:
  PeerListener(os::Fd socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  os::Fd socket_;
  std::uint16_t port_;
};

}  // namespace gridctl::agent
