// SPDX-License-Identifier: Apache-2.0
// Provides a terminal that passes each key on unchanged, and standard streams for an event loop.
#pragma once

#include <termios.h>

#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// Keeps the terminal raw for its lifetime: no echo, no lines, Ctrl-C is a byte.
class RawTerminal {
 public:
  [[nodiscard]] static Result<RawTerminal> enter(int fd);
  RawTerminal(RawTerminal&& other) noexcept : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

 private:
  RawTerminal(int fd, const termios& before) : fd_(fd), before_(before) {}
  int fd_;
  termios before_;
};

struct TerminalSize {
  std::uint16_t columns = 80, rows = 24;
};
[[nodiscard]] TerminalSize terminal_size(int fd);

// Returns a descriptor for the same stream that may become non-blocking without affecting other programs, which keep
// theirs.
[[nodiscard]] Result<Fd> own_stream(int fd, int flags);
[[nodiscard]] Result<Fd> duplicate(int fd);
[[nodiscard]] Result<void> set_position(int fd, std::uint64_t offset);  // of the next read or write

}  // namespace gridctl::os
