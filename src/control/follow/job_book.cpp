// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_book.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/fleet.hpp"

namespace gridctl::control {

namespace {

// A damaged or missing record stays so, and must not delay the rest.
bool is_worth_retrying(Code code) { return code == Code::io || code == Code::state_in_use || code == Code::no_space; }

}  // namespace

TrackedJob* JobBook::find(const JobId& id) {
  const auto found = jobs_.find(id.value);
  return found == jobs_.end() ? nullptr : found->second.get();
}

const TrackedJob* JobBook::find(const JobId& id) const {
  const auto found = jobs_.find(id.value);
  return found == jobs_.end() ? nullptr : found->second.get();
}

void JobBook::each(const std::function<void(TrackedJob&)>& visit) {
  const std::shared_ptr<void> under_way(nullptr, [this](void*) { --visits_; });
  ++visits_;
  for (const auto& [id, job] : jobs_) visit(*job);
}

void JobBook::each_placed(const std::function<void(TrackedJob&)>& visit) {
  const std::shared_ptr<void> under_way(nullptr, [this](void*) { --visits_; });
  ++visits_;
  for (auto next = placed_.begin(); next != placed_.end();) {
    TrackedJob& job = *next->second;
    visit(job);
    next = placed_.upper_bound(job.id().value);
  }
}

namespace {
// Masks the words of a host or a job in an event.
template <class Mask>
void mask_words(job::Event& event, const Mask& mask) {
  if (auto* ended = std::get_if<job::AttemptEnded>(&event)) mask(ended->end.detail);
  if (auto* failed = std::get_if<job::LaunchFailed>(&event)) mask(failed->detail);
  if (auto* preparing = std::get_if<job::Preparing>(&event)) mask(preparing->doing);
  if (auto* collected = std::get_if<job::Collected>(&event)) mask(collected->problem), mask(collected->last), mask(collected->said.line);
  if (auto* committed = std::get_if<job::CheckpointCommitted>(&event)) mask(committed->detail);
  if (auto* hung = std::get_if<job::Hung>(&event)) mask(hung->text);
}
}  // namespace

void JobBook::apply(const JobId& id, job::Event what) {
  mask_words(what, [&](std::string& text) { text = world_.folders.masked(id, std::move(text)); });
  take(id, world_.records.apply(id, {world_.clock.wall(), std::move(what)}));
}

void JobBook::take(const JobId& id, const Result<job::Step>& step) {
  TrackedJob* job = find(id);
  if (job == nullptr) return;
  if (!step) {
    // If nothing was committed, a poll or the effect's next try will report the fact again. But the failure may have
    // come at the end of a commit, and our copy of the job may be outdated.
    report(step.error(), "while recording an event of job " + id.value);
    job->unsure = may_be_unsure_ = true;
    wants_refresh_ = true;
    return tell([&](JobListener& one) { one.became_unsure(*job); });
  }
  const job::State before = job->state();
  tell([&](JobListener& one) { one.stepped(before, *step); });
  // A user has resumed the job since it ended, perhaps with another file: it must not be placed with the file that we
  // know.
  if (std::holds_alternative<job::Done>(before.phase) && !std::holds_alternative<job::Done>(step->state.phase))
    return refresh_one(id);
  if (!step->state.needs_controller() || !(step->state == before) || !step->effects.empty()) adopt(*job, step->state);
}

// Adopts a state that the registry has committed for any process, and starts the actions that it requires.
void JobBook::adopt(TrackedJob& job, const job::State& state) {
  const job::State before = std::exchange(job.row.machine, state);
  job.unsure = false;
  if (state.attempt() != nullptr) placed_[job.id().value] = &job;
  else placed_.erase(job.id().value);
  if (!state.needs_controller()) over_.insert(job.id().value);
  else over_.erase(job.id().value);
  tell([&](JobListener& one) { one.changed(job, before); });
  due_(job);
}

void JobBook::note(const JobId& id, job::Record record) {
  record.text = world_.folders.masked(id, std::move(record.text));
  report(world_.records.note(id, world_.clock.wall(), record),
         "while recording '" + record.kind + "' of job " + id.value);
}

void JobBook::take_row(TrackedJob& job, registry::Job row) {
  job.row = std::move(row);
  if (job.spec().num_nodes > 1) job.coupling = sched::classify(job.spec());
}

void JobBook::refresh_one(const JobId& id) {
  Result<registry::Job> row = world_.records.job(id);
  unread_.erase(id.value);
  if (!row) {
    report(row.error(), "while reading job " + id.value);
    if (!is_worth_retrying(row.error().code)) return;
    unread_.insert(id.value);
    wants_refresh_ = true;
    return;
  }
  const job::State state = row->machine;
  if (TrackedJob* known = find(id)) {
    row->machine = known->row.machine;
    take_row(*known, *std::move(row));                            // its file may have been changed by `job resume`
    if (!known->unsure && known->state() == state) due_(*known);  // what could not be recorded when it was due
    else adopt(*known, state);
    return;
  }
  if (!state.needs_controller()) return;
  std::unique_ptr<TrackedJob>& job = jobs_[id.value];
  job = std::make_unique<TrackedJob>();
  take_row(*job, *std::move(row));
  TrackedJob& mine = *job;
  tell([&](JobListener& one) { one.found(mine); });
  adopt(mine, state);
}

void JobBook::refresh() {
  wants_refresh_ = visits_ > 0;  // it forgets jobs
  if (wants_refresh_) return;
  const Result<registry::JobRecords::Changes> changes = world_.records.changes(revision_);
  if (!changes) {
    wants_refresh_ = true;
    return report(changes.error(), "while listing jobs");
  }
  revision_ = changes->revision;
  std::set<std::string> again = unread_;
  if (may_be_unsure_)
    for (const auto& [id, job] : jobs_)
      if (job->unsure) again.insert(id);
  for (const JobId& id : changes->jobs) {
    again.erase(id.value);
    refresh_one(id);
  }
  for (const std::string& id : again) refresh_one({id});
  std::erase_if(over_, [&](const std::string& id) {
    const auto found = jobs_.find(id);
    if (found->second->holds > 0) return false;
    tell([&](JobListener& one) { one.forgotten({id}); });
    placed_.erase(id);
    jobs_.erase(found);
    return true;
  });
}

void JobBook::remind() {
  each([this](TrackedJob& job) {
    if (!job.unsure) due_(job);
  });
}

bool JobBook::is_certain() const {
  may_be_unsure_ =
      may_be_unsure_ && std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) { return entry.second->unsure; });
  return unread_.empty() && !may_be_unsure_;
}

bool JobBook::is_idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return !entry.second->state().needs_controller() && entry.second->holds == 0;
  });
}

bool JobBook::has_work() {
  const Result<std::vector<JobId>> ids = world_.records.unfinished();
  return !ids || !ids->empty() || !is_idle();
}

}  // namespace gridctl::control
