// SPDX-License-Identifier: Apache-2.0
// Represents a reason to look after jobs beyond running them: a limit, a price, a deadline, a twin. Each is a file in
// control/concerns that keeps its own state by job, with one row in the daemon's table. Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

// Holds the question to the scheduler for a job. Concerns shape it before the scheduler is asked.
struct Question {
  job::Spec spec;                       // a copy: what it asks for may be narrowed
  std::vector<sched::HostFacts> hosts;  // all, with what is free there
  sched::JobKnowledge known;
  std::string held{};  // why it may not have what it asks for, for people
  // Names a choice to keep if the scheduler would make it with `as_if_gone` taken as gone.
  struct Preference {
    HostName host, as_if_gone;
    std::string because;
    std::vector<HostName>
        members{};  // of a job on several hosts, instead: they are to be its members, if they can be all
  };
  std::optional<Preference> preference{};
};

// States that a waiting job must not start now.
struct Held {
  std::string why{};                // for people
  std::optional<WallTime> until{};  // when that ends, if it is known
};

// States that a concern wants a running job to leave its host. Only the mover acts on it, and asks again before it
// stops anything.
struct MoveWish {
  std::string why;          // machine word: "deadline", "cheaper", "preempted", "gpu_gone"
  std::string text{};       // why, for people
  double failures_max = 0;  // of where it goes from now on, per hour; 0 = any
  HostName host{};          // that it leaves; empty: that of rank 0
  bool at_once = false;     // without waiting for a checkpoint
  Duration patience{};      // of a worker of a bag: how long the tasks that it runs may take to end; 0: as long as they do
  // Holds the destination if the concern has asked for one; otherwise the mover asks.
  std::optional<sched::Decision> elsewhere{};
  bool to_anywhere = false;  // also when no host can take it now
  bool grows = false;        // it leaves no host: it gets more of them
};

class Concern {
 public:
  virtual ~Concern() = default;
  // Returns how often tick() is called; the daemon's table throttles the calls.
  [[nodiscard]] virtual Duration period() const { return std::chrono::seconds{1}; }
  virtual void tick(BootTime) {}
  virtual void found(const TrackedJob&) {}
  virtual void changed(const TrackedJob&, const job::State& /*before*/) {}  // after the commit
  virtual void forgotten(const JobId&) {}
  virtual void gpu_lost(const FleetHost&, const std::string& /*gpu*/, const std::string& /*why*/) {}
  // Placement asks, before it looks at hosts, whether the waiting job must not start now, wherever it would fit.
  [[nodiscard]] virtual std::optional<Held> holds(const TrackedJob& /*asking*/) const { return std::nullopt; }
  // Called by placement. `asking` must not be changed.
  virtual void shape(const TrackedJob& /*asking*/, Question&) const {}
  // The mover asks, while the job is moving for a reason of this concern, whether the reason still holds.
  [[nodiscard]] virtual bool moves_for(std::string_view /*why*/) const { return false; }
  [[nodiscard]] virtual std::optional<MoveWish> still_wished(const TrackedJob&) { return std::nullopt; }
};

}  // namespace gridctl::control
