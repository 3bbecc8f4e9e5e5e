// SPDX-License-Identifier: Apache-2.0
// Programs that stand still: who is said to hang does, who computes is never ended for it, and who hangs is ended, or
// told of, within its time.
#include <algorithm>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_heard_of = 25 * k_s;       // until a sign of life is known: a poll, a tick of the rule
constexpr Nanos k_gang_least = 30 * k_s;     // no shorter silence of a gang is a hang
constexpr Nanos k_gang_most = k_min;         // of one that gives signs so often
constexpr Nanos k_gap = 10 * k_s;            // between two polls of a host that answers: a stand may be told so much too long
constexpr Nanos k_looked_at = 2 * k_min;     // its stacks are asked for first, of each host
constexpr Nanos k_lone_habit = k_min, k_gang_habit = 150 * k_s;  // until its habits are known
}  // namespace

bool Truth::stands(const Payload& payload) const {
  if (payload.members == 1) return payload.stands_since >= 0;
  return std::ranges::any_of(payloads_, [&](const auto& one) {
    return one->alive && one->job == payload.job && one->epoch == payload.epoch && one->stands_since >= 0;
  });
}

// Checks a laptop's statement that the attempt hangs. `is_ended`: the laptop ends it; otherwise it only tells its user.
void Truth::check_hung(const JobId& id, Epoch epoch, bool is_ended) {
  if (world_.options.chatter == 0) return;
  ++rules_met["H1"];
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(index(id))].spec;
  hung_told_.insert({index(id), epoch.value});
  const bool gang = std::ranges::any_of(payloads_, [&](const auto& one) { return one->job == index(id) && one->epoch == epoch && one->members > 1; });
  const bool to_end = gang ? spec.recovery.hangs == job::Hangs::restart : spec.recovery.restart_one;
  if (is_ended != to_end) throw Violation("H1", id.value + (is_ended ? " is ended" : " is left") + " as one that hangs, and its file says otherwise");
  for (const auto& payload : payloads_) {
    if (payload->job != index(id) || payload->epoch != epoch || !payload->alive || payload->host == world_.options.liar) continue;
    const std::string which = name(*payload) + " is said to hang, and ";
    if (payload->members > 1) {
      const bool lives = std::ranges::any_of(payload->signs, [&](Nanos sign) {
        return sign > world_.now - k_gang_least + k_s && sign <= world_.now - k_heard_of;
      });
      if (lives) throw Violation("H1", which + "gave signs of life");
      continue;
    }
    const bool stands_now = payload->stands_since >= 0;
    if (!stands_now && world_.now - payload->last_stand.second > k_heard_of + k_looked_at) throw Violation("H1", which + "computes");
    const Nanos stood = stands_now ? world_.now - payload->stands_since : payload->last_stand.second - payload->last_stand.first;
    if (stood < spec.recovery.hang_after.count() - k_gap) throw Violation("H1", which + "stood still for " + std::to_string(stood / k_ms) + " ms only");
  }
}

// Checks that a program that stands still is noticed in time, if nothing has hindered its laptop since it began.
void Truth::check_hangs(Laptop& laptop, const control::TrackedJob& job) {
  if (world_.options.chatter == 0) return;
  const auto* running = job.in<job::Running>();
  if (running == nullptr || job.spec().service || job.spec().tasks || hung_told_.contains({index(job.id()), job.state().epoch.value})) return;
  if (!world_.healed && world_.options.point_faults > 0) return;
  Nanos since = -1, busy = 0, longest = 0, began = 0;
  for (const job::Member& member : running->attempt.members) {
    if (member.part >= job::Part::ended) continue;
    const int at = host_index(member.host);
    const Payload* payload = find(at, index(job.id()), running->attempt.epoch);
    const auto answers = answers_since_.find({laptop.index(), at});
    const control::FleetHost* host = laptop.controller()->fleet().find(member.host);
    const bool judged = payload != nullptr && payload->alive && answers != answers_since_.end() && answers->second <= payload->began_at &&
                        laptop.clear_since() <= payload->began_at && host != nullptr && !host->provider.drained && at != world_.options.liar &&
                        !world_.hosts[static_cast<std::size_t>(at)]->disk_full && (at != world_.options.unmeasured || payload->members > 1);
    if (!judged) return;
    if (payload->stands_since >= 0 && (since < 0 || payload->stands_since < since)) since = payload->stands_since;
    busy = busy == 0 ? payload->stood : std::max(busy, payload->stood);
    longest = std::max(longest, payload->longest_stand);
    began = std::max(began, payload->began_at);
  }
  const bool gang = running->attempt.is_gang();
  if (gang && world_.options.words == 0) return;  // nothing shows its rhythm
  if (since < 0 || since - began - busy < std::max(gang ? k_gang_habit : k_lone_habit, 2 * busy)) return;
  ++rules_met["H2"];
  const Nanos allowed = gang ? std::max(k_gang_most, (longest + 2 * k_gap) * 3 / 2)
                             : std::max<Nanos>(job.spec().recovery.hang_after.count(), 3 * (longest + k_gap));
  if (world_.now - since > allowed + k_looked_at)
    throw Violation("H2", job.id().value + " hangs since " + std::to_string((world_.now - since) / k_s) + " s, and nobody ends it or says so");
}

}  // namespace gridctl::sim
