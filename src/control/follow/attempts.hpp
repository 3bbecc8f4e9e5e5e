// SPDX-License-Identifier: Apache-2.0
// Follows attempts on hosts: carries out the effects of the state machine (each is repeated until its host has
// answered), turns hosts' reports into events, and fetches checkpoints and output. Loop thread only.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "control/fleet/fleet.hpp"
#include "control/follow/allowances.hpp"
#include "control/follow/host_work.hpp"
#include "control/follow/job_book.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

// Lets attempts ask for placement.
class Pacer {
 public:
  virtual ~Pacer() = default;
  virtual void place_after(const TrackedJob& job, Duration delay) = 0;  // asks the scheduler then
  // Returns how often the attempt should save, as tuned; 0: not known yet, and tuned now.
  [[nodiscard]] virtual sched::Interval interval_of(const TrackedJob& job) = 0;
  // A new checkpoint has arrived, and with it a new measurement of its cost.
  virtual void retune(const TrackedJob& job) = 0;
};

struct GangProof;  // of members that reach each other; gang_connect.cpp

class Attempts : public JobListener, public FleetListener {
 public:
  Attempts(const World& world, JobBook& book, Fleet& fleet, Pacer& pacer);

  void tick(BootTime now);
  // Runs `work` on a thread, then `then` on the loop with its result; one at a time per job and name. The job is not
  // forgotten before that. Returns false if it is already under way or waits for its next try.
  template <class Work, class Then>
  bool in_background(const JobId& id, const std::string& name, os::Lane lane, Work work, Then then);
  [[nodiscard]] bool is_under_way(const JobId& id, const std::string& name) const;
  void try_later(const JobId& id, const std::string& name, Duration pause);
  // Returns the host's number of the newest checkpoint of the current attempt that is here or was reported.
  [[nodiscard]] std::uint64_t newest_there(const TrackedJob& job) const;
  // Sends the host its new orders (lease, pace) with the next poll.
  void renew_soon();
  // Returns whether each member has reported since the daemon started; until then, nobody knows what it has used in the
  // meantime.
  [[nodiscard]] bool is_counted(const TrackedJob& job) const;

 private:
  using Which = std::pair<std::uint64_t, int>;  // epoch, rank
  struct KeptPart {
    CheckpointPart part;
    Pulled pulled;
  };
  struct Doing {                      // of a job; everything here can be lost: the registry has the truth
    std::set<std::string> under_way;  // names of effects and pulls at work
    std::map<std::string, os::Executor::Timer> later;  // names waiting for another try
    std::map<Which, BootTime> heard;                   // when its host has told of it last
    std::set<Which> fenced;                            // a STOP was answered: the epoch cannot come up there any more
    std::map<Which, LaunchDoubt> doubts;               // about the STARTs of the newest epoch
    const std::shared_ptr<std::atomic<std::uint64_t>> wanted =  // the epoch that is to be started; threads read it
        std::make_shared<std::atomic<std::uint64_t>>(0);
    std::map<Which, std::uint64_t> saved;         // newest host number of a committed checkpoint
    std::map<Which, std::uint64_t> listed;        // newest host number that the host has told of
    std::map<Which, int> collect_tries;           // how often its last files were asked for
    std::map<Which, std::deque<KeptPart>> parts;  // of a gang's checkpoints, oldest first
    std::map<std::uint64_t, BootTime> first_saved;  // by epoch: the first part of any member
    std::map<Which, KeptPart> left;               // what its members left at the end
    std::set<Which> gathered;                     // members of a gang from which nothing more comes
    std::string missing_told;                     // why its newest parts are no checkpoint yet
    std::map<std::uint64_t, int> merges_failed;   // by epoch
    std::optional<BootTime> missing_since;
    std::map<std::uint64_t, int> ports_skipped;   // by epoch: ranges of ports that were in use
    std::map<Which, int> pulls_failed;            // since one went well
    std::map<Which, std::uint64_t> log_asked;     // where its output was last asked for
    std::map<Which, std::string> no_checkpoint;   // why none can be taken, as was told last
    // Belongs to the present collection, and to its attempts to fetch outputs.
    std::shared_ptr<WorkBudget> collecting;
    std::shared_ptr<std::atomic<int>> results_failures;
    bool cancel_before = false;                   // the attempt ended by it, or after it
    std::set<std::string> notes_told;             // of its checkpoints
    BootTime results_synced{};                    // when its outputs were last fetched while it runs
  };

  // JobListener
  void found(const TrackedJob& job) override;
  void changed(const TrackedJob& job, const job::State& before) override;
  void stepped(const job::State& before, const job::Step& step) override;
  void became_unsure(const TrackedJob& job) override;
  void forgotten(const JobId& id) override;
  // FleetListener
  void polled(const FleetHost& host, const wire::PollReply& reply) override;
  void logged(const FleetHost& host, const wire::LogRequest& asked, std::uint64_t offset,
              const std::string& bytes) override;
  void liveness_changed(const FleetHost& host) override;
  void login_refused(const FleetHost& host, const Error& error) override;
  void health_changed(const FleetHost& host, const std::vector<sched::Change>& changes) override;

  // attempt_effects.cpp
  void carry_out(TrackedJob& job);
  void carry_out(TrackedJob& job, const job::Place& effect);
  void carry_out(TrackedJob& job, const job::Launch& effect);
  void carry_out(TrackedJob& job, const job::Connect& effect);
  void carry_out(TrackedJob& job, const job::Stop& effect);
  void carry_out(TrackedJob& job, const job::Collect& effect);
  void carry_out(TrackedJob& job, const job::CleanUp& effect);
  [[nodiscard]] Result<LaunchOrder> launch_order(const TrackedJob& job, const job::Launch& effect);
  void launched(const JobId& id, const std::string& name, const job::Launch& effect, LaunchResult result);
  // Returns nullopt if the host is no longer registered; then the job has been told.
  [[nodiscard]] std::optional<MemberWork> work_with(TrackedJob& job, const HostName& host, Epoch epoch,
                                                    AttemptNumber attempt, int rank);
  struct Said {  // last, by a program that failed
    std::string gist{};
    job::LastWords words{};
    bool makes_directory = false;
  };
  Said note_last_output(const TrackedJob& job, int rank);

  // Implemented in attempt_results.cpp: the files that jobs leave in their working directories.
  [[nodiscard]] ResultsWanted results_wanted(const TrackedJob& job, int rank);  // of its attempt that has ended
  // Returns whether outputs are here that an attempt after this one may have left: its own come too late then.
  [[nodiscard]] bool has_newer_results(const TrackedJob& job, Epoch epoch);
  void sync_results(const FleetHost& host, TrackedJob& job, int rank, const wire::AttemptStatus& status);

  // attempts.cpp
  void forget_secrets(const JobId& id);
  void on_status(const FleetHost& host, TrackedJob& job, const wire::AttemptStatus& status);
  void note_no_checkpoint(const FleetHost& host, const TrackedJob& job, Which which, const wire::AttemptStatus& status);
  void fetch_log(const FleetHost& host, const TrackedJob& job, int rank, const wire::AttemptStatus& status);
  void pull_newest(const FleetHost& host, TrackedJob& job, int rank, const wire::AttemptStatus& status);
  void commit(TrackedJob& job, Which which, AttemptNumber attempt, const Pulled& pulled);
  void note_left_out(const TrackedJob& job, Epoch epoch, const Pulled& pulled);
  [[nodiscard]] bool commit_whole(TrackedJob& job, Epoch epoch, AttemptNumber attempt, const Pulled& pulled);
  void prune(const TrackedJob& job);
  void note_at(const HostName& host, const std::string& kind, const std::string& text);
  [[nodiscard]] std::optional<Digest> head_root(const TrackedJob& job);
  // gang_checkpoint.cpp, gang_connect.cpp
  [[nodiscard]] std::optional<CheckpointPart> part_of(const TrackedJob& job, Which which, const Pulled& pulled);
  [[nodiscard]] bool gather_again(TrackedJob& job, const job::Collect& effect);
  void commit_left(TrackedJob& job, std::function<void(TrackedJob&, bool safe)> then);
  void keep_part(TrackedJob& job, Which which, const Pulled& pulled);
  [[nodiscard]] std::uint64_t newest_part(const JobId& id, Which which);
  // Returns members without a part of their own that are known to have saved none; the others' parts need not wait for
  // them.
  [[nodiscard]] std::set<int> members_without_files(const TrackedJob& job, const job::Attempt& attempt);
  void try_merge_later(TrackedJob& job, Epoch epoch, Duration pause);
  void merge_parts(TrackedJob& job, std::function<void(TrackedJob&, bool safe)> then);
  [[nodiscard]] bool take_merged(TrackedJob& job, Epoch epoch, AttemptNumber number, const Result<MergedParts>& merged);
  void connected(TrackedJob& job, Epoch epoch, std::uint16_t port, const GangProof& proven);
  void judge_silence();
  void renew();
  [[nodiscard]] Doing& work(const JobId& id) { return work_[id.value]; }

  const World world_;
  JobBook& book_;
  Fleet& fleet_;
  Pacer& pacer_;
  Allowances allowances_;
  BootTime limits_told_{};
  std::map<std::string, Doing> work_;  // by id
  bool renewing_ = false;              // renew() is posted
  std::uint64_t merges_ = 0;
};

template <class Work, class Then>
bool Attempts::in_background(const JobId& id, const std::string& name, os::Lane lane, Work work, Then then) {
  TrackedJob* job = book_.find(id);
  if (job == nullptr || !this->work(id).under_way.insert(name).second) return false;
  ++job->holds;
  world_.run.run(lane, [this, id, name, work = std::move(work), then = std::move(then)]() mutable {
    auto outcome = std::make_shared<decltype(work())>(work());
    world_.run.post([this, id, name, outcome, then = std::move(then)]() mutable {
      TrackedJob& its = *book_.find(id);
      --its.holds;
      this->work(id).under_way.erase(name);
      then(its, std::move(*outcome));
      if (TrackedJob* left = book_.find(id)) carry_out(*left);
    });
  });
  return true;
}

}  // namespace gridctl::control
