// SPDX-License-Identifier: Apache-2.0
// Manages jobs that stand aside: paused in place so that a short job of higher priority can use their GPUs, and resumed
// when that job has ended. Loop thread only.
//
// Each paused job, with the job for which it stands aside, is stored with its host (report "aside") before the pause
// begins, so that a later daemon resumes the jobs that its predecessor paused. A host that refuses the pause is not
// asked again for that attempt; the job then saves and leaves. A resume that is refused, because other programs use the
// GPU, is retried; after registry::k_pause_max the job moves, like every job that stays paused too long.
#pragma once

#include <map>
#include <set>
#include <string>

#include "control/follow/attempts.hpp"
#include "control/follow/placement.hpp"
#include "sched/preempt.hpp"

namespace gridctl::control {

class StandAside {
 public:
  StandAside(const World& world, JobBook& book, Fleet& fleet, Attempts& attempts)
      : world_(world), book_(book), fleet_(fleet), attempts_(attempts) {}

  // Returns whether all jobs that would have to leave for `urgent` can be paused instead, and leave enough memory and
  // processors. `question`: the urgent job's, with the leaving jobs treated as holding nothing.
  [[nodiscard]] bool suits(const TrackedJob& urgent, const Question& question, const sched::Preemption& plan) const;
  void begin(const TrackedJob& urgent, const sched::Preemption& plan);
  // Returns true if a pause for `urgent` is under way, or is complete and `urgent` has not started yet.
  [[nodiscard]] bool is_begun_for(const JobId& urgent) const;
  [[nodiscard]] bool is_aside(const JobId& job) const { return asides_.contains(job.value); }
  // Resumes jobs that stand aside for jobs that have ended or run elsewhere.
  void tick(BootTime now);

 private:
  struct Aside {
    JobId urgent;
    Epoch epoch;
    HostName host;
    bool paused = false;       // the host has confirmed it
    BootTime next{};           // when to look again
    BootTime waits_since{};    // for a place for `urgent`
  };

  void load();
  [[nodiscard]] Result<void> save(const HostName& host);
  void order(TrackedJob& job, const Aside& aside, bool resume);
  void drop(const std::string& job);
  [[nodiscard]] bool is_needed(Aside& aside, BootTime now) const;

  const World world_;
  JobBook& book_;
  Fleet& fleet_;
  Attempts& attempts_;
  bool loaded_ = false;
  std::map<std::string, Aside> asides_;                        // by job
  std::set<std::pair<std::string, std::uint64_t>> unpausable_;  // job and epoch: the host refused
};

}  // namespace gridctl::control
