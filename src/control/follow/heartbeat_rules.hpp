// SPDX-License-Identifier: Apache-2.0
// Meaning of a host's report, and of its silence, for a job. Pure: the controller and the simulator ask it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "job/failure_detector.hpp"
#include "job/state.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

struct Reading {
  std::vector<job::Event> events;  // in order
  bool output = false;             // there may be more output to fetch
  bool checkpoints = false;        // there may be a checkpoint to fetch
};

// `fenced`: a STOP has forbidden the epoch there. "Not here" is news then, and when START was accepted. What is not
// about a living member of the current attempt on that very host says nothing.
[[nodiscard]] Reading read_status(const job::State& state, const HostName& host, bool fenced,
                                  const wire::AttemptStatus& status);
// The newest that the host lists beyond number `known`; nullptr when there is none.
// Returns what to fetch at an attempt's end: the newest beyond number `known` of what was whole, then what was left.
[[nodiscard]] std::vector<wire::HostCheckpoint> last_beyond(const wire::AttemptStatus& status, std::uint64_t known);
[[nodiscard]] const wire::HostCheckpoint* newest_beyond(const wire::AttemptStatus& status, std::uint64_t known);

// The loss of that member of the current attempt, when the silence of its host says so.
[[nodiscard]] std::optional<job::HostLost> read_silence(const job::State& state, const job::Member& member,
                                                        const job::FailureDetector& silence);

// One pace for all hosts: those without jobs are the witnesses that a silence is not our own network's.
// `lost_after`: of the jobs with an attempt; `any_jobs`: something is followed at all.
[[nodiscard]] Duration heartbeat_for(const std::vector<Duration>& lost_after, bool any_jobs);

}  // namespace gridctl::control
