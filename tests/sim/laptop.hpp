// SPDX-License-Identifier: Apache-2.0
// A simulated laptop: the daemon's shell around the decisions that it shares with control::Supervisor: job::step,
// job::pending, job::Silence, sched::place, room.hpp, reading.hpp, talk.hpp. What is written a second time here, in the
// order of the real one, is the shell itself: HostMonitor's connections and pauses, Supervisor's keeping up with the
// registry and its effects, work.cpp's connections. Moves, health, tuning and reliability are not simulated.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/follow/launch_protocol.hpp"
#include "control/reach/pace.hpp"
#include "host.hpp"
#include "job/failure_detector.hpp"
#include "records.hpp"
#include "sched/place.hpp"
#include "world.hpp"

namespace gridctl::sim {

class Laptop {
 public:
  Laptop(World& world, int index);
  ~Laptop();

  void begin();               // the daemon starts, when it does not run
  void die(bool power_lost);  // kill -9, or the machine with it
  void user_cancels(int job, bool at_once);
  bool disk_full = false, registry_trouble = false;

 private:
  using Answered = std::function<void(Result<control::Answer>)>;
  struct Following {
    job::State state;
    std::set<std::string> under_way, later;
    bool place_timer = false, unsure = false;
    std::set<std::uint64_t> accepted;
    control::LaunchDoubt doubt;
    std::map<std::uint64_t, std::uint64_t> saved;
  };
  struct Monitor {
    enum class Link : std::uint8_t { down, connecting, up } link = Link::down;
    std::uint64_t connection = 0;  // number of the newest try; older answers are not ours
    Host::Connection host;
    bool tried = false, asked = false;
    std::uint64_t question = 0;
    BootTime asked_since{}, next_poll{}, next_connect{}, echo{}, busy_until{};
    Duration pause{}, heartbeat = control::k_heartbeat_idle;
    std::optional<BootTime> last_answer;
    std::string boot_id;                               // as it said last
    std::optional<std::vector<wire::HeldShare>> held;  // what is leased there, as it said last
    job::FailureDetector silence{control::k_nap};
  };
  using JobPtr = std::shared_ptr<Following>;

  // laptop.cpp: the registry and the effects
  void submit_jobs();
  void tick();
  void reload();
  void apply(const JobPtr& job, job::Happening what);
  void adopt(const JobPtr& job, const job::State& state);
  void carry_out(const JobPtr& job);
  void carry_out(const JobPtr& job, const job::Place& effect);
  void carry_out(const JobPtr& job, const job::Launch& effect);
  void carry_out(const JobPtr& job, const job::Connect& effect);
  void carry_out(const JobPtr& job, const job::Stop& effect);
  void carry_out(const JobPtr& job, const job::Collect& effect);
  void carry_out(const JobPtr& job, const job::CleanUp& effect);
  void place(const JobPtr& job);
  void launched(const JobPtr& job, const std::string& name, Epoch epoch, int host, control::LaunchResult result);
  void done(const JobPtr& job, const std::string& name);
  void try_later(const JobPtr& job, const std::string& name, Duration pause);
  void commit(const JobPtr& job, Epoch epoch, AttemptNumber attempt, const wire::HostCheckpoint& from);

  // laptop_work.cpp: conversations with hosts
  struct Session {
    int host = 0;
    Host::Connection connection;
  };
  template <class Value>
  [[nodiscard]] std::function<void(Result<Value>)> once(int host, std::function<void(Result<Value>)> then);
  using Reached = std::function<void(Result<Session>)>;
  void reach(int host, Reached then);
  void ask(const Session& session, control::Request question, Answered then);
  using Fetched = std::function<void(Result<std::optional<wire::HostCheckpoint>>)>;
  void pull(const JobPtr& job, int host, Epoch epoch, wire::HostCheckpoint checkpoint, Fetched then);
  void collect(const JobPtr& job, int host, Epoch epoch, std::uint64_t known, Fetched then);
  void run_launch(const JobPtr& job, Epoch epoch, Session session, std::shared_ptr<control::LaunchTalk> talk,
                  control::LaunchTalk::Next next, std::function<void(control::LaunchResult)> then);
  void run_settle(const JobPtr& job, Session session, std::shared_ptr<control::CleanUpTalk> talk,
                  control::CleanUpTalk::Next next, job::PendingCleanup end, BootTime patience,
                  std::optional<wire::HostCheckpoint> found, Fetched then);

  // laptop_hosts.cpp: heartbeats
  void judge_hosts(BootTime now);
  void monitor_tick(int host, BootTime now, bool others_answer);
  void heard(int host);  // an answer over whatever connection
  void connect(int host);
  void connected(int host, Result<Host::Hello> hello);
  void drop(int host);
  void poll(int host);
  void polled(int host, const wire::PollReply& reply);
  void on_status(int host, const wire::AttemptStatus& status);
  void pull_newest(const JobPtr& job, int host, const wire::AttemptStatus& status);
  void renew_wants();

  [[nodiscard]] std::vector<sched::HostFacts> host_facts(Duration lost_after);
  [[nodiscard]] Monitor& monitor(int host) { return monitors_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] Node& node() const { return world_.node(index_); }
  [[nodiscard]] BootTime clock() const { return node().boot(world_.now); }
  [[nodiscard]] WallTime wall() const { return node().wall(world_.now); }
  [[nodiscard]] static int host_of(const HostName& name) { return std::stoi(name.value.substr(4)); }
  void after(Duration delay, Work work) { world_.after(delay.count(), index_, std::move(work)); }

  World& world_;
  const int index_;
  Random random_;
  std::unique_ptr<Records> records_;
  bool running_ = false, open_ = false;
  BootTime next_reload_{};
  std::vector<registry::Provider> providers_;
  std::vector<Monitor> monitors_;
  std::map<std::string, JobPtr> jobs_;
  std::map<std::pair<int, std::uint64_t>, wire::PollRequest> wants_;  // host, lease
  std::uint64_t next_number_ = 1;
};

}  // namespace gridctl::sim
