// SPDX-License-Identifier: Apache-2.0
// The state machine when an attempt ends: what becomes of the job.
#include <algorithm>
#include <csignal>
#include <utility>

#include "job/state_step.hpp"

namespace gridctl::job {

namespace {

constexpr int k_start_failures_max = 5;  // then the job's own image or set-up is to blame

// Killed from outside: an operator, the kernel, a dying engine. Programs do not kill themselves with these.
bool is_outside_signal(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGHUP || signal == SIGINT;
}

}  // namespace

std::string in_words(const End& end) {
  std::string text;
  switch (end.kind) {
    case EndKind::exited: text = "exit code " + std::to_string(end.exit_code); break;
    case EndKind::signalled: text = "killed by signal " + std::to_string(end.signal); break;
    case EndKind::oom: text = "out of memory"; break;
    case EndKind::stopped: text = "stopped by request"; break;
    case EndKind::lease_expired: text = "its lease expired"; break;
    case EndKind::host_rebooted: text = "the host rebooted"; break;
    case EndKind::vanished: text = "its processes vanished"; break;
    case EndKind::start_failed: text = "the host could not start it"; break;
    case EndKind::disk_full: text = "the host's disk is full"; break;
    case EndKind::absent: text = "the host does not have it"; break;
    case EndKind::host_lost: text = "the host was lost"; break;
  }
  return end.detail.empty() ? text : text + ": " + end.detail;
}

void Stepper::count_lost_work(const Attempt& attempt) {
  if (!attempt.started_at) return;
  const WallTime safe = attempt.last_saved_at.value_or(*attempt.started_at);
  s().lost += std::chrono::milliseconds{std::max<std::int64_t>(at_.ms - safe.ms, 0)};
}

void Stepper::operator()(const AttemptEnded& event) {
  const Attempt* found = current(event.epoch);
  if (found == nullptr || phase<Collecting>() != nullptr) return;
  const Attempt attempt = *found;
  record("attempt_ended",
         "attempt " + std::to_string(attempt.number.value) + " on " + attempt.host().value +
             " ended: " + in_words(event.end),
         event.epoch, attempt.host());
  if (event.end.kind == EndKind::absent) {
    finish(attempt, event.end, std::string(s().moving()), true);
    return;
  }
  explain("collecting", "fetching the last checkpoint and output from " + attempt.host().value);
  s().phase = Collecting{attempt, event.end, std::string(s().moving())};
}

void Stepper::operator()(const HostLost& event) {
  const Attempt* found = current(event.epoch);
  if (found == nullptr) return;
  const Attempt attempt = *found;
  record("host_lost", attempt.host().value + " is given up after " + format_duration(event.silent_for) + " of silence",
         event.epoch, attempt.host());
  if (const Collecting* collecting = phase<Collecting>()) {
    const Collecting known = *collecting;  // how it ended is known; only its last files are not
    finish(attempt, known.end, known.moving, false);
    return;
  }
  finish(attempt, End{EndKind::host_lost, -1, 0, "silent for " + format_duration(event.silent_for)}, "", false);
}

// From here on all is as with a host that was really lost, but that others are tried first.
void Stepper::operator()(const Drilled& event) {
  const Attempt* found = current(event.epoch);
  if (found == nullptr || phase<Running>() == nullptr) return;
  const Attempt attempt = *found;
  const std::string text = "a drill: " + attempt.host().value + " counts as lost";
  record("drilled", text, event.epoch, attempt.host());
  avoid(attempt.host(), text);
  finish(attempt, End{EndKind::host_lost, -1, 0, text}, "", false);
}

void Stepper::operator()(const Collected& event) {
  const Collecting* collecting = phase<Collecting>();
  if (collecting == nullptr || collecting->attempt.epoch != event.epoch) return;
  const Collecting copy = *collecting;
  if (!event.problem.empty()) record("collect_incomplete", event.problem, event.epoch, copy.attempt.host());
  finish(copy.attempt, copy.end, copy.moving, true);
}

void Stepper::finish(const Attempt& attempt, const End& end, const std::string& moving, bool fetched) {
  s().pending_cleanups.push_back({attempt.host(), attempt.epoch, attempt.number, !fetched});
  const bool lost = end.kind == EndKind::host_lost;
  // Only an end by our own order is the move's: what ended by itself just before is judged as ever.
  const bool moved = !moving.empty() && (end.kind == EndKind::stopped || end.kind == EndKind::absent);
  const bool cancelled = s().cancel.has_value() && !end.success();
  const std::string row_state = end.success() ? "succeeded" : cancelled || moved ? "stopped" : lost ? "lost" : "failed";
  row(attempt, row_state, moved && !cancelled ? moving : std::string(end_kind_name(end.kind)), &end);
  if (end.success()) {
    done(JobState::succeeded, 0, "succeeded", "succeeded on " + attempt.host().value);
    return;
  }
  if (cancelled) return this->cancelled("it ended with: " + in_words(end));
  count_lost_work(attempt);
  s().recovering = true;
  if (moved) return move_on(attempt, moving);
  const auto listed = [&](const std::vector<int>& codes) {
    return end.kind == EndKind::exited && std::find(codes.begin(), codes.end(), end.exit_code) != codes.end();
  };
  if (listed(s().policy.fail_on)) {
    done(JobState::failed, end.exit_code, "exit_code", in_words(end) + " ends the job (recovery.on_exit.fail)");
  } else if (listed(s().policy.restart_on)) {
    wait("restart_requested", in_words(end) + " asks for a restart (recovery.on_exit.restart)");
  } else if (end.kind == EndKind::oom) {
    done(JobState::failed, std::nullopt, "oom", in_words(end) + "; ask for more with resources.memory");
  } else if (end.kind == EndKind::exited || (end.kind == EndKind::signalled && !is_outside_signal(end.signal))) {
    charge(attempt, end);
  } else {
    retry_elsewhere(attempt, end);
  }
}

// A failure of the job's own code.
void Stepper::charge(const Attempt& attempt, const End& end) {
  s().failures.push_back({attempt.host(), end.exit_code, end.signal});
  avoid(attempt.host(), "the job failed there: " + in_words(end));
  std::vector<std::string> same_on;  // distinct hosts where it ended in the same way
  for (const Failure& failure : s().failures) {
    const bool same = failure.exit_code == end.exit_code && failure.signal == end.signal;
    if (same && std::find(same_on.begin(), same_on.end(), failure.host.value) == same_on.end())
      same_on.push_back(failure.host.value);
  }
  const int count = static_cast<int>(s().failures.size());
  std::string text = in_words(end) + " on " + attempt.host().value + " (failure " + std::to_string(count) + " of " +
                     std::to_string(std::max(s().policy.max_failures, 1)) + ")";
  if (same_on.size() > 1) {
    text += "; the same on " + std::to_string(same_on.size()) + " hosts: it is the program, not the host";
  }
  if (count >= std::max(s().policy.max_failures, 1)) {
    const std::optional<int> code = end.kind == EndKind::exited ? std::optional{end.exit_code} : std::nullopt;
    done(JobState::failed, code, "program_failed", std::move(text));
    return;
  }
  record("program_failed", text, attempt.epoch, attempt.host());
  wait("program_failed", std::move(text));
}

// The infrastructure's fault: never charged to the job, however often.
void Stepper::retry_elsewhere(const Attempt& attempt, const End& end) {
  const bool barren = !attempt.last_saved_at && s().restarts_in_row + 1 >= k_barren_max;
  if (end.kind == EndKind::start_failed || end.kind == EndKind::disk_full) avoid(attempt.host(), in_words(end));
  else if (barren) avoid(attempt.host(), "attempts end there before they have saved anything: " + in_words(end));
  if (end.kind == EndKind::start_failed && ++s().start_failures_in_row >= k_start_failures_max) {
    done(JobState::failed, std::nullopt, "start_failed",
         "could not be started " + std::to_string(s().start_failures_in_row) + " times in a row, last on " +
             attempt.host().value + ": " + end.detail);
    return;
  }
  record("recovering", "starting again: " + in_words(end), attempt.epoch, attempt.host());
  wait(std::string(end_kind_name(end.kind)), in_words(end) + " (" + attempt.host().value + ")");
}

}  // namespace gridctl::job
