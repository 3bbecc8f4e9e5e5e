// SPDX-License-Identifier: Apache-2.0
#include "agent/init.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "agent/attempt_dir.hpp"
#include "agent/bag_files.hpp"
#include "agent/bag_runner.hpp"
#include "agent/cgroup.hpp"
#include "agent/confine.hpp"
#include "agent/init_door.hpp"
#include "agent/init_environment.hpp"
#include "agent/egress.hpp"
#include "agent/job_view.hpp"
#include "agent/process_tree.hpp"
#include "agent/rank_output.hpp"
#include "agent/stop_clock.hpp"
#include "base/numbers.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_drain_wait = std::chrono::seconds{1};  // for a supervisor to take the last output
constexpr std::size_t k_exit_room = 512;                    // bytes kept for the exit record; it has about 100
constexpr std::string_view k_closed_network = "closed";
constexpr Duration k_rank_grace = std::chrono::seconds{5};  // for the other ranks when one has failed

struct Outcome {
  int code = -1;
  int signal = 0;
  [[nodiscard]] bool good() const { return code == 0 && signal == 0; }
};

// Represents one process whose end is the job's end: a rank, or the only process.
struct Main {
  pid_t pid = -1;
  std::string label;
};

class Init {
 public:
  explicit Init(const InitPlan& plan) : plan_(plan) {}
  int run();

 private:
  bool claim();
  bool prepare();
  [[nodiscard]] bool has_closed_network() const;
  void arm_deadline();
  [[nodiscard]] bool deadline_passed() const;
  [[nodiscard]] bool may_begin() const;
  [[nodiscard]] bool run_phase(const char* phase);
  void confine_plain_job() const;
  [[nodiscard]] Outcome run_ranks(const os::Path& script, const std::vector<std::string>& labels);
  [[nodiscard]] std::vector<std::string> command_of(const os::Path& script) const;
  [[nodiscard]] pid_t start(std::vector<std::string> command, std::vector<std::string> environment, int output) const;
  [[nodiscard]] Outcome follow(std::vector<Main> mains);
  void wait_for_news(const std::optional<BootTime>& give_up);
  void handle_signal();
  void reap(std::vector<Main>& mains, std::optional<Outcome>& outcome);
  void signal_all(int signal) const;
  void kill_rest();
  [[nodiscard]] std::string final_record();
  void save_output();
  void push_ranks_output();
  void write_exit(const std::string& text) const;
  [[nodiscard]] bool write_into_room(const std::string& text) const;
  [[nodiscard]] BootTime now() const { return os::system_clock().boot(); }
  [[nodiscard]] os::Path exit_room() const { return plan_.run / "exit.room"; }

  const InitPlan& plan_;
  os::Fd lock_, log_keeper_, log_, signals_, timer_;
  Door door_;
  std::vector<std::string> environment_;
  std::uint64_t oom_before_ = 0;
  std::optional<BootTime> deadline_, kill_at_;
  ExitRecord record_;
  std::optional<RankOutput> ranks_;
  bool no_children_ = false;
  bool is_bag_ = false;   // a runner of tasks is in the place of the command
  pid_t runner_ = 0;      // while it lives
};

// A launch folder gets one init, ever: the lock shows that it lives, `once` that it started.
bool Init::claim() {
  const int lock = ::open((plan_.run / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0 || ::flock(lock, LOCK_EX | LOCK_NB) != 0) return false;
  lock_ = os::Fd(lock);
  const int once = ::open((plan_.run / "once").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (once < 0) return false;
  const os::Fd file(once);
  const auto self = os::identify(::getpid());
  const std::string text = std::to_string(::getpid()) + " " + std::to_string(self ? self->start_ticks : 0) + "\n";
  return ::write(once, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool Init::prepare() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  for (const os::Path& group : plan_.groups) join_group(group);
  signals_ = os::Fd(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  timer_ = os::Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  // Output goes through a FIFO that is also held open for reading here: a dead supervisor neither kills the job with
  // SIGPIPE nor loses a line.
  log_keeper_ = os::Fd(::open((plan_.run / "log").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  log_ = os::Fd(::open((plan_.run / "log").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!log_keeper_.valid() || !log_.valid() || !signals_.valid() || !timer_.valid()) return false;
  ::fcntl(log_.get(), F_SETPIPE_SZ, k_pipe_bytes);
  if (const auto events = memory_events("self")) oom_before_ = events->oom_kills;
  environment_ = load_environment(plan_);
  door_.open(plan_.run);
  arm_deadline();
  // A job that could not report its end would run again: on a full disk, it does not start.
  return os::write_file_durably(exit_room(), std::string(k_exit_room, '\n')).has_value();
}

void Init::arm_deadline() {
  // An unreadable deadline means that our folder is being removed: then the last known deadline applies.
  if (const auto deadline = read_number(plan_.control / "deadline"); deadline && deadline->has_value()) {
    deadline_ = BootTime{**deadline};
    kill_at_ = last_line(*deadline_, plan_.grace);
  }
  if (!kill_at_) return;
  itimerspec when{};
  when.it_value.tv_sec = kill_at_->ns / 1'000'000'000;
  when.it_value.tv_nsec = kill_at_->ns % 1'000'000'000 + 1;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

bool Init::deadline_passed() const { return kill_at_ && now() >= *kill_at_; }

bool Init::may_begin() const { return !deadline_ || lease_lasts(*deadline_, now()); }

// A container already is a boundary. A job without one runs as the host's user, next to that user's keys.
void Init::confine_plain_job() const {
  if (plan_.run == k_run_in_container) return;
  const AttemptDir attempt{plan_.control.parent_path()};
  const Result<os::Path> self = os::executable_path();
  const auto confined = confine(confinement_of(os::home_directory(), attempt.agent_home(), attempt.path, plan_.secrets,
                                               self ? self->parent_path() : os::Path{}));
  if (!confined && confined.error().code != Code::unsupported)
    ::dprintf(log_.get(), "gridctl: this job is not confined: %s\n", confined.error().one_line().c_str());
}

std::vector<std::string> Init::command_of(const os::Path& script) const {
  if (is_bag_) {
    std::vector<std::string> command{"/proc/self/exe", k_tasks_command};
    for (std::string& word : to_arguments(plan_)) command.push_back(std::move(word));
    return command;
  }
  const char* shell = "/bin/sh";
  for (const char* bash : {"/bin/bash", "/usr/bin/bash"})
    if (::access(bash, X_OK) == 0) shell = bash;
  return {shell, script.string()};
}

pid_t Init::start(std::vector<std::string> command, std::vector<std::string> environment, int output) const {
  const std::string work = plan_.work.string();
  std::vector<char*> variables, arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  for (std::string& assignment : environment) variables.push_back(assignment.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  if (!is_bag_) offer_to_oom_killer();  // else its tasks are offered, one by one
  if (::chdir(work.c_str()) != 0) {
    ::dprintf(2, "gridctl: cannot enter the working directory %s\n", work.c_str());
    ::_exit(126);
  }
  ::execve(arguments[0], arguments.data(), variables.data());
  ::dprintf(2, "gridctl: cannot run %s: the image has no shell\n", arguments[0]);
  ::_exit(127);
}

void Init::signal_all(int signal) const {
  if (::getpid() == 1) {
    ::kill(-1, signal);
    return;
  }
  for (const os::ProcessId& process : os::descendants(::getpid())) ::kill(process.pid, signal);
}

// Collects ended processes. The outcome is that of the first main process to fail, otherwise of the last to end.
void Init::reap(std::vector<Main>& mains, std::optional<Outcome>& outcome) {
  for (;;) {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    no_children_ = child < 0 && errno == ECHILD;
    if (child <= 0) return;
    if (child == runner_) runner_ = 0;
    const auto main = std::ranges::find(mains, child, &Main::pid);
    if (main == mains.end()) continue;
    const Outcome ended = WIFEXITED(status) ? Outcome{WEXITSTATUS(status), 0} : Outcome{-1, WTERMSIG(status)};
    if (!outcome || outcome->good()) {
      outcome = ended;
      if (!ended.good()) record_.first = main->label;
    }
    mains.erase(main);
  }
}

void Init::handle_signal() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTERM || signal == SIGINT) {
      record_.term_received = true;
      if (runner_ > 0) ::kill(runner_, SIGTERM);  // it ends the tasks, each in its time
      else signal_all(SIGTERM);
    } else if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP) {
      signal_each_catching(os::descendants(::getpid()), signal);
    }
  }
}

void Init::wait_for_news(const std::optional<BootTime>& give_up) {
  std::vector<pollfd> waiting{{signals_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {door_.fd(), POLLIN, 0}};
  int patience = -1;
  if (ranks_) {
    ranks_->add_polls(waiting, log_keeper_.get());
    patience = ranks_->patience_ms();
  }
  if (give_up) {
    const auto left = std::max<std::int64_t>(0, (*give_up - now()) / std::chrono::milliseconds{1} + 1);
    patience = patience < 0 ? static_cast<int>(left) : std::min(patience, static_cast<int>(left));
  }
  ::poll(waiting.data(), waiting.size(), patience);
  if (waiting[2].revents != 0) door_.let_in(plan_, environment_);
  if (ranks_) ranks_->pump(log_keeper_.get(), now());
}

// A sender of such a signal to a shell also sends it to the program in it, which may be saving now.
bool asks_to_end(const Outcome& outcome) {
  return outcome.signal == SIGTERM || outcome.signal == SIGINT || outcome.signal == SIGHUP;
}

// A rank that fails ends the others: they would wait for it, for minutes or for ever.
Outcome Init::follow(std::vector<Main> mains) {
  std::optional<Outcome> outcome;
  std::optional<BootTime> give_up;
  for (;;) {
    reap(mains, outcome);
    // After TERM, the others keep their grace; otherwise, processes that the commands left running end with them.
    const bool rest_may_end = record_.term_received || (outcome && asks_to_end(*outcome));
    if (mains.empty() && (!rest_may_end || no_children_)) return outcome.value_or(Outcome{});
    if (!give_up && mains.empty() && !record_.term_received) {
      signal_each_not_catching(os::descendants(::getpid()), SIGTERM);  // the others have got theirs
      give_up = now() + plan_.grace;
    }
    if (!give_up && !mains.empty() && outcome && !outcome->good() && !record_.term_received) {
      signal_all(SIGTERM);
      give_up = now() + std::min(k_rank_grace, plan_.grace);
    }
    if (give_up && now() >= *give_up) return *outcome;
    wait_for_news(give_up);
    handle_signal();
    std::uint64_t expirations = 0;
    if (::read(timer_.get(), &expirations, sizeof expirations) < 0) continue;
    arm_deadline();
    if (!deadline_passed()) continue;
    record_.lease_passed = true;
    kill_rest();
    return outcome.value_or(Outcome{});
  }
}

void Init::kill_rest() {
  std::vector<Main> none;
  std::optional<Outcome> ignored;
  reap(none, ignored);
  if (no_children_) return;  // as PID 1 or subreaper we are the parent of whatever is left
  const BootTime give_up = now() + std::chrono::seconds{5};
  do {
    signal_all(SIGKILL);
    pollfd waiting{signals_.get(), POLLIN, 0};
    reap(none, ignored);
    if (no_children_) return;
    ::poll(&waiting, 1, 100);
    handle_signal();
  } while (now() < give_up);
}

Outcome Init::run_ranks(const os::Path& script, const std::vector<std::string>& labels) {
  const bool labelled = labels.size() > 1 || !labels.front().empty();
  if (labelled) {
    ranks_.emplace(labels);
    if (!ranks_->open()) return {126, 0};
  }
  std::vector<Main> mains;
  for (std::size_t rank = 0; rank < labels.size(); ++rank) {
    const int output = labelled ? ranks_->writer(rank) : log_.get();
    const pid_t pid = start(command_of(script), rank_environment(plan_, environment_, rank), output);
    if (pid > 0) mains.push_back({pid, labels[rank]});
    if (is_bag_) runner_ = pid;
  }
  if (ranks_) ranks_->close_writers();
  if (mains.size() == labels.size()) return follow(std::move(mains));
  kill_rest();  // the machine has no process left for one of them
  return {126, 0};
}

bool Init::run_phase(const char* phase) {
  const os::Path script = plan_.run / (std::string(phase) + ".sh");
  if (!os::exists(script)) return true;
  record_.phase = phase;
  (void)os::write_file_atomically(plan_.run / "phase", std::string(phase) + "\n");
  arm_deadline();
  if (!may_begin()) {  // the host slept while we were started, and the job may run elsewhere now
    record_.lease_passed = true;
    return false;
  }
  const bool is_run = record_.phase == k_run_phase;
  is_bag_ = is_run && os::exists(plan_.run / k_bag_file);
  const std::vector<std::string> labels = is_run ? rank_labels(plan_) : std::vector<std::string>{};
  const Outcome outcome = run_ranks(script, labels.empty() ? std::vector<std::string>{""} : labels);
  record_.code = outcome.code;
  record_.signal = outcome.signal;
  return outcome.code == 0 && outcome.signal == 0 && !record_.lease_passed && !record_.term_received;
}

// Uses blocks allocated at the start: even on a disk that the job has filled, its end is reported.
bool Init::write_into_room(const std::string& text) const {
  if (text.size() > k_exit_room) return false;
  const os::Fd room(::open(exit_room().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return room.valid() && os::write_all(room.get(), as_bytes(text)) &&
         ::ftruncate(room.get(), static_cast<off_t>(text.size())) == 0 && ::fsync(room.get()) == 0 &&
         ::rename(exit_room().c_str(), (plan_.run / "exit").c_str()) == 0 && os::sync_directory(plan_.run);
}

std::string Init::final_record() {
  if (const auto events = memory_events("self")) {
    record_.oom_kills = events->oom_kills - std::min(events->oom_kills, oom_before_);
    record_.memory_peak = events->peak_bytes;
  }
  return to_text(record_);
}

void Init::write_exit(const std::string& text) const {
  if (!write_into_room(text)) (void)os::write_file_durably(plan_.run / "exit", text);
}

// Writes the last output of the ranks, while it is being read. Without a reader, the pipe keeps its content, and the
// end that would have blocked a job with one process is lost.
void Init::push_ranks_output() {
  if (!ranks_) return;
  std::string rest = ranks_->take_rest(now());
  const BootTime give_up = now() + k_drain_wait;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(log_keeper_.get(), rest.data(), rest.size());
    if (wrote > 0) rest.erase(0, static_cast<std::size_t>(wrote));
    else if (now() >= give_up) return;
    pollfd waiting{log_keeper_.get(), POLLOUT, 0};
    if (!rest.empty()) ::poll(&waiting, 1, 10);
  }
}

// The pipe's content is lost with its last holder, or with the machine. If no supervisor reads it, because it is dead
// or stopped, the content goes to the disk. One read takes all of it, and no process writes any more: a supervisor that
// wakes up has either read the earlier content, or finds nothing.
void Init::save_output() {
  push_ranks_output();
  const BootTime give_up = now() + k_drain_wait;
  for (int waiting = 1; now() < give_up;) {
    if (::ioctl(log_keeper_.get(), FIONREAD, &waiting) != 0 || waiting == 0) return;
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
  std::string rest(k_pipe_bytes, '\0');
  const ssize_t got = ::read(log_keeper_.get(), rest.data(), rest.size());
  if (got <= 0) return;
  rest.resize(static_cast<std::size_t>(got));
  if (os::write_file_durably(plan_.run / k_rest, rest)) return;
  ::unlink((plan_.run / k_rest).c_str());
  // The content is written back for a supervisor that still holds the pipe.
  [[maybe_unused]] const auto back = ::write(log_keeper_.get(), rest.data(), rest.size());
}

// The engine may have started the container without the hook that closes its network.
bool Init::has_closed_network() const {
  const std::string open = plan_.closed ? open_network() : "";
  if (open.empty()) return true;
  const std::string line =
      "gridctl: the job was not started: its network is not filtered as this machine's owner requires: " + open + "\n";
  (void)::write(log_.get(), line.data(), line.size());
  return false;
}

int Init::run() {
  if (!claim()) return k_init_refused;
  if (!prepare()) return 1;
  if (!has_closed_network()) return k_init_refused;
  confine_plain_job();
  if (run_phase("setup")) (void)run_phase("run");
  const std::string record = final_record();  // a signal that comes from here on has not ended the job
  kill_rest();
  save_output();
  write_exit(record);  // last: a job that has ended has its output on the disk
  return 0;
}

}  // namespace

std::vector<std::string> to_arguments(const InitPlan& plan) {
  std::vector<std::string> arguments{plan.run.string(), plan.control.string(), plan.work.string(),
                                     plan.secrets.empty() ? "-" : plan.secrets.string(),
                                     std::to_string(plan.grace.count())};
  if (plan.closed) arguments.emplace_back(k_closed_network);
  for (const os::Path& group : plan.groups) arguments.push_back(group.string());
  return arguments;
}

Result<InitPlan> parse_init(std::span<char* const> arguments) {
  if (arguments.size() < 5) return make_error(Code::usage, "init needs RUN CONTROL WORK SECRETS|- GRACE_NS [closed] [GROUP…]");
  InitPlan plan{arguments[0], arguments[1], arguments[2], {}, {}, {}};
  if (const std::string_view secrets = arguments[3]; secrets != "-") plan.secrets = secrets;
  const auto grace = leading_number<std::int64_t>(arguments[4]);
  if (!grace || *grace < 0) return make_error(Code::usage, "init's grace is not a number of nanoseconds");
  plan.grace = Duration{*grace};
  for (const std::string_view word : arguments.subspan(5))
    if (word == k_closed_network) plan.closed = true;
    else plan.groups.emplace_back(word);
  return plan;
}

int run_init(const InitPlan& plan) { return Init(plan).run(); }

}  // namespace gridctl::agent
