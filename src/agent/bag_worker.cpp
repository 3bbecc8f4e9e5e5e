// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "agent/attempt_dir.hpp"
#include "agent/bag_runner.hpp"
#include "agent/cgroup.hpp"

namespace gridctl::agent {
namespace {

constexpr int k_blind_orders_ms = 100;  // between two looks without the kernel's help
constexpr std::uint64_t k_bag_file_bytes = 64 * 1024;
constexpr int k_shells_kill_code = 128 + SIGKILL;  // as shells tell of it
constexpr std::uint8_t k_no_room_for_files = 74;  // EX_IOERR: the task is tried again elsewhere
constexpr std::int64_t k_patience_max_ms = 60'000;

}  // namespace

BagWorker::BagWorker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command, ResultWriter results,
                     Board board)
    : plan_(plan),
      spec_(spec),
      command_(std::move(command)),
      board_(std::move(board)),
      orders_(plan.control),
      results_(std::move(results)),
      output_(plan.run, spec.output_total_max) {}

void BagWorker::prepare() {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&taken, signal);
  ::sigprocmask(SIG_SETMASK, &taken, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = os::Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  changes_ = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (changes_.valid() && ::inotify_add_watch(changes_.get(), plan_.control.c_str(), IN_MODIFY | IN_CREATE) < 0)
    changes_.reset();
  nothing_ = os::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (const auto events = memory_events("self")) oom_kills_ = events->oom_kills;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("PWD=")) environment_.emplace_back(*entry);
  environment_.push_back("PWD=" + plan_.work.string());
}

std::vector<char*> BagWorker::variables_with(std::vector<std::string>& own) {
  std::vector<char*> variables;
  const auto is_own = [&](std::string_view one) {
    const std::string_view name = one.substr(0, one.find('=') + 1);
    return std::ranges::any_of(own, [&](const std::string& other) { return other.starts_with(name); });
  };
  for (std::string& one : environment_)
    if (!is_own(one)) variables.push_back(one.data());
  for (std::string& one : own) variables.push_back(one.data());
  variables.push_back(nullptr);
  return variables;
}

void BagWorker::take_orders() {
  for (wire::BagOrder& order : orders_.read()) record_all(queue_.take(std::move(order)));
  if (stopping_) record_all(queue_.take_back());
}

int BagWorker::patience_ms() const {
  std::optional<BootTime> first = due();
  for (const std::optional<BootTime>& at : {again_at_, stopping_ && is_busy() ? term_at_ : std::nullopt})
    if (at && (!first || *at < *first)) first = at;
  const int look = changes_.valid() ? -1 : k_blind_orders_ms;
  if (!first) return look;
  const auto left = std::clamp<std::int64_t>((*first - now()) / std::chrono::milliseconds{1} + 1, 0, k_patience_max_ms);
  return look < 0 ? static_cast<int>(left) : std::min(look, static_cast<int>(left));
}

void BagWorker::wait_for_news() {
  std::vector<pollfd> waiting{{signals_.get(), POLLIN, 0}, {changes_.get(), POLLIN, 0}};
  add_polls(waiting);
  ::poll(waiting.data(), waiting.size(), patience_ms());
  if (waiting[1].revents != 0) {
    alignas(inotify_event) char events[4096];
    while (::read(changes_.get(), events, sizeof events) > 0) continue;
  }
  std::vector<int> ready;
  for (std::size_t i = 2; i < waiting.size(); ++i)
    if (waiting[i].revents != 0) ready.push_back(waiting[i].fd);
  if (!ready.empty()) take_output(ready);
  if (waiting[0].revents != 0) handle_signals();
}

void BagWorker::handle_signals() {
  signalfd_siginfo news;
  while (::read(signals_.get(), &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    const int signal = static_cast<int>(news.ssi_signo);
    if (signal == SIGTERM || signal == SIGINT) begin_stop();
  }
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (!take_end(info.si_pid)) ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool BagWorker::was_out_of_memory(const wire::TaskResult& result) {
  if (result.signal != SIGKILL && result.exit_code != k_shells_kill_code) return false;
  const auto events = memory_events("self");
  if (!events || events->oom_kills <= oom_kills_) return false;
  oom_kills_ = events->oom_kills;
  return true;
}

bool BagWorker::has_room(std::size_t tasks) {
  if (results_.reserve(tasks) && (spec_.outputs.empty() || !output_.is_half_full())) return true;
  again_at_ = now() + k_bag_try_again;
  return false;
}

void BagWorker::keep(TaskOutput& output, TaskOutput* errors, wire::TaskResult& result,
                     TaskOutput* files) {
  result.offset = output_.end();
  if (output_.append(output)) result.bytes = static_cast<std::uint32_t>(output_.end() - result.offset);
  result.dropped = output.dropped();
  if (errors != nullptr) {
    const std::uint64_t behind = output_.end();
    if (output_.append(*errors)) result.error_bytes = static_cast<std::uint32_t>(output_.end() - behind);
    result.dropped += errors->dropped();
  }
  if (files != nullptr) {
    const std::uint64_t behind = output_.end();
    if (files->dropped() == 0 && output_.append(*files)) result.file_bytes = output_.end() - behind;
    else if (result.succeeded()) result.exit_code = k_no_room_for_files;
  }
  tell_head();  // whoever sees the result finds its output
}

void BagWorker::refuse(const BagTask& task, const std::string& why) {
  TaskOutput words;
  words.add("gridctl: " + why + "\n", spec_.output_bytes_max, plan_.run);
  wire::TaskResult result{task.index, 1, task.order, wire::TaskEnd::unstarted};
  result.began = clock_.wall();
  keep(words, nullptr, result);
  record(result);
}

void BagWorker::record(const wire::TaskResult& result) {
  while (!results_.append(result)) os::pause_for(k_bag_try_again);
}

void BagWorker::record_all(const std::vector<wire::TaskResult>& results) {
  for (const wire::TaskResult& one : results) record(one);
}

// The worker is about to end: running tasks may finish on their own for a while. A task with a folder has to save at
// once.
void BagWorker::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  Duration grace = plan_.grace;
  if (const auto told = read_number(plan_.control / "stop"); told && told->has_value()) grace = Duration{**told};
  term_at_ = now() + (spec_.folder ? Duration{} : grace / 2);
  kill_at_ = now() + grace / 10 * 9;
}

int BagWorker::run() {
  prepare();
  for (;;) {
    take_orders();
    if (again_at_ && now() >= *again_at_) again_at_.reset();
    if (!again_at_ && !stopping_) fill();
    act_on_time();
    if (stopping_ && term_at_ && now() >= *term_at_) {
      term_at_.reset();
      end_all(*kill_at_);
    }
    tell_head();
    if (!is_busy() && (stopping_ || gives_up() || (queue_.finished() && queue_.size() == 0))) break;
    wait_for_news();
  }
  if (gives_up()) record_all(queue_.take_back());
  return stopping_ ? 0 : gives_up() ? 1 : queue_.exit_code();
}

int run_bag(const InitPlan& plan) {
  const auto outcome = [&]() -> Result<int> {
    if (::chdir(plan.work.c_str()) != 0)
      return errno_error(errno, "cannot enter the working directory " + plan.work.string());
    TRY_ASSIGN(const std::string text, os::read_file(plan.run / k_bag_file, k_bag_file_bytes));
    TRY_ASSIGN(const wire::BagSpec spec, wire::parse_bag_spec(text));
    const os::Path script = plan.run / "run.sh";
    TRY_ASSIGN(const std::string command, os::read_file(script, wire::k_script_max + 1));
    TRY_ASSIGN(ResultWriter results, ResultWriter::open(plan.run));
    const bool stream = spec.mode == wire::BagMode::stream;
    TRY_ASSIGN(Board board, Board::make(plan.run, std::size_t{spec.slots} * (stream ? spec.window : 1)));
    BagCommand words(command, spec, os::environment("PATH").value_or("/usr/bin:/bin"), script.string());
    const auto make = stream ? make_stream_worker : make_task_worker;
    return make(plan, spec, std::move(words), std::move(results), std::move(board))->run();
  }();
  if (outcome) return *outcome;
  ::dprintf(2, "gridctl: this worker cannot run its tasks: %s\n", outcome.error().one_line().c_str());
  return 1;
}

}  // namespace gridctl::agent
