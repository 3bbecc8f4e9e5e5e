// SPDX-License-Identifier: Apache-2.0
// Handles hosts that end at a known time: their jobs save before that and leave.
#include "control/concerns/table.hpp"
#include "control/follow/lent_hosts.hpp"
#include "control/follow/tuning.hpp"
#include "sched/host_end.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_last_call = sched::k_end_stop + std::chrono::seconds{5};  // then it stops, saved or not

class EndsConcern : public Concern {
 public:
  explicit EndsConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || job.unsure) return;
      const std::optional<End> end = end_of(job);
      if (!end || end->left > sched::k_end_lead_max || !leaves(job)) return;
      if (running->move) {
        if (end->left <= k_last_call) controls_.book.apply(job.id(), job::MoveDue{running->attempt.epoch});
        return;
      }
      if (end->left > Duration{} && end->left <= lead(job, end->host)) controls_.mover.ask(job, wish_for(*end));
    });
  }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_for_end; }
  // The job may stay if the end was postponed.
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    const std::optional<End> end = end_of(job);
    if (!end || end->left > lead(job, end->host) + sched::k_end_stay) return std::nullopt;
    return wish_for(*end);
  }

 private:
  struct End {
    HostName host;
    WallTime at;
    Duration left{};
  };

  // Returns the earliest end among the hosts of the current attempt.
  [[nodiscard]] std::optional<End> end_of(const TrackedJob& job) const {
    std::optional<End> first;
    for (const job::Member& member : job.state().attempt()->members) {
      const FleetHost* host = controls_.fleet.find(member.host);
      const std::optional<WallTime> at = host == nullptr ? std::nullopt : host->ends_at();
      if (!at || (first && first->at <= *at)) continue;
      first = End{member.host, *at, *at - controls_.world.clock.wall()};
    }
    return first;
  }

  // A job that saves no checkpoints may finish before the end, so it loses nothing by staying. Replicas keep no state.
  [[nodiscard]] bool leaves(const TrackedJob& job) const {
    return interval_now(controls_.fleet, job) != job::CheckpointPolicy::Interval::off || job.spec().service;
  }

  [[nodiscard]] Duration lead(const TrackedJob& job, const HostName& host) const {
    const Result<std::vector<registry::Checkpoint>> saved = controls_.world.records.checkpoints(job.id());
    if (!saved) report(saved.error(), "while looking at the end of a host");
    const FleetHost* const there = controls_.fleet.find(host);
    const registry::Provider none;
    return sched::lead_before_end(measured_cost(saved ? *saved : std::vector<registry::Checkpoint>{},
                                                there == nullptr ? none : there->provider,
                                                job.spec().recovery.lost_after));
  }

  [[nodiscard]] static MoveWish wish_for(const End& end) {
    return {.why = std::string(job::k_for_end),
            .text = "the host is available until " + format_rfc3339(end.at),
            .host = end.host,
            .to_anywhere = true};  // what is not saved by then is lost
  }

  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_ends(const Controls& controls) { return std::make_unique<EndsConcern>(controls); }

}  // namespace gridctl::control
