// SPDX-License-Identifier: Apache-2.0
// Runs several twins of one job at once (replication.mode: active). The job itself leads. The others are jobs of their
// own, made when the leader starts, and end with it. The first twin to finish provides the leader's result. Two twins
// never run on the same machine.
#include <algorithm>
#include <set>

#include "control/concerns/table.hpp"
#include "control/follow/limits.hpp"
#include "job/twin.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_doubt = std::chrono::seconds{3};  // of silence: a replica's successor begins, long before it is lost
constexpr int k_doubt_beats = 2;                       // and so many heartbeats: between two, each host is silent

std::string in_words(const registry::JobRow& twin) {
  return "twin " + twin.name + " (" + twin.id.value + ")";
}

bool goes_on(const job::State& state) {
  return !std::holds_alternative<job::Done>(state.phase) && !state.cancel && state.overtaken.empty();
}

class TwinsConcern : public Concern {
 public:
  explicit TwinsConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime) override {
    for (const std::string& id : grouped_) {
      TrackedJob* job = controls_.book.find({id});
      if (job == nullptr || job->unsure || !job->goes_on()) continue;
      if (job->spec().twins > 1 || (job->spec().service && job->spec().twin_of.value.empty())) keep(*job);
      if (!job->spec().twin_of.value.empty()) end_with_leader(*job);
      if (may_sleep(*job)) wake(*job);
    }
  }
  void changed(const TrackedJob& job, const job::State&) override {
    if (job.spec().twins > 1 || !job.spec().twin_of.value.empty() || job.spec().service) grouped_.insert(job.id().value);
  }
  void forgotten(const JobId& id) override {
    seen_.erase(id.value);
    asleep_.erase(id.value);
    grouped_.erase(id.value);
  }

  std::optional<Held> holds(const TrackedJob& job) const override {
    if (!may_sleep(job) || job.awake || job.state().epoch == Epoch{}) return std::nullopt;  // its first start is asked for
    return Held{"the service is asleep: the next request wakes it", {}};
  }

  // Keeps two twins off one machine, under whatever names it has. After the first result, no twin is placed at all; the
  // next tick fetches the result.
  void shape(const TrackedJob& asking, Question& question) const override {
    const job::Spec& spec = asking.spec();
    if (spec.tasks || (spec.twins <= 1 && spec.twin_of.value.empty() && !spec.service)) return;
    const JobId& group = asking.leader_id();
    if (spec.service) keep_from_taken_ports(group, spec, question);
    if (const std::string over = why_over(asking, group); !over.empty())
      for (sched::HostFacts& facts : question.hosts) facts.apart = over;
    for (const auto& [id, job] : controls_.book.all()) {
      if (job.get() == &asking || (job->id() != group && job->spec().twin_of != group)) continue;
      for (const HostName& name : controls_.placement.hosts_of(*job)) {
        const FleetHost* there = controls_.fleet.find(name);
        if (there == nullptr) continue;
        for (sched::HostFacts& facts : question.hosts)
          if (controls_.fleet.same_provider(*controls_.fleet.find(facts.name), *there))
            if (facts.apart.empty())
              facts.apart = std::string(spec.service ? "another replica" : "another twin") + " is there: " + id;
      }
    }
  }

 private:
  // Plain processes share their host's ports, so one replica's server must not answer another's requests.
  void keep_from_taken_ports(const JobId& group, const job::Spec& spec, Question& question) const {
    if (!spec.image.empty()) return;
    for (const auto& [id, job] : controls_.book.placed()) {
      const job::Spec& its = job->spec();
      if (!its.service || !its.image.empty() || its.service->port != spec.service->port || job->id() == group ||
          its.twin_of == group)
        continue;
      for (const HostName& name : controls_.placement.hosts_of(*job))
        for (sched::HostFacts& facts : question.hosts)
          if (const FleetHost* there = controls_.fleet.find(name);
              there != nullptr && controls_.fleet.same_provider(*controls_.fleet.find(facts.name), *there) &&
              facts.apart.empty())
            facts.apart = "service " + its.name + " has port " + std::to_string(its.service->port) + " there";
    }
  }

  // Asks the registry, because the book forgets finished jobs before the next tick. Returns empty if there is no result
  // yet.
  [[nodiscard]] std::string why_over(const TrackedJob& asking, const JobId& group) const {
    const Result<registry::Job> leader = controls_.world.records.job(group);
    if (!leader) return group.value + " could not be read";
    if (!goes_on(leader->machine)) return leader->name + " (" + group.value + ") has ended";
    for (int number = 2; number <= leader->spec.twins; ++number) {
      const JobId id = registry::twin_id(group, number);
      const Result<registry::Job> row = controls_.world.records.job(id);
      if (!row && row.error().code != Code::not_found) return id.value + " could not be read";
      if (row && row->state == job::JobState::succeeded && row->id != asking.id())
        return in_words(*row) + " finished first: fetching its result";
    }
    return {};
  }

  // Makes missing twins, and checks whether one has finished.
  void keep(TrackedJob& leader) {
    std::set<std::string>& seen = seen_[leader.id().value];
    const int wanted = wanted_of(leader);
    for (int number = 2; number <= leader.spec().twins; ++number) {
      const JobId id = registry::twin_id(leader.id(), number);
      if (const TrackedJob* followed = controls_.book.find(id); followed != nullptr && followed->goes_on()) {
        seen.insert(id.value);
        continue;
      }
      const Result<registry::Job> row = controls_.world.records.job(id);
      if (!row && row.error().code != Code::not_found) return report(row.error(), "while looking for a twin");
      if (number > wanted) continue;
      if (!row) {
        report(make(leader, number), "while making a twin");
      } else if (row->state == job::JobState::succeeded) {
        return take_result(leader, *row);
      } else if (job::is_final(row->state) && (row->machine.limit == k_limit_leader || row->machine.limit == k_limit_scale)) {
        report(resume(*row), "while resuming a twin");
      } else if (job::is_final(row->state) && seen.erase(id.value) > 0) {
        controls_.book.note(
            leader.id(),
            {"replica_ended", in_words(*row) + " ended: " + row->machine.reason_text + "; the others go on", {}, {}});
      }
    }
    if (leader.spec().service) stand_in(leader, wanted);
  }

  // Starts one more replica as soon as the host of one is silent, because a model may take minutes to load. The
  // daemon's gateways end it once all others are ready.
  void stand_in(TrackedJob& leader, int wanted) {
    leader.in_doubt = false;
    for (int number = 1; number <= wanted; ++number)
      leader.in_doubt = leader.in_doubt || is_silent(number == 1 ? leader.id() : registry::twin_id(leader.id(), number));
    if (!leader.in_doubt) return;
    const int number = job::slots_of(leader.spec());
    const JobId id = registry::twin_id(leader.id(), number);
    if (const TrackedJob* there = controls_.book.find(id); there != nullptr && there->goes_on()) return;
    const Result<registry::Job> row = controls_.world.records.job(id);
    if (!row && row.error().code != Code::not_found) return report(row.error(), "while looking for a replica");
    if (row && !job::is_final(row->state)) return;
    const bool is_ours = row && row->spec.service->version == leader.spec().service->version;
    if (const Result<void> begun = !row ? make(leader, number) : is_ours ? resume(*row) : renew(leader, *row, number); !begun)
      return report(begun.error(), "while starting a replica");
    controls_.book.note(leader.id(), {"replica_stands_in",
                                      "the host of a replica is silent: " + id.value + " starts, and serves until all "
                                      "others are ready",
                                      {},
                                      {}});
  }

  static bool may_sleep(const TrackedJob& job) {
    return job.spec().service && job.spec().service->sleeps && job.spec().twin_of.value.empty();
  }

  void wake(TrackedJob& leader) {
    if (!leader.awake) asleep_.insert(leader.id().value);
    else if (asleep_.erase(leader.id().value) > 0 && leader.in<job::Waiting>() != nullptr)
      controls_.placement.place_now(leader);
  }

  [[nodiscard]] bool is_silent(const JobId& id) const {
    const TrackedJob* const replica = controls_.book.find(id);
    const job::Attempt* const attempt = replica == nullptr ? nullptr : replica->state().attempt();
    if (attempt == nullptr || replica->state().ready.epoch != attempt->epoch || !replica->goes_on()) return false;
    const FleetHost* const host = controls_.fleet.find(attempt->lead().host);
    if (host == nullptr) return false;
    return host->monitor->silence().counted() >= std::max(k_doubt, k_doubt_beats * host->monitor->heartbeat());
  }

  // The gateway of a service sets the number. The daemon's gateways drain and end surplus replicas.
  static int wanted_of(const TrackedJob& leader) {
    const job::Spec& spec = leader.spec();
    if (!spec.service || spec.service->replicas_min == 0) return spec.twins;
    return std::clamp(leader.replicas_wanted, spec.service->replicas_min, spec.twins);
  }

  Result<void> make(const TrackedJob& leader, int number) {
    TRY_ASSIGN(const std::vector<registry::Input> inputs, controls_.world.records.inputs(leader.id()));
    const JobId id = registry::twin_id(leader.id(), number);
    TRY(controls_.world.folders.share_secrets(leader.id(), id, leader.spec().secrets));
    const job::Spec spec = job::twin_spec(leader.spec(), leader.id(), leader.row.submitted_at, number);
    TRY(controls_.world.records.submit(id, spec, controls_.world.clock.wall(), inputs));
    controls_.book.refresh_soon();
    if (number > leader.spec().twins) return {};
    controls_.book.note(leader.id(),
                        {"replica",
                         std::string(spec.service ? "replica " : "twin ") + std::to_string(number) + " of " +
                             std::to_string(leader.spec().twins) + " is " + spec.name + " (" + id.value + ")",
                         {},
                         {}});
    return {};
  }

  // The leader was resumed while this twin was still being stopped.
  Result<void> resume(const registry::Job& twin) {
    TRY(controls_.world.folders.share_secrets(twin.spec.twin_of, twin.id, twin.spec.secrets));
    TRY(controls_.world.records.apply(twin.id, {controls_.world.clock.wall(), job::ResumeRequested{}}));
    controls_.book.refresh_soon();
    return {};
  }

  // A failed update left a version that does not work.
  Result<void> renew(const TrackedJob& leader, const registry::Job& twin, int number) {
    TRY_ASSIGN(const std::vector<registry::Input> inputs, controls_.world.records.inputs(leader.id()));
    TRY(controls_.world.folders.share_secrets(leader.id(), twin.id, leader.spec().secrets));
    const job::Spec spec = job::twin_spec(leader.spec(), leader.id(), leader.row.submitted_at, number);
    TRY(controls_.world.records.replace(twin.id, spec, inputs, {controls_.world.clock.wall(), job::ResumeRequested{}}));
    controls_.book.refresh_soon();
    return {};
  }

  void take_result(TrackedJob& leader, const registry::Job& twin) {
    const job::TwinSucceeded done{in_words(twin) + " finished first: its result is used"};
    controls_.book.take(leader.id(),
                     controls_.world.records.take_result(leader.id(), twin.id, {controls_.world.clock.wall(), done}));
  }

  // After a result, the others are not needed. Otherwise they save, because they may be resumed with their leader.
  void end_with_leader(TrackedJob& twin) {
    const Result<registry::Job> leader = controls_.world.records.job(twin.spec().twin_of);
    if (!leader) return report(leader.error(), "while looking for the leader of a twin");
    if (goes_on(leader->machine)) return;
    const job::State& its = leader->machine;
    const bool has_result = leader->state == job::JobState::succeeded || !its.overtaken.empty();
    const std::string why = has_result           ? "has its result"
                            : !its.limit.empty() ? "was stopped: " + its.limit_text
                            : its.cancel         ? "was cancelled"
                                                 : "failed: " + its.reason_text;
    controls_.book.apply(twin.id(), job::LimitReached{std::string(k_limit_leader),
                                                      leader->name + " (" + leader->id.value + ") " + why,
                                                      has_result ? Duration::zero() : job::k_limit_grace});
  }

  const Controls controls_;
  std::set<std::string> grouped_;                      // ids of leaders and twins
  std::map<std::string, std::set<std::string>> seen_;  // twins that were seen unfinished, by leader
  std::set<std::string> asleep_;                       // ids of services for which nobody asks
};

}  // namespace

std::unique_ptr<Concern> make_twins(const Controls& controls) { return std::make_unique<TwinsConcern>(controls); }

}  // namespace gridctl::control
