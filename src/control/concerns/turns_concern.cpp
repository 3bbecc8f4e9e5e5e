// SPDX-License-Identifier: Apache-2.0
// Gives gangs that wait for room their turn, and explains what each one waits for. Later jobs use the gaps in the
// meantime. For a gang that has waited long, the first set of hosts that becomes free for all its members is reserved.
// Otherwise, hosts become free one by one and a smaller job would fill each of them for ever. Jobs that certainly end
// before the turn may still use the reserved hosts.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "control/concerns/table.hpp"
#include "control/follow/limits.hpp"
#include "sched/turn.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_patience = std::chrono::minutes{1};  // others may fill in meanwhile whatever they need
constexpr std::size_t k_planned_max = 8;                  // gangs that are planned for in one round
constexpr Duration k_plan_holds = std::chrono::seconds{15};

class TurnsConcern : public Concern {
 public:
  explicit TurnsConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds{3}; }  // the scheduler is asked

  void tick(BootTime now) override {
    if (gangs_.empty()) {  // ordering thousands for nothing
      again_ = {};
      return;
    }
    Basis basis = basis_now();
    std::vector<const TrackedJob*> gangs;
    for (const TrackedJob* job : controls_.placement.queue()) {
      const bool waits = job->spec().num_nodes > 1 && job->waits_for_room();
      if (waits && !job->unsure && gangs.size() < k_planned_max) {
        gangs.push_back(job);
        basis.waiting.push_back(job->id());
        continue;
      }
      controls_.placement.keep_for(job->id(), std::nullopt);
      if (!waits) since_.erase(job->id().value);
    }
    if (basis == basis_ && now < again_) return;
    basis_ = std::move(basis);
    again_ = now + k_plan_holds;
    for (const TrackedJob* job : gangs) plan(*job, now);
  }
  void changed(const TrackedJob& job, const job::State&) override {
    if (job.in<job::Waiting>() == nullptr) return forgotten(job.id());
    if (job.spec().num_nodes > 1) gangs_.insert(job.id().value);
  }
  void forgotten(const JobId& id) override {
    since_.erase(id.value);
    gangs_.erase(id.value);
  }

 private:
  // Plans stay valid while these values do not change and only time passes.
  struct Basis {
    std::uint64_t capacity = 0;
    std::vector<std::pair<JobId, Epoch>> running;
    std::vector<job::Liveness> hosts;
    std::vector<JobId> waiting;
    bool operator==(const Basis&) const = default;
  };
  [[nodiscard]] Basis basis_now() const {
    Basis basis{controls_.fleet.capacity(), {}, {}, {}};
    for (const TrackedJob* job : running_jobs()) basis.running.emplace_back(job->id(), job->state().epoch);
    for (const auto& [name, host] : controls_.fleet.hosts()) basis.hosts.push_back(host->liveness);
    return basis;
  }

  void plan(const TrackedJob& job, BootTime now) {
    std::vector<sched::Ending> endings;
    for (const TrackedJob* one : running_jobs()) endings.push_back({one->id(), ends_in(*one)});
    const std::vector<sched::Ending> running = sched::in_order(std::move(endings));
    std::optional<GangOffer> last;
    const auto fits = [&](const std::set<std::string>& gone) {
      Result<GangOffer> offer = controls_.placement.offer(job, controls_.placement.question(job, gone));
      const bool possible = offer && offer->decision.plan;
      if (possible) last = *std::move(offer);  // the newest that fits is of the fewest
      return possible;
    };
    const std::optional<std::size_t> needed = sched::needed_ends(running, fits);
    if (!needed) return controls_.placement.keep_for(job.id(), std::nullopt);  // whatever ends: the hosts are not there
    Turn turn{last->members(), {}, false, {}};
    std::optional<double> when = 0;
    turn.lines = lines_of(turn.members,
                          std::vector(running.begin(), running.begin() + static_cast<std::ptrdiff_t>(*needed)), when);
    if (when) turn.from = now + std::chrono::seconds{std::llround(std::min(*when, 3e8))};
    const BootTime since = since_.try_emplace(job.id().value, now).first->second;
    turn.binding = now - since >= k_patience;
    if (!turn.binding) again_ = std::min(again_, since + k_patience);
    turn.lines.push_back(turn.binding ? "these are kept for it: later jobs get them only if they end before that"
                                      : "others may use them meanwhile; in " +
                                            format_duration(k_patience - (now - since)) + " they are kept for it");
    if (turn.binding && told_.insert(job.id().value + "/" + std::to_string(job.state().attempts.value)).second)
      controls_.book.note(job.id(), {"kept_for_it", turn.lines.front(), {}, {}});
    controls_.placement.keep_for(job.id(), std::move(turn));
  }

  [[nodiscard]] std::vector<const TrackedJob*> running_jobs() const {
    std::vector<const TrackedJob*> running;
    for (const auto& [id, job] : controls_.book.placed())
      if (job->in<job::Collecting>() == nullptr) running.push_back(job);
    return running;
  }

  // Uses the job's limits, or otherwise the time expected at placement.
  [[nodiscard]] std::optional<double> ends_in(const TrackedJob& job) const {
    const job::Attempt& attempt = *job.state().attempt();
    const WallTime now = controls_.world.clock.wall();
    const double runs = attempt.started_at ? seconds(now - *attempt.started_at) : 0;
    std::optional<double> left;
    const auto lessen = [&](double s) {
      if (s > 0) left = std::min(left.value_or(s), s);
    };
    const JobLimits limits = limits_of(job.spec(), job.row.submitted_at);
    if (limits.most) lessen(seconds(*limits.most) - runs);
    if (limits.until && limits.hard) lessen(seconds(*limits.until - now));
    if (job.state().expected) lessen(job.state().expected->seconds - runs);
    return left;
  }

  // "waits for 3 hosts: ada is free now; bob when train (k3j…) ends, expected in 12m; …". `when`: until all are free.
  [[nodiscard]] std::vector<std::string> lines_of(const std::vector<job::Member>& members,
                                                  const std::vector<sched::Ending>& first,
                                                  std::optional<double>& when) const {
    std::vector<std::string> free, later, lines;
    for (const job::Member& member : members) {
      std::vector<std::string> holders;
      for (const sched::Ending& one : first) {
        const TrackedJob* job = std::as_const(controls_.book).find(one.job);
        const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
        if (attempt == nullptr || attempt->on(member.host) == nullptr) continue;
        const std::string end =
            one.in ? ", expected in " + format_duration(std::chrono::seconds{std::llround(std::min(*one.in, 3e8))})
                   : ", nobody knows when";
        holders.push_back(job->row.name + " (" + one.job.value + ") ends" + end);
        when = when && one.in ? std::optional{std::max(*when, *one.in)} : std::nullopt;
      }
      if (holders.empty()) free.push_back(member.host.value);
      else later.push_back(member.host.value + " when " + join(holders, ", and "));
    }
    lines.push_back("waits for " + std::to_string(members.size()) + " hosts: " +
                    (free.empty() ? "none is free now"
                                  : join(free, ", ") + (free.size() == 1 ? " is" : " are") + " free now"));
    for (std::string& line : later) lines.push_back(std::move(line));
    return lines;
  }

  const Controls controls_;
  std::set<std::string> gangs_;            // ids of those that wait, for whatever
  std::map<std::string, BootTime> since_;  // when it was first seen waiting, by job
  std::set<std::string> told_;             // by job and attempt
  Basis basis_{};                          // of the plans that hold
  BootTime again_{};                       // when they are made anew all the same
};

}  // namespace

std::unique_ptr<Concern> make_turns(const Controls& controls) { return std::make_unique<TurnsConcern>(controls); }

}  // namespace gridctl::control
