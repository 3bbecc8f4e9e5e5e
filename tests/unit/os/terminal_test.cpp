// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "os/files.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::terminal_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

class Setting {  // a variable of the environment; nullptr = none
 public:
  Setting(const char* name, const char* value) : name_(name), before_(environment(name)) {
    if (value != nullptr) ::setenv(name, value, 1);
    else ::unsetenv(name);
  }
  Setting(const Setting&) = delete;
  ~Setting() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Terminal, HasTheColumnsItSays) {
  const Fd terminal{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  ASSERT_TRUE(terminal.valid());
  EXPECT_TRUE(is_terminal(terminal.get()));
  const auto columns = [&](unsigned short count) {
    winsize size{};
    size.ws_col = count;
    EXPECT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
    return terminal_columns(terminal.get());
  };
  const Setting said("COLUMNS", "50");
  EXPECT_EQ(columns(132), 132);
  EXPECT_EQ(columns(20), 20);
  EXPECT_EQ(columns(19), 20) << "narrower nothing is readable";
  EXPECT_EQ(columns(0), 50) << "it does not say";
}

TEST(Terminal, WithoutOneTheEnvironmentSaysTheColumns) {
  const Fd file = open_file("/dev/null", O_RDWR).value();
  EXPECT_FALSE(is_terminal(file.get()));
  for (const auto& [said, columns] : {std::pair{"100", 100},
                                      {"21", 21},
                                      {"1", 20},
                                      {"0", 80},
                                      {"-100", 80},
                                      {"100x", 80},
                                      {"", 80},
                                      {"99999999999", 80}}) {
    const Setting setting("COLUMNS", said);
    EXPECT_EQ(terminal_columns(file.get()), columns) << said;
  }
  const Setting none("COLUMNS", nullptr);
  EXPECT_EQ(terminal_columns(file.get()), 80);
}

TEST(WriteStream, WritesAllAlsoWhereTheStreamBlocks) {
  const auto [read_end, write_end] = make_pipe().value();
  ASSERT_THAT(set_nonblocking(write_end.get()), IsOk());
  const std::string text(300'000, 'x');
  std::string got;
  std::thread reader([&, fd = read_end.get()] {
    std::array<char, 4096> buffer;
    while (got.size() < text.size()) {
      const ssize_t count = ::read(fd, buffer.data(), buffer.size());
      if (count <= 0) return;
      got.append(buffer.data(), static_cast<std::size_t>(count));
    }
  });
  const auto written = write_stream(write_end.get(), text);
  reader.join();
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(*written, WriteEnd::written);
  EXPECT_EQ(got.size(), text.size());
}

TEST(WriteStream, AReaderThatHasGoneIsNoError) {
  auto ends = make_pipe().value();
  ends.first.reset();
  auto* const before = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(write_stream(ends.second.get(), "x").value(), WriteEnd::reader_gone);
  ::signal(SIGPIPE, before);
  const Fd full = open_file("/dev/full", O_WRONLY).value();
  EXPECT_THAT(write_stream(full.get(), "x"), FailsWith(Code::no_space));
  EXPECT_EQ(write_stream(-1, "").value(), WriteEnd::written);
}

// Standard input holds this and then ends, for as long as this lives.
class Typed {
 public:
  explicit Typed(const std::string& text) : before_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const Fd file = open_memory().value();
    EXPECT_TRUE(write_all(file.get(), as_bytes(text)).has_value());
    EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    ::dup2(file.get(), STDIN_FILENO);
  }
  ~Typed() { before_.valid() ? ::dup2(before_.get(), STDIN_FILENO) : ::close(STDIN_FILENO); }

 private:
  Fd before_;
};

TEST(Typing, EndsALine) {
  {
    const Typed typed("yes\nno\n\nlast");
    for (const char* line : {"yes", "no", "", "last"}) EXPECT_EQ(read_typed_line().value(), line);
    EXPECT_THAT(read_typed_line(), FailsWith(Code::interrupted));
  }
  const Typed typed(std::string(4097, 'x') + "\n");
  EXPECT_EQ(read_typed_line()->size(), 4096u);
  EXPECT_EQ(read_typed_line().value(), "x");
}

TEST(StandardInput, IsReadToItsLimit) {
  const std::string text(40'000, 'x');
  {
    const Typed typed(text);
    EXPECT_EQ(read_standard_input(40'000).value(), text);
  }
  {
    const Typed typed(text);
    EXPECT_THAT(read_standard_input(39'999), FailsWith(Code::usage));
  }
  const Typed typed("");
  EXPECT_EQ(read_standard_input(0).value(), "");
}

TEST(StandardStreams, ThatAreClosedBecomeDevNull) {
  const Fd before{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)};
  const std::size_t open_before = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  ::close(STDIN_FILENO);
  open_standard_streams();
  EXPECT_EQ(std::filesystem::read_symlink("/proc/self/fd/0"), "/dev/null");
  EXPECT_NE(::fcntl(STDIN_FILENO, F_GETFD), -1);
  if (before.valid()) {
    ::dup2(before.get(), STDIN_FILENO);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}), static_cast<long>(open_before))
        << "nothing else is left open";
  }
}

TEST(Environment, NamesFoldersAndHasDefaults) {
  {
    const Setting home("HOME", "/my/home"), temporary("TMPDIR", "/my/tmp");
    EXPECT_EQ(home_directory(), "/my/home");
    EXPECT_EQ(temporary_directory(), "/my/tmp");
    EXPECT_EQ(environment("HOME"), "/my/home");
  }
  const std::string real = [] {
    const Result<RunOutcome> told = run({"sh", "-c", "getent passwd $(id -u) | cut -d: -f6"});
    return told->out.substr(0, told->out.find('\n'));
  }();
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    const Setting home("HOME", none), temporary("TMPDIR", none);
    EXPECT_EQ(home_directory(), real);
    EXPECT_EQ(temporary_directory(), "/tmp");
  }
  EXPECT_EQ(environment("GRIDCTL_NO_SUCH_VARIABLE"), std::nullopt);
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(user_id(), ::getuid());
}

TEST(Environment, KnowsTheFileSystemOfEveryPath) {
  const TempDir dir;
  const Path before = std::filesystem::current_path();
  std::filesystem::current_path("/dev/shm");
  EXPECT_EQ(file_system_kind(""), "tmpfs");
  EXPECT_EQ(file_system_kind("not-there/yet"), "tmpfs");
  std::filesystem::current_path(before);
  EXPECT_EQ(file_system_kind("/proc/self"), "unknown") << "it has no row";
  ASSERT_THAT(write_file_atomically(dir / "file", ""), IsOk());
  EXPECT_EQ(file_system_kind(dir / "file/below"), "unknown") << "below a file there is nothing";
}

}  // namespace
}  // namespace gridctl::os::terminal_test
