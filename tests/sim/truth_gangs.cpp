// SPDX-License-Identifier: Apache-2.0
// Jobs on several hosts: no member starts before all are ready, and what one of them holds is used or given back.
#include <algorithm>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_give_back = 4 * k_min;  // until what a gang that is given up holds must be free: stops have a grace
}

bool Truth::has_peers(const Payload& payload) const {
  const int wanted = world_.jobs[static_cast<std::size_t>(payload.job)].spec.num_nodes;
  const auto begun = std::count_if(payloads_.begin(), payloads_.end(), [&](const auto& one) {
    return one->job == payload.job && one->epoch == payload.epoch;
  });
  return begun >= wanted;
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
    const bool half = attempt.is_gang() && std::any_of(attempt.members.begin(), attempt.members.end(), [](const auto& m) {
                        return m.part >= job::Part::promised;
                      });
    if (too_long(half_since_, -1, known.newest.id, attempt.epoch, half, k_give_back + 2 * o.start_time))
      throw Violation("G3", known.newest.id.value + " has started in part, and neither goes on nor gives up");
  }
}

}  // namespace gridctl::sim
