// SPDX-License-Identifier: Apache-2.0
// Manages every registered host: its heartbeat, its health, its reliability, and what is leased there. It knows about
// jobs only what HostUse says. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/copies/world.hpp"
#include "control/fleet/free_capacity.hpp"
#include "control/fleet/health.hpp"
#include "control/fleet/host_monitor.hpp"
#include "control/fleet/reliability.hpp"
#include "control/reach/host_chunks.hpp"
#include "control/reach/report.hpp"

namespace gridctl::control {

// Describes what our jobs need from one host.
struct HostUse {
  std::vector<HostMonitor::Want> wants;  // attempts to ask for and to renew
  std::optional<Duration> patience;      // the shortest `lost_after` of the jobs there
  std::set<std::string> gpus;            // leased by our attempts
};

// Holds the health of a host at its last report.
struct HostHealth {
  sched::HostStanding standing;
  WallTime saved_at;
  BootTime next{};                            // when to ask
  BootTime known{};                           // taken_at of the newest report, by the host's clock
  int tries = 0;                              // for a report that is being made
  std::optional<wire::HealthReport> unsaved;  // with nothing new in it: written with those of other hosts
  std::set<std::string> leased, vacated;      // GPUs of our attempts; those given back and not yet verified
};

struct FleetHost {
  registry::Provider provider;
  std::shared_ptr<HostMonitor> monitor;
  std::shared_ptr<LifeSign> life = std::make_shared<LifeSign>();
  std::shared_ptr<HostChunks> chunks = std::make_shared<HostChunks>();
  job::Liveness liveness = job::Liveness::answering;
  std::string boot_id;                               // as it said last
  std::optional<std::vector<wire::HeldShare>> held;  // what is leased there, as it said last
  std::optional<WallTime> told_end;  // its orderly end as it said last
  BootTime busy_until{};        // it said that a resource is taken: do not offer it before it has told what is
  mutable bool missed = false;  // a job was placed, or not, without it, because it did not answer
  BootTime seen_saved{};        // when last_seen was last written, or is to be:
  std::optional<WallTime> seen_unsaved;
  HostHealth health;
  HostUse use;
  std::string way;         // the address by which it was reached last, where it has several
  bool let_us_in = true;  // its SSH server accepted our keys at the last try

  [[nodiscard]] NamedMachine machine() const { return {&provider, boot_id}; }
  [[nodiscard]] bool is_up() const { return monitor->is_up(); }
  // Returns when the host ends in order, as its user or the host itself has said; the earlier of both.
  [[nodiscard]] std::optional<WallTime> ends_at() const {
    if (!provider.until || !told_end) return provider.until ? provider.until : told_end;
    return std::min(*provider.until, *told_end);
  }
};

// Listens to hosts. Called from the loop.
class FleetListener {
 public:
  virtual ~FleetListener() = default;
  virtual void polled(const FleetHost&, const wire::PollReply&) {}
  virtual void logged(const FleetHost&, const wire::LogRequest&, std::uint64_t /*offset*/,
                      const std::string& /*bytes*/) {}
  virtual void connected(const FleetHost&, const wire::AgentHello&) {}
  virtual void login_refused(const FleetHost&, const Error&) {}  // told once, until a login succeeds
  virtual void pinged(const FleetHost&, Duration /*round_trip*/) {}
  virtual void liveness_changed(const FleetHost&) {}
  virtual void health_changed(const FleetHost&, const std::vector<sched::Change>&) {}
  virtual void gpu_lost(const FleetHost&, const std::string& /*gpu*/, const std::string& /*why*/) {}
};

class Fleet {
 public:
  // `health_every`: how often each host's health is requested; 0: never.
  Fleet(const World& world, Duration health_every);

  void listen(FleetListener& listener) { listeners_.push_back(&listener); }
  // Call it when another process has written to the registry. Returns false if the registry cannot list the hosts.
  [[nodiscard]] bool refresh();
  void load_standings();
  void tick(BootTime now);
  // Sets the demands of jobs on their hosts from now on, by name; no job uses a host that is not named.
  void set_use(std::map<std::string, HostUse> use, Duration heartbeat);
  void save_news();  // also at the end of the daemon: what was observed must not be lost

  [[nodiscard]] const FleetHost* find(const HostName& name) const;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<FleetHost>>& hosts() const { return hosts_; }
  [[nodiscard]] std::optional<HostReach> reach(const HostName& name) const;
  void poll_now(const HostName& name);
  // Returns false if a request is already under way.
  bool request_log(const HostName& name, const wire::LogRequest& request);
  // A start was refused there because the host is full: the host is not offered again before it has reported what is
  // held.
  void refused_for_room(const HostName& name, BootTime until);
  void inventory_changed(const HostName& name, const Inventory& inventory);

  // Covers every name of the machine.
  [[nodiscard]] bool is_drained(const FleetHost& host) const;
  [[nodiscard]] bool same_provider(const FleetHost& a, const FleetHost& b) const;
  // Returns true if all hosts have reported their free resources, or could not be reached.
  [[nodiscard]] bool all_tried() const;
  // Judges hosts as a job would that gives them up after `lost_after`.
  [[nodiscard]] std::vector<HostNow> now(Duration lost_after) const;
  // Adds health and reliability.
  void judge(std::vector<sched::HostFacts>& facts) const;
  // Returns a counter that grows when room becomes free anywhere.
  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  void capacity_freed() { ++capacity_; }
  [[nodiscard]] ReliabilityLog& reliability() { return reliability_; }
  [[nodiscard]] const ReliabilityLog& reliability() const { return reliability_; }

 private:
  using HostPtr = std::unique_ptr<FleetHost>;
  [[nodiscard]] FleetHost* get(const std::string& name);
  [[nodiscard]] HostMonitor::Listener listener_for(const std::string& name);
  void on_poll(FleetHost& host, const wire::PollReply& reply);
  void note_capacity(FleetHost& host, const wire::PollReply& reply);
  void note_end(FleetHost& host, const wire::PollReply& reply);
  void note_way(FleetHost& host);
  void pin(FleetHost& host, const std::string& key);
  void judge_silence(BootTime now);
  // fleet_health.cpp
  void sweep_health(BootTime now);
  [[nodiscard]] std::optional<std::int64_t> clock_offset_of(const FleetHost& host, WallTime now) const;
  void on_health(FleetHost& host, const wire::HealthReply& reply, Duration took);
  void keep_health(FleetHost& host, const wire::HealthReport& told, sched::Judgement verdict, WallTime now);
  [[nodiscard]] Result<void> save_health_of(FleetHost& host);
  template <class Tell>
  void tell(Tell one) {
    for (FleetListener* listener : listeners_) one(*listener);
  }

  const World world_;
  const Duration health_every_;
  std::map<std::string, HostPtr> hosts_;  // by name
  std::vector<FleetListener*> listeners_;
  ReliabilityLog reliability_;
  HostClocks clocks_;
  std::uint64_t capacity_ = 1;
};

}  // namespace gridctl::control
