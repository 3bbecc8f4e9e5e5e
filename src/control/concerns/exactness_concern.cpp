// SPDX-License-Identifier: Apache-2.0
// Reports for each restored attempt whether it continued exactly: the steps after its checkpoint run twice, and the
// numbers that the program prints with them are compared. Fetches the jobs' $GRIDCTL_METRICS for that.
#include <algorithm>
#include <map>
#include <utility>

#include "control/concerns/table.hpp"
#include "control/follow/exactness.hpp"
#include "control/follow/insight.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_first_look = std::chrono::seconds{4};
constexpr Duration k_looks_for = std::chrono::minutes{30};       // after a restore; then it says what it knows
constexpr Duration k_metrics_every = std::chrono::seconds{10};   // a login each, of jobs that tell metrics
constexpr std::size_t k_steps_after = 64;  // that show whether first batches are repeated, however few were done twice
constexpr const char* k_exactness_name = "exactness";
constexpr const char* k_metrics_name = "metrics";

class ExactnessConcern : public Concern {
 public:
  explicit ExactnessConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{2}; }

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || job.unsure || job.state().start().value == 0) return;
      Watch& mine = watch(job.id(), running->attempt.epoch, now);
      if (now >= mine.next_metrics) fetch(job, running->attempt, mine, now);
      if (running->attempt.resumed_from.value == 0 || mine.told || now < mine.next_look) return;
      mine.next_look = now + std::max(k_first_look, (now - mine.since) / 2);
      judge(job, running->attempt.epoch, now - mine.since > k_looks_for);
    });
  }

  // An attempt that has ended prints nothing more. A short one may have run between two ticks.
  void changed(const TrackedJob& job, const job::State& before) override {
    const job::Attempt* attempt = before.attempt();
    if (attempt == nullptr || attempt->resumed_from.value == 0 || !attempt->started_at) return;
    const job::Attempt* now = job.state().attempt();
    if (now != nullptr && now->epoch == attempt->epoch) return;
    if (!watch(job.id(), attempt->epoch, controls_.world.clock.boot()).told) judge(job, attempt->epoch, true);
  }
  void forgotten(const JobId& id) override { watched_.erase(id.value); }

 private:
  struct Watch {
    Epoch epoch;
    BootTime since{}, next_look{}, next_metrics{};
    bool told = false;
  };

  Watch& watch(const JobId& id, Epoch epoch, BootTime now) {
    Watch& mine = watched_[id.value];
    if (mine.epoch != epoch) mine = {epoch, now, now + k_first_look, now, false};
    return mine;
  }

  void fetch(const TrackedJob& job, const job::Attempt& attempt, Watch& mine, BootTime now) {
    mine.next_metrics = now + k_metrics_every;
    const Result<registry::Checkpoint> newest = controls_.world.records.checkpoint(job.id(), job.state().start());
    const std::optional<HostReach> reach = controls_.fleet.reach(attempt.lead().host);
    if (!newest || newest->metrics.empty() || !reach) return;
    controls_.attempts.in_background(
        job.id(), k_metrics_name, {os::Lane::Kind::bulk, attempt.lead().host.value},
        [world = controls_.world, reach = *reach, id = job.id(), epoch = attempt.epoch, number = attempt.number] {
          return fetch_metrics(world, reach, id, epoch, number);
        },
        [](TrackedJob&, const Result<void>&) {});
  }

  void judge(const TrackedJob& job, Epoch epoch, bool last) {
    Result<std::vector<registry::AttemptRecord>> attempts = controls_.world.records.attempts(job.id());
    if (!attempts) return report(attempts.error(), "while comparing steps that a job did twice");
    while (!attempts->empty() && attempts->back().epoch > epoch) attempts->pop_back();
    controls_.attempts.in_background(
        job.id(), k_exactness_name, {os::Lane::Kind::bulk, {}},
        [world = controls_.world, id = job.id(), attempts = *std::move(attempts)] {
          return find_exactness(world.folders, id, attempts);
        },
        [this, epoch, last](TrackedJob& its, const Result<std::optional<ExactnessFound>>& found) {
          const auto mine = watched_.find(its.id().value);
          if (!found || !*found || mine == watched_.end() || mine->second.epoch != epoch) return;
          if (mine->second.told || (!last && !is_settled((*found)->verdict))) return;
          mine->second.told = true;
          tell(its, **found, epoch);
        });
  }

  [[nodiscard]] static bool is_settled(const job::ExactnessVerdict& verdict) {
    if (!verdict.complete) return false;
    return verdict.verdict == job::Exactness::exact || verdict.verdict == job::Exactness::repeats ||
           verdict.steps_after >= k_steps_after;
  }

  void tell(const TrackedJob& job, const ExactnessFound& found, Epoch epoch) {
    const Result<registry::Checkpoint> from = controls_.world.records.checkpoint(job.id(), found.from);
    controls_.book.note(job.id(), {"exactness", job::exactness_text(found.verdict, from ? from->how : ""), epoch, {}});
  }

  const Controls controls_;
  std::map<std::string, Watch> watched_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_exactness(const Controls& controls) {
  return std::make_unique<ExactnessConcern>(controls);
}

}  // namespace gridctl::control
