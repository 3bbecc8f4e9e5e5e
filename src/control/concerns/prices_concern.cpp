// SPDX-License-Identifier: Apache-2.0
// Watches jobs on hosts that cost money: checks whether a move to a host that appeared or became free pays.
#include "control/concerns/table.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/reach/ways.hpp"
#include "sched/cheaper.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_pause_of_one = std::chrono::seconds{10};  // between two looks at one job

class PricesConcern : public Concern {
 public:
  explicit PricesConcern(const Controls& controls) : controls_(controls) {}

  // Looks at one job in each round, the one not looked at for longest, so that thousands cost no more than one.
  void tick(BootTime now) override {
    follow_prices();
    const TrackedJob* longest = nullptr;
    for (const auto& [id, job] : controls_.book.placed()) {
      const auto* running = job->in<job::Running>();
      if (running == nullptr || running->move || job->state().price_per_hour() <= 0) continue;
      if (now - looked_[id] < k_pause_of_one) continue;
      if (longest == nullptr || looked_[id] < looked_[longest->id().value]) longest = job;
    }
    if (longest == nullptr) return;
    looked_[longest->id().value] = now;
    if (!controls_.mover.is_settled(*longest)) return;
    const auto cheaper = elsewhere(*longest);
    if (!cheaper || !cheaper->second) return;
    controls_.mover.ask(*longest, MoveWish{std::string(job::k_for_less), *cheaper->second});
  }
  void forgotten(const JobId& id) override { looked_.erase(id.value); }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_for_less; }
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    auto cheaper = elsewhere(job);
    if (!cheaper || !cheaper->second) return std::nullopt;
    MoveWish wish{std::string(job::k_for_less), *cheaper->second};
    wish.elsewhere = std::move(cheaper->first);
    return wish;
  }

 private:
  // Running jobs pay their hosts' present prices. On a lent host, an attempt pays the price accepted at its start.
  void follow_prices() {
    controls_.book.each_placed([&](TrackedJob& job) {
      const job::Attempt* attempt = job.unsure ? nullptr : job.state().attempt();
      if (attempt == nullptr || job.in<job::Collecting>() != nullptr) return;
      std::vector<job::PriceChanged> changes;
      for (const job::Member& member : attempt->members)
        if (const FleetHost* host = controls_.fleet.find(member.host);
            host != nullptr && !is_lent(host->provider) && host->provider.price_per_hour != member.price_per_hour)
          changes.push_back({attempt->epoch, host->provider.price_per_hour, member.rank});
      if (!changes.empty()) looked_[job.id().value] = {};
      for (const job::PriceChanged& change : changes) controls_.book.apply(job.id(), change);
    });
  }

  // Returns the scheduler's decision for other hosts, and the reason to move to one of them, if there is one.
  [[nodiscard]] std::optional<std::pair<sched::Decision, std::optional<std::string>>> elsewhere(const TrackedJob& job) {
    if (!sched::may_move_for_less(job.spec())) return std::nullopt;
    Question question = controls_.placement.question(job);
    const Result<std::optional<sched::CurrentRun>> present =
        present_of(controls_.world.records, job.row, question.hosts, controls_.world.clock.wall());
    if (!present) report(present.error(), "while looking for a cheaper host");
    if (!present || !*present) return std::nullopt;
    question.known = sched::for_less(question.known, **present);
    const FleetHost* here = controls_.fleet.find(job.state().attempt()->lead().host);
    sched::Decision decision = controls_.placement.decide(job, std::move(question), here);
    std::optional<std::string> why = sched::judge_cheaper(**present, decision, job.state().avoided);
    return std::pair{std::move(decision), std::move(why)};
  }

  const Controls controls_;
  std::map<std::string, BootTime> looked_;  // when a cheaper host was last looked for, by job
};

}  // namespace

std::unique_ptr<Concern> make_prices(const Controls& controls) { return std::make_unique<PricesConcern>(controls); }

}  // namespace gridctl::control
