// SPDX-License-Identifier: Apache-2.0
// A reason to look after jobs beyond running them: a limit, a price, a deadline, a twin. Each is a file of its own
// in control/concerns that keeps its own state by job, and one row in the daemon's table. Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

// The question to the scheduler for a job. Concerns shape it before it is asked.
struct Question {
  job::Spec spec;                       // a copy: what it asks for may be narrowed
  std::vector<sched::HostFacts> hosts;  // all, with what is free there
  sched::JobKnowledge known;
  std::string held{};  // why it may not have what it asks for, for people
  // The choice that is to be kept when the scheduler would make it anyway if `as_if_gone` were not there.
  struct Preference {
    HostName host, as_if_gone;
    std::string because;
    std::vector<HostName>
        members{};  // of a job on several hosts, instead: they are to be its members, if they can be all
  };
  std::optional<Preference> preference{};
};

// A job that waits is not to start now.
struct Held {
  std::string why{};                // for people
  std::optional<WallTime> until{};  // when that ends, if it is known
};

// A concern wants a running job to leave its host. Only the mover acts on it, and asks again before it stops anything.
struct MoveWish {
  std::string why;          // machine word: "deadline", "cheaper", "preempted", "gpu_gone"
  std::string text{};       // why, for people
  double failures_max = 0;  // of where it goes from now on, per hour; 0 = any
  HostName host{};          // that it leaves; empty: that of rank 0
  bool at_once = false;     // without waiting for a checkpoint
  // Where it would go, when the concern has asked itself; else the mover asks.
  std::optional<sched::Decision> elsewhere{};
  bool to_anywhere = false;  // also when no host can take it now
  bool grows = false;        // it leaves no host: it gets more of them
};

class Concern {
 public:
  virtual ~Concern() = default;
  // How often tick() is called; the daemon's table throttles, not each file.
  [[nodiscard]] virtual Duration period() const { return std::chrono::seconds{1}; }
  virtual void tick(BootTime) {}
  virtual void found(const TrackedJob&) {}
  virtual void changed(const TrackedJob&, const job::State& /*before*/) {}  // after the commit
  virtual void forgotten(const JobId&) {}
  virtual void gpu_lost(const FleetHost&, const std::string& /*gpu*/, const std::string& /*why*/) {}
  // Placement asks before it looks at hosts: whether the job, which waits, must not start now wherever it fits.
  [[nodiscard]] virtual std::optional<Held> holds(const TrackedJob& /*asking*/) const { return std::nullopt; }
  // Placement asks. `asking` is not to be changed.
  virtual void shape(const TrackedJob& /*asking*/, Question&) const {}
  // The mover asks while the job is moving for a reason of this concern: does it still hold?
  [[nodiscard]] virtual bool moves_for(std::string_view /*why*/) const { return false; }
  [[nodiscard]] virtual std::optional<MoveWish> still_wished(const TrackedJob&) { return std::nullopt; }
};

}  // namespace gridctl::control
