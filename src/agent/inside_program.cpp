// SPDX-License-Identifier: Apache-2.0
#include "agent/inside_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "agent/init_environment.hpp"
#include "agent/inside.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_end_look = std::chrono::milliseconds{100};  // twice nothing from what a program left behind: it is over
constexpr Duration k_hang_up_grace = std::chrono::seconds{2};
constexpr int k_cannot_run = 126, k_not_found = 127;  // as shells say it

struct Pty {
  os::Fd master, slave;
};
Result<Pty> open_pty(const wire::Terminal& size) {
  Pty pty{os::Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), {}};
  if (!pty.master.valid() || ::grantpt(pty.master.get()) != 0 || ::unlockpt(pty.master.get()) != 0)
    return errno_error(errno, "cannot get a terminal for a program here");
  // The slave is opened by descriptor: a container may not have a name for the other end.
  pty.slave = os::Fd(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave.valid()) return errno_error(errno, "cannot open a terminal for a program");
  const winsize sides{size.rows, size.columns, 0, 0};
  ::ioctl(pty.master.get(), TIOCSWINSZ, &sides);
  return pty;
}

std::vector<std::string> shell_here(bool in_job) {
  if (const auto own = os::environment("SHELL"); !in_job && own && !own->empty()) return {*own, "-l"};
  for (const char* bash : {"/bin/bash", "/usr/bin/bash"})
    if (::access(bash, X_OK) == 0) return {bash};
  return {"/bin/sh"};
}

std::map<std::string, std::string> variables_of(const std::optional<InitPlan>& plan, const wire::StreamOpen& request) {
  std::vector<std::string> assignments;
  for (char** entry = environ; *entry != nullptr; ++entry) assignments.emplace_back(*entry);
  if (plan) assignments = rank_environment(*plan, std::move(assignments), request.rank);
  std::map<std::string, std::string> variables;
  for (const std::string& assignment : assignments)
    if (const auto cut = assignment.find('='); cut != std::string::npos)
      variables[assignment.substr(0, cut)] = assignment.substr(cut + 1);
  for (const char* name : {"TERM", "COLORTERM"})
    if (const auto told = request.env.find(name); told != request.env.end()) variables[name] = told->second;
  return variables;
}
}  // namespace

Programs::Programs(os::Loop& loop, transfer::StreamHub& hub, const std::optional<InitPlan>& plan)
    : loop_(loop), hub_(hub), plan_(plan) {
  children_ = loop_.on_signal(SIGCHLD, [this] { reap(); });
}

Result<void> Programs::start(std::uint32_t id, const wire::StreamOpen& request) {
  os::SpawnOptions options;
  transfer::StreamEnds ends;
  os::Fd errors, input, output, complaints;
  if (request.terminal) {
    TRY_ASSIGN(Pty pty, open_pty(*request.terminal));
    ends.source = std::move(pty.master);
    ends.duplex = ends.terminal = true;
    input = std::move(pty.slave);
    options.stdin_fd = options.stdout_fd = options.stderr_fd = input.get();
  } else {
    TRY_ASSIGN(auto to, os::make_pipe());
    TRY_ASSIGN(auto from, os::make_pipe());
    input = std::move(to.first), ends.sink = std::move(to.second);
    ends.source = std::move(from.first), output = std::move(from.second);
    options.stdin_fd = input.get();
    options.stdout_fd = options.stderr_fd = output.get();
    if (request.errors != 0) {
      TRY_ASSIGN(auto aside, os::make_pipe());
      errors = std::move(aside.first), complaints = std::move(aside.second);
      options.stderr_fd = complaints.get();
    }
  }
  TRY_ASSIGN(const int pid, spawn(request, options));
  join(id, request, std::move(ends), std::move(errors), pid);
  return {};
}

Result<int> Programs::spawn(const wire::StreamOpen& request, const os::SpawnOptions& base) const {
  std::vector<std::string> words{"/proc/self/exe", "become"};
  if (request.terminal) words.emplace_back("--terminal");
  words.emplace_back("--");
  const auto command = request.command.empty() ? shell_here(plan_.has_value()) : request.command;
  words.insert(words.end(), command.begin(), command.end());
  os::SpawnOptions options = base;
  options.new_session = true;
  options.directory = plan_ ? plan_->work : os::home_directory();
  options.environment = variables_of(plan_, request);
  return os::spawn(words, options);
}

void Programs::join(std::uint32_t id, const wire::StreamOpen& request, transfer::StreamEnds ends, os::Fd errors,
                    int pid) {
  Program& program = programs_[id];
  program.pid = pid;
  program.terminal = request.terminal.has_value();
  if (errors.valid()) {
    program.errors = request.errors;
    program.errors_over = false;
    transfer::StreamEnds aside;
    aside.source = std::move(errors);
    transfer::StreamEvents events;
    events.source_ended = [this, id, stream = request.errors] {
      hub_.finish(stream, {});
      if (const auto found = programs_.find(id); found != programs_.end()) found->second.errors_over = true;
      conclude(id);
    };
    if (!hub_.attach(request.errors, std::move(aside), std::move(events))) program.errors_over = true;
  }
  const int terminal = ends.terminal ? ends.source.get() : -1;
  transfer::StreamEvents events;
  events.source_ended = [this, id] {
    if (const auto found = programs_.find(id); found != programs_.end()) found->second.output_over = true;
    conclude(id);
  };
  events.noted = [this, id, terminal](const wire::StreamNote& note) { heed(id, note, terminal); };
  events.closed = [this, id](const wire::StreamEnd& end) {
    if (end.error) give_up(id);
    else programs_.erase(id);
  };
  hub_.accept(id, {}, std::move(ends), std::move(events));
}

void Programs::heed(std::uint32_t id, const wire::StreamNote& note, int terminal) {
  const auto found = programs_.find(id);
  if (found == programs_.end()) return;
  if (note.terminal && terminal >= 0) {
    const winsize sides{note.terminal->rows, note.terminal->columns, 0, 0};
    ::ioctl(terminal, TIOCSWINSZ, &sides);
  }
  if (note.signal > 0 && !found->second.ended) ::kill(-found->second.pid, note.signal);
}

void Programs::reap() {
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0; pid = ::waitpid(-1, &status, WNOHANG)) {
    dying_.erase(pid);
    for (auto& [id, program] : programs_) {
      if (program.pid != pid || program.ended) continue;
      program.ended = WIFEXITED(status) ? os::ExitStatus{WEXITSTATUS(status), 0} : os::ExitStatus{-1, WTERMSIG(status)};
      program.look = loop_.every(k_end_look, [this, stream = id] { look(stream); });
      break;
    }
  }
  std::vector<std::uint32_t> ended;
  for (const auto& [id, program] : programs_)
    if (program.ended) ended.push_back(id);
  for (const std::uint32_t id : ended) conclude(id);
}

// A process that a program left behind may hold its output open for ever: two looks that find nothing to read end it.
void Programs::look(std::uint32_t id) {
  const auto found = programs_.find(id);
  if (found == programs_.end()) return;
  Program& program = found->second;
  const bool idle = (program.output_over || hub_.is_idle(id)) && (program.errors_over || hub_.is_idle(program.errors));
  if (!std::exchange(program.was_idle, idle) || !idle) return;
  if (!program.errors_over) hub_.finish(program.errors, {});
  program.output_over = program.errors_over = true;
  conclude(id);
}

void Programs::conclude(std::uint32_t id) {
  const auto found = programs_.find(id);
  if (found == programs_.end()) return;
  Program& program = found->second;
  if (!program.ended || !program.output_over || !program.errors_over) return;
  program.look.reset();
  wire::StreamEnd end;
  if (program.ended->signal > 0) end.signal = program.ended->signal;
  else end.exit_code = program.ended->code;
  hub_.finish(id, end);
}

// The other side has left: the program is told, as by a terminal that hangs up.
void Programs::give_up(std::uint32_t id) {
  const auto found = programs_.find(id);
  if (found == programs_.end()) return;
  const Program program = std::move(found->second);
  programs_.erase(found);
  if (!program.errors_over) hub_.reset(program.errors, make_error(Code::cancelled, "the program was given up"));
  if (program.ended) return;
  ::kill(-program.pid, SIGHUP);
  ::kill(-program.pid, SIGCONT);
  dying_[program.pid] = loop_.after(k_hang_up_grace, [this, pid = program.pid] {
    signal_each(os::descendants(pid), SIGKILL);
    ::kill(-pid, SIGKILL);
    loop_.post([this, pid] { dying_.erase(pid); });
  });
}

int become(std::span<char* const> arguments) {
  std::size_t at = 0;
  if (at < arguments.size() && is_one_of(arguments[at], {"--terminal"})) {
    ++at;
    ::ioctl(STDIN_FILENO, TIOCSCTTY, 0);
  }
  if (at < arguments.size() && std::string_view(arguments[at]) == "--") ++at;
  if (at >= arguments.size()) return 2;
  std::vector<char*> words(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int problem = errno;
  std::fprintf(stderr, "gridctl: cannot run %s: %s\n", words[0], std::strerror(problem));
  return problem == ENOENT ? k_not_found : k_cannot_run;
}

}  // namespace gridctl::agent
