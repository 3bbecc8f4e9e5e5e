// SPDX-License-Identifier: Apache-2.0
// fault_at: runs a command and kills a process of it, or fails a call of it, at one numbered system call.
//
// Calls are numbered from 1 over all threads of all watched processes, in the order in which they enter the kernel;
// unlike strace's when=N, which counts each thread by itself. A kill comes before the call does anything. Numbered are,
// for kills, those with an effect that somebody sees, for torn writes the same, for errors those that a disk fails, of
// several alike in a row the first; with --each, also those that are hidden, and each of a row. effects.hpp says which.
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/effects.hpp"

namespace {

using gridctl::sweep::Call;

enum class Fault { none, kill, tear, fail_once, fail_on };

struct Options {
  Fault fault = Fault::none;
  std::uint64_t at = 0;
  int error = ENOSPC;
  std::string watch;  // words of the command line of processes to watch, "" = the command itself alone
  bool each = false;
  std::string report_path, list_path;
  std::vector<char*> command;
};

struct Task {
  pid_t process = 0;
  bool watched = false;
  bool failing = false;  // the call that ends next was skipped
  bool dies_at_exit = false;
  std::string failable{};  // its newest call that could fail, and on what
};

struct Report {
  std::uint64_t calls = 0, effects = 0, kills = 0, errors = 0, tears = 0;
  std::string hit;  // the call that was hit
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(125);
}

std::vector<std::string> words_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

pid_t process_of(pid_t task) {
  std::ifstream file("/proc/" + std::to_string(task) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Tgid:")) return static_cast<pid_t>(std::strtol(line.c_str() + 5, nullptr, 10));
  return task;
}

class Tracer {
 public:
  explicit Tracer(const Options& options) : options_(options) {
    if (!options.list_path.empty()) list_.open(options.list_path);
  }

  int run() {
    root_ = spawn();
    for (;;) {
      int status = 0;
      const pid_t task = ::waitpid(-1, &status, __WALL);
      if (task < 0 && errno == EINTR) continue;
      if (task < 0) return finish(root_status_);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        tasks_.erase(task);
        if (task != root_) continue;
        root_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return finish(root_status_);  // what it started goes on, let go by the kernel
      }
      if (WIFSTOPPED(status)) stopped(task, status);
    }
  }

 private:
  pid_t spawn() {
    const pid_t child = ::fork();
    if (child < 0) die("fork");
    if (child == 0) {
      ::raise(SIGSTOP);  // until we watch
      ::execvp(options_.command[0], options_.command.data());
      die(options_.command[0]);
    }
    int status = 0;
    if (::waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) die("waitpid");
    const long wanted =
        PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (::ptrace(PTRACE_SEIZE, child, nullptr, wanted) != 0) die("ptrace");
    tasks_[child] = {child, false, false, false};
    ::kill(child, SIGCONT);
    return child;
  }

  int finish(int code) const {
    write_report();
    return code;
  }

  void write_report() const {
    if (options_.report_path.empty()) return;
    std::ofstream file(options_.report_path + ".new");
    file << "calls " << report_.calls << "\neffects " << report_.effects << "\nkills " << report_.kills << "\nerrors "
         << report_.errors << "\ntears " << report_.tears << "\nhit " << report_.hit << '\n';
    file.close();
    ::rename((options_.report_path + ".new").c_str(), options_.report_path.c_str());
  }

  void go_on(pid_t task, int signal = 0) {
    const bool looking = tasks_[task].watched && !over_;
    ::ptrace(looking ? PTRACE_SYSCALL : PTRACE_CONT, task, nullptr, long{signal});
  }

  void stopped(pid_t task, int status) {
    if (!tasks_.contains(task)) adopt(task);
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) return syscall(task);
    if (event == PTRACE_EVENT_EXEC) {
      judge(task);
      return go_on(task);
    }
    if (event == PTRACE_EVENT_STOP &&
        (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU)) {
      // A new task's first stop looks like a group's; that one is let go, a real one stays stopped.
      if (!fresh_.erase(task)) {
        ::ptrace(PTRACE_LISTEN, task, nullptr, 0L);
        return;
      }
      return go_on(task);
    }
    fresh_.erase(task);
    if (event != 0) return go_on(task);
    go_on(task, signal);
  }

  // A new thread is of its process; a new process does not count before it runs a program to be watched.
  void adopt(pid_t task) {
    const pid_t process = process_of(task);
    const auto leader = tasks_.find(process);
    const bool thread = process != task && leader != tasks_.end();
    tasks_[task] = {process, thread && leader->second.watched, false, false};
    if (!thread && !options_.watch.empty()) judge(task);
    fresh_[task] = true;
  }

  // Watched are the command itself, or processes whose arguments have all the words.
  void judge(pid_t task) {
    Task& one = tasks_[task];
    if (options_.watch.empty()) {
      one.watched = task == root_;
      return;
    }
    const std::vector<std::string> words = words_of(task);
    one.watched = true;
    for (std::size_t at = 0; at < options_.watch.size();) {
      const std::size_t end = std::min(options_.watch.find(' ', at), options_.watch.size());
      const std::string wanted = options_.watch.substr(at, end - at);
      bool found = false;
      for (const std::string& word : words) found = found || word == wanted || word.ends_with("/" + wanted);
      one.watched = one.watched && found;
      at = end + 1;
    }
  }

  void syscall(pid_t task) {
    Task& one = tasks_[task];
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info) <= 0) return go_on(task);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      entered(task, one, info);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
      if (one.failing) set_result(task, -options_.error);
      one.failing = false;
      if (one.dies_at_exit) return hit_hard(task, one);
    }
    go_on(task);
  }

  void entered(pid_t task, Task& one, const __ptrace_syscall_info& info) {
    if (over_) return;
    ++report_.calls;
    Call call{one.process, info.entry.nr, {}};
    std::memcpy(call.arguments, info.entry.args, sizeof call.arguments);
    const bool killable = counts_as_kill(call), failable = counts_as_error(one, call);
    const bool tearable = killable && gridctl::sweep::can_tear(call);
    report_.kills += killable;
    report_.errors += failable;
    report_.tears += tearable;
    if (list_.is_open() && (killable || failable))
      list_ << (killable ? report_.kills : 0) << ' ' << (tearable ? report_.tears : 0) << ' '
            << (failable ? report_.errors : 0) << ' ' << describe(call) << std::endl;
    if (options_.fault == Fault::kill && killable && report_.kills == options_.at) {
      note(call);
      skip(task);
      hit_hard(task, one);
    } else if (options_.fault == Fault::tear && tearable && report_.tears == options_.at) {
      note(call);
      set_third(task, call.arguments[2] / 2);
      one.dies_at_exit = true;
    } else if (is_to_fail(call, failable)) {
      if (report_.hit.empty()) note(call);
      skip(task);
      one.failing = true;
    }
  }

  bool counts_as_kill(const Call& call) {
    if (!gridctl::sweep::has_effect(call)) return false;
    ++report_.effects;
    return options_.each || !gridctl::sweep::is_hidden(call);
  }

  bool counts_as_error(Task& one, const Call& call) const {
    if (!gridctl::sweep::can_fail(call)) return false;
    std::string failable = describe(call);
    const bool repeated = failable == one.failable;
    one.failable = std::move(failable);
    return options_.each || !repeated;
  }

  bool is_to_fail(const Call& call, bool counted) const {
    if (options_.fault == Fault::fail_once) return counted && report_.errors == options_.at;
    return options_.fault == Fault::fail_on && report_.errors >= options_.at && gridctl::sweep::can_fail(call);
  }

  void hit_hard(pid_t task, Task& one) {
    over_ = true;
    ::kill(one.process, SIGKILL);
    go_on(task);
  }

  static std::string describe(const Call& call) {
    return gridctl::sweep::call_name(call.number) + " " + gridctl::sweep::target_of(call);
  }

  // Told at once, for those who wait for it.
  void note(const Call& call) {
    report_.hit = describe(call);
    for (const std::string& word : words_of(call.process)) report_.hit += " | " + word.substr(0, 40);
    write_report();
  }

#ifdef __x86_64__
  static void change(pid_t task, const auto& how) {
    user_regs_struct registers{};
    iovec place{&registers, sizeof registers};
    if (::ptrace(PTRACE_GETREGSET, task, NT_PRSTATUS, &place) != 0) return;
    how(registers);
    ::ptrace(PTRACE_SETREGSET, task, NT_PRSTATUS, &place);
  }
  static void skip(pid_t task) {
    change(task, [](user_regs_struct& r) { r.orig_rax = ~0ull; });
  }
  static void set_result(pid_t task, long value) {
    change(task, [value](user_regs_struct& r) { r.rax = static_cast<unsigned long long>(value); });
  }
  static void set_third(pid_t task, std::uint64_t value) {
    change(task, [value](user_regs_struct& r) { r.rdx = value; });
  }
#else
#error "fault_at knows the registers of x86-64 only"
#endif

  const Options& options_;
  pid_t root_ = 0;
  int root_status_ = 125;
  bool over_ = false;  // nothing more is to happen
  std::map<pid_t, Task> tasks_;
  std::map<pid_t, bool> fresh_;
  Report report_;
  std::ofstream list_;
};

Options parse(int argc, char** argv) {
  Options options;
  int at = 1;
  for (; at + 1 < argc && std::string_view(argv[at]) != "--"; at += 2) {
    const std::string_view name = argv[at];
    if (name == "--each") {
      options.each = true;
      --at;
      continue;
    }
    const char* value = argv[at + 1];
    if (name == "--watch") options.watch = value;
    else if (name == "--list") options.list_path = value;
    else if (name == "--report") options.report_path = value;
    else {
      options.at = std::strtoull(value, nullptr, 10);
      if (name == "--kill") options.fault = Fault::kill;
      else if (name == "--tear") options.fault = Fault::tear;
      else if (name == "--eio") options.fault = Fault::fail_once, options.error = EIO;
      else if (name == "--enospc") options.fault = Fault::fail_once;
      else if (name == "--full") options.fault = Fault::fail_on;
      else std::exit(2);
    }
  }
  for (++at; at < argc; ++at) options.command.push_back(argv[at]);
  if (options.command.empty()) {
    std::fputs(
        "usage: fault_at [--watch 'WORD...'] [--report FILE] [--list FILE] [--each]\n"
        "                [--kill|--tear|--eio|--enospc|--full N] -- CMD...\n",
        stderr);
    std::exit(2);
  }
  options.command.push_back(nullptr);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  return Tracer(options).run();
}
