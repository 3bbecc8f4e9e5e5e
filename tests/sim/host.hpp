// SPDX-License-Identifier: Apache-2.0
// A simulated host: its disk, its processes, its GPUs. What it decides, the agent's own code decides (agent::Core,
// plan_take, StopClock, judge_end); here stand only the files and processes that those decisions are about.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/bag_queue.hpp"
#include "agent/host_limits.hpp"
#include "agent/ledger.hpp"
#include "agent/stop_clock.hpp"
#include "agent/verdict.hpp"
#include "control/follow/launch_protocol.hpp"
#include "truth.hpp"
#include "wire/insight.hpp"
#include "wire/results.hpp"
#include "world.hpp"

namespace gridctl::sim {

struct Snapshot {
  wire::HostCheckpoint checkpoint;
  BootTime taken_at;
  bool damaged = false;  // its files were never synced when the power went
};

struct Launch {       // run/K
  bool once = false;  // somebody has begun here, or has seen to it that nobody ever will
  Payload* payload = nullptr;
  bool init_lives = false;
  BootTime running_since{};
  std::optional<agent::ExitRecord> exit;
};

struct WorkerFiles {  // of a worker of a bag
  std::vector<wire::BagOrder> orders;
  std::vector<wire::TaskResult> results;
  std::string output;
  // Of its process.
  std::size_t read = 0;  // orders
  agent::BagQueue queue;
  std::optional<agent::BagTask> task;  // that runs, or ran when it died
};

// The folder of an attempt. What a power cut may take is marked by `synced`.
struct Folder {
  std::shared_ptr<const wire::StartRequest> start;
  std::string boot;
  bool synced = false, emptied = false;
  std::optional<wire::AttemptStatus> status;
  std::string status_boot;
  Nanos status_at = 0;
  std::int64_t deadline = 0;
  agent::HostLimits limits;
  std::optional<std::int64_t> stop, kept;
  std::vector<Launch> launches;
  std::vector<Snapshot> snapshots;
  std::uint64_t next_snapshot = 1;
  std::optional<Nanos> saved;    // progress in the newest checkpoint of the program, whole
  Nanos snapshot_of = -1;        // progress of the newest snapshot
  bool left_taken = false;       // also of what nobody was sure of
  std::uint64_t supervisor = 0;  // life of the process that holds the lock; 0 = none
  Nanos accepted_at = 0;
  std::string log;
  WorkerFiles bag;
};

class Supervision;

class Host {
 public:
  Host(World& world, int index);
  ~Host();

  // One request over a connection that was made in (power life, agents' life). The reply may never be called.
  using Reply = std::function<void(Result<control::Answer>)>;
  struct Connection {
    std::uint64_t life = 0, agents = 0;
  };
  struct Hello {
    BootTime host_time;
    std::string boot_id;
    Connection connection;
    Digest peer_key;
  };
  [[nodiscard]] Hello greet(int laptop);
  [[nodiscard]] bool serves(const Connection& connection) const;
  [[nodiscard]] Result<control::Answer> serve(int laptop, const control::Request& ask);
  // Output, and what lies in the working directory.
  [[nodiscard]] Result<std::string> read_log(int laptop, const wire::LogRequest& wanted);
  [[nodiscard]] Result<wire::ResultsReply> results(int laptop, const wire::ResultsRequest& wanted);
  // Looks into a running attempt; host_hangs.cpp.
  [[nodiscard]] Result<std::string> stacks(int laptop, const wire::StacksRequest& wanted);
  [[nodiscard]] Result<wire::StepsReply> steps(int laptop, const wire::StepsRequest& wanted);
  void tell_life(const std::tuple<int, std::string, std::uint64_t>& key, wire::AttemptStatus& status) const;
  [[nodiscard]] wire::BagReply answer_bag(int laptop, const wire::BagRequest& request);
  [[nodiscard]] Result<std::string> read_task_output(int laptop, const wire::LogRequest& wanted);
  // An effect of the request that is served came late: so much later its answer goes out.
  void answer_later(Nanos delay) { answer_delay_ += delay; }
  [[nodiscard]] Nanos take_answer_delay() { return std::exchange(answer_delay_, 0); }
  // A snapshot's bytes: the root that they hash to.
  [[nodiscard]] Result<Digest> read_snapshot(int laptop, const wire::CheckpointRef& wanted);

  // Whole, as far as anybody can know; of an attempt that is over.
  [[nodiscard]] std::optional<Digest> newest_snapshot(int laptop, const JobId& job, Epoch epoch) const;

  void lose_power();
  void power_up();
  void kill_agents() { ++agents_; }
  void kill_supervisor(int which);
  void kill_payload(int which);
  void reinstall() { ++installs_; }  // it has another identity
  [[nodiscard]] Digest peer_key() const;
  bool disk_full = false;

  void check_empty() const;
  struct Standby {
    Digest root;
    Nanos at = 0;
    int daemons = 0;  // of its laptop that had died by then
  };
  void stand_by(int laptop, const wire::StandbyRequest& request);
  [[nodiscard]] const std::map<std::pair<int, std::string>, Standby>& standbys() const { return standbys_; }
  // Steps of a running attempt that it tells of, oldest first; how long its lease lasts, if it runs.
  [[nodiscard]] std::vector<Nanos> told_steps(int laptop, const JobId& job, Epoch epoch) const;
  [[nodiscard]] std::optional<Duration> lease_left(int laptop, const JobId& job, Epoch epoch) const;
  [[nodiscard]] std::vector<agent::Lease> leases_of(int laptop) const;  // that count
  [[nodiscard]] bool is_unused() const { return folders_.empty() && node_is_up(); }
  [[nodiscard]] Inventory inventory() const;
  [[nodiscard]] HostName name() const { return {"host" + std::to_string(index_)}; }

 private:
  friend class View;
  friend class Supervision;
  using Key = std::tuple<int, std::string, std::uint64_t>;  // laptop, job, epoch

  [[nodiscard]] bool node_is_up() const;
  [[nodiscard]] BootTime clock() { return node().boot(world_.now); }
  [[nodiscard]] Node& node() { return world_.node(world_.host_node(index_)); }
  [[nodiscard]] std::string boot_id() const;
  [[nodiscard]] agent::Machine machine() const;
  [[nodiscard]] Result<void> take(const agent::Lease& lease);
  void release(const Key& key);
  [[nodiscard]] agent::Lease lease_of(int laptop, const wire::StartRequest& start) const;
  [[nodiscard]] Folder* folder(const Key& key);
  [[nodiscard]] os::ProcessId spawn();
  void spawn_supervisor(const Key& key);
  void changed(const Key& key);  // something in ctl/
  // The program.
  void run_payload(const Key& key, Payload* payload, Nanos from);
  // A worker of a bag; host_bag.cpp.
  void run_tasks(const Key& key, Payload* payload);
  void task_over(const Key& key, Payload* payload, Nanos took, bool fails, bool kills);
  void stop_tasks(const Key& key);
  void record_task(const Key& key, const wire::TaskResult& result);
  void lose_task_files(WorkerFiles& bag) const;
  [[nodiscard]] Result<void> take_orders(const Key& key, const wire::BagAsk& ask);
  [[nodiscard]] wire::BagTold tell_tasks(const Key& key, const wire::BagAsk& ask);
  void lie(wire::BagTold& told);
  void serve_requests(const Key& key, Payload* payload);  // a replica of a service
  void await_peers(const Key& key, Payload* payload, Nanos from);
  void work(const Key& key, Payload* payload, Nanos from);
  void chat(const Key& key, Payload* payload);
  void plan_stands(const Key& key, Payload* payload);
  void stand(const Key& key, Payload* payload, Nanos delay, Nanos time);
  void say(Folder& folder, const std::string& words) const;  // by the program
  void payload_over(const Key& key, std::size_t launch, Why why, const agent::ExitRecord* record);
  void strike(const Key& key, std::size_t launch);
  void arm_last_line(const Key& key, std::size_t launch);
  void watch_lease(const Key& key, Payload* payload, std::int64_t deadline);
  void lie(control::Answer& answer);
  void check_refusal(int laptop, const wire::AttemptSpec& spec, Code code);
  void check_stopped(int laptop, const JobId& job, Epoch epoch);
  void watch_stop(const Key& key, Nanos grace, std::uint64_t supervisor);
  void check_unused(const agent::Lease& lease) const;
  void check_busy(const agent::Lease& lease) const;
  void check_leased(int laptop, const wire::StartRequest& request) const;
  void check_allowances(int laptop, const wire::PollRequest& request, const std::map<Key, agent::HostLimits>& before) const;
  void check_work_kept(const std::map<Key, Folder>& before, Duration how_long) const;
  void check_leases(const std::map<Key, std::int64_t>& before, BootTime given);

  World& world_;
  const int index_;
  std::uint64_t agents_ = 1, next_pid_ = 1;
  Nanos answer_delay_ = 0;
  int installs_ = 1;
  bool faulted_ = false;  // an effect of the request that is served
  std::set<std::uint64_t> alive_;  // pids
  std::map<std::pair<int, std::string>, std::uint64_t> fences_;
  std::map<Key, Folder> folders_;
  std::set<Key> kept_work_;  // working directories that outlive their attempts
  std::map<std::pair<int, std::string>, Standby> standbys_;
  std::set<Key> unreleased_;  // leases that could not be given back: they end with the agent's process
  std::map<Key, std::unique_ptr<Supervision>> supervisions_;
  std::vector<std::optional<agent::Lease>> ledger_;
  std::map<const Payload*, os::ProcessId> init_;
};

}  // namespace gridctl::sim
