// SPDX-License-Identifier: Apache-2.0
// Ends an attempt: kills its processes, keeps its results, frees its resources, and records how it went.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "agent/cgroup.hpp"
#include "agent/init.hpp"
#include "agent/process_tree.hpp"
#include "agent/supervise.hpp"
#include "os/log.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_unkillable_after = std::chrono::seconds{60};  // as Slurm's UnkillableStepTimeout
constexpr Duration k_harm_shows = std::chrono::minutes{2};  // after a driver's failure the job may die of it so long
constexpr int k_first_wait_ms = 2, k_last_wait_ms = 1000;
constexpr std::uint64_t k_full_bytes = 16u << 20;  // free space below which a failure is the disk's
constexpr int k_write_tries = 600;                 // one a second: a full disk may be emptied meanwhile
constexpr int k_secret_tries = 5;                  // one a second; `clean` tries once more

// Returns why some are left; empty: none are.
std::string remove_secrets_of(const AttemptDir& attempt) {
  const auto secrets = attempt.secrets();
  if (!secrets) return "";
  for (int tries = 1;; ++tries) {
    const auto removed = os::remove_tree(*secrets);
    if (removed) return "";
    os::log(os::LogLevel::error, "the job's secrets stay for now: " + removed.error().one_line());
    if (tries == k_secret_tries) return removed.error().one_line();
    ::poll(nullptr, 0, 1000);
  }
}

}  // namespace

// Returns when no process is left. The lease stays until then: a GPU must never have two users.
void AttemptRunner::kill_rest() {
  if (!engine_ || launch_ == 0) return;
  const BootTime complain_at = now() + k_unkillable_after;
  bool complained = false;
  for (int wait_ms = k_first_wait_ms;; wait_ms = std::min(wait_ms * 2, k_last_wait_ms)) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // orphans that came to us
    auto left = engine_->members(name(), attempt_.run(launch_));
    if (payload_id_ && os::is_alive(*payload_id_)) merge(left, {*payload_id_});
    if (left.empty()) return;
    signal_each(left, SIGKILL);
    if (now() > complain_at && !complained) {
      status_.phase = wire::AttemptPhase::stopping;
      status_.detail = "a process cannot be killed; its resources stay leased";
      publish();
      complained = true;
    }
    ::poll(nullptr, 0, wait_ms);
  }
}

// Without a specification, the engine is not known. Live processes are found like plain processes: in a container that
// is init, and everything else there ends with it.
void AttemptRunner::end_what_is_unknown() {
  if (engine_ || status_.end == wire::EndReason::host_rebooted) return;
  launch_ = newest_launch(attempt_);
  if (launch_ == 0) return;
  engine_ = make_engine(EngineKind::process);
  kill_rest();
  for (const EngineKind kind : {EngineKind::podman, EngineKind::docker}) {
    if (!os::find_program(std::string(engine_name(kind)))) continue;
    if (const auto removed = make_engine(kind)->remove(name()); !removed)
      os::log(os::LogLevel::error, removed.error().one_line());
  }
}

void AttemptRunner::decide_end() {
  if (status_.end != wire::EndReason::none) return;  // start failed, or another boot
  Evidence evidence{launch_ > 0 ? read_exit_record(attempt_.run(launch_)) : std::nullopt, stop_.reason(), spec_.engine,
                    false, spec_.memory_bytes, os::exists(attempt_.notice_file())};
  if (!evidence.record && !stop_wanted()) {
    const auto events = memory_events_in(memory_group_);
    evidence.oom_killed = events && events->oom_kills > 0;
  }
  judge_end(evidence, status_);
  note_full_disk();
  const bool well = status_.end == wire::EndReason::exited && status_.exit_code == 0;
  if (well || stop_wanted() || !harmed_at_ || now() > *harmed_at_ + k_harm_shows) return;
  status_.end = wire::EndReason::vanished;
  status_.detail = "the GPU's driver failed while pausing the job, and the job did not survive";
}

void AttemptRunner::note_full_disk() {
  const bool failed = status_.end == wire::EndReason::exited && status_.exit_code != 0;
  const bool vanished = status_.end == wire::EndReason::vanished;  // init finds no block for its first file, and goes
  if (!failed && !vanished) return;
  const auto free = os::free_bytes(attempt_.path);
  if (!(free && *free < k_full_bytes) && !(checkpoints_ && checkpoints_->out_of_space())) return;
  status_.end = wire::EndReason::disk_full;
  status_.detail = "the job failed while the host's disk was full";
}

void AttemptRunner::release_lease() {
  const auto released = ledger_.release(attempt_.controller(), attempt_.job(), attempt_.epoch());
  if (!released) os::log(os::LogLevel::error, "cannot release the lease: " + released.error().one_line());
}

void AttemptRunner::finish_log() {
  if (log_pipe_.valid()) read_log();
  if (!ring_) return;
  if (launch_ > 0) {
    const auto taken = ring_->take_file(attempt_.run(launch_) / k_rest, k_pipe_bytes);
    if (!taken) os::log(os::LogLevel::error, "the end of the output is missing: " + taken.error().one_line());
  }
  ring_->finish();
}

void AttemptRunner::final_checkpoint() {
  if (!checkpoints_ || launch_ == 0 || status_.end == wire::EndReason::host_rebooted) return;
  // An attempt that never started has made nothing; reported as stopping, it would be mistaken for a job that ran.
  if (nothing_began_) return;
  status_.phase = wire::AttemptPhase::stopping;
  status_.doing = "checkpoint";
  publish();
  const bool well = status_.exit_code == 0 && status_.signal == 0;
  checkpoints_->finish(well ? whole::Writer::exited : whole::Writer::killed);
  if (status_.detail.empty()) status_.detail = checkpoints_->problem();
}

void AttemptRunner::conclude() {
  if (account_) account_->close(holds_gpus(), !is_paused());
  else UseAccount::close(attempt_);
  if (log_pipe_.valid()) read_log();
  leave_pause();
  kill_rest();
  end_what_is_unknown();
  finish_log();
  decide_end();
  std::string leftover;  // why the container is still there
  if (engine_)
    if (const auto removed = engine_->remove(name()); !removed) {
      leftover = removed.error().one_line();
      os::log(os::LogLevel::error, leftover);
    }
  release_lease();
  remove_links(attempt_);
  final_checkpoint();
  if (const std::string why = remove_secrets_of(attempt_); !why.empty())
    status_.detail += (status_.detail.empty() ? "" : "; ") + ("its secrets are still on this host (" + why + "), until its files there are removed");
  status_.phase = wire::AttemptPhase::ended;
  status_.doing.clear();
  status_.ended_ms_ago = 0;
  if (started_at_) status_.started_ms_ago = std::max<std::int64_t>(0, (now() - *started_at_).count() / 1'000'000);
  if (running_since_) status_.running_ms_ago = std::max<std::int64_t>(0, (now() - *running_since_).count() / 1'000'000);
  status_.allowed_ms = -1;
  status_.paused_ms_ago = -1;
  if (ring_) status_.log_bytes = ring_->end();
  if (checkpoints_) status_.checkpoints = checkpoints_->list();
  status_.no_checkpoint.clear();
  for (int tries = 0; tries < k_write_tries; ++tries) {
    // The missing end of the log is added if the disk has been emptied in the meantime.
    if (ring_ && ring_->finish()) status_.log_bytes = ring_->end();
    // The leftover is recorded before the end is reported, so that clean removes it: it may be the cause of a full
    // disk.
    const bool noted = leftover.empty() || os::write_file_atomically(attempt_.path / "leftover", leftover).has_value();
    if (noted && write_status(attempt_, status_, clock_, true)) return;
    ::poll(nullptr, 0, 1000);
  }
}

}  // namespace gridctl::agent
