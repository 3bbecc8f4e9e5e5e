// SPDX-License-Identifier: Apache-2.0
// What a host's word, and its silence, mean for a job. Pure: the supervisor and the simulator ask it.
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
  std::vector<job::Happening> events;  // in order
  bool output = false;                 // there may be more output to fetch
  bool checkpoints = false;            // there may be a checkpoint to fetch
};

// `asked_for`: the attempt's START was answered, so that "not here" is news. What is not about the current attempt on
// that very host says nothing.
[[nodiscard]] Reading read_status(const job::State& state, const HostName& host, bool asked_for,
                                  const wire::AttemptStatus& status);
// The newest that the host lists beyond number `known`; nullptr when there is none.
[[nodiscard]] const wire::HostCheckpoint* newest_beyond(const wire::AttemptStatus& status, std::uint64_t known);

// Whether a host's last answer is recent enough to prove that our own network works.
[[nodiscard]] bool is_witness(std::optional<BootTime> last_answer, Duration heartbeat, BootTime now);
// The loss of the host of the current attempt, when its silence says so.
[[nodiscard]] std::optional<job::HostLost> read_silence(const job::State& state, const job::FailureDetector& silence);

// One pace for all hosts: those without jobs are the witnesses that a silence is not our own network's.
// `lost_after`: of the jobs with an attempt; `any_jobs`: something is followed at all.
[[nodiscard]] Duration heartbeat_for(const std::vector<Duration>& lost_after, bool any_jobs);

}  // namespace gridctl::control
