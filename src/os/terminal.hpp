// SPDX-License-Identifier: Apache-2.0
// Handles the terminal of a person at the keyboard, also one that passes each key on unchanged, and the three standard
// streams.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// Opens /dev/null for closed descriptors 0 to 2: otherwise the next opened file would receive the printed text.
void open_standard_streams();
[[nodiscard]] bool is_terminal(int fd);
// Returns the columns of the terminal behind `fd`, otherwise $COLUMNS, otherwise 80; at least 20.
[[nodiscard]] int terminal_columns(int fd);

enum class WriteEnd { written, reader_gone };
// Writes everything to a standard stream; `reader_gone` if its reader has closed it (EPIPE).
[[nodiscard]] Result<WriteEnd> write_stream(int fd, std::string_view bytes);
// Reads one line typed by the person, without the newline; interrupted at end of input.
[[nodiscard]] Result<std::string> read_typed_line();
// Reads everything on standard input, at most `bytes_max`.
[[nodiscard]] Result<std::string> read_standard_input(std::size_t bytes_max);

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
