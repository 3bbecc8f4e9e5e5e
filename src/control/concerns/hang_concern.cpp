// SPDX-License-Identifier: Apache-2.0
// Detects jobs on one host that hang: they print nothing, save nothing and compute nothing, although they always did
// before. The stacks of the host's processes are shown. The job restarts only if its file says so, because a rule that
// misjudges a job must not cost it anything. Gangs have peers; progress_concern judges them.
#include <map>
#include <utility>

#include "control/concerns/table.hpp"
#include "control/follow/insight.hpp"
#include "control/reach/pace.hpp"
#include "job/idleness.hpp"
#include "registry/use.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_measured_lately = std::chrono::minutes{1};
constexpr Duration k_answered_lately = 3 * k_heartbeat_max;  // a longer silence says nothing about the job
constexpr const char* k_lone_stacks = "stacks of one";

// Services wait for requests, and tasks of a bag have their own limits.
bool is_judged(const TrackedJob& job, const job::Attempt& attempt) {
  return !attempt.is_gang() && !job.spec().service && !job.spec().tasks;
}

class HangConcern : public Concern, public FleetListener {
 public:
  explicit HangConcern(const Controls& controls) : controls_(controls) { controls_.fleet.listen(*this); }

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{5}; }

  void polled(const FleetHost& host, const wire::PollReply& reply) override {
    const BootTime now = controls_.world.clock.boot();
    for (const wire::AttemptStatus& status : reply.attempts) {
      const TrackedJob* job = std::as_const(controls_.book).find(status.job);
      const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
      if (attempt == nullptr || attempt->epoch != status.epoch || !is_judged(*job, *attempt)) continue;
      const job::Member* member = attempt->on(host.provider.name);
      if (member == nullptr || status.phase != wire::AttemptPhase::running) continue;
      Watch& mine = watch(*job, *attempt);
      mine.answered_at = now;
      if (status.paused_ms_ago >= 0) mine.idleness.unknown(now);
      const std::uint64_t newest = status.checkpoints.empty() ? 0 : status.checkpoints.back().number;
      const std::pair<std::uint64_t, std::uint64_t> seen{status.log_bytes, newest};
      if (std::exchange(mine.seen, seen) != seen) mine.idleness.sign(now);
      take(mine, *member, status, now);
    }
  }

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      const auto found = watched_.find(job.id().value);
      if (running == nullptr || job.unsure || found == watched_.end()) return;
      Watch& mine = found->second;
      if (mine.epoch != running->attempt.epoch) return;
      const bool is_measured = mine.measured_at && now - *mine.measured_at <= k_measured_lately;
      // This machine may have slept.
      if (!controls_.mover.is_settled(job) || !is_measured || now - mine.answered_at > k_answered_lately)
        return mine.idleness.unknown(now);
      judge(job, mine, now);
    });
  }

  void forgotten(const JobId& id) override { watched_.erase(id.value); }

 private:
  struct Watch {
    explicit Watch(Epoch of, Duration least) : epoch(of), idleness(least) {}
    Epoch epoch;
    job::Idleness idleness;
    std::pair<std::uint64_t, std::uint64_t> seen{};  // output, newest checkpoint
    BootTime answered_at{};  // its host
    std::optional<BootTime> measured_at{};
    bool has_gpus = false;
    bool hung = false;  // and told of
  };

  Watch& watch(const TrackedJob& job, const job::Attempt& attempt) {
    const auto found = watched_.find(job.id().value);
    if (found != watched_.end() && found->second.epoch == attempt.epoch) return found->second;
    Watch fresh(attempt.epoch, job.spec().recovery.hang_after);
    return watched_.insert_or_assign(job.id().value, std::move(fresh)).first->second;
  }

  // A GPU without a known load says nothing about its job, and processors are no substitute.
  static void take(Watch& mine, const job::Member& member, const wire::AttemptStatus& status, BootTime now) {
    if (!status.use) return;
    registry::MemberUse use;
    use.use = *status.use;
    use.cpus_given = member.cpus;
    mine.has_gpus = !member.gpu_uuids.empty();
    if (mine.has_gpus != !use.use.gpus.empty()) return;
    const std::optional<int> percent = registry::busy_percent(use);
    if (!percent) return;
    mine.measured_at = now;
    mine.idleness.measured(*percent, now);
  }

  void judge(TrackedJob& job, Watch& mine, BootTime now) {
    const std::optional<job::Idleness::Hang> hang = mine.idleness.hang(now);
    if (!hang) mine.hung = false;
    if (!hang || std::exchange(mine.hung, true)) return;
    const job::Attempt& attempt = *job.state().attempt();
    const HostName host = attempt.lead().host;
    const std::optional<HostReach> reach = controls_.fleet.reach(host);
    if (!reach) return;
    controls_.attempts.in_background(
        job.id(), k_lone_stacks, {os::Lane::Kind::urgent, {}},
        [world = controls_.world, way = *reach, id = job.id(), epoch = attempt.epoch] {
          return stack_lines(stacks_on(world, way, id, epoch));
        },
        [this, epoch = attempt.epoch, host, text = hang->text(mine.has_gpus ? "GPUs" : "processors")](
            TrackedJob& its, const std::string& stacks) {
          const auto still = watched_.find(its.id().value);
          if (its.in<job::Running>() == nullptr || its.state().epoch != epoch) return;
          if (still == watched_.end() || !still->second.hung) return;  // it went on meanwhile
          controls_.book.note(its.id(), {"stacks", stacks, epoch, host});
          const std::string told = text + ", on " + host.value;
          if (its.spec().recovery.restart_one) return controls_.book.apply(its.id(), job::Hung{epoch, told});
          controls_.book.note(
              its.id(),
              {"hangs", told + "; the job keeps running (recovery.hangs: restart would restart it)", epoch, host});
        });
  }

  const Controls controls_;
  std::map<std::string, Watch> watched_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_hangs(const Controls& controls) { return std::make_unique<HangConcern>(controls); }

}  // namespace gridctl::control
