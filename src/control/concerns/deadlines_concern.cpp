// SPDX-License-Identifier: Apache-2.0
// Watches running jobs that have a deadline: checks whether the job could still make up for a failure now.
#include "control/concerns/table.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/follow/limits.hpp"
#include "sched/deadline.hpp"

namespace gridctl::control {

namespace {

class DeadlinesConcern : public Concern {
 public:
  explicit DeadlinesConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{2}; }  // the scheduler is asked

  void tick(BootTime) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || running->move || !is_in_time(job) || !controls_.mover.is_settled(job)) return;
      judge(job);
    });
  }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_for_deadline; }

  // The wish holds while the deadline is still to come and a sound host can run the job.
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    if (!is_in_time(job)) return std::nullopt;
    const FleetHost* here = controls_.fleet.find(job.state().attempt()->lead().host);
    MoveWish wish{std::string(job::k_for_deadline)};
    wish.elsewhere = controls_.placement.decide(job, controls_.placement.question(job), here);
    const auto& to = wish.elsewhere->placement;
    const double most = job.state().failures_max;
    if (!to || (most > 0 && to->failures_per_hour > most)) return std::nullopt;
    return wish;
  }

 private:
  [[nodiscard]] bool is_in_time(const TrackedJob& job) const {
    const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
    return limits.until && controls_.world.clock.wall() < *limits.until;
  }

  void judge(TrackedJob& job) {
    // A job that saves no checkpoints loses all its work when it moves.
    if (job.spec().checkpoint.interval == job::CheckpointPolicy::Interval::off) return;
    Question question = controls_.placement.question(job);
    if (!question.known.is_due()) return;
    const Result<std::optional<sched::CurrentRun>> present =
        present_of(controls_.world.records, job.row, question.hosts, controls_.world.clock.wall());
    if (!present) return report(present.error(), "while looking at a deadline");
    if (!*present) return;
    const double time_left = *question.known.time_left;
    question.known = sched::after_failure(question.known, **present);
    const FleetHost* here = controls_.fleet.find(job.state().attempt()->lead().host);
    const sched::Decision elsewhere = controls_.placement.decide(job, std::move(question), here);
    const sched::DeadlineVerdict verdict = sched::judge_deadline(**present, elsewhere, time_left);
    if (verdict.kind == sched::DeadlineVerdict::Kind::risky) controls_.placement.tell_risk(job, verdict.text);
    if (verdict.kind != sched::DeadlineVerdict::Kind::leave) return;
    controls_.mover.ask(job, {std::string(job::k_for_deadline), verdict.text, verdict.failures_max});
  }

  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_deadlines(const Controls& controls) { return std::make_unique<DeadlinesConcern>(controls); }

}  // namespace gridctl::control
