// SPDX-License-Identifier: Apache-2.0
// What a job may use at most: its budget, its running time, its deadline.
#include "control/concerns/table.hpp"
#include "control/follow/limits.hpp"

namespace gridctl::control {

namespace {

class LimitsConcern : public Concern {
 public:
  explicit LimitsConcern(const Rooms& rooms) : rooms_(rooms) {}

  void tick(BootTime now) override {
    rooms_.book.each([&](TrackedJob& job) {
      const Limits limits = limits_of(job.spec(), job.row.submitted_at);
      if (limits.any()) judge(job, limits, now);
    });
  }
  void forgotten(const JobId& id) override { spent_.erase(id.value); }

 private:
  void judge(TrackedJob& job, const Limits& limits, BootTime now) {
    const JobId id = job.id();
    const WallTime wall = rooms_.world.clock.wall();
    if (auto late = judge_late(job.state(), limits, wall)) rooms_.book.apply(id, *std::move(late));
    const Result<registry::Spent> spent = rooms_.world.records.spent(id, wall);
    if (!spent) return report(spent.error(), "while counting what a job has used");
    double price = job.state().price_per_hour();
    for (const auto& [other_id, other] : rooms_.book.all())
      if (other->spec().replica_of == id) price += other->state().price_per_hour();
    registry::Spent used = spent_[id.value].read(*spent, price, now);
    used.usd_per_hour = price;
    if (auto reached = judge_limits(job.state(), limits, used, wall)) rooms_.book.apply(id, *std::move(reached));
  }

  const Rooms rooms_;
  std::map<std::string, SpendMeter> spent_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_limits(const Rooms& rooms) { return std::make_unique<LimitsConcern>(rooms); }

}  // namespace gridctl::control
