// SPDX-License-Identifier: Apache-2.0
#include "os/raw_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace gridctl::os {

Result<RawTerminal> RawTerminal::enter(int fd) {
  termios before{};
  if (::tcgetattr(fd, &before) != 0) return errno_error(errno, "cannot read the settings of the terminal");
  termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(fd, TCSADRAIN, &raw) != 0) return errno_error(errno, "cannot change the settings of the terminal");
  return RawTerminal(fd, before);
}

RawTerminal::~RawTerminal() {
  if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

Result<Fd> own_stream(int fd, int flags) {
  struct stat info {};
  // Skips files, because a file opened again would begin at its start.
  if (::fstat(fd, &info) == 0 && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode))) {
    Fd own(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (own.valid()) return own;
  }
  return duplicate(fd);
}

Result<Fd> duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return errno_error(errno, "cannot duplicate a descriptor");
  return copy;
}

Result<void> set_position(int fd, std::uint64_t offset) {
  if (::lseek(fd, static_cast<off_t>(offset), SEEK_SET) >= 0) return {};
  return errno_error(errno, "cannot continue in the middle of a file");
}

}  // namespace gridctl::os
