// SPDX-License-Identifier: Apache-2.0
#include "control/follow/heartbeat_rules.hpp"

#include <algorithm>

#include "control/reach/pace.hpp"

namespace gridctl::control {

namespace {

job::EndKind end_kind_of(wire::EndReason reason) {
  switch (reason) {
    case wire::EndReason::none:
    case wire::EndReason::vanished: return job::EndKind::vanished;
    case wire::EndReason::exited: return job::EndKind::exited;
    case wire::EndReason::signalled: return job::EndKind::signalled;
    case wire::EndReason::oom: return job::EndKind::oom;
    case wire::EndReason::stopped: return job::EndKind::stopped;
    case wire::EndReason::lease_expired: return job::EndKind::lease_expired;
    case wire::EndReason::host_rebooted: return job::EndKind::host_rebooted;
    case wire::EndReason::start_failed: return job::EndKind::start_failed;
    case wire::EndReason::disk_full: return job::EndKind::disk_full;
    case wire::EndReason::image_failed: return job::EndKind::image_failed;
    case wire::EndReason::limit: return job::EndKind::limit;
  }
  return job::EndKind::vanished;
}

// Returns nothing if the host did not report it.
Duration ago(std::int64_t ms) { return std::chrono::milliseconds{std::max<std::int64_t>(ms, 0)}; }

}  // namespace

Reading read_status(const job::State& state, const HostName& host, bool fenced, const wire::AttemptStatus& status) {
  Reading out;
  const job::Attempt* attempt = state.attempt();
  if (attempt == nullptr || attempt->epoch != status.epoch) return out;
  const job::Member* member = attempt->on(host);
  if (member == nullptr || member->part >= job::Part::ended) return out;
  const int rank = member->rank;
  if (std::holds_alternative<job::Collecting>(state.phase)) return out;
  const auto* launching = std::get_if<job::Launching>(&state.phase);
  switch (status.phase) {
    case wire::AttemptPhase::absent:
      // Before START is answered, "not here" is no news: the launch itself gets the host's answer.
      if (fenced || member->part >= job::Part::promised)
        out.events.push_back(job::AttemptEnded{status.epoch, {job::EndKind::absent, -1, 0, status.detail, rank}});
      break;
    case wire::AttemptPhase::starting:
      if (launching != nullptr && !status.doing.empty() && status.doing != member->doing)
        out.events.push_back(job::Preparing{status.epoch, status.doing, rank});
      out.output = true;  // what `setup` says
      break;
    case wire::AttemptPhase::running:
    case wire::AttemptPhase::stopping:
      if (launching != nullptr && member->part < job::Part::running)
        out.events.push_back(job::PayloadStarted{status.epoch, rank, ago(status.running_ms_ago)});
      out.output = true;
      out.checkpoints = true;
      break;
    case wire::AttemptPhase::ended:
      if (launching != nullptr && status.started_ms_ago >= 0)
        out.events.push_back(job::PayloadStarted{status.epoch, rank, ago(status.running_ms_ago)});
      out.events.push_back(job::AttemptEnded{
          status.epoch, {end_kind_of(status.end), status.exit_code, status.signal, status.detail, rank}, ago(status.ended_ms_ago)});
      break;
  }
  return out;
}

std::vector<wire::HostCheckpoint> last_beyond(const wire::AttemptStatus& status, std::uint64_t known) {
  std::vector<wire::HostCheckpoint> last;
  for (const bool as_left : {false, true}) {
    const wire::HostCheckpoint* best = nullptr;
    for (const wire::HostCheckpoint& c : status.checkpoints)
      if (c.as_left == as_left && c.number > known && (best == nullptr || c.number > best->number)) best = &c;
    if (best != nullptr) last.push_back(*best);
  }
  return last;
}

const wire::HostCheckpoint* newest_beyond(const wire::AttemptStatus& status, std::uint64_t known) {
  const wire::HostCheckpoint* best = nullptr;
  for (const wire::HostCheckpoint& c : status.checkpoints)
    if (c.number > known && (best == nullptr || c.number > best->number)) best = &c;
  return best;
}

std::optional<job::HostLost> read_silence(const job::State& state, const job::Member& member,
                                          const job::FailureDetector& silence) {
  const job::Attempt* attempt = state.attempt();
  if (attempt == nullptr || member.part == job::Part::collected) return std::nullopt;
  if (silence.judge(state.policy.lost_after) != job::Liveness::lost) return std::nullopt;
  return job::HostLost{attempt->epoch, silence.counted(), member.rank};
}

Duration heartbeat_for(const std::vector<Duration>& lost_after, bool any_jobs) {
  Duration heartbeat = any_jobs ? k_heartbeat_max : k_heartbeat_idle;
  for (const Duration one : lost_after)
    heartbeat = std::min(heartbeat, std::clamp(one / k_beats_to_lost, k_heartbeat_min, k_heartbeat_max));
  return heartbeat;
}

}  // namespace gridctl::control
