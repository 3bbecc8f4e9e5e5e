// SPDX-License-Identifier: Apache-2.0
#include "control/follow/stand_aside.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "control/follow/pauses.hpp"
#include "control/reach/request.hpp"

namespace gridctl::control {

namespace {
constexpr std::string_view k_aside_kind = "aside";
constexpr Duration k_short_job = std::chrono::hours{1};          // of max_duration: a job that is worth a pause
constexpr Duration k_place_patience = std::chrono::minutes{2};   // for the urgent job to start, before or again
constexpr Duration k_resume_again = std::chrono::seconds{5};
constexpr const char* k_order_name = "stand aside";

// Blocks as long as the host needs to move GPU memory.
Result<wire::PauseReply> order_pause(const World& world, const HostReach& host, const wire::PauseRequest& request) {
  TRY_ASSIGN(const transfer::BulkLink link, world.freight.reach(host, k_reach_patience));
  TRY_ASSIGN(const std::string reply,
             ask(*link.link, 2, wire::encode(request), world.clock.boot() + wire::k_pause_wait_max));
  return wire::parse_pause_reply(reply);
}

// Drivers of other vendors cannot do this; nor can those of NVIDIA before 570, which the agent reports.
bool could_pause(const TrackedJob& job, const FleetHost& host) {
  const auto* running = job.in<job::Running>();
  if (running == nullptr || running->move || job.paused || running->attempt.is_gang()) return false;
  const job::Member& member = running->attempt.lead();
  if (member.gpu_uuids.empty() || !running->attempt.last_saved_at || !host.is_up()) return false;
  return std::ranges::all_of(member.gpu_uuids, [&](const std::string& uuid) {
    const auto& gpus = host.provider.inventory->gpus;
    const auto gpu = std::ranges::find(gpus, uuid, &Gpu::uuid);
    return gpu != gpus.end() && gpu->vendor == Vendor::nvidia && gpu->partition.profile.empty();
  });
}
}  // namespace

bool StandAside::suits(const TrackedJob& urgent, const Question& question, const sched::Preemption& plan) const {
  const std::optional<Duration>& most = urgent.spec().max_duration;
  if (!most || *most > k_short_job) return false;
  const FleetHost* host = fleet_.find(plan.placement.host);
  const auto facts = std::ranges::find(question.hosts, plan.placement.host, &sched::HostFacts::name);
  if (host == nullptr || facts == question.hosts.end()) return false;
  std::vector<sched::HostFacts> beside{*facts};
  for (const JobId& id : plan.jobs) {
    const TrackedJob* job = std::as_const(book_).find(id);
    if (job == nullptr || unpausable_.contains({id.value, job->state().epoch.value}) || !could_pause(*job, *host))
      return false;
    const job::Member& member = job->state().attempt()->lead();
    sched::take_away(beside.front(), {}, member.cpus, member.memory_bytes);
  }
  return sched::place(question.spec, beside, urgent.state().avoided, question.known).placement.has_value();
}

void StandAside::begin(const TrackedJob& urgent, const sched::Preemption& plan) {
  for (const JobId& id : plan.jobs) {
    TrackedJob* job = book_.find(id);
    const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
    if (attempt == nullptr || is_aside(id)) continue;
    Aside& aside = asides_[id.value];
    aside = {urgent.id(), attempt->epoch, attempt->lead().host};
    job->aside = true;
    if (const Result<void> saved = save(aside.host); !saved) {
      report(saved.error(), "while pausing a job for another");
      asides_.erase(id.value);
      job->aside = false;
      return;
    }
    book_.note(id, {"stands_aside", "pausing on " + aside.host.value + " for job " + urgent.id().value + " of priority " +
                                        std::to_string(urgent.spec().priority) + ", which lacks resources",
                    attempt->epoch, aside.host});
    order(*job, aside, false);
  }
}

bool StandAside::is_begun_for(const JobId& urgent) const {
  return std::ranges::any_of(asides_, [&](const auto& one) { return one.second.urgent == urgent; });
}

void StandAside::order(TrackedJob& job, const Aside& aside, bool resume) {
  const std::optional<HostReach> reach = fleet_.reach(aside.host);
  if (!reach) return;
  const std::string op =
      job.id().value + ":" + std::to_string(aside.epoch.value) + (resume ? ":return:" : ":aside:") + aside.urgent.value;
  attempts_.in_background(
      job.id(), k_order_name, {os::Lane::Kind::bulk, aside.host.value},
      [world = world_, host = *reach, request = wire::PauseRequest{{op}, job.id(), aside.epoch, resume, false}] {
        return order_pause(world, host, request);
      },
      [this, resume](TrackedJob& its, const Result<wire::PauseReply>& reply) {
        const auto found = asides_.find(its.id().value);
        if (found == asides_.end()) return;
        Aside& mine = found->second;
        if (reply) {
          fleet_.poll_now(mine.host);
          if (resume) return drop(its.id().value);
          mine.paused = true;
          return;
        }
        report(reply.error(), "while job " + its.id().value + (resume ? " returns from" : " stands") + " aside");
        mine.next = world_.clock.boot() + k_resume_again;
        if (resume) return;
        if (reply.error().code != Code::host_unreachable && reply.error().code != Code::timed_out)
          return unpausable_.insert({its.id().value, mine.epoch.value}), drop(its.id().value);
        mine.paused = true;  // nobody knows: its resume is harmless, and is ordered when nobody needs the place
      });
}

bool StandAside::is_needed(Aside& aside, BootTime now) const {
  const TrackedJob* urgent = std::as_const(book_).find(aside.urgent);
  if (urgent == nullptr || !urgent->goes_on()) return false;
  if (const job::Attempt* attempt = urgent->state().attempt()) {
    aside.waits_since = {};
    return urgent->in<job::Collecting>() == nullptr && attempt->on(aside.host) != nullptr;
  }
  if (aside.waits_since == BootTime{}) aside.waits_since = now;
  return now < aside.waits_since + k_place_patience;
}

void StandAside::tick(BootTime now) {
  if (!loaded_) load();
  std::vector<std::string> over;
  for (auto& [id, aside] : asides_) {
    TrackedJob* job = book_.find({id});
    const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
    if (attempt == nullptr || attempt->epoch != aside.epoch || job->in<job::Running>() == nullptr) {
      over.push_back(id);  // it has ended, or goes on elsewhere
      continue;
    }
    job->aside = true;
    if (!aside.paused || now < aside.next || attempts_.is_under_way({id}, k_order_name)) continue;
    if (is_needed(aside, now)) continue;
    // A paused job takes more of the host's memory than before, so there is no room beside it.
    if (aside.waits_since != BootTime{}) unpausable_.insert({id, aside.epoch.value});
    aside.next = now + k_resume_again;
    order(*job, aside, true);
  }
  for (const std::string& id : over) drop(id);
}

void StandAside::drop(const std::string& job) {
  const auto found = asides_.find(job);
  if (found == asides_.end()) return;
  const HostName host = found->second.host;
  asides_.erase(found);
  if (TrackedJob* its = book_.find({job})) its->aside = false;
  report(save(host), "while resuming a paused job");
  fleet_.capacity_freed();
}

// Each line has the form "JOB EPOCH URGENT".
Result<void> StandAside::save(const HostName& host) {
  std::string body;
  for (const auto& [job, aside] : asides_)
    if (aside.host == host) body += job + " " + std::to_string(aside.epoch.value) + " " + aside.urgent.value + "\n";
  return world_.records.save_host_report({host, std::string(k_aside_kind), world_.clock.wall(), body});
}

void StandAside::load() {
  const auto reports = world_.records.host_reports(std::string(k_aside_kind));
  if (!reports) return report(reports.error(), "while reading which jobs are paused for others");
  loaded_ = true;
  for (const registry::HostReport& one : *reports)
    for (const std::string& line : split_lines(one.body)) {
      const std::vector<std::string> words = split(line, ' ');
      const auto epoch = words.size() == 3 ? parse_number<std::uint64_t>(words[1]) : std::nullopt;
      if (epoch) asides_[words[0]] = {JobId{words[2]}, Epoch{*epoch}, one.provider, true};
    }
}

}  // namespace gridctl::control
