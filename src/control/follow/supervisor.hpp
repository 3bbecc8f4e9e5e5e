// SPDX-License-Identifier: Apache-2.0
// Follows every unfinished job of one state directory: turns what hosts say into events of the state machine, commits
// them, and carries out the effects. All decisions are job::step's; all state is in the registry. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/fleet/health.hpp"
#include "control/fleet/host_monitor.hpp"
#include "control/fleet/reliability.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/host_work.hpp"
#include "control/measure/bench.hpp"
#include "control/reach/link_meter.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"
#include "registry/registry.hpp"
#include "sched/host_facts.hpp"
#include "sched/interval.hpp"
#include "sched/place.hpp"
#include "sched/preempt.hpp"

namespace gridctl::control {

class NetworkWatch;

class Supervisor {
 public:
  Supervisor(os::Loop& loop, os::Clock& clock, registry::Registry registry, ControllerId controller);
  ~Supervisor();

  // Loads what is unfinished and begins. The registry's errors later are logged and met by trying again.
  [[nodiscard]] Result<void> start();
  // Nothing to follow, nothing under way.
  [[nodiscard]] bool is_idle() const;
  // Asks the registry anew. True also when it cannot say.
  [[nodiscard]] bool has_work();

 private:
  struct Following;
  struct Host;
  using JobPtr = std::shared_ptr<Following>;

  // Keeping up with the registry.
  void tick();
  void reload();
  void load_providers();
  void apply(const JobPtr& job, job::Happening what);
  void take(const JobPtr& job, const Result<job::Step>& step);  // what the registry has made of an event
  void adopt(const JobPtr& job, const job::State& state);
  void trust(const JobPtr& job);

  void note_last_output(const Following& job);

  // Effects.
  void carry_out(const JobPtr& job);
  void carry_out(const JobPtr& job, const job::Place& effect);
  void carry_out(const JobPtr& job, const job::Launch& effect);
  void carry_out(const JobPtr& job, const job::Stop& effect);
  void carry_out(const JobPtr& job, const job::Collect& effect);
  void carry_out(const JobPtr& job, const job::CleanUp& effect);
  [[nodiscard]] CopiesOf copies_of(const registry::Checkpoint& checkpoint);
  void note_healed(const Following& job, Epoch epoch, const HostName& host, const std::string& from);
  void place(const JobPtr& job);
  // Without those that are the same machine as `leaving`, if that is given.
  [[nodiscard]] sched::Decision decide(const Following& job, const registry::Job& row, const Host* leaving = nullptr);
  [[nodiscard]] sched::Decision decide(const Following& job, const job::Spec& spec, const sched::JobKnowledge& known,
                                       std::vector<sched::HostFacts> hosts, const Host* leaving = nullptr);
  // Adds to the hosts what was measured of them.
  [[nodiscard]] sched::JobKnowledge known_now(const registry::Job& row, std::vector<sched::HostFacts>& hosts);
  void retune(const JobPtr& job, const job::Spec& spec);
  [[nodiscard]] sched::Interval tune(const Following& job, const job::Spec& spec, const job::Member& member);
  void explain(const JobPtr& job, std::vector<std::string> lines);
  void capacity_freed();  // jobs that wait for room are asked for soon
  void wake_waiting(BootTime now);

  // Moves off hosts that are to be emptied.
  void judge_moves(BootTime now);
  void judge_move(const JobPtr& job, const Host& host);
  [[nodiscard]] bool is_drained(const Host& host) const;  // under any name of its machine

  // Moves off hosts where a failure could not be made good any more before a deadline (supervisor_deadline.cpp).
  void judge_deadlines(BootTime now);
  void judge_deadline(const JobPtr& job, const Host& host);
  void tell_risk(const JobPtr& job, const std::string& text);

  // Moves to what is cheaper (supervisor_cheaper.cpp).
  struct Cheaper {
    sched::Decision elsewhere;
    std::optional<std::string> why{};  // it is worth a move
  };
  void judge_prices(BootTime now);
  void follow_prices();
  void judge_price(const JobPtr& job, const Host& host);
  [[nodiscard]] std::optional<Cheaper> cheaper_than_here(const Following& job, const registry::Job& row,
                                                         const Host& host);

  // Room for what is more urgent (supervisor_preempt.cpp).
  [[nodiscard]] std::vector<JobPtr> queue() const;
  void ask_those_before(const Following& than);
  void judge_preemptions(BootTime now);
  [[nodiscard]] std::vector<sched::Holder> holders_below(int priority) const;
  void plan_preemption(const JobPtr& job, const std::vector<sched::Holder>& holders,
                       std::map<std::string, std::string>& asked);
  void tell_preemption(const JobPtr& job, const HostName& host, const std::string& jobs);

  // What months may cost (supervisor_budget.cpp).
  void judge_budgets(BootTime now);
  [[nodiscard]] std::string hold_to_budget(const Following& job, job::Spec& spec) const;

  // Several at once of one job (supervisor_replicas.cpp).
  void judge_replicas(BootTime now);
  void keep_replicas(const JobPtr& leader);
  [[nodiscard]] Result<void> make_replica(const JobPtr& leader, int number);
  [[nodiscard]] Result<void> resume_replica(const registry::Job& replica);
  [[nodiscard]] Result<void> share_secrets(const JobId& from, const JobId& to, const std::vector<std::string>& names);
  void take_result(const JobPtr& leader, const registry::Job& replica);
  void end_with_leader(const JobPtr& replica);
  void keep_apart(const Following& asking, std::vector<sched::HostFacts>& hosts) const;

  // What jobs may use at most.
  void judge_limits(BootTime now);

  // Newest checkpoints on the likely next hosts (supervisor_standby.cpp).
  void keep_standbys(BootTime now);
  void keep_standby(const JobPtr& job, BootTime now);
  void make_standby(const JobPtr& job, const registry::Checkpoint& newest, const HostName& where);
  [[nodiscard]] std::optional<sched::Decision> decide_for_standby(const Following& job, const registry::Job& row);
  void drop_standby(const JobPtr& job);

  // Runs `work` on the pool under the effect's name, then `then` in the loop; once per name at a time.
  template <class Work, class Then>
  void in_background(const JobPtr& job, const std::string& name, Work work, Then then);
  void try_later(const JobPtr& job, const std::string& name, Duration pause);

  // What hosts say.
  void on_connected(Host& host, const wire::AgentHello& hello);  // host_rescan.cpp
  void on_poll(Host& host, const wire::PollReply& reply);
  void note_room(Host& host, const wire::PollReply& reply);
  void on_status(Host& host, const JobPtr& job, const wire::AttemptStatus& status);
  void pull_newest(const JobPtr& job, const Host& host, const wire::AttemptStatus& status);
  void fetch_log(Host& host, const JobPtr& job, const wire::AttemptStatus& status);
  [[nodiscard]] std::optional<Digest> head_root(const Following& job);
  void commit(const JobPtr& job, Epoch epoch, AttemptNumber attempt, const Pulled& pulled);
  void judge_hosts(BootTime now);
  // How hosts are (health_sweep.cpp).
  void load_standings();
  void sweep_health(BootTime now);
  [[nodiscard]] std::optional<std::int64_t> clock_offset_of(const Host& host, WallTime now) const;
  void on_health(Host& host, const wire::HealthReply& reply, Duration took);
  void save_news_of_hosts();
  [[nodiscard]] Result<void> save_health_of(Host& host);
  void keep_health(Host& host, const wire::HealthReport& told, sched::Judgement verdict, WallTime now);
  void leave_gpu(const Host& host, const std::string& gpu, const std::string& why);
  // Challenges between jobs (bench_recheck.cpp).
  void recheck_gpus(BootTime now);
  void recheck(Host& host, const BenchReport& before);
  void on_rechecked(const HostName& name, const BenchReport& before, const Result<BenchReport>& found);
  [[nodiscard]] bool is_idle_for_bench(const Host& host) const;
  void renew_wants();

  [[nodiscard]] std::optional<HostAccess> work_place(const HostName& name);
  // `gone`: jobs that shall be taken to hold nothing.
  [[nodiscard]] std::vector<sched::HostFacts> host_facts(const Following& asking, Duration lost_after,
                                                         const std::set<std::string>& gone) const;
  void report(const Error& error, const std::string& doing);

  os::Loop& loop_;
  os::Clock& clock_;
  registry::Registry registry_;
  ControllerId controller_;
  Paths paths_;
  std::map<std::string, std::unique_ptr<Host>> hosts_;  // by name
  std::map<std::string, JobPtr> jobs_;                  // by id
  ReliabilityLog reliability_{registry_, clock_};
  HostClocks clocks_;
  const Duration health_every_ = health_period();
  const Duration recheck_every_ = recheck_period();
  bool rechecking_ = false;
  std::int64_t seen_version_ = -1;
  BootTime started_at_{}, next_reload_{}, next_moves_{}, next_limits_{}, next_deadlines_{}, next_prices_{},
      next_wake_{}, next_standbys_{}, next_preemptions_{};
  BootTime next_budgets_{}, next_replicas_{};
  std::vector<BudgetNow> budgets_;
  std::uint64_t room_ = 1;  // grows when room becomes free
  bool wake_wanted_ = false;
  os::Loop::Timer timer_;
  LinkMeter link_meter_;
  // Last members: their destructors wait for work that refers to those above.
  std::unique_ptr<os::Pool> connect_pool_;
  std::unique_ptr<os::Pool> work_pool_;
  std::unique_ptr<NetworkWatch> network_;
};

}  // namespace gridctl::control
