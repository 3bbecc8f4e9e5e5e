// SPDX-License-Identifier: Apache-2.0
// Implements the state machine when an attempt ends: what becomes of the job.
#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "job/going_back.hpp"
#include "job/last_step.hpp"
#include "job/state_step.hpp"
#include "job/state_words.hpp"

namespace gridctl::job {

namespace {

// Beyond these, the job's own set-up is to blame. In a gang, the host of any member may be to blame, so
// the number is higher.
constexpr int k_start_failures_max = 5, k_gang_start_failures_max = 20;
int start_failures_max(const Attempt& attempt) {
  return std::min(k_start_failures_max * static_cast<int>(attempt.members.size()), k_gang_start_failures_max);
}
constexpr int k_image_failures_max = 2;  // a registry's bad minute is over by then; a wrong name never is
constexpr int k_not_executable = 126, k_not_found = 127;  // how shells say it

// The process was killed from outside: by an operator, the kernel, a dying engine. Programs do not kill themselves with
// these signals.
bool is_outside_signal(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGHUP || signal == SIGINT;
}

// Limits how often in a row an end that may be the program's own fault is blamed on its host. After a run of this
// length, another start costs little in comparison.
constexpr int k_forgiven = 2, k_forgiven_when_long = 9;
constexpr Duration k_long_run = std::chrono::minutes{10};
constexpr Duration k_short_run = std::chrono::minutes{1};  // what is saved within this time is no sign of progress

// No outside sender is known. An engine's container reports a SIGKILL as vanished.
bool is_unexplained_kill(const End& end) {
  return (end.kind == EndKind::signalled || end.kind == EndKind::vanished) && is_outside_signal(end.signal);
}

// Returns true for the program's own end, as far as is known.
bool is_own(const End& end) {
  return end.kind == EndKind::exited || end.kind == EndKind::oom || end.kind == EndKind::hung ||
         end.kind == EndKind::signalled || end.kind == EndKind::vanished;
}

// Returns the host of the member that was the cause.
const HostName& culprit(const Attempt& attempt, const End& end) {
  const Member* member = attempt.member(end.rank);
  return member == nullptr ? attempt.lead().host : member->host;
}

bool is_hosts(const End& end) {
  return end.kind != EndKind::exited && end.kind != EndKind::oom && end.kind != EndKind::hung &&
         !(end.kind == EndKind::signalled && !is_outside_signal(end.signal));
}

// Returns the cause of an attempt's end, as far as its members report it. A host's failure comes before a program's:
// programs fail when their peers' hosts do. Ends by our own order are not a cause.
std::optional<End> cause_of(const Attempt& attempt, std::optional<End> known, bool ordered) {
  for (const Member& member : attempt.members) {
    const bool by_order = member.end && member.end->kind == EndKind::stopped;
    if (!member.end || member.end->success() || (by_order && (ordered || known))) continue;
    if (!known || (is_hosts(*member.end) && !is_hosts(*known))) known = member.end;
  }
  return known;
}

// Returns the end of an attempt that was stopped by our order. A member of a gang that fails while others are being
// stopped fails because they are gone; and a finished member is not a success of the others.
End end_by_order(const Attempt& attempt, const std::optional<End>& cause) {
  const auto stopped = std::ranges::find_if(
      attempt.members, [](const Member& member) { return member.end && member.end->kind == EndKind::stopped; });
  if (stopped != attempt.members.end() && (!cause || !is_hosts(*cause))) return *stopped->end;
  return cause ? *cause : *attempt.lead().end;
}

}  // namespace

std::string never_works(const End& end) {
  if (end.kind == EndKind::exited && end.exit_code == k_not_found) return "the shell did not find a command";
  if (end.kind == EndKind::exited && end.exit_code == k_not_executable) return "the shell could not run a command";
  if (end.said.advice == Advice::stop) return "another attempt would end in the same way";
  return end.kind == EndKind::exited && end.detail.starts_with(k_setup_failed) ? "setup would fail again" : "";
}

std::string in_words(const End& end) {
  static constexpr Names<EndKind, EndKind::not_started> k_words{
      "exit code ", "killed by signal ", "out of memory", "stopped by request", "its lease expired", "the host rebooted",
      "its processes vanished", "the host could not start it", "the host's disk is full", "the image is not available",
      "the host does not have it", "the host was lost", "the host ended it at a limit", "it hung", "it was not started"};
  std::string text(k_words(end.kind));
  if (end.kind == EndKind::exited) text += std::to_string(end.exit_code);
  if (end.kind == EndKind::signalled) text += std::to_string(end.signal);
  if (!end.detail.empty()) text += ": " + end.detail;
  return end.said.advice == Advice::none ? text : text + "; " + in_words(end.said);
}

void Stepper::count_lost_work(const Attempt& attempt) {
  if (!attempt.started_at) return;
  const WallTime safe = attempt.last_saved_at.value_or(*attempt.started_at);
  s().lost += std::max(at_ - safe, Duration{});
}

void Stepper::operator()(const AttemptEnded& event) {
  Member* member = living(event.epoch, event.end.rank);
  if (member == nullptr || phase<Collecting>() != nullptr) return;
  member->end = event.end;
  if (const Attempt* ended = std::as_const(s()).attempt(); event.ago > Duration{}) {
    // A host must not report a start after its end.
    const WallTime told = at_ - event.ago;
    member->end->at = std::max(told, ended->started_at.value_or(told));
  }
  // An absent attempt has left nothing to fetch.
  member->part = event.end.kind == EndKind::absent ? Part::collected : Part::ended;
  const Attempt attempt = *std::as_const(s()).attempt();
  const std::string who = "attempt " + std::to_string(attempt.number.value) +
                          (attempt.is_gang() ? ", rank " + std::to_string(member->rank) + "," : "");
  record("attempt_ended", who + " on " + member->host.value + " ended: " + in_words(event.end), event.epoch,
         member->host);
  after_end(attempt);
}

void Stepper::operator()(const HostLost& event) {
  Attempt* found = current(event.epoch);
  if (found == nullptr) return;
  Member* member = found->member(event.rank);
  if (member == nullptr || member->part == Part::collected) return;
  record("host_lost", member->host.value + " was given up after " + format_duration(event.silent_for) + " of silence",
         event.epoch, member->host);
  // Its end may already be known, while its last files are not.
  const End lost{EndKind::host_lost, -1, 0, "silent for " + format_duration(event.silent_for), member->rank};
  const bool was_ended = member->end.has_value();
  member->part = Part::collected;
  s().pending_cleanups.push_back({member->host, found->epoch, found->number, true, event.rank});
  if (!was_ended) member->end = lost;
  const Attempt attempt = *found;
  const Collecting* collecting = phase<Collecting>();
  if (collecting == nullptr) return after_end(attempt);
  const Collecting known = *collecting;
  if (attempt.all(Part::collected)) finish(attempt, known.end, known.moving);
}

// A member that has failed or is gone ends the gang: the others would wait for it for ever.
void Stepper::after_end(const Attempt& attempt) {
  const Stopping* stopping = phase<Stopping>();
  const bool ordered = stopping != nullptr && !stopping->cause;  // it is cancelled or moved
  const std::optional<End> cause = cause_of(attempt, stopping == nullptr ? std::nullopt : stopping->cause, ordered);
  const std::string moving(s().moving());
  if (attempt.all(Part::ended)) {
    const End end = ordered ? end_by_order(attempt, cause) : cause ? *cause : *attempt.lead().end;
    return collect(attempt, end, moving);
  }
  if (!cause || ordered) return;
  // Until all have met, none is sent START: nothing runs anywhere, and there is nothing to save.
  if (const Launching* launching = phase<Launching>(); launching != nullptr && !launching->connected)
    return finish(attempt, *cause, "");
  const Member& first = *attempt.member(cause->rank);
  if (stopping == nullptr) {
    std::string text = "rank " + std::to_string(first.rank) + " on " + first.host.value + ": " + in_words(*cause) +
                       "; stopping the other members";
    record("gang_broken", text, attempt.epoch, first.host);
    explain("gang_broken", std::move(text));
  }
  s().phase = Stopping{attempt, k_gang_grace, "", cause};
}

void Stepper::collect(const Attempt& attempt, const End& end, const std::string& moving) {
  if (attempt.all(Part::collected)) return finish(attempt, end, moving);
  explain("collecting", "fetching the last checkpoint and output from " + attempt.where());
  if (attempt.started_at) row(attempt, std::string(k_row_running), "", &end);  // it costs nothing any more
  s().phase = Collecting{attempt, end, moving};
}

// From here on, everything is as with a host that was really lost, except that others are tried first.
void Stepper::operator()(const Drilled& event) {
  Attempt* found = current(event.epoch);
  if (found == nullptr || phase<Running>() == nullptr) return;
  const HostName host = found->lead().host;
  const std::string text = "a drill: " + host.value + " is treated as lost";
  record("drilled", text, event.epoch, host);
  avoid(host, text);
  Member& member = found->members.front();
  member.end = End{EndKind::host_lost, -1, 0, text, member.rank};
  member.part = Part::collected;
  s().pending_cleanups.push_back({host, found->epoch, found->number, true, member.rank});
  after_end(Attempt{*found});
}

void Stepper::operator()(const Hung& event) {
  const Running* running = phase<Running>();
  if (running == nullptr || running->attempt.epoch != event.epoch) return;
  const Attempt attempt = running->attempt;
  record("hung", event.text, event.epoch);
  explain("hung", event.text);
  s().phase = Stopping{attempt, k_gang_grace, "", End{EndKind::hung, -1, 0, event.text, 0}};
}

void Stepper::operator()(const Collected& event) {
  Collecting* collecting = phase<Collecting>();
  if (collecting == nullptr || collecting->attempt.epoch != event.epoch) return;
  Member* member = collecting->attempt.member(event.rank);
  if (member == nullptr || member->part == Part::collected) return;
  member->part = Part::collected;
  member->keep_work = event.keep_work;
  if (event.rank == collecting->end.rank) {
    collecting->end.last = event.last;
    collecting->end.said = event.said;
    s().late_directory = s().late_directory || event.makes_directory;
  }
  if (!event.problem.empty()) record("collect_incomplete", event.problem, event.epoch, member->host);
  if (!collecting->attempt.all(Part::collected)) return;
  const Collecting copy = *collecting;
  finish(copy.attempt, copy.end, copy.moving);
}

// Members that were given up are already due for cleaning.
void Stepper::clean_up(const Attempt& attempt) {
  for (const Member& member : attempt.members) {
    const bool known = std::ranges::any_of(s().pending_cleanups, [&](const PendingCleanup& end) {
      return end.host == member.host && end.epoch == attempt.epoch;
    });
    if (!known) s().pending_cleanups.push_back({member.host, attempt.epoch, attempt.number, false, member.rank, member.keep_work});
  }
}

void Stepper::finish(const Attempt& attempt, const End& end, const std::string& moving) {
  clean_up(attempt);
  const bool lost = end.kind == EndKind::host_lost;
  // Only an end by our own order belongs to the move: an attempt that ended on its own just before is judged as usual.
  // A bag that changes between its tasks and its last step is not finished by either.
  const bool moved = !moving.empty() && (end.kind == EndKind::stopped || end.kind == EndKind::absent || moving == k_for_tasks);
  const bool succeeded = end.success() && !s().policy.endless && moving != k_for_tasks;
  const bool cancelled = s().cancel.has_value() && !succeeded;
  const std::string row_state = succeeded            ? std::string(k_row_succeeded)
                                : cancelled || moved ? "stopped"
                                : lost               ? "lost"
                                                     : std::string(k_row_failed);
  row(attempt, row_state, moved && !cancelled ? moving : std::string(end_kind_name(end.kind)), &end);
  if (succeeded) {
    // After the last step of a bag, the job ends as its tasks did.
    if (!s().overtaken.empty() && s().overtaken_by != Overtaken::twin) return this->cancelled("");
    return done(JobState::succeeded, 0, "succeeded", "succeeded on " + attempt.where());
  }
  if (cancelled) return this->cancelled("it ended with: " + in_words(end));
  if (end.kind == EndKind::not_started) return wait(std::string(end_kind_name(end.kind)), end.detail);
  if (moving != k_for_tasks) count_lost_work(attempt);
  s().recovering = true;
  if (moved) return move_on(attempt, moving);
  const auto listed = [&](const std::vector<int>& codes) {
    return end.kind == EndKind::exited && std::ranges::find(codes, end.exit_code) != codes.end();
  };
  if (listed(s().policy.fail_on)) {
    done(JobState::failed, end.exit_code, "exit_code", in_words(end) + " ends the job (recovery.on_exit.fail)");
  } else if (s().policy.endless && is_own(end)) {
    serve_again(attempt, end);
  } else if (listed(s().policy.restart_on)) {
    wait(std::string(k_restart_requested), in_words(end) + " asks for a restart (recovery.on_exit.restart)");
  } else if (end.kind == EndKind::oom) {
    done(JobState::failed, std::nullopt, "oom", in_words(end) + "; ask for more with resources.memory");
  } else if (end.kind == EndKind::hung) {
    begin_anew(attempt, end);
  } else if (end.kind == EndKind::exited || end.kind == EndKind::signalled || is_unexplained_kill(end)) {
    if (is_forgiven(attempt, end)) return retry_elsewhere(attempt, end);
    charge(attempt, end);
  } else {
    retry_elsewhere(attempt, end);
  }
}

// A signal may come from an operator, and words may be right about the host. But a program that kills itself, or fails
// with such words on each host, must not restart for ever: after a few times in a row without progress, it is charged.
bool Stepper::is_forgiven(const Attempt& attempt, const End& end) {
  const bool blames_others = end.said.advice == Advice::restart || end.said.advice == Advice::blame_host;
  if (!blames_others && !is_unexplained_kill(end)) return false;
  const Cause cause = blames_others ? Cause::words : Cause::killed;
  const WallTime ended = ended_at(attempt), began = attempt.started_at.value_or(ended);
  const Duration ran = ended - began;
  // A checkpoint taken at the end itself shows no progress: the next attempt may end the same way.
  const bool got_on = ran >= k_short_run && attempt.last_saved_at && *attempt.last_saved_at < ended;
  if (got_on) forget_setback(s().setbacks, {}, cause);
  return note_setback(s().setbacks, {}, cause, in_words(end), at_) <=
         (ran >= k_long_run ? k_forgiven_when_long : k_forgiven);
}

// Any host of the gang, or none, may be to blame: the gang may get the same ones again. A program that always
// hangs must not restart for ever.
void Stepper::begin_anew(const Attempt& attempt, const End& end) {
  s().failures.push_back({attempt.lead().host, -1, 0, {}, end.last});
  const int count = static_cast<int>(s().failures.size()), most = std::max(s().policy.max_failures, 1);
  std::string text = in_words(end) + " (failure " + std::to_string(count) + " of " + std::to_string(most) + ")";
  if (count >= most) return done(JobState::failed, std::nullopt, "hung", std::move(text));
  wait("hung", std::move(text));
}

// Charges a failure of the job's own code.
void Stepper::charge(const Attempt& attempt, const End& end) {
  const HostName host = culprit(attempt, end);
  const bool barren = has_saved_nothing(s(), attempt);
  s().failures.push_back(
      {host, end.exit_code, end.signal, barren ? attempt.resumed_from : CheckpointSeq{}, end.last});
  avoid(host, "the job failed there: " + in_words(end));
  std::string hopeless = never_works(end);
  if (hopeless.empty() && go_back(attempt, end)) return;
  std::set<std::string> same_on;  // hosts where it ended in the same way
  for (const Failure& failure : s().failures) {
    const bool same = failure.exit_code == end.exit_code && failure.signal == end.signal;
    if (same) same_on.insert(failure.host.value);
  }
  const int count = static_cast<int>(s().failures.size());
  const int most = std::max(s().policy.max_failures, 1);
  std::string text = in_words(end) + " on " + host.value + " (failure " + std::to_string(count) + " of " +
                     std::to_string(most) + (count >= most ? ", the limit of recovery.max_failures)" : ")");
  // From a checkpoint that it may go back from, the job is tried once more: the checkpoint may be to blame.
  const bool may_go_back = barren && earlier_than(s(), attempt.resumed_from);
  if (same_on.size() > 1 && !attempt.last_saved_at && !may_go_back)
    hopeless = "the same on " + std::to_string(same_on.size()) + " hosts: the fault is in the program, not in the host";
  if (!hopeless.empty()) text += "; " + hopeless;
  if (count >= most || !hopeless.empty()) {
    text += withdraw_marks(s());
    const std::optional<int> code = end.kind == EndKind::exited ? std::optional{end.exit_code} : std::nullopt;
    return done(JobState::failed, code, "program_failed", std::move(text));
  }
  record("program_failed", text, attempt.epoch, host);
  wait("program_failed", std::move(text));
}

bool Stepper::go_back(const Attempt& attempt, const End& end) {
  const CheckpointSeq bad = attempt.resumed_from;
  const std::vector<std::string> hosts = failed_from(s(), bad, end);
  if (hosts.empty()) return false;
  const std::optional<CheckpointSeq> better = earlier_than(s(), bad);
  if (!better) return false;
  const std::string number = std::to_string(bad.value);
  record("checkpoint_suspect",
         "the program failed twice from checkpoint " + number + " before saving anything newer (" + in_words(end) +
             ", on " + join(hosts, " and ") + "): going back to checkpoint " + std::to_string(better->value) +
             "; checkpoint " + number + " is kept, but only gridctl job resume --from restores it",
         attempt.epoch, culprit(attempt, end));
  // A failure caused by the checkpoint is charged neither to the program nor to the hosts.
  for (const Failure& failure : s().failures)
    if (failure.restored == bad)
      std::erase_if(s().avoided, [&](const Avoided& known) { return known.host == failure.host; });
  std::erase_if(s().failures, [&](const Failure& failure) { return failure.restored == bad; });
  s().suspects.push_back(bad);
  ++s().gone_back;
  s().restore = better;
  wait("checkpoint_suspect", "checkpoint " + number + " is suspect: going back to checkpoint " +
                                 std::to_string(better->value));
  return true;
}

// Retries after a fault of the infrastructure, which is never charged to the job, however often.
void Stepper::retry_elsewhere(const Attempt& attempt, const End& end) {
  const HostName host = culprit(attempt, end);
  const bool barren = !attempt.last_saved_at && s().restarts_in_row + 1 >= k_barren_max;
  const bool image = end.kind == EndKind::image_failed;
  const bool owners = end.kind == EndKind::limit && end.detail.starts_with(k_owner_limit);
  if (end.kind == EndKind::start_failed || end.kind == EndKind::disk_full || image || owners ||
      end.said.advice == Advice::blame_host)
    avoid(host, in_words(end));
  else if (barren) avoid(host, "attempts end there before they save anything: " + in_words(end));
  const bool ends = !s().ready.proven;  // a service whose replicas were ready goes on: hosts are to blame
  if (end.kind == EndKind::start_failed && ++s().start_failures_in_row >= start_failures_max(attempt) && ends)
    return done(JobState::failed, std::nullopt, "start_failed",
                "could not be started " + std::to_string(s().start_failures_in_row) + " times in a row, last on " +
                    host.value + ": " + end.detail);
  if (image && ++s().start_failures_in_row >= k_image_failures_max && ends)
    return done(JobState::failed, std::nullopt, "image_failed", in_words(end));
  record("recovering", "starting again: " + in_words(end), attempt.epoch, host);
  wait(std::string(end_kind_name(end.kind)), in_words(end) + " (" + host.value + ")");
}

}  // namespace gridctl::job
