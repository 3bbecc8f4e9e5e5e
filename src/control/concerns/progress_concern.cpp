// SPDX-License-Identifier: Apache-2.0
// Detects gangs that hang, and hosts that slow their gang down. A multi-host program that waits for ever looks as
// healthy as a working one. Only its signs of progress (output, checkpoints, steps) reveal a hang, compared with their
// earlier rhythm.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "control/concerns/table.hpp"
#include "control/follow/insight.hpp"
#include "control/reach/pace.hpp"
#include "job/rank_pace.hpp"
#include "sched/ranks.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_steps_every = std::chrono::seconds{15};  // a login each: seldom, and
constexpr int k_steps_tries = 4;                              // not at all of jobs that tell no steps
constexpr Duration k_heard_lately = 3 * k_heartbeat_max;        // a silence that says nothing about the gang
constexpr const char* k_stacks_name = "stacks";
constexpr const char* k_steps_name = "steps";

class ProgressConcern : public Concern, public FleetListener {
 public:
  explicit ProgressConcern(const Controls& controls) : controls_(controls) { controls_.fleet.listen(*this); }

  void polled(const FleetHost& host, const wire::PollReply& reply) override {
    for (const wire::AttemptStatus& status : reply.attempts) {
      const TrackedJob* job = std::as_const(controls_.book).find(status.job);
      const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
      if (attempt == nullptr || !attempt->is_gang() || attempt->epoch != status.epoch) continue;
      const job::Member* member = attempt->on(host.provider.name);
      if (member == nullptr || status.phase != wire::AttemptPhase::running) continue;
      Watch& mine = watch(*job, *attempt);
      mine.heard[member->rank] = controls_.world.clock.boot();
      const std::uint64_t newest = status.checkpoints.empty() ? 0 : status.checkpoints.back().number;
      const std::pair<std::uint64_t, std::uint64_t> seen{status.log_bytes, newest};
      if (std::exchange(mine.seen[member->rank], seen) != seen) mine.progress.sign(controls_.world.clock.boot());
    }
  }

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr || !running->attempt.is_gang() || job.unsure) return;
      Watch& mine = watch(job, running->attempt);
      // Silence is another's matter, and this machine may have slept.
      if (!controls_.mover.is_settled(job) || !is_heard(mine, running->attempt, now)) return mine.progress.pause(now);
      judge_hang(job, mine, now);
      // A job that is asked to leave may hang as well: the checkpoint that it is to save first would never come.
      if (job.in<job::Running>() != nullptr && !job.in<job::Running>()->move) judge_pace(job, mine, now);
    });
  }

  void forgotten(const JobId& id) override { watched_.erase(id.value); }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_for_straggler; }
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    const auto found = watched_.find(job.id().value);
    if (found == watched_.end() || !found->second.straggler) return std::nullopt;
    return MoveWish{.why = std::string(job::k_for_straggler), .host = *found->second.straggler};
  }

 private:
  struct Watch {
    explicit Watch(std::uint32_t world) : pace(world) {}
    Epoch epoch;
    job::Progress progress;
    job::RankPace pace;
    std::map<int, std::pair<std::uint64_t, std::uint64_t>> seen;  // by rank of the host: output, newest checkpoint
    std::map<std::uint32_t, std::int64_t> told;                   // by rank: the newest step
    std::map<int, BootTime> heard;                                // by rank of the host
    BootTime next_steps{};
    int without_steps = 0;  // answers in a row
    bool hung = false;
    std::set<std::uint32_t> named;       // stragglers that were told of
    std::optional<HostName> straggler{};  // that is to be replaced
  };

  Watch& watch(const TrackedJob& job, const job::Attempt& attempt) {
    const auto found = watched_.find(job.id().value);
    if (found != watched_.end() && found->second.epoch == attempt.epoch) return found->second;
    std::uint32_t world = 0;
    for (const job::Member& member : attempt.members) world += sched::ranks_of(job.spec(), member);
    Watch fresh(world);
    fresh.epoch = attempt.epoch;
    return watched_.insert_or_assign(job.id().value, std::move(fresh)).first->second;
  }

  [[nodiscard]] std::vector<std::pair<HostReach, HostName>> members_of(const job::Attempt& attempt) const {
    std::vector<std::pair<HostReach, HostName>> members;
    for (const job::Member& member : attempt.members)
      if (std::optional<HostReach> reach = controls_.fleet.reach(member.host)) members.emplace_back(*std::move(reach), member.host);
    return members;
  }

  // Nothing more comes from a member that has ended.
  [[nodiscard]] static bool is_heard(const Watch& mine, const job::Attempt& attempt, BootTime now) {
    return std::ranges::all_of(attempt.members, [&](const job::Member& member) {
      const auto last = mine.heard.find(member.rank);
      return member.part >= job::Part::ended || (last != mine.heard.end() && now - last->second <= k_heard_lately);
    });
  }

  void judge_hang(TrackedJob& job, Watch& mine, BootTime now) {
    const std::optional<job::Progress::Hang> hang = mine.progress.hang(now);
    if (!hang) mine.hung = false;
    if (!hang || std::exchange(mine.hung, true)) return;
    const job::Attempt attempt = *job.state().attempt();
    using Found = std::vector<std::pair<HostName, std::string>>;
    controls_.attempts.in_background(
        job.id(), k_stacks_name, {os::Lane::Kind::urgent, {}},
        [world = controls_.world, members = members_of(attempt), id = job.id(), epoch = attempt.epoch] {
          Found found;
          for (const auto& [reach, name] : members)
            found.emplace_back(name, stack_lines(stacks_on(world, reach, id, epoch)));
          return found;
        },
        [this, epoch = attempt.epoch, text = hang->text()](TrackedJob& its, const Found& found) {
          if (its.in<job::Running>() == nullptr || its.state().epoch != epoch) return;
          const auto still = watched_.find(its.id().value);
          if (still == watched_.end() || !still->second.hung) return;  // it went on meanwhile
          for (const auto& [host, stacks] : found) controls_.book.note(its.id(), {"stacks", stacks, epoch, host});
          const std::string told = text + ", although all its hosts answer";
          if (its.spec().recovery.hangs == job::Hangs::tell)
            return controls_.book.note(its.id(), {"hangs", told + " (recovery.hangs is tell)", epoch, {}});
          controls_.book.apply(its.id(), job::Hung{epoch, told});
        });
  }

  void judge_pace(TrackedJob& job, Watch& mine, BootTime now) {
    if (now < mine.next_steps || mine.without_steps >= k_steps_tries) return;
    mine.next_steps = now + k_steps_every;
    const job::Attempt attempt = *job.state().attempt();
    using Told = std::vector<wire::ToldStep>;
    controls_.attempts.in_background(
        job.id(), k_steps_name, {os::Lane::Kind::urgent, {}},
        [world = controls_.world, members = members_of(attempt), id = job.id(), epoch = attempt.epoch] {
          Told told;
          for (const auto& [reach, name] : members)
            if (const Result<wire::StepsReply> reply = steps_on(world, reach, id, epoch))
              told.insert(told.end(), reply->steps.begin(), reply->steps.end());
          return told;
        },
        [this, epoch = attempt.epoch](TrackedJob& its, const Told& told) {
          const job::Attempt* now_there = its.state().attempt();
          if (now_there == nullptr || now_there->epoch != epoch) return;
          take_steps(its, watch(its, *now_there), told);
        });
  }

  void take_steps(TrackedJob& job, Watch& mine, const std::vector<wire::ToldStep>& told) {
    const BootTime now = controls_.world.clock.boot();
    bool news = false;
    for (const wire::ToldStep& one : told) {
      const auto [newest, first] = mine.told.try_emplace(one.rank, one.step);
      if (!first && one.step <= newest->second) continue;
      newest->second = one.step;
      news = true;
      // Metrics are read rarely, so only times that ranks report themselves can be compared.
      if (one.step_s) mine.pace.told({one.rank, one.step, now, one.step_s});
    }
    mine.without_steps = news ? 0 : mine.without_steps + 1;
    if (news) mine.progress.sign(now);
    const std::optional<job::Straggler> slow = mine.pace.straggler();
    if (!slow || !mine.named.insert(slow->rank).second) return;
    const HostName host = host_of(job, slow->rank);
    const bool replace = job.spec().recovery.stragglers == job::Stragglers::replace;
    const std::string text = slow->text() + ", on " + host.value;
    controls_.book.note(job.id(), {"straggler", text + (replace ? ": gridctl replaces it at the next checkpoint" : ""),
                                job.state().epoch, host});
    if (!replace) return;
    mine.straggler = host;
    controls_.mover.ask(job, {.why = std::string(job::k_for_straggler), .text = text, .host = host});
  }

  [[nodiscard]] static HostName host_of(const TrackedJob& job, std::uint32_t rank) {
    std::uint32_t first = 0;
    for (const job::Member& member : job.state().attempt()->members) {
      first += sched::ranks_of(job.spec(), member);
      if (rank < first) return member.host;
    }
    return job.state().attempt()->lead().host;
  }

  const Controls controls_;
  std::map<std::string, Watch> watched_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_progress(const Controls& controls) { return std::make_unique<ProgressConcern>(controls); }

}  // namespace gridctl::control
