// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/numbers.hpp"

namespace gridctl::os {

namespace {
constexpr int k_columns_default = 80;
constexpr int k_columns_min = 20;          // narrower than this nothing is readable
constexpr std::size_t k_typed_max = 4096;  // bytes of one typed line

void wait_writable(int fd) {  // standard streams may be non-blocking when another program made them so
  pollfd poll_fd{fd, POLLOUT, 0};
  (void)::poll(&poll_fd, 1, 1000);
}
}  // namespace

void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

int terminal_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::max<int>(size.ws_col, k_columns_min);
  if (const std::optional<std::string> columns = environment("COLUMNS")) {
    const auto value = parse_number<int>(*columns);
    if (value && *value > 0) return std::max(*value, k_columns_min);
  }
  return k_columns_default;
}

Result<WriteEnd> write_stream(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      return WriteEnd::reader_gone;
    } else if (errno == EAGAIN) {
      wait_writable(fd);
    } else if (errno != EINTR) {
      return errno_error(errno, "cannot write to standard output");
    }
  }
  return WriteEnd::written;
}

Result<std::string> read_typed_line() {
  std::string line;
  for (char c = 0; line.size() < k_typed_max;) {
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 && line.empty()) return make_error(Code::interrupted, "no answer was typed");
    if (count <= 0 || c == '\n') break;
    line += c;
  }
  return line;
}

Result<std::string> read_standard_input(std::size_t bytes_max) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "cannot read standard input");
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > bytes_max)
      return make_error(Code::usage, "standard input is larger than " + format_size(bytes_max));
  }
}

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
