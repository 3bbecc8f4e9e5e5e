// SPDX-License-Identifier: Apache-2.0
// What really happens to services, and the rules that they are held to (G1-G9).
//  G1 Never more replicas than the service has slots, nor two of services with one port on a host.
//  G2 A replica is dismissed only when fewer are wanted, or all others are ready.
//  G3 None with requests under way is ended to scale, to sleep or for a new version before its time to drain is over.
//  G4 A new version takes no replica away while no other one is ready.
//  G5 A service that sleeps has no attempt, and gets none.
//  G6 A server that answers is not taken for hung, nor one for ready that never was.
//  G7 Nobody gives up a service whose replica was ready.
//  G8 A gateway lives while its service does, and ends with it.
//  G9 In a healthy world as many replicas answer as are wanted, one that sleeps wakes, and nobody stands in any more.
#pragma once

#include <map>
#include <set>
#include <string>

#include "job/state.hpp"
#include "world.hpp"

namespace gridctl::sim {

class ServiceTruth {
 public:
  explicit ServiceTruth(World& world) : world_(world) {}

  // On laptops.
  void stepped(int laptop, const job::State& before, const job::Event& what, const job::State& after);
  void gateway_starts(int laptop, const JobId& service);
  void gateway_told(int laptop, const JobId& service);
  void audit(Laptop& laptop);
  [[nodiscard]] int next_version(const JobId& service, int now);
  void applied(const JobId& service, int version);  // its user was told so

  // The end: the rest of an update is done, services come to rest, and their users stop them.
  void converge();
  void final_check() const;

 private:
  struct Service {
    int wished = 0, applied = 0;  // versions
    int tries = 0;                // of an update, in a healthy world
    Nanos asleep_since = -1, gone_since = -1, over_since = -1, applied_at = -1;
    std::map<int, Nanos> needless_since;  // by replica
    Nanos ready_since = -1;               // a replica of it was, and its laptop knew
  };
  struct Which {
    JobId service;
    int replica = 0;
    const job::Spec* spec = nullptr;  // of the leader, as submitted
  };
  [[nodiscard]] Which which(const JobId& job) const;  // spec nullptr: of no service
  [[nodiscard]] int wanted(Laptop& laptop, const Which& which) const;
  [[nodiscard]] bool is_believed_ready(const JobId& job) const;
  [[nodiscard]] JobId replica(const JobId& service, int number) const;
  void check_hung(Laptop& laptop, const Which& which, const job::State& before, const job::Hung& hung) const;
  void check_dismissed(Laptop& laptop, const Which& which, const job::State& before) const;
  void check_drained(Laptop& laptop, const Which& which, const job::State& before, Nanos patience) const;
  void check_updated(Laptop& laptop, const Which& which, const job::State& before) const;
  void check_placed(Laptop& laptop, const Which& which, const job::State& after);
  void check_asleep(Laptop& laptop, const JobId& id, const job::Spec& spec);
  void check_needless(Laptop& laptop, const JobId& id, const job::Spec& spec);
  void check_gateway(Laptop& laptop, const JobId& id);
  [[nodiscard]] std::string unrest(const SimJob& job);  // why it is not at rest; empty: it is
  [[nodiscard]] bool is_crowded(const SimJob& job) const;
  void must(bool holds, const char* rule, const JobId& job, const std::string& what) const;

  World& world_;
  std::map<std::string, Service> services_;  // by leader
};

}  // namespace gridctl::sim
