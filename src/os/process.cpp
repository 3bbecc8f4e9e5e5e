// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gridctl::os {

namespace {
// Holds the child's report through the close-on-exec pipe: its pid (then exec succeeds silently), or the step that
// failed.
struct Report {
  enum Kind : int { pid = 1, failed_directory, failed_descriptors, failed_exec, failed_fork } kind;
  int value;  // the pid, or errno
};

// Holds everything that the child needs, made before the fork: after it, memory must not be allocated and no lock be
// taken.
struct Launch {
  std::vector<std::string> environment_text;
  std::vector<char*> argv, environment;
  std::string program, directory;
  std::array<int, 3> standard{-1, -1, -1};
  std::vector<int> keep;  // sorted, >= 3, with the report pipe
  int report_fd = -1, null_fd = -1;
  int descriptors_max = 0;
  pid_t parent = 0;
  bool new_session = false, new_group = false, die_with_parent = false;
};

// From here to run_child, only async-signal-safe calls are allowed, because the code runs between fork and exec.
[[noreturn]] void fail_child(const Launch& launch, Report::Kind kind) {
  const Report report{kind, errno};
  [[maybe_unused]] const ssize_t told = ::write(launch.report_fd, &report, sizeof report);
  ::_exit(127);
}

bool place_standard(const Launch& launch) {
  std::array<int, 3> copies{};
  // Copies the descriptors up first, so that swapped or overlapping ones do not overwrite one another.
  for (std::size_t i = 0; i < 3; ++i) {
    const int from = launch.standard[i] >= 0 ? launch.standard[i] : launch.null_fd;
    copies[i] = ::fcntl(from, F_DUPFD_CLOEXEC, 3);
    if (copies[i] < 0) return false;
  }
  for (std::size_t i = 0; i < 3; ++i)
    if (::dup2(copies[i], static_cast<int>(i)) < 0) return false;
  return true;
}

void close_range_of(unsigned first, unsigned last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= last; ++fd) ::close(static_cast<int>(fd));  // kernels before 5.9
}

bool place_descriptors(const Launch& launch) {
  if (!place_standard(launch)) return false;
  unsigned next = 3;
  for (const int fd : launch.keep) {
    close_range_of(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
    if (fd != launch.report_fd && ::fcntl(fd, F_SETFD, 0) != 0) return false;
  }
  close_range_of(next, static_cast<unsigned>(launch.descriptors_max));
  return true;
}

[[noreturn]] void run_child(const Launch& launch) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  if (launch.new_session) ::setsid();
  else if (launch.new_group) ::setpgid(0, 0);
  if (launch.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launch.parent) ::_exit(127);  // it died before the request
  }
  if (!place_descriptors(launch)) fail_child(launch, Report::failed_descriptors);
  if (!launch.directory.empty() && ::chdir(launch.directory.c_str()) != 0) fail_child(launch, Report::failed_directory);
  const Report ready{Report::pid, ::getpid()};
  [[maybe_unused]] const ssize_t told = ::write(launch.report_fd, &ready, sizeof ready);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(launch.program.c_str(), launch.argv.data(), launch.environment.data());
  fail_child(launch, Report::failed_exec);
}

// Forks with every signal blocked: a handler of ours must not run in the child.
pid_t fork_child(const Launch& launch, bool detach) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = ::fork();
  if (pid == 0 && detach) {
    pid = ::fork();
    if (pid < 0) fail_child(launch, Report::failed_fork);
    if (pid > 0) ::_exit(0);
  }
  if (pid == 0) run_child(launch);
  const int err = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = err;
  return pid;
}

Result<Fd> above_standard(Fd fd) {
  if (fd.get() > 2) return fd;
  Fd higher{::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)};
  if (!higher.valid()) return errno_error(errno, "cannot copy a descriptor");
  return higher;
}

Error launch_error(const Report& report, const std::string& program, const SpawnOptions& options) {
  switch (report.kind) {
    case Report::failed_directory: {
      Error error = errno_error(report.value, "cannot start '" + program + "' in '" + options.directory.native() + "'");
      if (report.value == ENOENT) error.code = Code::not_found;
      return error;
    }
    case Report::failed_descriptors: return errno_error(report.value, "cannot pass descriptors to '" + program + "'");
    case Report::failed_fork: return errno_error(report.value, "cannot make a process for '" + program + "'");
    default: {
      Error error = errno_error(report.value, "cannot run '" + program + "'");
      if (report.value == ENOENT) error.code = Code::not_found;
      return error;
    }
  }
}

Result<Launch> prepare(const std::vector<std::string>& argv, const SpawnOptions& options, int report_fd, int null_fd) {
  Launch launch;
  const bool bare = argv[0].find('/') == std::string::npos;
  const std::optional<Path> found = bare ? find_program(argv[0]) : std::optional<Path>(argv[0]);
  if (!found) return make_error(Code::not_found, "cannot run '" + argv[0] + "': no such program in PATH");
  launch.program = found->native();
  for (const std::string& word : argv) launch.argv.push_back(const_cast<char*>(word.c_str()));
  launch.argv.push_back(nullptr);
  if (options.environment) {
    for (const auto& [name, value] : *options.environment) launch.environment_text.push_back(name + "=" + value);
  } else {
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
      launch.environment_text.emplace_back(*entry);
  }
  for (std::string& entry : launch.environment_text) launch.environment.push_back(entry.data());
  launch.environment.push_back(nullptr);
  launch.directory = options.directory.native();
  launch.standard = {options.stdin_fd, options.stdout_fd, options.stderr_fd};
  for (const int fd : options.keep_fds)
    if (fd > 2) launch.keep.push_back(fd);
  launch.keep.push_back(report_fd);
  std::ranges::sort(launch.keep);
  launch.keep.erase(std::unique(launch.keep.begin(), launch.keep.end()), launch.keep.end());
  launch.report_fd = report_fd;
  launch.null_fd = null_fd;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  launch.descriptors_max = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
  launch.parent = ::getpid();
  launch.new_session = options.new_session;
  launch.new_group = options.new_group;
  launch.die_with_parent = options.die_with_parent;
  return launch;
}

ExitStatus exit_status_of(int raw) {
  ExitStatus status;
  if (WIFEXITED(raw)) status.code = WEXITSTATUS(raw);
  else if (WIFSIGNALED(raw)) status.signal = WTERMSIG(raw);
  return status;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
}

// Reads reports until exec or death closes the pipe. The last one counts.
std::optional<Report> read_reports(int fd, int& pid) {
  std::optional<Report> last;
  for (;;) {
    Report report{};
    const ssize_t got = ::read(fd, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof report) return last;
    if (report.kind == Report::pid) pid = report.value;
    last = report;
  }
}
}  // namespace

Result<int> spawn(const std::vector<std::string>& argv, const SpawnOptions& options) {
  GRIDCTL_CHECK(!argv.empty());
  GRIDCTL_CHECK(!(options.detach && options.die_with_parent));
  TRY_ASSIGN(auto pipe_ends, make_pipe());
  TRY_ASSIGN(Fd reports, above_standard(std::move(pipe_ends.first)));
  TRY_ASSIGN(Fd report_end, above_standard(std::move(pipe_ends.second)));
  TRY_ASSIGN(Fd null, open_file("/dev/null", O_RDWR));
  TRY_ASSIGN(const Launch launch, prepare(argv, options, report_end.get(), null.get()));
  const pid_t child = fork_child(launch, options.detach);
  if (child < 0) return errno_error(errno, "cannot make a process for '" + argv[0] + "'");
  report_end.reset();
  int pid = 0;
  const std::optional<Report> last = read_reports(reports.get(), pid);
  const bool started = last && last->kind == Report::pid;
  if (options.detach || !started) reap(child);
  if (!last) return make_error(Code::io, "cannot start '" + argv[0] + "': it was killed before it began");
  if (!started) return launch_error(*last, argv[0], options);
  // In another pid namespace than its reader's, the child's own pid would differ; the pid from fork is ours.
  return options.detach ? pid : static_cast<int>(child);
}

Result<std::optional<ExitStatus>> try_wait(int pid) {
  int raw = 0;
  pid_t got = -1;
  do got = ::waitpid(pid, &raw, WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno_error(errno, "cannot wait for process " + std::to_string(pid));
  if (got == 0) return std::optional<ExitStatus>{};
  return std::optional<ExitStatus>{exit_status_of(raw)};
}

Result<ExitStatus> wait(int pid) {
  int raw = 0;
  while (::waitpid(pid, &raw, 0) < 0)
    if (errno != EINTR) return errno_error(errno, "cannot wait for process " + std::to_string(pid));
  return exit_status_of(raw);
}

void ignore_broken_pipes() { ::signal(SIGPIPE, SIG_IGN); }

std::string host_name() {
  std::array<char, 256> name{};  // HOST_NAME_MAX is 64 on Linux, 255 in POSIX
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

unsigned user_id() { return ::getuid(); }

}  // namespace gridctl::os
