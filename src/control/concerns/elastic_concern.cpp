// SPDX-License-Identifier: Apache-2.0
// Grows gangs that run with fewer hosts than they may have: they restart with more, right after a checkpoint, if that
// pays. Gangs shrink without this concern: after a loss, placement takes as many hosts as are available, except one
// that failed the gang. The gang can do without that host, and would lose its work to it again.
#include <algorithm>
#include <utility>

#include "control/concerns/table.hpp"
#include "sched/elastic.hpp"

namespace gridctl::control {

namespace {

constexpr double k_restart_assumed = 60;  // seconds: nobody has seen how long its start takes
constexpr double k_stop_takes = 2;        // seconds: stopped, fetched, placed

class ElasticConcern : public Concern {
 public:
  explicit ElasticConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{2}; }  // the scheduler is asked

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      const bool saves = job.spec().checkpoint.interval != job::CheckpointPolicy::Interval::off;
      if (running == nullptr || running->move || job.unsure || !is_small(job) || !saves) return;
      if (!controls_.mover.is_settled(job)) return void(look(job).there.reset());
      judge(job, now);
    });
  }

  // Measures the time from placement until the job runs, including the restore.
  void changed(const TrackedJob& job, const job::State& before) override {
    const auto* launching = std::get_if<job::Launching>(&before.phase);
    const auto* running = job.in<job::Running>();
    if (launching == nullptr || running == nullptr || !running->attempt.started_at || !job::is_elastic(job.spec()))
      return;
    Look& mine = look(job);
    mine.start = std::max(0.0, seconds(*running->attempt.started_at - launching->placed_at));
    mine.there.reset();
  }
  void forgotten(const JobId& id) override { looks_.erase(id.value); }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_to_grow; }
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    if (!is_small(job) || would_be(job).first <= size_of(job)) return std::nullopt;
    return MoveWish{.why = std::string(job::k_to_grow), .grows = true};
  }

 private:
  struct Look {
    std::optional<double> start;      // seconds that its last start took
    std::optional<BootTime> there{};  // since when there are hosts for more
    std::string told{};
  };

  Look& look(const TrackedJob& job) { return looks_[job.id().value]; }
  [[nodiscard]] static int size_of(const TrackedJob& job) {
    const job::Attempt* attempt = job.state().attempt();
    return attempt == nullptr ? 0 : static_cast<int>(attempt->members.size());
  }
  [[nodiscard]] static bool is_small(const TrackedJob& job) {
    return job::is_elastic(job.spec()) && size_of(job) < job.spec().num_nodes;
  }

  // Returns how many members the job would have if it were placed now, and how often those fail together, per hour.
  [[nodiscard]] std::pair<int, double> would_be(const TrackedJob& job) {
    return would_be(job, controls_.placement.question(job, {job.id().value}));
  }
  [[nodiscard]] std::pair<int, double> would_be(const TrackedJob& job, const Question& question) {
    const bool forgive = job::forgives(*job.state().attempt(), controls_.world.clock.wall());
    const Result<GangOffer> offer = controls_.placement.offer(job, question, {}, forgive);
    if (!offer) return report(offer.error(), "while looking for more hosts"), std::pair{0, 0.0};
    if (!offer->decision.plan) return {0, 0.0};
    return {static_cast<int>(offer->decision.plan->members.size()), offer->decision.plan->group.failures_per_hour};
  }

  void judge(TrackedJob& job, BootTime now) {
    Look& mine = look(job);
    const Question question = controls_.placement.question(job, {job.id().value});
    const auto [more, failures] = would_be(job, question);
    sched::GrowthFacts facts;
    facts.members = size_of(job);
    facts.would_be = more;
    if (more <= facts.members) {
      mine.there.reset();
      return tell(job, mine, "it grows when there are hosts for more members");
    }
    if (!mine.there) mine.there = now;
    const WallTime wall = controls_.world.clock.wall();
    const job::Attempt& attempt = *job.state().attempt();
    facts.there = now - *mine.there;
    facts.runs = std::max(Duration{}, wall - attempt.started_at.value_or(wall));
    facts.restart = mine.start.value_or(k_restart_assumed) + k_stop_takes + checkpoint_age(job);
    facts.failures_per_hour = failures;
    const Result<registry::Spent> spent = controls_.world.records.spent(job.id(), wall);
    if (!spent) return report(spent.error(), "while looking for more hosts");
    facts.ran = seconds(spent->ran);
    if (question.known.work_known) facts.left = work_left(job, question);
    const sched::GrowthVerdict verdict = sched::judge_growth(facts);
    if (!verdict.grows) return tell(job, mine, verdict.text);
    controls_.mover.ask(job, {.why = std::string(job::k_to_grow), .text = verdict.text, .grows = true});
  }

  // Work done between a save and the stop is repeated.
  [[nodiscard]] double checkpoint_age(const TrackedJob& job) const {
    const Result<registry::Checkpoint> newest = controls_.world.records.checkpoint(job.id(), job.state().head);
    return newest && newest->upload ? seconds(*newest->upload) : 0;
  }

  // Uses the hosts that the job has now; the slowest of them sets the speed.
  [[nodiscard]] static double work_left(const TrackedJob& job, const Question& question) {
    double slowest = 0;
    for (const job::Member& member : job.state().attempt()->members)
      for (const sched::HostFacts& host : question.hosts) {
        if (host.name != member.host) continue;
        std::vector<const Gpu*> gpus;
        for (const Gpu& gpu : host.inventory->gpus)
          if (std::find(member.gpu_uuids.begin(), member.gpu_uuids.end(), gpu.uuid) != member.gpu_uuids.end())
            gpus.push_back(&gpu);
        const double speed = sched::speed_of(host, gpus);
        slowest = slowest > 0 ? std::min(slowest, speed) : speed;
      }
    return slowest > 0 ? question.known.task.work / (slowest * size_of(job)) : question.known.task.work;
  }

  void tell(const TrackedJob& job, Look& mine, const std::string& waits_for) {
    const job::Attempt& attempt = *job.state().attempt();
    std::string text =
        "has " + std::to_string(size_of(job)) + " of " + job::nodes_text(job.spec()) + " hosts; " + waits_for;
    if (mine.told == text) return;
    mine.told = text;
    controls_.placement.explain(job, {"placed on " + attempt.where() + ": " + attempt.placement_reason, std::move(text)});
  }

  const Controls controls_;
  std::map<std::string, Look> looks_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_elastic(const Controls& controls) { return std::make_unique<ElasticConcern>(controls); }

}  // namespace gridctl::control
