// SPDX-License-Identifier: Apache-2.0
// Decides where jobs go: asks the scheduler for those that wait, in the order in which they get a place, and keeps the
// promises made. Loop thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "control/follow/attempts.hpp"
#include "control/follow/concern.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "sched/gang.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

// Decides the order in which waiting jobs are asked for a place. Pure.
//
// The highest priority comes first; among equals, the owner that holds least of the grid now, counting what the earlier
// jobs would get (fair share); for one owner, the job submitted first. A job that does not fit is skipped: smaller jobs
// run in the meantime (backfill).
struct Waits {
  int priority = 0;
  std::string owner;  // empty: one owner of its own
  WallTime submitted_at;
  double load = 0;  // what it wants
};

// Returns the load in GPUs; eight cores count as one, and the larger of the two counts.
[[nodiscard]] double load_of(const job::Resources& wanted);
[[nodiscard]] double load_of(const job::Member& held);

// Returns indices into `waiting`. `held`: the load of each owner's running jobs.
[[nodiscard]] std::vector<std::size_t> in_turn(const std::vector<Waits>& waiting, std::map<std::string, double> held);

// Holds the scheduler's decision for a job on several hosts.
struct GangOffer {
  sched::GangDecision decision;
  sched::GangWish wish;
  [[nodiscard]] std::vector<job::Member> members() const;  // by rank; none without a plan
};

// Describes the resources that a waiting job gets when others have ended.
struct Turn {
  std::vector<job::Member> members;
  std::optional<BootTime> from;     // when those are expected to have; nullopt: nobody knows
  bool binding = false;             // nobody who comes after it is given that, unless he is done before
  std::vector<std::string> lines{};  // what it waits for, for people
};

class Placement : public Pacer, public JobListener {
 public:
  Placement(const World& world, JobBook& book, Fleet& fleet);
  void consult(const std::vector<std::unique_ptr<Concern>>& concerns) { concerns_ = &concerns; }

  void tick(BootTime now);
  // Builds the present question to the scheduler. `gone`: jobs that are treated as holding nothing.
  [[nodiscard]] Question question(const TrackedJob& job, const std::set<std::string>& gone = {});
  // `leaving`: excludes every host that is the same machine as this one.
  [[nodiscard]] sched::Decision decide(const TrackedJob& job, Question question, const FleetHost* leaving = nullptr);
  // Decides for a job on several hosts. The job's own hosts are free for it only if the question treats the job as
  // gone. `leaving`: a host to exclude. `forgive`: allows hosts that the job avoids.
  [[nodiscard]] Result<GangOffer> offer(const TrackedJob& job, const Question& question, const HostName& leaving = {},
                                        bool forgive = false) const;
  void explain(const TrackedJob& job, std::vector<std::string> lines);  // for `job explain`

  // Returns the waiting jobs in the order in which they get a place.
  [[nodiscard]] std::vector<TrackedJob*> queue();
  // Reserves the hosts that a job will get when others have made room; no other job gets them. nullopt clears the
  // reservation.
  void reserve(const JobId& id, std::optional<std::vector<job::Member>> members) {
    wait(id).reserved = std::move(members);
    note_claim(id);
  }
  // Reserves hosts for a moving job until it is placed.
  void promise(const JobId& id, std::vector<job::Member> members) {
    wait(id).promised = std::move(members);
    note_claim(id);
  }
  // Reserves hosts for `id` against later jobs only. nullopt clears the reservation.
  void keep_for(const JobId& id, std::optional<Turn> turn) {
    if (!turn && !waits_.contains(id.value)) return;
    wait(id).turn = std::move(turn);
    note_claim(id);
  }
  [[nodiscard]] bool is_promised(const JobId& id) const;
  // Returns the hosts that the job has or was promised.
  [[nodiscard]] std::vector<HostName> hosts_of(const TrackedJob& job) const;
  // Reports once for each attempt.
  void tell_risk(const TrackedJob& job, const std::string& text);

  // Pacer
  void place_after(const TrackedJob& job, Duration delay) override;
  void place_now(const TrackedJob& job);  // why it was held is over
  [[nodiscard]] sched::Interval interval_of(const TrackedJob& job) override;
  void retune(const TrackedJob& job) override;

 private:
  struct Wait {  // of a job
    os::Executor::Timer timer;
    std::uint64_t asked_at = 0;  // Fleet::capacity() when it was last placed, or could not be
    std::optional<std::vector<job::Member>> promised, reserved;
    std::optional<Turn> turn;
    std::vector<std::string> explained;  // saved last
    sched::Interval interval;            // of its checkpoints, as tuned last
    bool tuned = false;
    Epoch risk_told;
  };
  void changed(const TrackedJob& job, const job::State& before) override;
  void forgotten(const JobId& id) override {
    waits_.erase(id.value);
    claiming_.erase(id.value);
  }

  void place(TrackedJob& job);
  void place_soon(const TrackedJob& job);
  void placed(TrackedJob& job, const Question& question, const sched::Decision& decision);
  // placement_gang.cpp
  void place_gang(TrackedJob& job, const Question& question);
  [[nodiscard]] std::optional<GangOffer> preferred(const TrackedJob& job, const Question& question,
                                                   const GangOffer& otherwise) const;
  void begin(TrackedJob& job, std::vector<job::Member> members, const std::string& reason,
             const std::optional<job::Expected>& expected, std::vector<std::string> lines);
  void tell_compulsory(const TrackedJob& job);
  void not_placed(TrackedJob& job, const Question& question, bool could_ever_fit, const std::string& summary,
                  std::vector<std::string> lines);
  [[nodiscard]] bool is_held(TrackedJob& job);  // by a concern: then the job has been told
  void ask_those_before(const TrackedJob& than);
  [[nodiscard]] bool was_asked(const TrackedJob& job) const;  // since something became free
  [[nodiscard]] bool is_due(const TrackedJob& job) const;
  void note_claim(const JobId& id);
  void wake_waiting(BootTime now);
  [[nodiscard]] bool gives_way(const TrackedJob& asking, const TrackedJob& to, const Turn& turn) const;
  [[nodiscard]] std::vector<sched::HostFacts> facts(const TrackedJob& asking, const std::set<std::string>& gone) const;
  [[nodiscard]] sched::JobKnowledge knowledge(const TrackedJob& job, std::vector<sched::HostFacts>& hosts);
  [[nodiscard]] sched::Interval tune(const TrackedJob& job, const job::Member& member);
  [[nodiscard]] Wait& wait(const JobId& id) { return waits_[id.value]; }

  const World world_;
  JobBook& book_;
  Fleet& fleet_;
  const std::vector<std::unique_ptr<Concern>>* concerns_ = nullptr;
  std::map<std::string, Wait> waits_;  // by id
  std::set<std::string> claiming_;     // ids of those that have something of hosts, or were promised it
  const BootTime began_;
  BootTime next_wake_{};
  std::optional<std::uint64_t> all_asked_at_;  // Fleet::capacity() when nobody was due; a job that becomes so unsets it
  bool asks_in_turn_ = false;   // those before somebody are being asked, in their order
  std::uint64_t woken_at_ = 0;  // Fleet::capacity() when all that wait had been asked
};

}  // namespace gridctl::control
