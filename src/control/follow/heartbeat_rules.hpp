// SPDX-License-Identifier: Apache-2.0
// Interprets a host's report, and its silence, for a job. Pure: the controller and the simulator ask it.
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

// `fenced`: a STOP has forbidden the epoch there; "not here" is news then, and also after START was accepted. A report
// that is not about a living member of the current attempt on that very host has no meaning.
[[nodiscard]] Reading read_status(const job::State& state, const HostName& host, bool fenced,
                                  const wire::AttemptStatus& status);
// Returns the newest checkpoint that the host lists beyond number `known`; nullptr if there is none. At an attempt's
// end, returns what to fetch: the newest complete one beyond number `known`, then what was left.
[[nodiscard]] std::vector<wire::HostCheckpoint> last_beyond(const wire::AttemptStatus& status, std::uint64_t known);
[[nodiscard]] const wire::HostCheckpoint* newest_beyond(const wire::AttemptStatus& status, std::uint64_t known);

// Returns the loss of that member of the current attempt, if the silence of its host means one.
[[nodiscard]] std::optional<job::HostLost> read_silence(const job::State& state, const job::Member& member,
                                                        const job::FailureDetector& silence);

// Returns one pace for all hosts: hosts without jobs witness that a silence is not caused by our own network.
// `lost_after`: of the jobs with an attempt. `any_jobs`: at least one job is followed.
[[nodiscard]] Duration heartbeat_for(const std::vector<Duration>& lost_after, bool any_jobs);

}  // namespace gridctl::control
