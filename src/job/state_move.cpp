// SPDX-License-Identifier: Apache-2.0
// Implements moves: a running attempt leaves its host although nothing failed.
#include <utility>

#include "job/last_step.hpp"
#include "job/state_step.hpp"

namespace gridctl::job {

std::string leaving_in_words(const HostName& host, std::string_view why) {
  if (why == k_for_deadline) return host.value + " is too risky for the deadline";
  if (why == k_for_less) return host.value + " is more expensive than another host";
  if (why == k_for_priority) return host.value + " is needed more urgently";
  if (why == k_for_straggler) return host.value + " is slower than the other members";
  if (why == k_for_end) return host.value + " ends soon";
  if (why == k_to_grow) return "more hosts are available for it";
  if (why == k_for_update) return "a new version of the service replaces it";
  if (why == k_for_sleep) return "the service is asleep: the next request wakes it";
  if (why == k_for_tasks) return "the bag changes between its tasks and its last step";
  return host.value + " is " + std::string(why);
}

bool forgives(const Attempt& attempt, WallTime now) {
  return attempt.started_at && attempt.last_saved_at &&
         now - *attempt.started_at >= k_forgiven_after;
}

namespace {
std::string staying(const HostName& host, std::string_view why) {
  if (why == k_for_deadline) return host.value + " keeps the job: no move could meet the deadline now";
  if (why == k_for_less) return host.value + " keeps the job: a move would save too little now";
  if (why == k_for_priority) return host.value + " keeps the job: it is no longer needed more urgently";
  if (why == k_for_straggler) return host.value + " keeps its part of the job: it is no longer slower";
  if (why == k_for_end) return host.value + " keeps the job: it is now available for longer";
  if (why == k_to_grow) return "the gang stays as it is: the additional hosts are no longer available";
  return host.value + " takes jobs again: the job stays there";
}
}  // namespace

void Stepper::operator()(const MoveRequested& event) {
  const Attempt* found = current(event.epoch);
  if (found == nullptr || event.why.empty()) return;
  const Attempt attempt = *found;
  const HostName& leaves = event.host.value.empty() ? attempt.lead().host : event.host;
  const std::string host = leaving_in_words(leaves, event.why);
  if (phase<Launching>() != nullptr) return stop_for_move(attempt, event.why, host + ": aborting the start there");
  // The attempt has just ended; however it ended, the bag continues.
  if (Collecting* collecting = phase<Collecting>(); collecting != nullptr && event.why == k_for_tasks && !s().cancel) {
    record("moving", host, attempt.epoch, leaves);
    collecting->moving = event.why;
    return;
  }
  Running* running = phase<Running>();
  if (running == nullptr || running->move) return;
  if (event.why == k_for_tasks) {
    stop_for_move(attempt, event.why, host);
    phase<Stopping>()->grace = Duration::zero();
    return;
  }
  running->move = Move{event.why, at_, event.after, false, leaves};
  if (event.failures_max > 0) s().failures_max = event.failures_max;
  std::string text = host + (event.why == k_to_grow ? ": the job restarts with them when its next checkpoint is safe"
                             : event.by_tasks       ? ": this worker gets no more tasks, and leaves when those that it runs have ended"
                                                    : ": the job moves when its next checkpoint is safe");
  if (event.patience > Duration::zero()) text += ", in at most " + format_duration(event.patience);
  if (!event.text.empty()) text += ": " + event.text;
  record("move_requested", text, event.epoch, leaves);
  explain("moving", std::move(text));
}

void Stepper::operator()(const MoveDue& event) {
  const Attempt* found = current(event.epoch);
  const Running* running = phase<Running>();
  if (found == nullptr || running == nullptr || !running->move) return;
  const Move move = *running->move;
  const HostName& leaves = move.host.value.empty() ? found->lead().host : move.host;
  if (move.why == k_for_straggler || move.why == k_paused) avoid(leaves, leaving_in_words(leaves, move.why));
  if (move.why == k_to_grow && forgives(*found, at_)) s().avoided.clear();
  const std::string reason = !event.because.empty() ? event.because
                             : move.saved           ? "checkpoint " + std::to_string(s().head.value) + " is safe"
                                                    : "no further checkpoint was saved within " +
                                                          format_duration(at_ - move.since);
  stop_for_move(Attempt{*found}, move.why,
                leaving_in_words(leaves, move.why) +
                    (move.why == k_to_grow ? ": stopping, to restart with them, " : ": stopping there, ") + reason);
}

void Stepper::operator()(const MoveBlocked& event) {
  const Attempt* attempt = current(event.epoch);
  Running* running = phase<Running>();
  if (attempt == nullptr || running == nullptr) return;
  running->move.reset();
  std::string text = attempt->lead().host.value +
                     " is being emptied, but no other host can run the job now; the job stays: " + event.summary;
  if (s().reason_text != text) record(std::string(k_move_blocked), text, event.epoch, attempt->lead().host);
  explain(std::string(k_move_blocked), std::move(text));
}

void Stepper::operator()(const MoveWithdrawn& event) {
  // The file has changed, and with it the reason for the wait.
  if (Waiting* waiting = phase<Waiting>()) return void(waiting->backoff = Duration::zero());
  const Attempt* attempt = current(event.epoch);
  Running* running = phase<Running>();
  if (attempt == nullptr || running == nullptr || (!running->move && s().reason != k_move_blocked)) return;
  const std::string why = running->move ? running->move->why : "drained";
  running->move.reset();
  record("move_withdrawn", staying(attempt->lead().host, why), event.epoch, attempt->lead().host);
  explain("running", "running on " + attempt->where());
}

void Stepper::stop_for_move(const Attempt& attempt, const std::string& why, std::string text) {
  record("moving", text, attempt.epoch, attempt.lead().host);
  explain("moving", std::move(text));
  s().phase = Stopping{attempt, k_move_grace, why, {}};
}

// A move is neither a failure nor a loss: no charge, no avoidance, no backoff.
void Stepper::move_on(const Attempt& attempt, const std::string& moving) {
  const std::string text = leaving_in_words(attempt.lead().host, moving) +
                           (moving == k_to_grow      ? ": continuing with them"
                             : moving == k_for_update || moving == k_for_sleep || moving == k_for_tasks
                                 ? ""
                                 : ": continuing elsewhere");
  record("moved_away", text, attempt.epoch, attempt.lead().host);
  explain(moving, text);
  if (moving == k_for_tasks) s().recovering = false;
  s().phase = Waiting{Duration::zero(), moving, text};
}

}  // namespace gridctl::job
