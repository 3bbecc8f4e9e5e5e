// SPDX-License-Identifier: Apache-2.0
// Judges how an attempt ended. Pure: evidence in, status out. A container engine's word is not evidence.
#pragma once

#include <optional>
#include <string>

#include "base/inventory.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

inline constexpr std::string_view k_setup_phase = "setup", k_run_phase = "run";
// Holds the record that init wrote when the commands had ended (inside the job: hostile, but bounded).
struct ExitRecord {
  std::string phase;  // k_setup_phase or k_run_phase
  int code = -1;      // when it exited
  int signal = 0;     // when it was killed
  std::uint64_t oom_kills = 0;
  std::uint64_t memory_peak = 0;
  bool term_received = false;
  bool lease_passed = false;  // init itself ended the job because nobody else did
  std::string first{};        // of several ranks, the one that failed first: "rank 3"
};

struct Evidence {
  std::optional<ExitRecord> record;                     // none: nothing of the job could write it
  wire::EndReason stop_reason = wire::EndReason::none;  // why we stopped it, if we did
  EngineKind engine = EngineKind::process;
  bool oom_killed = false;         // the kernel killed in the job's memory group
  std::uint64_t memory_limit = 0;  // bytes, 0 = none
  bool warned = false;             // of its end: what it did since is not its own choice
};

// Applies an exit record if we did not stop the job.
void apply_exit(const ExitRecord& record, std::uint64_t memory_limit, wire::AttemptStatus& status);
// Fills in end, exit_code, signal and detail. A known end (start failed, another boot) stands.
void judge_end(const Evidence& evidence, wire::AttemptStatus& status);
// An attempt of another boot that had not ended is over: host_rebooted, or as its exit record says. With a record, it
// is reported as stopping until a supervisor has taken its last checkpoint: its results must not be removed before.
void judge_other_boot(const std::optional<ExitRecord>& record, wire::AttemptStatus& status);

}  // namespace gridctl::agent
