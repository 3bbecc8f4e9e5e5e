// SPDX-License-Identifier: Apache-2.0
// Implements the worker whose command stays up: an item is a line of its input, an answer is a line of its output.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "agent/bag_task.hpp"
#include "agent/bag_worker.hpp"
#include "base/record.hpp"
#include "base/text.hpp"

namespace gridctl::agent {
namespace {

constexpr int k_stream_pipe_bytes = 256 * 1024;
constexpr int k_stream_reads = 16;                            // of one program, then others have their turn
constexpr Duration k_close_wait = std::chrono::seconds{10};   // from the end of its input to TERM
constexpr Duration k_stream_grace = std::chrono::seconds{5};  // from TERM to KILL
constexpr std::size_t k_stray_shown = 200;                    // bytes of a line that answers nothing

// Represents one program: running, or to be started when there is an item for it.
struct StreamProgram {
  struct Flight {
    BagTask task;
    BootTime sent;
    WallTime sent_wall;
  };
  pid_t pid = -1;
  os::Fd input, output;
  std::string unsent;           // of what it is to read
  std::deque<Flight> flights;   // items that it has not answered, oldest first
  BootTime answered_at{};       // last
  std::string line;             // an answer that has not ended
  std::uint64_t dropped = 0;    // bytes of it that are too many
  std::uint32_t fruitless = 0;  // starts in a row without an answer
  wire::TaskEnd end = wire::TaskEnd::ended;
  std::optional<BootTime> term_at, kill_at;

  [[nodiscard]] bool is_up() const { return pid > 0; }
  void ask_to_end(wire::TaskEnd as, BootTime kill_then) {
    if (end == wire::TaskEnd::ended) end = as;
    ::kill(-pid, SIGTERM);
    term_at.reset();
    kill_at = kill_then;
  }
};

std::optional<std::uint64_t> id_of(std::string_view line) {
  std::uint64_t id = 0;
  const auto read = read_object(line, "answer", k_lenient_rules, Code::job_failed,
                                [&](RecordReader& reader) { reader.must("id", id); });
  return read ? std::optional(id) : std::nullopt;
}

std::string item_line(const BagTask& task, bool json) {
  std::string item = task.item.value_or(std::to_string(task.index));
  std::ranges::replace(item, job::k_column_separator, '\t');
  if (!json) return item + "\n";
  if (item.starts_with('{') || item.starts_with('['))
    return "{\"id\":" + std::to_string(task.index) + ",\"item\":" + item + "}\n";
  return write_object([&](RecordWriter& writer) { writer("id", task.index)("item", item); }) + "\n";
}

class StreamWorker final : public BagWorker {
 public:
  StreamWorker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command, ResultWriter results, Board board)
      : BagWorker(plan, spec, std::move(command), std::move(results), std::move(board)), programs_(spec.slots) {}

 private:
  void fill() override;
  [[nodiscard]] bool is_busy() const override { return std::ranges::any_of(programs_, &StreamProgram::is_up); }
  void add_polls(std::vector<pollfd>& polls) const override;
  void take_output(const std::vector<int>& ready) override;
  bool take_end(pid_t pid) override;
  [[nodiscard]] std::optional<BootTime> due() const override;
  void act_on_time() override;
  void end_all(BootTime kill_at) override;
  [[nodiscard]] bool gives_up() const override {
    return std::ranges::any_of(
        programs_, [&](const StreamProgram& one) { return !one.is_up() && one.fruitless > spec_.max_restarts; });
  }

  [[nodiscard]] bool start(StreamProgram& program);
  [[nodiscard]] bool give(StreamProgram& program);
  void send(StreamProgram& program) const;
  void read(StreamProgram& program);
  void answer(StreamProgram& program);
  void conclude(StreamProgram& program, std::size_t flight, wire::TaskResult result, std::string_view output);
  void settle(StreamProgram& program, int status);
  [[nodiscard]] std::optional<BootTime> late_at(const StreamProgram& program) const;
  void tell_board();

  std::vector<StreamProgram> programs_;
  std::size_t careful_ = 0;  // items that are given one at a time: one of them has ended its program
};

// Gives each program one item in turn, so that all have work.
void StreamWorker::fill() {
  if (gives_up()) return;
  for (bool any = true; any && !again_at_;) {
    any = false;
    for (StreamProgram& program : programs_) any = give(program) || any;
  }
  tell_board();  // before any of them can end its program
  for (StreamProgram& program : programs_) send(program);
}

bool StreamWorker::give(StreamProgram& program) {
  const std::size_t most = careful_ > 0 ? 1 : spec_.window;
  if (program.flights.size() >= most || queue_.size() == 0 || again_at_) return false;
  if (program.is_up() && !program.input.valid()) return false;  // it is ending
  if (!has_room(programs_.size() * spec_.window + 1)) return false;
  if (!program.is_up() && !start(program)) return false;
  BagTask task = *queue_.next();
  std::string line = item_line(task, spec_.json);
  if (line.find('\n') + 1 != line.size()) {
    refuse(task, "an item of a stream must be a single line");
    return true;
  }
  program.unsent += line;
  program.flights.push_back({std::move(task), now(), clock_.wall()});
  return true;
}

// Returns false if the program cannot be started now.
bool StreamWorker::start(StreamProgram& program) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return again_at_ = now() + k_bag_try_again, false;
  const os::Fd in_there(in[0]);
  program.input = os::Fd(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return again_at_ = now() + k_bag_try_again, false;
  program.output = os::Fd(out[0]);
  const os::Fd out_there(out[1]);
  for (const int ours : {in[1], out[0]}) {
    ::fcntl(ours, F_SETFL, O_NONBLOCK);
    ::fcntl(ours, F_SETPIPE_SZ, k_stream_pipe_bytes);
  }
  const auto slot = static_cast<std::uint32_t>(&program - programs_.data() + 1);
  std::vector<std::string> own{"GRIDCTL_TASK_SLOT=" + std::to_string(slot)};
  TaskLaunch launch{command_.words({}, slot), variables_with(own), in_there.get(), true};
  int failed = spawn_task(program.pid, launch, out_there.get(), STDERR_FILENO);
  if (failed != 0) {
    launch.words = command_.shell_words({}, slot);
    failed = spawn_task(program.pid, launch, out_there.get(), STDERR_FILENO);
  }
  ++program.fruitless;
  if (failed == 0) return true;
  program.pid = -1;
  ::dprintf(STDERR_FILENO, "gridctl: cannot start the program: %s\n", std::strerror(failed));
  again_at_ = now() + k_bag_try_again;
  return false;
}

// A program that has closed its input or its output may finish the items that it has, and is then asked to end.
void StreamWorker::send(StreamProgram& program) const {
  while (program.input.valid() && !program.unsent.empty()) {
    const ssize_t wrote = ::write(program.input.get(), program.unsent.data(), program.unsent.size());
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) {
      program.input.reset();
      program.term_at = program.term_at.value_or(now() + k_close_wait);
      return;
    }
    program.unsent.erase(0, static_cast<std::size_t>(wrote));
  }
}

void StreamWorker::add_polls(std::vector<pollfd>& polls) const {
  for (const StreamProgram& program : programs_) {
    if (program.output.valid()) polls.push_back({program.output.get(), POLLIN, 0});
    if (program.input.valid() && !program.unsent.empty()) polls.push_back({program.input.get(), POLLOUT, 0});
  }
}

void StreamWorker::take_output(const std::vector<int>& ready) {
  const auto is_ready = [&](const os::Fd& fd) {
    return fd.valid() && std::ranges::find(ready, fd.get()) != ready.end();
  };
  for (StreamProgram& program : programs_) {
    if (is_ready(program.output)) read(program);
    if (is_ready(program.input)) send(program);
  }
}

void StreamWorker::read(StreamProgram& program) {
  static std::array<char, 64 * 1024> bytes;
  for (int reads = 0; program.output.valid() && reads < k_stream_reads; ++reads) {
    const ssize_t got = ::read(program.output.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) {
      program.term_at = program.term_at.value_or(now() + k_close_wait);
      return program.output.reset();
    }
    std::string_view left(bytes.data(), static_cast<std::size_t>(got));
    while (!left.empty()) {
      const std::size_t end = left.find('\n');
      const std::string_view part = left.substr(0, end == std::string_view::npos ? left.size() : end + 1);
      left.remove_prefix(part.size());
      const std::size_t room =
          spec_.output_bytes_max - std::min<std::uint64_t>(spec_.output_bytes_max, program.line.size());
      program.line += part.substr(0, room);
      program.dropped += part.size() - std::min(room, part.size());
      if (end != std::string_view::npos) answer(program);
    }
  }
}

// Handles a complete line of the program.
void StreamWorker::answer(StreamProgram& program) {
  auto& flights = program.flights;
  std::size_t flight = 0;
  wire::TaskResult result;
  if (spec_.json) {
    const auto id = id_of(program.line);
    const auto found = std::ranges::find_if(flights, [&](const auto& one) { return id && one.task.index == *id; });
    flight = static_cast<std::size_t>(found - flights.begin());
  }
  if (flight < flights.size()) {
    result.dropped = program.dropped;
    conclude(program, flight, result, program.line);
    program.fruitless = 0;
  } else {
    ::dprintf(STDERR_FILENO, "gridctl: this line is not the answer to any item: %s\n",
              sanitize(program.line, k_stray_shown).c_str());
  }
  program.line.clear();
  program.dropped = 0;
}

void StreamWorker::conclude(StreamProgram& program, std::size_t flight, wire::TaskResult result,
                            std::string_view output) {
  const auto at = program.flights.begin() + static_cast<std::ptrdiff_t>(flight);
  const BootTime from = spec_.json ? at->sent : std::max(at->sent, program.answered_at);
  result.index = at->task.index;
  result.order = at->task.order;
  result.began = at->sent_wall;
  result.ms = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((now() - from) / std::chrono::milliseconds{1}, 0, UINT32_MAX));
  const std::uint64_t dropped = result.dropped;
  TaskOutput kept;
  kept.add(output, spec_.output_bytes_max, plan_.run);
  keep(kept, nullptr, result);
  result.dropped += dropped;
  record(result);
  program.flights.erase(at);
  program.answered_at = now();
  if (careful_ > 0) --careful_;
}

bool StreamWorker::take_end(pid_t pid) {
  const auto program = std::ranges::find(programs_, pid, &StreamProgram::pid);
  if (program == programs_.end()) return false;
  ::kill(-pid, SIGKILL);  // what it started ends with it; its pid is still taken
  read(*program);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  settle(*program, status);
  StreamProgram next;
  next.fruitless = program->fruitless;
  *program = std::move(next);
  return true;
}

// Handles items that a program left unanswered: the one that ended it is reported, the others are given out again.
void StreamWorker::settle(StreamProgram& program, int status) {
  wire::TaskResult result{0, 1, 0, program.end};
  if (WIFEXITED(status)) result.exit_code = static_cast<std::uint8_t>(WEXITSTATUS(status));
  else result.signal = static_cast<std::uint8_t>(WTERMSIG(status));
  if (program.end == wire::TaskEnd::stopped) {
    while (!program.flights.empty()) conclude(program, 0, result, {});
    return;
  }
  const bool is_known = program.end == wire::TaskEnd::timeout || program.flights.size() == 1;
  if (is_known && !program.flights.empty()) {
    if (result.end == wire::TaskEnd::ended && was_out_of_memory(result)) result.end = wire::TaskEnd::oom;
    if (result.succeeded()) result.end = wire::TaskEnd::garbled;  // it ended as if all had been answered
    conclude(program, 0, result, program.line);
  }
  if (!is_known) careful_ = std::max(careful_, program.flights.size());
  for (auto flight = program.flights.rbegin(); flight != program.flights.rend(); ++flight)
    queue_.put_back(flight->task);
}

std::optional<BootTime> StreamWorker::late_at(const StreamProgram& program) const {
  if (spec_.timeout <= Duration{} || program.flights.empty() || program.end != wire::TaskEnd::ended)
    return std::nullopt;
  const BootTime sent = program.flights.front().sent;
  return (spec_.json ? sent : std::max(sent, program.answered_at)) + spec_.timeout;
}

std::optional<BootTime> StreamWorker::due() const {
  std::optional<BootTime> first;
  for (const StreamProgram& program : programs_)
    for (const auto& at : {program.kill_at, program.term_at, late_at(program)})
      if (program.is_up() && at && (!first || *at < *first)) first = at;
  return first;
}

void StreamWorker::act_on_time() {
  const bool no_more = stopping_ || gives_up() || (queue_.finished() && queue_.size() == 0);
  for (StreamProgram& program : programs_) {
    if (!program.is_up()) continue;
    if (no_more && program.flights.empty() && program.input.valid()) {
      program.input.reset();
      program.term_at = now() + k_close_wait;
    }
    if (const auto late = late_at(program); late && now() >= *late)
      program.ask_to_end(wire::TaskEnd::timeout, now() + k_stream_grace);
    if (program.term_at && now() >= *program.term_at)
      program.ask_to_end(program.flights.empty() ? wire::TaskEnd::stopped : wire::TaskEnd::ended,
                         now() + k_stream_grace);
    if (program.kill_at && now() >= *program.kill_at) {
      ::kill(-program.pid, SIGKILL);
      program.kill_at = now() + k_bag_try_again;
    }
  }
  tell_board();
}

void StreamWorker::end_all(BootTime kill_at) {
  for (StreamProgram& program : programs_)
    if (program.is_up()) program.ask_to_end(wire::TaskEnd::stopped, kill_at);
}

void StreamWorker::tell_board() {
  for (std::size_t i = 0; i < programs_.size(); ++i)
    for (std::size_t place = 0; place < spec_.window; ++place) {
      const auto& flights = programs_[i].flights;
      board_.set(i * spec_.window + place,
                 place < flights.size() ? std::optional(flights[place].task.index) : std::nullopt);
    }
}

}  // namespace

std::unique_ptr<BagWorker> make_stream_worker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command,
                                              ResultWriter results, Board board) {
  return std::make_unique<StreamWorker>(plan, spec, std::move(command), std::move(results), std::move(board));
}

}  // namespace gridctl::agent
