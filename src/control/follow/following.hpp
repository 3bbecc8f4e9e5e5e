// SPDX-License-Identifier: Apache-2.0
// What the supervisor keeps in memory of a job and of a host. Everything here can be lost: the registry has the truth.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "control/follow/limits.hpp"
#include "control/follow/supervisor.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

struct Supervisor::Following {
  job::State state;
  std::set<std::string> under_way;               // names of effects and pulls at work
  std::map<std::string, os::Loop::Timer> later;  // names waiting for another try
  os::Loop::Timer place_timer;
  std::set<std::uint64_t> accepted;  // epochs whose START the host has answered: they may be polled
  bool unsure = false;  // an event may have been committed or not: nothing is done until the registry was read
  LaunchDoubt doubt;    // about the START of the newest epoch
  const std::shared_ptr<std::atomic<std::uint64_t>> wanted =  // the epoch that is to be started; threads read it
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::map<std::uint64_t, std::uint64_t> saved;   // epoch -> newest host number of a committed checkpoint
  std::map<std::uint64_t, int> collect_tries;     // epoch -> how often its last files were asked for
  std::map<std::uint64_t, std::uint64_t> listed;  // epoch -> newest host number that the host has told of
  std::optional<job::Member> promised;            // where it goes when its stop for a move is done
  std::vector<std::string> explained;             // saved last
  std::string owner;
  int replicas = 1;                     // of it, itself among them
  JobId replica_of;                     // what it is a replica of, or empty
  std::set<std::string> replicas_seen;  // those that were seen unfinished
  int priority = 0;
  double load = 0;    // of its wishes, see control/queue.hpp
  bool saves = true;  // checkpoints; else it is not asked to make room
  WallTime submitted_at{};
  std::uint64_t asked_at_room = 0;      // Supervisor::room_ when it was last placed, or could not be
  std::optional<job::Member> reserved;  // what it gets when others have made room
  bool preempted = false;               // it is to make room
  std::string preemption_told;
  Limits limits;
  SpendMeter spent;
  BootTime priced_at{};      // when a cheaper host was last looked for
  Epoch risk_told;           // the attempt of which was told that its deadline is at risk
  sched::Interval interval;  // of its checkpoints, as tuned at the last placement
  struct Standby {
    HostName host;        // where `head` lies ready; empty: nowhere, as far as we know
    HostName instead_of;  // chosen as if this one were gone
    CheckpointSeq head;
    BootTime named{};  // when that host was last told
    BootTime next{};   // when to look again
  } standby;
};

// How a host was when it last told.
struct HostHealth {
  sched::HostStanding standing;
  WallTime saved_at;
  BootTime next{};                            // when to ask
  BootTime known{};                           // taken_at of the newest report, by the host's clock
  int tries = 0;                              // for a report that is being made
  std::optional<wire::HealthReport> unsaved;  // with nothing new in it: written with those of other hosts
  std::set<std::string> leased, vacated;      // GPUs of our attempts; those given back and not yet verified
};

struct Supervisor::Host {
  registry::Provider provider;
  std::shared_ptr<HostMonitor> monitor;
  std::shared_ptr<LifeSign> life = std::make_shared<LifeSign>();
  job::Liveness liveness = job::Liveness::answering;
  std::string boot_id;                               // as it said last
  std::optional<std::vector<wire::HeldShare>> held;  // what is leased there, as it said last
  BootTime busy_until{};  // it said that a resource is taken: do not offer it before it has told what is
  bool missed = false;    // a job was placed, or not, without it, because it did not answer
  BootTime seen_saved{};  // when last_seen was last written, or is to be:
  std::optional<WallTime> seen_unsaved;
  HostHealth health;
  bool rescanning = false;
  BootTime next_recheck{};  // of its GPUs; 0 = not drawn yet
};

template <class Work, class Then>
void Supervisor::in_background(const JobPtr& job, const std::string& name, Work work, Then then) {
  job->under_way.insert(name);
  work_pool_->submit([this, job, name, work = std::move(work), then = std::move(then)]() mutable {
    auto outcome = std::make_shared<decltype(work())>(work());
    loop_.post([this, job, name, outcome, then = std::move(then)]() mutable {
      job->under_way.erase(name);
      then(std::move(*outcome));
      carry_out(job);
    });
  });
}

}  // namespace gridctl::control
