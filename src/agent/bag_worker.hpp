// SPDX-License-Identifier: Apache-2.0
// Implements the common part of both kinds of bag workers: orders in, results out, signals, and an orderly end. Inside
// agent only.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bag_command.hpp"
#include "agent/bag_files.hpp"
#include "agent/bag_output.hpp"
#include "agent/bag_queue.hpp"
#include "agent/init.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {

inline constexpr Duration k_bag_try_again = std::chrono::seconds{1};  // a full disk, or no process left

class BagWorker {
 public:
  // REQUIRES: `plan` outlives it.
  BagWorker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command, ResultWriter results, Board board);
  BagWorker(const BagWorker&) = delete;
  BagWorker& operator=(const BagWorker&) = delete;
  virtual ~BagWorker() = default;
  // Returns the exit status.
  [[nodiscard]] int run();

 protected:
  virtual void fill() = 0;                         // begins what can be begun
  [[nodiscard]] virtual bool is_busy() const = 0;  // something that was begun has not ended
  virtual void add_polls(std::vector<pollfd>& polls) const = 0;
  virtual void take_output(const std::vector<int>& ready) = 0;  // descriptors of add_polls()
  virtual bool take_end(pid_t pid) = 0;  // it has ended and was not waited for; false: it is not ours
  [[nodiscard]] virtual std::optional<BootTime> due() const = 0;
  virtual void act_on_time() = 0;
  virtual void end_all(BootTime kill_at) = 0;  // TERM to everything, and KILL then
  [[nodiscard]] virtual bool gives_up() const { return false; }

  // Reserves disk space for the results of this many tasks. Without it, none may start, because it would run again.
  [[nodiscard]] bool has_room(std::size_t tasks);
  void record(const wire::TaskResult& result);
  // Keeps the output, and records its place in the result.
  void keep(TaskOutput& output, TaskOutput* errors, wire::TaskResult& result, TaskOutput* files = nullptr);
  // Explains in the task's output why this host cannot start it.
  void refuse(const BagTask& task, const std::string& why);
  // Returns the job's variables without those that `own` sets, followed by those. They outlive the list.
  [[nodiscard]] std::vector<char*> variables_with(std::vector<std::string>& own);
  [[nodiscard]] bool was_out_of_memory(const wire::TaskResult& result);
  [[nodiscard]] BootTime now() const { return clock_.boot(); }

  const InitPlan& plan_;
  const wire::BagSpec spec_;
  os::Clock& clock_ = os::system_clock();
  BagCommand command_;
  BagQueue queue_;
  Board board_;
  os::Fd nothing_;                    // /dev/null
  std::optional<BootTime> again_at_;  // nothing can be begun before
  bool stopping_ = false;

 private:
  void prepare();
  void take_orders();
  void wait_for_news();
  [[nodiscard]] int patience_ms() const;
  void handle_signals();
  void begin_stop();
  void tell_head() { board_.tell({queue_.orders(), queue_.size(), output_.end()}); }
  void record_all(const std::vector<wire::TaskResult>& results);

  OrderReader orders_;
  ResultWriter results_;
  OutputWriter output_;
  std::vector<std::string> environment_;
  os::Fd signals_, changes_;
  std::optional<BootTime> term_at_, kill_at_;
  std::uint64_t oom_kills_ = 0;
};

// Makes the two kinds of workers.
[[nodiscard]] std::unique_ptr<BagWorker> make_task_worker(const InitPlan& plan, const wire::BagSpec& spec,
                                                          BagCommand command, ResultWriter results, Board board);
[[nodiscard]] std::unique_ptr<BagWorker> make_stream_worker(const InitPlan& plan, const wire::BagSpec& spec,
                                                            BagCommand command, ResultWriter results, Board board);

}  // namespace gridctl::agent
