// SPDX-License-Identifier: Apache-2.0
// Enforces the limits of a job: its budget, its running time and its deadline.
#include <map>

#include "control/concerns/table.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_told_slack = std::chrono::seconds{2};

class LimitsConcern : public Concern {
 public:
  explicit LimitsConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime now) override {
    for (auto& [id, looked] : limited_) {
      TrackedJob* job = controls_.book.find({id});
      if (job == nullptr) continue;
      const JobLimits limits = limits_of(job->spec(), job->row.submitted_at);
      const Look look{true, limits.until && controls_.world.clock.wall() >= *limits.until};
      if (looked == look) continue;
      // The used amount does not change while neither the job nor a twin of it runs.
      const bool stays = job->state().attempt() == nullptr && job->spec().twins <= 1;
      if (stays) looked = look;
      if (!judge(*job, limits, now)) looked = {};
    }
  }
  // The host ended the job at a limit. The exact count here decides whether the limit is used up.
  void changed(const TrackedJob& job, const job::State& before) override {
    if (limits_of(job.spec(), job.row.submitted_at).any()) limited_[job.id().value] = {};
    const auto* ended = job.in<job::Collecting>();
    if (ended == nullptr || ended->end.kind != job::EndKind::limit) return;
    if (std::holds_alternative<job::Collecting>(before.phase)) return;
    controls_.world.run.post([this, id = job.id()] {
      TrackedJob* its = controls_.book.find(id);
      if (its == nullptr) return;
      const JobLimits limits = limits_of(its->spec(), its->row.submitted_at);
      if (limits.any()) judge(*its, limits, controls_.world.clock.boot(), k_told_slack);
    });
  }
  void forgotten(const JobId& id) override {
    spent_.erase(id.value);
    limited_.erase(id.value);
  }
  // The end of an attempt may have used up the rest, and the job is placed again before the next look.
  [[nodiscard]] std::optional<Held> holds(const TrackedJob& asking) const override {
    if (auto held = held_at(asking, limits_of(asking.spec(), asking.row.submitted_at))) return held;
    // A twin spends what its leader may spend.
    const TrackedJob* leader =
        asking.spec().twin_of.empty() ? nullptr : std::as_const(controls_.book).find(asking.spec().twin_of);
    return leader == nullptr ? std::nullopt : held_at(*leader, {leader->spec().budget_total, {}});
  }

 private:
  [[nodiscard]] std::optional<Held> held_at(const TrackedJob& job, const JobLimits& limits) const {
    if (!limits.any()) return std::nullopt;
    const auto used = used_by(job, price_with_twins(controls_.book, job), controls_.world.clock.boot());
    report(used, "while counting what a job has used");
    const auto reached = used ? judge_limits(job.state(), limits, *used, controls_.world.clock.wall()) : std::nullopt;
    return reached ? std::optional{Held{reached->text, {}}} : std::nullopt;
  }

  struct Look {
    bool done = false;  // since it changed
    bool past = false;  // its deadline, then
    bool operator==(const Look&) const = default;
  };

  // `more`: additional running time to count, because hosts and this machine do not start counting at the same moment.
  // Returns false if the answer is not known now.
  bool judge(TrackedJob& job, const JobLimits& limits, BootTime now, Duration more = {}) {
    if (!controls_.attempts.is_counted(job)) return false;
    const JobId id = job.id();
    const WallTime wall = controls_.world.clock.wall() + more;
    if (auto late = judge_late(job.state(), limits, wall)) controls_.book.apply(id, *std::move(late));
    const double price = price_with_twins(controls_.book, job);
    const auto spent = used_by(job, price, now);
    if (!spent) {
      report(spent.error(), "while counting what a job has used");
      return false;
    }
    registry::Spent used = *spent;
    used.usd_per_hour = price;
    used.ran += more;
    const double more_usd = used.usd > 0 ? price * seconds(more) / 3600 : 0;
    if (auto reached = judge_limits(job.state(), limits, used, wall, more_usd))
      controls_.book.apply(id, *std::move(reached));
    return !job.unsure;
  }

  [[nodiscard]] Result<registry::Spent> used_by(const TrackedJob& job, double price, BootTime now) const {
    const auto ask = [&](WallTime until) { return controls_.world.records.spent(job.id(), until); };
    return spent_[job.id().value].read(ask, counted_epoch(job.state()), price, now, controls_.world.clock.wall());
  }

  const Controls controls_;
  std::map<std::string, Look> limited_;              // by job
  mutable std::map<std::string, SpendMeter> spent_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_limits(const Controls& controls) { return std::make_unique<LimitsConcern>(controls); }

}  // namespace gridctl::control
