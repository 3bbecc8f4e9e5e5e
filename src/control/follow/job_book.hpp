// SPDX-License-Identifier: Apache-2.0
// Holds the unfinished jobs of the state directory as the registry has them, and the only way to change one: an event
// is committed first, then adopted here, then passed to every listener. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/copies/world.hpp"
#include "sched/coupling.hpp"

namespace gridctl::control {

struct TrackedJob {
  registry::Job row;         // `row.machine` is its state
  sched::Coupling coupling;  // of a job on several hosts: how tightly, by its file
  bool unsure = false;  // an event may have been committed or not: nothing is done until the registry was read
  // Since when the current attempt is paused in place, as its host reported.
  std::optional<WallTime> paused{};
  int replicas_wanted = 0;  // of a service whose number of replicas changes; 0: nobody has said yet
  bool awake = false;       // of a service that sleeps when nobody asks: its gateway wants replicas
  bool in_doubt = false;    // of a service: the host of a replica that was ready is silent
  Duration save_every{};  // what its current attempt is told instead of the tuned interval; 0: nothing
  bool aside = false;  // paused for a job of higher priority, or about to be
  std::set<std::uint64_t> unfetched{};  // epochs of which hosts still have results of tasks: they are not cleaned up
  // Holds when a worker of a bag was asked to leave, once its tasks have ended and it gets no more.
  std::optional<WallTime> idle_for_move{};
  bool runs_spared = false;  // of a worker of a bag: a task that was stopped too often already, and must end now
  int holds = 0;        // pieces of work that refer to it: it is not forgotten before they are done

  [[nodiscard]] const JobId& id() const { return row.id; }
  [[nodiscard]] const job::State& state() const { return row.machine; }
  [[nodiscard]] const job::Spec& spec() const { return row.spec; }
  template <class Phase>
  [[nodiscard]] const Phase* in() const {
    return std::get_if<Phase>(&row.machine.phase);
  }
  // Returns the job that leads its twins or workers; itself if it is alone.
  [[nodiscard]] const JobId& leader_id() const { return spec().twin_of.empty() ? row.id : spec().twin_of; }
  [[nodiscard]] bool waits_for_room() const {
    const auto* waiting = in<job::Waiting>();
    return waiting != nullptr && waiting->why == job::k_waits_for_provider;
  }
  // Returns true if the job waits for a place, or its end is not known yet: it may still cost something.
  [[nodiscard]] bool goes_on() const {
    return in<job::Done>() == nullptr && !state().cancel && state().overtaken.empty();
  }
};

class JobListener {
 public:
  virtual ~JobListener() = default;
  // The job was not followed until now. `changed` follows.
  virtual void found(const TrackedJob&) {}
  // Called after the commit. Listeners are called in the order in which they were added.
  virtual void changed(const TrackedJob&, const job::State& /*before*/) {}
  // Called after every step of ours, even one that changed only the history.
  virtual void stepped(const job::State& /*before*/, const job::Step&) {}
  virtual void became_unsure(const TrackedJob&) {}
  virtual void forgotten(const JobId&) {}
};

class JobBook {
 public:
  explicit JobBook(const World& world) : world_(world) {}
  JobBook(const JobBook&) = delete;
  JobBook& operator=(const JobBook&) = delete;

  void listen(JobListener& listener) { listeners_.push_back(&listener); }
  // Called last for each job that changed, or whose effects may not have been carried out: pending work is due.
  void on_due(std::function<void(TrackedJob&)> due) { due_ = std::move(due); }

  [[nodiscard]] TrackedJob* find(const JobId& id);
  [[nodiscard]] const TrackedJob* find(const JobId& id) const;
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  // Returns the jobs for reading only: no event may be applied inside.
  [[nodiscard]] const std::map<std::string, std::unique_ptr<TrackedJob>>& all() const { return jobs_; }
  // Returns the jobs of all() that have an attempt: few, even if thousands wait. Work done every second uses these.
  [[nodiscard]] const std::map<std::string, TrackedJob*>& placed() const { return placed_; }
  // Safe while events are applied.
  void each(const std::function<void(TrackedJob&)>& visit);
  // Visits the jobs that are placed when their turn comes. Safe while events are applied.
  void each_placed(const std::function<void(TrackedJob&)>& visit);

  // Commits the event and adopts the result. Logs an error: the job is then uncertain, and is read again soon.
  void apply(const JobId& id, job::Event what);
  // Adopts an event that the registry applied in a transaction with something else.
  void take(const JobId& id, const Result<job::Step>& step);
  void adopt(TrackedJob& job, const job::State& state);
  // Adds a line to the job's history without an event.
  void note(const JobId& id, job::Record record);

  // Reads the jobs that changed after another process has written. `soon`: at the next tick.
  void refresh();
  // Called from time to time: carries out pending work of any job that could not be recorded when it was due.
  void remind();
  void refresh_soon() { wants_refresh_ = true; }
  // Returns false while a job may hold a host unknown to us: it could not be read yet, or its last event may or may not
  // have been committed.
  [[nodiscard]] bool is_certain() const;
  [[nodiscard]] bool wants_refresh() const { return wants_refresh_; }

  // Returns true if there is nothing to follow and nothing under way.
  [[nodiscard]] bool is_idle() const;
  // Asks the registry again. Also returns true if the registry cannot say.
  [[nodiscard]] bool has_work();

 private:
  template <class Tell>
  void tell(Tell one) {
    for (JobListener* listener : listeners_) one(*listener);
  }
  static void take_row(TrackedJob& job, registry::Job row);
  void refresh_one(const JobId& id);

  const World world_;
  std::map<std::string, std::unique_ptr<TrackedJob>> jobs_;  // by id
  std::map<std::string, TrackedJob*> placed_;                // of these
  std::set<std::string> over_;                               // of these: need no controller, and are forgotten soon
  std::vector<JobListener*> listeners_;
  std::function<void(TrackedJob&)> due_ = [](TrackedJob&) {};
  std::set<std::string> unread_;  // ids of unfinished jobs that could not be read, for a reason that may pass
  int visits_ = 0;                // each() that are under way: nothing is forgotten
  std::int64_t revision_ = 0;     // of the registry, up to which all was read
  bool wants_refresh_ = false;
  mutable bool may_be_unsure_ = false;  // one of them; else none is
};

}  // namespace gridctl::control
