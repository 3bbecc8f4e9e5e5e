// SPDX-License-Identifier: Apache-2.0
// Jobs on several hosts: no member starts before all are ready, and what one of them holds is used or given back.
#include <algorithm>
#include <tuple>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_room = 40 * k_s;        // until it is asked again, in its turn
constexpr Nanos k_give_back = 4 * k_min;  // until what a gang that is given up holds must be free: stops have a grace
}  // namespace

bool Truth::has_peers(const Payload& payload) const {
  const auto begun = std::count_if(payloads_.begin(), payloads_.end(), [&](const auto& one) {
    return one->job == payload.job && one->epoch == payload.epoch;
  });
  return begun >= payload.members;
}

Nanos Truth::gang_began(const Payload& payload) const {
  if (!has_peers(payload)) return payload.began_at;
  Nanos last = payload.began_at;
  for (const auto& one : payloads_)
    if (one->job == payload.job && one->epoch == payload.epoch) last = std::max(last, one->began_at);
  return last;
}

bool Truth::has_lost_peer(const Payload& payload) const {
  return std::any_of(payloads_.begin(), payloads_.end(), [&](const auto& one) {
    return one->job == payload.job && one->epoch == payload.epoch && !one->alive && one->why != Why::finished;
  });
}

void Truth::check_start(const JobId& job, Epoch epoch) const {
  const auto known = shadows_.find(index(job));
  if (known == shadows_.end()) return;
  const auto* launching = std::get_if<job::Launching>(&known->second.newest.phase);
  if (launching == nullptr || launching->attempt.epoch != epoch || !launching->attempt.is_gang()) return;
  if (!launching->attempt.all(job::Part::prepared))
    throw Violation("G1", job.value + ": a member is started before all others are ready");
  if (!launching->connected) throw Violation("G1", job.value + ": a member is started before all have met");
}

void Truth::check_size(const job::State& after) const {
  const job::Attempt* attempt = after.attempt();
  if (attempt == nullptr) return;
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(index(after.id))].spec;
  const int members = static_cast<int>(attempt->members.size());
  if (members < job::nodes_least(spec) || members > spec.num_nodes)
    throw Violation("G4", after.id.value + " is placed on " + std::to_string(members) + " hosts, and wants " +
                              job::nodes_text(spec));
}

// A gang that waits, too, and whose turn comes before: what is free may be kept for it.
bool Truth::is_behind_a_gang(Laptop& laptop, const control::TrackedJob& job) {
  const auto rank = [](const control::TrackedJob& one) {
    return std::tuple(-one.spec().priority, one.row.submitted_at, one.id().value);
  };
  const auto& all = laptop.controller()->book().all();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    const control::TrackedJob& other = *entry.second;
    return other.spec().num_nodes > 1 && other.in<job::Waiting>() != nullptr && rank(other) < rank(job);
  });
}

// Once all is well: an elastic gang runs as soon as as many hosts are free as it needs at least. The host that a moving
// job was promised is not free, also while the last files of the attempt that it leaves are still fetched.
void Truth::check_room(Laptop& laptop) {
  const auto& book = laptop.controller()->book().all();
  const bool moves =
      std::any_of(book.begin(), book.end(), [](const auto& entry) { return !entry.second->state().moving().empty(); });
  for (const auto& [id, job] : book) {
    const auto* waiting = job->in<job::Waiting>();
    int free = 0;
    std::string which;
    for (int host = 0; host < world_.options.hosts; ++host)
      if (could_take(laptop, host, job->spec())) ++free, which += " host" + std::to_string(host);
    const bool waits = waiting != nullptr && waiting->why == "waiting_for_provider" && job::is_elastic(job->spec());
    if (moves || !waits || job->unsure || free < job::nodes_least(job->spec()) || is_behind_a_gang(laptop, *job)) {
      roomy_since_.erase(id);
      continue;
    }
    if (world_.now - roomy_since_.try_emplace(id, world_.now).first->second > k_room)
      throw Violation("G5", id + " waits, though" + which + " could take it");
  }
}

// In a healthy world.
void Truth::check_holds(Laptop& laptop) {
  const auto too_long = [&](auto& since, int host, const JobId& id, Epoch epoch, bool holds, Nanos patience) {
    const std::tuple key{host, id.value, epoch.value};
    if (!holds) return since.erase(key), false;
    return world_.now - since.try_emplace(key, world_.now).first->second > patience;
  };
  for (std::size_t i = 0; i < world_.hosts.size(); ++i) {
    if (static_cast<int>(i) == world_.options.liar) continue;
    for (const agent::Lease& lease : world_.hosts[i]->leases_of(laptop.index())) {
      const job::State& state = shadow(lease.job).newest;
      const job::Attempt* attempt = state.attempt();
      const bool idle = attempt == nullptr || attempt->epoch != lease.epoch;
      if (too_long(held_since_, static_cast<int>(i), lease.job, lease.epoch, idle, k_give_back))
        throw Violation("G2", "host" + std::to_string(i) + " keeps a lease of " + lease.job.value + " epoch " +
                                  std::to_string(lease.epoch.value) + ", which was given up");
    }
  }
  const Options& o = world_.options;
  for (const auto& [number, known] : shadows_) {
    const auto* launching = std::get_if<job::Launching>(&known.newest.phase);
    if (world_.jobs[static_cast<std::size_t>(number)].laptop != laptop.index() || launching == nullptr) continue;
    const job::Attempt& attempt = launching->attempt;
    const bool half = attempt.is_gang() && std::any_of(attempt.members.begin(), attempt.members.end(),
                                                       [](const auto& m) { return m.part >= job::Part::promised; });
    if (too_long(half_since_, -1, known.newest.id, attempt.epoch, half, k_give_back + 2 * o.start_time))
      throw Violation("G3", known.newest.id.value + " has started in part, and neither goes on nor gives up");
  }
}

}  // namespace gridctl::sim
