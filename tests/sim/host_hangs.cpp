// SPDX-License-Identifier: Apache-2.0
// Programs that stand still on a simulated host, for a while or for good, how busy they are, and what their host tells
// of their processes when it is asked.
#include <algorithm>

#include "host.hpp"

namespace gridctl::sim {

namespace {
constexpr int k_busy_from = 60, k_busy_to = 95, k_idle_most = 2;  // percent
constexpr Nanos k_gang_stall = 20 * k_s;       // a pause of a gang that is none of its hangs
constexpr Nanos k_gang_rhythm = 3 * k_min;     // until the rhythm of a gang is known
constexpr Nanos k_lone_rhythm = 90 * k_s;
constexpr Nanos k_answer_most = 60 * k_s;
constexpr int k_pauses_in = 10;  // a program's pauses are at most so many tenths of what would be a hang
}  // namespace

// Says a line every so often, while it computes.
void Host::chat(const Key& key, Payload* payload) {
  world_.after(world_.options.chatter, world_.host_node(index_), [this, key, payload] {
    Folder* mine = folder(key);
    if (!payload->alive || mine == nullptr || world_.truth->has_lost_peer(*payload)) return;
    if (!world_.truth->stands(*payload)) {
      say(*mine, "sign");
      ++payload->steps;
      if (world_.options.words > 0) payload->signs.push_back(world_.now);
    }
    chat(key, payload);
  });
}

// A pause that its own code makes, and a moment from which on it waits for ever: for a lock, a lost file server.
void Host::plan_stands(const Key& key, Payload* payload) {
  const Options& o = world_.options;
  const bool gang = payload->members > 1;
  const job::RecoveryPolicy& policy = world_.jobs[static_cast<std::size_t>(payload->job)].spec.recovery;
  const Nanos hang_after = policy.hang_after.count();
  if (world_.rng.chance(o.stalls))
    stand(key, payload, world_.rng.between(10 * k_s, o.work), world_.rng.between(2 * k_s, gang ? k_gang_stall : hang_after * 8 / k_pauses_in));
  if (world_.healed && world_.truth->late_hangs >= o.late_hangs) return;
  if (!world_.rng.chance(o.hangs)) return;
  if (world_.healed) ++world_.truth->late_hangs;
  // Somebody finds it in the end, if no rule does.
  stand(key, payload, world_.rng.between(gang ? k_gang_rhythm : k_lone_rhythm, std::max(o.work, 4 * k_min)), 4 * hang_after + 10 * k_min);
}

void Host::stand(const Key& key, Payload* payload, Nanos delay, Nanos time) {
  const int node = world_.host_node(index_);
  world_.after(delay, node, [this, key, payload, time, node] {
    if (!payload->alive || payload->stands_since >= 0 || folder(key) == nullptr) return;
    payload->stands_since = world_.now;
    world_.say(std::get<1>(key), " epoch ", std::get<2>(key), " on host", index_, " stands still for ", time / k_ms, " ms");
    world_.after(time, node, [this, payload] {
      if (!payload->alive) return;
      const Nanos stood = world_.now - std::exchange(payload->stands_since, -1);
      payload->longest_stand = std::max(payload->longest_stand, stood);
      payload->stood += stood;
      payload->last_stand = {world_.now - stood, world_.now};
    });
  });
}

// Adds what the host measures of a program that runs.
void Host::tell_life(const Key& key, wire::AttemptStatus& status) const {
  const auto found = folders_.find(key);
  if (found == folders_.end() || status.phase != wire::AttemptPhase::running || found->second.launches.empty()) return;
  const Launch& newest = found->second.launches.back();
  if (!newest.init_lives) return;
  status.log_bytes = found->second.log.size();
  if (index_ == world_.options.unmeasured) return;
  const Payload& payload = *newest.payload;
  const int percent = world_.truth->stands(payload) ? static_cast<int>(world_.now / k_ms % (k_idle_most + 1))
                                                    : k_busy_from + static_cast<int>(world_.now / k_ms % (k_busy_to - k_busy_from));
  Use use;
  use.cpus = found->second.start->spec.cpus * percent / 100;
  for (std::size_t i = 0; i < payload.gpus.size(); ++i) use.gpus.push_back({percent, {}, {}, {}});
  status.use = use;
}

Result<std::string> Host::stacks(int laptop, const wire::StacksRequest& wanted) {
  const Folder* mine = folder({laptop, wanted.job.value, wanted.epoch.value});
  if (mine == nullptr || mine->launches.empty() || !mine->launches.back().init_lives) return make_error(Code::not_found, "no such attempt runs");
  if (world_.rng.chance(world_.options.insight_fails)) {
    if (world_.rng.chance(0.5)) return make_error(Code::timed_out, "a process cannot be stopped");
    if (!world_.healed) answer_later(world_.rng.between(k_s, k_answer_most));
  }
  return "stack of " + wanted.job.value + " epoch " + std::to_string(wanted.epoch.value);
}

Result<wire::StepsReply> Host::steps(int laptop, const wire::StepsRequest& wanted) {
  const Folder* mine = folder({laptop, wanted.job.value, wanted.epoch.value});
  if (mine == nullptr || mine->launches.empty() || mine->launches.back().payload == nullptr) return make_error(Code::not_found, "no such attempt");
  if (!world_.healed && world_.rng.chance(world_.options.insight_fails)) answer_later(world_.rng.between(k_s, k_answer_most));
  wire::StepsReply reply;
  const auto rank = mine->start->spec.gang ? mine->start->spec.gang->node_rank : 0;
  const std::int64_t step = mine->launches.back().payload->steps;
  if (world_.options.tells_steps && step > 0) reply.steps.push_back({static_cast<std::uint32_t>(rank), step, {}});
  reply.log_bytes = mine->log.size();
  return reply;
}

}  // namespace gridctl::sim
