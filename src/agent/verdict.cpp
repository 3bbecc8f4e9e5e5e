// SPDX-License-Identifier: Apache-2.0
#include "agent/verdict.hpp"

#include <csignal>

#include "base/bytes.hpp"

namespace gridctl::agent {

void apply_exit(const ExitRecord& record, std::uint64_t memory_limit, wire::AttemptStatus& status) {
  status.end = record.lease_passed ? wire::EndReason::lease_expired
               : record.signal > 0 ? wire::EndReason::signalled
                                   : wire::EndReason::exited;
  status.exit_code = record.code;
  status.signal = record.signal;
  if (record.phase == k_setup_phase) status.detail = "setup failed";
  else if (!record.first.empty()) status.detail = record.first + " failed first";
  if (record.oom_kills == 0 || record.code == 0) {
    if (record.oom_kills > 0) status.detail = "the memory limit killed a process of the job; the job continued";
    return;
  }
  if (record.signal != 0 || record.code > 0) {
    status.end = wire::EndReason::oom;
    status.detail = "out of memory";
    if (record.memory_peak > 0) status.detail += ": used " + format_size(record.memory_peak);
    if (memory_limit > 0) status.detail += " of " + format_size(memory_limit);
  }
}

void judge_end(const Evidence& evidence, wire::AttemptStatus& status) {
  if (status.end != wire::EndReason::none) return;
  const bool stopped = evidence.stop_reason != wire::EndReason::none;
  const std::optional<ExitRecord>& record = evidence.record;
  if (record && !(stopped && (record->term_received || evidence.warned))) {
    apply_exit(*record, evidence.memory_limit, status);
    // The process that removes a container kills its processes one by one, so init may still see the job die.
    if (status.end == wire::EndReason::signalled && status.signal == SIGKILL &&
        evidence.engine != EngineKind::process) {
      status.end = wire::EndReason::vanished;
      status.detail = "killed from outside with SIGKILL";
    }
    return;
  }
  if (stopped) {
    status.end = evidence.stop_reason;
    if (record) status.exit_code = record->code, status.signal = record->signal;
    return;
  }
  status.end = evidence.oom_killed ? wire::EndReason::oom : wire::EndReason::vanished;
  status.detail = evidence.oom_killed ? "out of memory: the job's first process was killed"
                                      : "its processes disappeared without an exit record: killed from outside";
}

void judge_other_boot(const std::optional<ExitRecord>& record, wire::AttemptStatus& status) {
  status.phase = wire::AttemptPhase::ended;
  status.doing.clear();
  status.ended_ms_ago = 0;
  status.end = wire::EndReason::host_rebooted;
  if (!record) return;
  apply_exit(*record, 0, status);
  status.phase = wire::AttemptPhase::stopping;
}

}  // namespace gridctl::agent
