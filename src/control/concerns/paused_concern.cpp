// SPDX-License-Identifier: Apache-2.0
// Follows jobs that are paused in place: records what their hosts report, and moves a job that stays paused too long.
#include "control/concerns/table.hpp"
#include "control/follow/pauses.hpp"

namespace gridctl::control {

namespace {

class PausedConcern : public Concern, public FleetListener {
 public:
  explicit PausedConcern(const Controls& controls) : controls_(controls) { controls_.fleet.listen(*this); }

  void polled(const FleetHost& host, const wire::PollReply& reply) override {
    for (const wire::AttemptStatus& status : reply.attempts) {
      TrackedJob* job = controls_.book.find(status.job);
      const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
      if (attempt == nullptr || attempt->epoch != status.epoch || attempt->on(host.provider.name) == nullptr) continue;
      take(*job, *attempt, host.provider.name, status);
    }
  }

  void changed(const TrackedJob& job, const job::State& before) override {
    if (!job.paused || job.state().epoch == before.epoch) return;
    if (TrackedJob* mine = controls_.book.find(job.id())) mine->paused.reset();  // it was the attempt before
  }

  void tick(BootTime) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (!job.paused || running == nullptr || running->move || !is_over(job)) return;
      controls_.mover.ask(job, wish(job));
    });
  }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_paused; }
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    return job.paused && is_over(job) ? std::optional(wish(job)) : std::nullopt;
  }

 private:
  void take(TrackedJob& job, const job::Attempt& attempt, const HostName& host, const wire::AttemptStatus& status) {
    const bool paused = status.phase == wire::AttemptPhase::running && status.paused_ms_ago >= 0;
    if (paused == job.paused.has_value()) return;
    const WallTime now = controls_.world.clock.wall();
    const std::optional<WallTime> since = paused ? std::optional(WallTime{now.ms - status.paused_ms_ago}) : std::nullopt;
    if (const Result<void> kept = keep(job.id(), attempt, host, since, now); !kept)
      return report(kept.error(), "while noting a pause");  // its host tells it again
    job.paused = since;
    controls_.fleet.capacity_freed();
  }

  // The command that paused or resumed the job may already have written this.
  Result<void> keep(const JobId& id, const job::Attempt& attempt, const HostName& host, std::optional<WallTime> since,
                    WallTime now) {
    registry::JobRecords& records = controls_.world.records;
    TRY_ASSIGN(const bool changed, since ? records.begin_pause(id, *since, std::nullopt) : records.end_pause(id, now));
    if (changed) controls_.book.note(id, since ? paused_in_place(attempt, host) : resumed_in_place(attempt, host));
    return {};
  }

  [[nodiscard]] bool is_over(const TrackedJob& job) {
    const Result<std::optional<registry::Pause>> pause = controls_.world.records.paused(job.id());
    return pause && *pause && controls_.world.clock.wall() - (*pause)->since >= (*pause)->most;
  }

  [[nodiscard]] static MoveWish wish(const TrackedJob& job) {
    return {.why = std::string(job::k_paused),
            .text = "it has been paused on " + job.state().attempt()->lead().host.value + " for too long",
            .at_once = true};  // what is paused saves nothing
  }

  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_paused(const Controls& controls) { return std::make_unique<PausedConcern>(controls); }

}  // namespace gridctl::control
