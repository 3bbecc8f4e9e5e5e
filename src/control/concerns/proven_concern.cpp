// SPDX-License-Identifier: Apache-2.0
// Asks jobs on borrowed hosts for a complete checkpoint within their first hour there: such a host may be gone the next
// minute. A job without one is asked to save after 40 minutes. If there still is none after an hour, its history says so;
// the attempt continues, and later ones stay away from borrowed hosts until the job has saved, its file says
// `unproven: allow`, or an hour has passed in which no other host took it: to wait for ever helps nobody. Bags, services
// and jobs that declare at most an hour of work are not concerned.
#include <algorithm>
#include <map>
#include <utility>

#include "control/concerns/table.hpp"
#include "control/follow/drilled.hpp"
#include "control/follow/lent_hosts.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_asked_after = std::chrono::minutes{40}, k_proven_within = std::chrono::hours{1};
constexpr Duration k_kept_away = std::chrono::hours{1};  // from the end of its last attempt
constexpr const char *k_save_asked = "save_asked", *k_unproven = "unproven", *k_proven = "proven";  // events
constexpr Duration k_asked_interval = std::chrono::minutes{1};  // until a checkpoint is complete

bool must_prove(const job::Spec& spec) {
  const auto is_short = [](const std::optional<Duration>& most) { return most && *most <= k_proven_within; };
  return !spec.service && !spec.tasks && !spec.constraints.unproven && !is_short(spec.max_duration) &&
         !is_short(spec.workload.work);
}

class ProvenConcern : public Concern {
 public:
  explicit ProvenConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{5}; }

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || job.unsure || !running->attempt.started_at) return;
      if (!must_prove(job.spec()) || !is_on_lent(controls_.fleet, &running->attempt)) return;
      Watch& mine = watch(job, running->attempt, now);
      const Duration passed = now - std::exchange(mine.seen, now);
      if (!job.paused) mine.ran += passed;
      if (mine.settled || mine.ran < k_asked_after) return;
      if (is_proven(job)) return settle(job, running->attempt, mine);
      if (!std::exchange(mine.asked, true)) ask(job, running->attempt);
      if (mine.ran >= k_proven_within && !std::exchange(mine.told, true)) tell(job, running->attempt);
    });
  }

  void forgotten(const JobId& id) override { watched_.erase(id.value); }

  void shape(const TrackedJob& asking, Question& question) const override {
    if (!must_prove(question.spec) || asking.state().attempts.value == 0) return;
    const auto is_strange = [](const sched::HostFacts& host) { return sched::is_lent(host.host_class, host.labels); };
    if (std::ranges::none_of(question.hosts, is_strange)) return;
    const WallTime now = controls_.world.clock.wall();
    const auto [ran, ended] = past_of(asking, now);
    if (ran < k_proven_within || is_proven(asking)) return;
    const job::Attempt* attempt = asking.state().attempt();
    if (attempt == nullptr && ended && now - *ended >= k_kept_away) return;
    for (sched::HostFacts& host : question.hosts)
      if (is_strange(host) && (attempt == nullptr || attempt->on(host.name) == nullptr))
        host.unproven = "it is owned by others, and the job ran " + format_duration(ran) +
                        " on such hosts without a complete checkpoint; for " + format_duration(k_kept_away) +
                        " after an attempt it waits for other hosts; to allow these at once: gridctl job cancel " +
                        asking.id().value + " && gridctl job resume " + asking.id().value + " --unproven allow";
  }

 private:
  struct Watch {  // of the current attempt
    Epoch epoch;
    BootTime seen{};
    Duration ran{};  // on borrowed hosts, in all attempts
    bool asked = false, told = false, settled = false;
  };

  Watch& watch(TrackedJob& job, const job::Attempt& attempt, BootTime now) {
    Watch& mine = watched_[job.id().value];
    if (mine.epoch == attempt.epoch) return mine;
    mine = {attempt.epoch, now, past_of(job, controls_.world.clock.wall()).ran};
    if (job.save_every > Duration{}) relieve(job);
    const auto events = controls_.world.records.events(job.id(), 0, 0);  // what the daemon before us has said
    for (const registry::EventRecord& one : events ? *events : std::vector<registry::EventRecord>{}) {
      if (one.epoch != attempt.epoch) continue;
      mine.asked = mine.asked || one.kind == k_save_asked;
      mine.told = one.kind == k_unproven || (mine.told && one.kind != k_proven);
    }
    if (mine.asked) hurry(job);
    return mine;
  }

  struct Past {
    Duration ran{};                   // of all attempts on borrowed hosts until now
    std::optional<WallTime> ended{};  // the last of all attempts
  };
  [[nodiscard]] Past past_of(const TrackedJob& job, WallTime now) const {
    const auto attempts = controls_.world.records.attempts(job.id());
    report(attempts, "while asking how long a job ran on borrowed hosts");
    Past past;
    for (const registry::AttemptRecord& one : attempts ? *attempts : std::vector<registry::AttemptRecord>{}) {
      const bool there =
          std::ranges::any_of(one.hosts(), [&](const HostName& name) { return is_lent_host(controls_.fleet, name); });
      if (one.ended_at) past.ended = std::max(past.ended.value_or(*one.ended_at), *one.ended_at);
      if (there && one.started_at) past.ran += std::max(Duration{}, one.ended_at.value_or(now) - *one.started_at);
    }
    return past;
  }

  // A registry that cannot be read forbids nothing.
  [[nodiscard]] bool is_proven(const TrackedJob& job) const {
    const auto saved = controls_.world.records.checkpoints(job.id());
    report(saved, "while looking for a complete checkpoint");
    const auto is_complete = [](const registry::Checkpoint& one) {
      return one.attempt.value > 0 && one.verified && !one.stray && !one.provisional && !one.as_left && !one.suspect;
    };
    if (!saved || std::ranges::any_of(*saved, is_complete)) return true;
    const Result<bool> drilled = passed_drill(controls_.world.records, job.spec());
    return !drilled || *drilled;
  }

  void hurry(TrackedJob& job) {
    const Duration usual = controls_.placement.interval_of(job).every;
    job.save_every = usual > Duration{} ? std::min(usual, k_asked_interval) : k_asked_interval;
    controls_.attempts.renew_soon();
  }

  void ask(TrackedJob& job, const job::Attempt& attempt) {
    hurry(job);
    controls_.book.note(job.id(), {k_save_asked,
                                   "no complete checkpoint after " + format_duration(k_asked_after) + " on " + attempt.where() +
                                       ", owned by others: until there is one, the job is asked to save every " +
                                       format_duration(job.save_every),
                                   attempt.epoch, attempt.lead().host});
  }

  void tell(const TrackedJob& job, const job::Attempt& attempt) {
    const std::string text = "no complete checkpoint within " + format_duration(k_proven_within) + " on " + attempt.where() +
                             ", owned by others: this attempt continues; unless the job saves, its next attempt waits up to " +
                             format_duration(k_kept_away) + " for a host that is not borrowed (constraints.unproven)";
    controls_.book.note(job.id(), {k_unproven, text, attempt.epoch, attempt.lead().host});
    auto lines = controls_.world.records.explanation(job.id());
    if (!lines) return report(lines.error(), "while explaining that a job does not save");
    lines->push_back(text);
    controls_.placement.explain(job, *std::move(lines));
  }

  void settle(TrackedJob& job, const job::Attempt& attempt, Watch& mine) {
    mine.settled = true;
    if (mine.asked) relieve(job);
    if (mine.told)
      controls_.book.note(job.id(), {k_proven, "the job has saved: its next attempt may go to borrowed hosts at once", attempt.epoch,
                                     attempt.lead().host});
  }

  // The host has no way back to a fixed interval but to be told it.
  void relieve(TrackedJob& job) {
    const job::CheckpointPolicy& policy = job.spec().checkpoint;
    job.save_every = policy.interval == job::CheckpointPolicy::Interval::fixed ? policy.every : Duration{};
    controls_.attempts.renew_soon();
  }

  const Controls controls_;
  std::map<std::string, Watch> watched_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_proven(const Controls& controls) { return std::make_unique<ProvenConcern>(controls); }

}  // namespace gridctl::control
