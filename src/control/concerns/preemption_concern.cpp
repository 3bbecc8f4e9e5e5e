// SPDX-License-Identifier: Apache-2.0
// Makes room for jobs of higher priority. Running jobs of lower priority leave after their next checkpoint is safe, and
// workers of bags when the tasks that they run have ended; for a short urgent job, jobs are paused in place at once.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "control/concerns/table.hpp"
#include "control/follow/stand_aside.hpp"
#include "job/last_step.hpp"
#include "sched/preempt.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_spared_max = 8;   // of a gang's hosts: who might stay is looked at one by one
constexpr std::size_t k_waiting_max = 8;  // jobs that wait are planned for in one round
constexpr Duration k_tasks_patience = std::chrono::minutes{2};  // for tasks of a bag to end: the urgent job waits as long

class PreemptionConcern : public Concern {
 public:
  explicit PreemptionConcern(const Controls& controls)
      : controls_(controls), aside_(controls.world, controls.book, controls.fleet, controls.attempts) {}

  void tick(BootTime now) override {
    aside_.tick(now);
    asked_.clear();
    for (const std::string& id : std::exchange(reserved_, {})) controls_.placement.reserve({id}, std::nullopt);
    if (!is_any_more_urgent()) return;  // ordering thousands costs more
    std::size_t planned = 0;
    bool gang_planned = false;  // one has its turn after the other: asking for one costs as much as for many jobs
    for (const TrackedJob* job : controls_.placement.queue()) {
      if (planned >= k_waiting_max || !job->waits_for_room() || job->unsure) continue;
      const std::vector<sched::Holder> holders = holders_below(job->spec().priority);
      if (holders.empty()) continue;
      const bool gang = job->spec().num_nodes > 1;
      if (gang && std::exchange(gang_planned, true)) continue;
      ++planned;
      if (gang) plan_gang(*job, holders);
      else plan(*job, holders);
    }
    controls_.book.each_placed([&](TrackedJob& job) {
      if (const auto found = asked_.find(job.id().value); found != asked_.end())
        controls_.mover.ask(job, wish_for(job, found->second));
    });
  }
  void forgotten(const JobId& id) override {
    told_.erase(id.value);
    reserved_.erase(id.value);
  }

  [[nodiscard]] bool moves_for(std::string_view why) const override { return why == job::k_for_priority; }
  [[nodiscard]] std::optional<MoveWish> still_wished(const TrackedJob& job) override {
    const auto found = asked_.find(job.id().value);
    if (found == asked_.end()) return std::nullopt;
    return wish_for(job, found->second);
  }

 private:
  [[nodiscard]] static MoveWish wish_for(const TrackedJob& job, const std::string& text) {
    MoveWish wish{std::string(job::k_for_priority), text};
    wish.to_anywhere = true;
    if (job::works_on_tasks(job.spec())) wish.patience = k_tasks_patience;
    return wish;
  }

  // Returns true if a waiting job is more urgent than a placed one.
  [[nodiscard]] bool is_any_more_urgent() const {
    const auto& placed = controls_.book.placed();
    const auto& all = controls_.book.all();
    const auto lowest = std::min_element(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
      return a.second->spec().priority < b.second->spec().priority;
    });
    return lowest != placed.end() && std::any_of(all.begin(), all.end(), [&](const auto& entry) {
             const TrackedJob& job = *entry.second;
             return job.spec().priority > lowest->second->spec().priority && job.waits_for_room() && !job.unsure;
           });
  }

  // Lists running jobs that may be asked to make room, and those already leaving because they were asked; until they
  // have left, no others are asked. Jobs that leave for another reason are not listed.
  [[nodiscard]] std::vector<sched::Holder> holders_below(int priority) const {
    std::vector<sched::Holder> holders;
    for (const auto& [id, job] : controls_.book.placed()) {
      const auto* running = job->in<job::Running>();
      const bool stopped = running == nullptr && job->state().moving() == job::k_for_priority;
      const bool saves = job->spec().checkpoint.interval != job::CheckpointPolicy::Interval::off;
      if (job->paused || aside_.is_aside(job->id())) continue;  // it holds no GPU
      if ((running == nullptr && !stopped) || job->spec().priority >= priority || !saves || job->unsure) continue;
      const job::Attempt& attempt = *job->state().attempt();
      if (attempt.is_gang()) continue;  // its members hold more than one host's room
      if (job->runs_spared && running != nullptr && !running->move) continue;  // else its bag might never end
      if (running != nullptr && running->move && running->move->why != job::k_for_priority) continue;
      const job::Member& member = attempt.lead();
      const FleetHost* host = controls_.fleet.find(member.host);
      if (host == nullptr || !host->is_up()) continue;
      sched::Holder holder{job->id(), job->spec().priority, stopped || running->move.has_value(),
                           attempt.started_at.value_or(WallTime{}).ms, member.host, {}, 0, 0};
      // Without the bag's own job, no more workers are made: of equal ones, it leaves last.
      if (job->spec().tasks && job->spec().twin_of.value.empty()) holder.began_at = 0;
      if (job->in<job::Collecting>() == nullptr) {  // else its room is free
        holder.gpu_uuids = member.gpu_uuids;
        holder.cpus = member.cpus;
        holder.memory_bytes = member.memory_bytes;
      }
      holders.push_back(std::move(holder));
    }
    return holders;
  }

  void reserve(const TrackedJob& job, std::vector<job::Member> members) {
    controls_.placement.reserve(job.id(), std::move(members));
    reserved_.insert(job.id().value);
  }

  void plan(const TrackedJob& job, const std::vector<sched::Holder>& holders) {
    if (aside_.is_begun_for(job.id())) return;
    std::set<std::string> gone;
    for (const sched::Holder& holder : holders) gone.insert(holder.job.value);
    const Question question = controls_.placement.question(job, gone);
    const std::optional<sched::Preemption> plan =
        sched::preempt(question.spec, question.hosts, holders, job.state().avoided, question.known);
    if (!plan) return;
    reserve(job, std::vector{member_of(plan->placement)});
    if (aside_.suits(job, question, *plan)) return aside_.begin(job, *plan);
    for (const JobId& leaves : plan->jobs)
      asked_[leaves.value] = "job " + job.id().value + " of priority " + std::to_string(job.spec().priority) + " waits";
    tell(job, plan->placement.host, plan->placement.host.value, plan->jobs);
  }

  // Finds the hosts that the job would have without all of these holders, and the holders there that cannot stay.
  void plan_gang(const TrackedJob& job, std::vector<sched::Holder> holders) {
    const auto with_gone = [&](const std::set<std::string>& gone) -> std::optional<std::vector<job::Member>> {
      const Result<GangOffer> offer = controls_.placement.offer(job, controls_.placement.question(job, gone));
      if (!offer || !offer->decision.plan) return std::nullopt;
      return offer->members();
    };
    if (with_gone({})) return;  // it fits as things are
    std::set<std::string> gone;
    for (const sched::Holder& holder : holders) gone.insert(holder.job.value);
    std::optional<std::vector<job::Member>> members = with_gone(gone);
    if (!members) return;
    std::erase_if(holders, [&](const sched::Holder& holder) {
      return std::none_of(members->begin(), members->end(),
                          [&](const job::Member& member) { return member.host == holder.host; });
    });
    gone.clear();
    for (const sched::Holder& holder : holders) gone.insert(holder.job.value);
    // Holders stay if possible in this order: the most urgent first, then the longest-running.
    std::sort(holders.begin(), holders.end(), [](const sched::Holder& a, const sched::Holder& b) {
      return std::tuple(a.leaving ? 1 : 0, -a.priority, a.began_at, a.job.value) <
             std::tuple(b.leaving ? 1 : 0, -b.priority, b.began_at, b.job.value);
    });
    if (holders.size() > k_spared_max) holders.resize(k_spared_max);
    for (const sched::Holder& holder : holders) {
      gone.erase(holder.job.value);
      if (auto beside = with_gone(gone)) members = std::move(beside);
      else gone.insert(holder.job.value);
    }
    if (gone.empty()) return;
    reserve(job, *members);
    std::vector<std::string> hosts;
    std::vector<JobId> leaving;
    for (const job::Member& member : *members) hosts.push_back(member.host.value);
    for (const std::string& leaves : gone) {
      asked_[leaves] = "job " + job.id().value + " of priority " + std::to_string(job.spec().priority) + " waits";
      leaving.push_back({leaves});
    }
    tell(job, members->front().host, join(hosts, ", "), leaving);
  }

  // Reports once for each set of jobs that it waits for.
  void tell(const TrackedJob& job, const HostName& host, const std::string& hosts, const std::vector<JobId>& jobs) {
    std::vector<std::string> saving, bags;
    std::map<std::string, int> workers;  // by bag
    for (const JobId& id : jobs) {
      const TrackedJob* leaves = std::as_const(controls_.book).find(id);
      if (leaves == nullptr || !job::works_on_tasks(leaves->spec())) saving.push_back(id.value);
      else ++workers[leaves->leader_id().value];
    }
    for (const auto& [bag, count] : workers) bags.push_back(std::to_string(count) + " of " + bag);
    std::string text = "the job will run on " + hosts;
    if (!saving.empty()) text += " after the next checkpoints of the jobs there with less priority: " + join(saving, ", ");
    if (!bags.empty())
      text += std::string(saving.empty() ? " when" : "; and when") + " these workers of bags with less priority have left: " +
              join(bags, ", ") + " (the tasks that they run get at most " + format_duration(k_tasks_patience) + " to end)";
    if (std::exchange(told_[job.id().value], text) == text) return;
    controls_.book.note(job.id(), {"preempting", text, {}, host});
  }

  const Controls controls_;
  StandAside aside_;
  std::map<std::string, std::string> asked_;  // running job -> why it has to leave
  std::set<std::string> reserved_;            // ids of those who were promised what others leave
  std::map<std::string, std::string> told_;   // by job
};

}  // namespace

std::unique_ptr<Concern> make_preemption(const Controls& controls) { return std::make_unique<PreemptionConcern>(controls); }

}  // namespace gridctl::control
