// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/attempt_dir.hpp"
#include "agent/bag_command.hpp"
#include "agent/bag_files.hpp"
#include "agent/bag_task.hpp"
#include "agent/cgroup.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_task_grace = std::chrono::seconds{5};  // from TERM to KILL of a task whose time is over
constexpr Duration k_try_again = std::chrono::seconds{1};   // a full disk, or no process left
constexpr int k_start_tries = 10;
constexpr int k_blind_orders_ms = 100;  // between two looks without the kernel's help
constexpr std::uint64_t k_spec_bytes = 64 * 1024;
constexpr int k_out_of_memory_code = 137;  // as shells tell of SIGKILL

class BagRunner {
 public:
  BagRunner(const InitPlan& plan, wire::BagSpec spec, BagCommand command, ResultWriter results, Board board)
      : plan_(plan),
        spec_(std::move(spec)),
        command_(std::move(command)),
        input_(spec_.stdin_from, true),
        orders_(plan.control),
        results_(std::move(results)),
        board_(std::move(board)),
        output_(plan.run, spec_.output_total_max),
        slots_(spec_.slots) {}
  int run();

 private:
  void prepare();
  void take_orders();
  void fill_slots();
  [[nodiscard]] bool start(std::size_t slot, const BagTask& task);
  [[nodiscard]] Result<os::Fd> input_of(const BagTask& task, std::uint32_t slot) const;
  [[nodiscard]] Result<std::string> folder_of(const BagTask& task) const;
  void refuse(const BagTask& task, const std::string& why);
  void wait_for_news();
  [[nodiscard]] int patience_ms() const;
  void handle_signals();
  void reap();
  void finish(std::optional<RunningTask>& slot, std::size_t place);
  [[nodiscard]] bool was_out_of_memory(const wire::TaskResult& result);
  void act_on_time();
  void begin_stop();
  void record(const wire::TaskResult& result);
  void record_all(const std::vector<wire::TaskResult>& results);
  void tell_board() { board_.tell({queue_.orders(), queue_.size() + (held_ ? 1 : 0), output_.end()}); }
  [[nodiscard]] std::size_t running() const {
    return static_cast<std::size_t>(std::ranges::count_if(slots_, [](const auto& slot) { return slot.has_value(); }));
  }
  [[nodiscard]] BootTime now() const { return clock_.boot(); }

  const InitPlan& plan_;
  const wire::BagSpec spec_;
  os::Clock& clock_ = os::system_clock();
  BagCommand command_;
  BagTemplate input_;
  OrderReader orders_;
  BagQueue queue_;
  ResultWriter results_;
  Board board_;
  OutputWriter output_;
  std::vector<std::optional<RunningTask>> slots_;
  std::vector<std::string> environment_;
  os::Fd signals_, changes_, nothing_;
  std::optional<BagTask> held_;  // could not be started yet
  int tries_ = 0;
  std::optional<BootTime> again_at_, term_at_, kill_at_;
  bool stopping_ = false;
  std::uint64_t oom_kills_ = 0;
};

void BagRunner::prepare() {
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ours, signal);
  ::sigprocmask(SIG_SETMASK, &ours, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = os::Fd(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  changes_ = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (changes_.valid() && ::inotify_add_watch(changes_.get(), plan_.control.c_str(), IN_MODIFY | IN_CREATE) < 0) changes_.reset();
  nothing_ = os::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (const auto events = memory_events("self")) oom_kills_ = events->oom_kills;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view one = *entry;
    const bool ours_to_say = one.starts_with("GRIDCTL_TASK_") || one.starts_with("SLURM_ARRAY_TASK_ID=") ||
                             one.starts_with("PWD=") || (spec_.folder && one.starts_with("GRIDCTL_CKPT_DIR="));
    if (!ours_to_say) environment_.emplace_back(one);
  }
  environment_.push_back("PWD=" + plan_.work.string());
}

void BagRunner::take_orders() {
  std::vector<wire::TaskResult> returned;
  for (wire::BagOrder& order : orders_.read())
    for (const wire::TaskResult& one : queue_.take(std::move(order))) returned.push_back(one);
  if (stopping_)
    for (const wire::TaskResult& one : queue_.take_back()) returned.push_back(one);
  record_all(returned);
}

void BagRunner::fill_slots() {
  if (again_at_ && now() < *again_at_) return;
  again_at_.reset();
  for (std::size_t slot = 0; slot < slots_.size() && !stopping_; ++slot) {
    if (slots_[slot]) continue;
    if (!held_ && queue_.size() == 0) return;
    // A task whose end could not be told would be run twice: on a full disk it does not begin.
    if (!results_.reserve(slots_.size() + 1)) {
      again_at_ = now() + k_try_again;
      return;
    }
    if (!held_) held_ = queue_.next();
    if (!start(slot, *held_)) return;
    held_.reset();
    tries_ = 0;
  }
}

Result<os::Fd> BagRunner::input_of(const BagTask& task, std::uint32_t slot) const {
  if (spec_.stdin_from != wire::k_stdin_item)
    return os::open_file(input_.fill(task, slot, false), O_RDONLY | O_NOCTTY);
  TRY_ASSIGN(os::Fd file, os::open_memory());
  TRY(os::write_all(file.get(), as_bytes(task.item.value_or("") + "\n")));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<std::string> BagRunner::folder_of(const BagTask& task) const {
  if (!spec_.folder) return std::string();
  const os::Path folder = plan_.work / "tasks" / std::to_string(task.index);
  TRY(os::make_directories(folder, 0755));
  return folder.string();
}

// False: nothing can be started now.
bool BagRunner::start(std::size_t slot, const BagTask& task) {
  const auto number = static_cast<std::uint32_t>(slot + 1);
  const auto folder = folder_of(task);
  if (!folder) return refuse(task, folder.error().one_line()), true;
  auto variables = bag_variables(task, spec_, number, *folder);
  if (!variables) return refuse(task, variables.error().one_line()), true;
  Result<os::Fd> input = spec_.stdin_from.empty() ? os::Fd() : input_of(task, number);
  if (!input) return refuse(task, input.error().one_line()), true;

  TaskLaunch launch{command_.words(task, number), {}, input->valid() ? input->get() : nothing_.get(), spec_.split};
  std::vector<std::string_view> names;
  if (spec_.items == wire::BagItems::variables)  // an item may set what the job sets already
    for (const std::string& own : *variables) names.push_back(std::string_view(own).substr(0, own.find('=') + 1));
  for (std::string& one : environment_)
    if (std::ranges::none_of(names, [&](std::string_view name) { return one.starts_with(name); }))
      launch.variables.push_back(one.data());
  for (std::string& one : *variables) launch.variables.push_back(one.data());
  launch.variables.push_back(nullptr);

  RunningTask running(task);
  int failed = running.start(launch, clock_);
  const bool lacks = failed == EAGAIN || failed == ENOMEM || failed == EMFILE || failed == ENFILE;
  if (failed != 0 && !lacks) {  // a shell tells best what is wrong, and runs what only a shell can
    launch.words = command_.shell_words(task, number);
    failed = running.start(launch, clock_);
  }
  if (failed != 0 && lacks && ++tries_ < k_start_tries) {
    again_at_ = now() + k_try_again;
    return false;
  }
  if (failed != 0) return refuse(task, std::string("cannot start it: ") + std::strerror(failed)), true;
  slots_[slot] = std::move(running);
  board_.set(slot, task.index);
  return true;
}

void BagRunner::refuse(const BagTask& task, const std::string& why) {
  TaskOutput words;
  words.add("gridctl: " + why + "\n", spec_.output_bytes_max, plan_.run);
  wire::TaskResult result{task.index, 1, task.order, wire::TaskEnd::unstarted};
  result.began = clock_.wall();
  result.offset = output_.end();
  if (output_.append(words)) result.bytes = static_cast<std::uint32_t>(output_.end() - result.offset);
  record(result);
}

int BagRunner::patience_ms() const {
  std::optional<BootTime> due;
  const auto add = [&](std::optional<BootTime> at) {
    if (at && (!due || *at < *due)) due = at;
  };
  if (running() < slots_.size()) add(again_at_);
  add(stopping_ && running() > 0 ? (term_at_ ? term_at_ : kill_at_) : std::nullopt);
  for (const auto& slot : slots_) {
    if (!slot) continue;
    if (slot->kill_at()) add(slot->kill_at());
    else if (spec_.timeout > Duration{}) add(slot->began() + spec_.timeout);
  }
  const int look = changes_.valid() || queue_.size() > 0 ? -1 : k_blind_orders_ms;
  if (!due) return look;
  const auto left = std::clamp<std::int64_t>((*due - now()) / std::chrono::milliseconds{1} + 1, 0, 60'000);
  return look < 0 ? static_cast<int>(left) : std::min(look, static_cast<int>(left));
}

void BagRunner::wait_for_news() {
  static std::vector<pollfd> waiting;
  waiting.assign({{signals_.get(), POLLIN, 0}, {changes_.get(), POLLIN, 0}});
  for (const auto& slot : slots_)
    if (slot) slot->add_polls(waiting);
  ::poll(waiting.data(), waiting.size(), patience_ms());
  if (waiting[1].revents != 0) {
    alignas(inotify_event) char events[4096];
    while (::read(changes_.get(), events, sizeof events) > 0) continue;
  }
  if (waiting[0].revents != 0) handle_signals();
  if (waiting.size() == 2) return;
  for (auto& slot : slots_)
    if (slot) slot->drain(spec_.output_bytes_max, plan_.run);
}

void BagRunner::handle_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTERM || signal == SIGINT) begin_stop();
  }
  reap();
}

void BagRunner::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto slot = std::ranges::find_if(slots_, [&](const auto& one) { return one && one->pid() == info.si_pid; });
    if (slot == slots_.end()) ::waitpid(info.si_pid, nullptr, WNOHANG);
    else finish(*slot, static_cast<std::size_t>(slot - slots_.begin()));
  }
}

bool BagRunner::was_out_of_memory(const wire::TaskResult& result) {
  if (result.end != wire::TaskEnd::ended || (result.signal != SIGKILL && result.exit_code != k_out_of_memory_code)) return false;
  const auto events = memory_events("self");
  if (!events || events->oom_kills <= oom_kills_) return false;
  oom_kills_ = events->oom_kills;
  return true;
}

void BagRunner::finish(std::optional<RunningTask>& slot, std::size_t place) {
  wire::TaskResult result = slot->finish(spec_.output_bytes_max, plan_.run, clock_);
  if (was_out_of_memory(result)) result.end = wire::TaskEnd::oom;
  result.offset = output_.end();
  if (output_.append(slot->output())) result.bytes = static_cast<std::uint32_t>(output_.end() - result.offset);
  const std::uint64_t behind = output_.end();
  if (output_.append(slot->errors())) result.error_bytes = static_cast<std::uint32_t>(output_.end() - behind);
  result.dropped = slot->output().dropped() + slot->errors().dropped();
  record(result);
  slot.reset();
  board_.set(place, std::nullopt);
}

// The end of the worker is in sight: what runs may end by itself for a while. A task with a folder is to save at once.
void BagRunner::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  Duration grace = plan_.grace;
  if (const auto told = read_number(plan_.control / "stop"); told && told->has_value()) grace = Duration{**told};
  term_at_ = now() + (spec_.folder ? Duration{} : grace / 2);
  kill_at_ = now() + grace / 10 * 9;
  std::vector<wire::TaskResult> back = queue_.take_back();
  if (held_) back.push_back({held_->index, 1, held_->order, wire::TaskEnd::revoked});
  held_.reset();
  record_all(back);
}

void BagRunner::act_on_time() {
  const bool all_end = stopping_ && term_at_ && now() >= *term_at_;
  if (all_end) term_at_.reset();
  for (auto& slot : slots_) {
    if (!slot) continue;
    if (all_end) slot->ask_to_end(wire::TaskEnd::stopped, *kill_at_);
    if (!slot->is_ending() && spec_.timeout > Duration{} && now() >= slot->began() + spec_.timeout)
      slot->ask_to_end(wire::TaskEnd::timeout, now() + k_task_grace);
    if (slot->kill_at() && now() >= *slot->kill_at()) slot->kill(now() + k_try_again);
  }
}

void BagRunner::record(const wire::TaskResult& result) {
  while (!results_.append(result)) ::poll(nullptr, 0, static_cast<int>(k_try_again / std::chrono::milliseconds{1}));
}

void BagRunner::record_all(const std::vector<wire::TaskResult>& results) {
  for (const wire::TaskResult& one : results) record(one);
}

int BagRunner::run() {
  prepare();
  for (;;) {
    take_orders();
    fill_slots();
    tell_board();
    if (running() == 0 && (stopping_ || (queue_.finished() && queue_.size() == 0 && !held_))) break;
    wait_for_news();
    act_on_time();
  }
  return stopping_ ? 0 : queue_.exit_code();
}

}  // namespace

int run_bag(const InitPlan& plan) {
  const auto prepared = [&]() -> Result<int> {
    if (::chdir(plan.work.c_str()) != 0) return errno_error(errno, "cannot enter the working directory " + plan.work.string());
    TRY_ASSIGN(const std::string text, os::read_file(plan.run / k_bag_file, k_spec_bytes));
    TRY_ASSIGN(const wire::BagSpec spec, wire::parse_bag_spec(text));
    const os::Path script = plan.run / "run.sh";
    TRY_ASSIGN(const std::string command, os::read_file(script, wire::k_script_max + 1));
    TRY_ASSIGN(ResultWriter results, ResultWriter::open(plan.run));
    TRY_ASSIGN(Board board, Board::make(plan.run, std::size_t{spec.slots}));
    BagCommand words(command, spec, os::environment("PATH").value_or("/usr/bin:/bin"), script.string());
    return BagRunner(plan, spec, std::move(words), std::move(results), std::move(board)).run();
  }();
  if (prepared) return *prepared;
  ::dprintf(2, "gridctl: this worker cannot run its tasks: %s\n", prepared.error().one_line().c_str());
  return 1;
}

}  // namespace gridctl::agent
