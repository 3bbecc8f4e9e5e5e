// SPDX-License-Identifier: Apache-2.0
// When somebody last used this machine, as far as an ordinary user can see that: input at terminals, sessions of logind,
// and the keyboard's and mouse's interrupts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::lend {

struct Presence {
  WallTime last{};    // 0: no sign was seen
  std::string sign;   // "input at pts/3", "bob's session c2 (x11)"
};

// A session of logind; the text of `loginctl show-session ID...`. Pure.
struct Session {
  std::string id, user, type;  // type: x11, wayland, tty...
  bool leaves = false;         // it is being closed
  bool idle = false;
  WallTime idle_since{};       // 0: not told
};
[[nodiscard]] std::vector<Session> parse_sessions(std::string_view text);
// The newest sign among them. Sessions without a screen are left out: their terminals are looked at.
[[nodiscard]] Presence presence_of(const std::vector<Session>& sessions, WallTime now);
// Adds up the interrupts of keyboard and mouse controllers (i8042) in /proc/interrupts. Pure.
[[nodiscard]] std::uint64_t parse_input_interrupts(std::string_view text);

class PresenceLook {
 public:
  explicit PresenceLook(os::Clock& clock, os::Path root = "/") : clock_(clock), root_(std::move(root)) {}

  // Looks, at logind no more often than every five seconds.
  [[nodiscard]] Presence look();
  // Names what cannot be seen here, in words; empty: nothing.
  [[nodiscard]] std::string unseen();

 private:
  [[nodiscard]] Presence at_terminals() const;
  void ask_logind();

  os::Clock& clock_;
  const os::Path root_;
  std::optional<std::vector<Session>> sessions_;  // nullopt: logind does not answer
  BootTime asked_{};
  std::optional<std::uint64_t> interrupts_;
  Presence keyboard_;
};

}  // namespace gridctl::lend
