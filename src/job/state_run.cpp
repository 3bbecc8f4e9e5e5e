// SPDX-License-Identifier: Apache-2.0
// Implements the state machine until an attempt ends: placing, starting, running, and the user's requests.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/formatted.hpp"
#include "job/going_back.hpp"
#include "job/state_step.hpp"

namespace gridctl::job {

namespace {

constexpr int k_hopeless_max = 3;  // times that a launch failed for want of what this machine has lost
constexpr Duration k_soon_max = std::chrono::seconds{10};     // what is taken or out of reach may be back soon
constexpr Duration k_place_retry = std::chrono::seconds{5};   // until the scheduler is asked again when nothing fits
constexpr std::size_t k_doing_max = 16;                       // bytes of a host's word for what it does
// No real job comes near this epoch; and a host that lies up to here leaves room for all epochs to come.
constexpr Epoch k_epoch_believed_max{std::uint64_t{1} << 40};

Duration between(WallTime from, WallTime to) { return std::max(to - from, Duration{}); }

// Returns " (sending its files: 1.2s)"; empty if no step is known.
std::string took(const Launching& launching, WallTime now) {
  if (launching.doing.empty()) return "";
  return " (" + doing_in_words(launching.doing) + ": " + format_duration(between(launching.doing_since, now)) + ")";
}

}  // namespace

Attempt* Stepper::current(Epoch epoch) {
  Attempt* attempt = const_cast<Attempt*>(std::as_const(s()).attempt());
  return attempt != nullptr && attempt->epoch == epoch ? attempt : nullptr;
}

Member* Stepper::living(Epoch epoch, int rank) {
  Attempt* attempt = current(epoch);
  Member* member = attempt == nullptr ? nullptr : attempt->member(rank);
  return member != nullptr && member->part < Part::ended ? member : nullptr;
}

// Returns when its last member ended: hosts report it exactly, even for ends that we did not see.
WallTime Stepper::ended_at(const Attempt& attempt) const {
  std::optional<WallTime> last;
  for (const Member& member : attempt.members) {
    const WallTime ended = member.end ? member.end->at.value_or(at_) : at_;
    last = last ? std::max(*last, ended) : ended;
  }
  return last.value_or(at_);
}

void Stepper::row(const Attempt& attempt, std::string state, std::string reason, const End* end) {
  AttemptRow row{attempt, std::move(state), std::move(reason), {}, {}};
  if (end != nullptr) {
    row.ended_at = ended_at(attempt);
    if (end->kind == EndKind::exited) row.exit_code = end->exit_code;
  }
  out_.attempts.push_back(std::move(row));
}

void Stepper::explain(std::string reason, std::string text) {
  s().reason = std::move(reason);
  s().reason_text = std::move(text);
}

// Whatever the reason, another host is the better try, and one that lies must not get the job for ever. The newest
// comes last: when all hosts are avoided, they take turns.
void Stepper::avoid(const HostName& host, std::string reason) {
  std::erase_if(s().avoided, [&](const Avoided& known) { return known.host == host; });
  s().avoided.push_back({host, std::move(reason)});
}

void Stepper::wait(std::string why, std::string detail, bool for_room, Duration most) {
  ++s().restarts_in_row;
  const Duration backoff = std::min(rest_after(std::max(s().restarts_in_row, streak_anywhere(s().setbacks))), most);
  explain(why, detail);
  const auto until = backoff > Duration{} ? std::optional(at_ + backoff) : std::nullopt;
  s().phase = Waiting{backoff, std::move(why), std::move(detail), for_room, until};
}

void Stepper::done(JobState state, std::optional<int> exit_code, std::string reason, std::string text) {
  record(state == JobState::cancelled   ? "cancelled"
         : state == JobState::succeeded ? "succeeded"
                                        : "failed",
         text, s().epoch);
  explain(std::move(reason), std::move(text));
  s().recovering = false;
  s().phase = Done{state, exit_code, at_};
}

void Stepper::operator()(const Placed& event) {
  const Waiting* waiting = phase<Waiting>();
  if (waiting == nullptr || event.members.empty()) return;
  State& state = s();
  state.epoch.value += 1;
  state.attempts.value += 1;
  if (state.recovering) ++state.recoveries;
  if (state.attempts.value == 1) state.expected = event.expected;
  Attempt attempt{state.attempts, state.epoch, event.members, state.start(), event.reason, {}, {}};
  const std::string from = attempt.resumed_from.value == 0
                               ? "from the beginning"
                               : "from checkpoint " + std::to_string(attempt.resumed_from.value);
  record("placed",
         "attempt " + std::to_string(attempt.number.value) + " goes to " + attempt.where() + ", " + from + ": " +
             event.reason,
         attempt.epoch, attempt.lead().host);
  explain("starting", "starting on " + attempt.where());
  row(attempt, std::string(k_row_starting), "");
  state.phase = Launching{std::move(attempt), at_, std::string(k_sending), at_};
}

void Stepper::operator()(const NotPlaced& event) {
  Waiting* waiting = phase<Waiting>();
  if (waiting == nullptr) return;
  const std::string why = event.held ? "held" : event.could_ever_fit ? std::string(k_waits_for_provider) : "no_provider_fits";
  if (s().reason_text != event.summary) record(why, event.summary);
  explain(why, event.summary);
  *waiting = Waiting{k_place_retry, why, event.summary};
}

void Stepper::operator()(const LaunchFailed& event) {
  Attempt* attempt = current(event.epoch);
  Member* member = attempt == nullptr ? nullptr : attempt->member(event.rank);
  if (member == nullptr || phase<Launching>() == nullptr) return;
  const HostName host = member->host;
  const bool others_may_run = attempt->is_gang() && phase<Launching>()->connected;
  if (event.host_max_epoch > k_epoch_believed_max) {
    avoid(host, "it claims an impossible epoch");
  } else if (event.host_max_epoch > s().epoch) {
    record("epoch_adopted",
           host.value + " knows epoch " + std::to_string(event.host_max_epoch.value) +
               ": this state directory is older than the host",
           event.epoch, host);
    s().epoch = event.host_max_epoch;
  }
  const End end{event.kind, -1, 0, event.detail, event.rank};
  if (!event.busy && !event.damaged && !event.hopeless)
    note_setback(s().setbacks, host,
                 event.host_fault ? Cause::host
                 : event.refused  ? Cause::refused
                                  : Cause::unreached,
                 event.detail, at_);
  if (event.host_fault) {
    if (event.kind == EndKind::absent) avoid(host, event.detail);
    return others_may_run ? not_joined(*member, end) : finish(Attempt{*attempt}, end, "");
  }
  // Nobody is to blame (the resource was taken a moment ago, or this machine has its own trouble): ask again. But a
  // host that refuses repeatedly comes last, because a passing reason would have passed.
  if (event.refused && s().restarts_in_row + 1 >= k_barren_max) avoid(host, "it refuses the job: " + event.detail);
  record("launch_failed", event.detail, event.epoch, host);
  if (event.damaged) leave_damaged(*attempt);
  if (others_may_run) return not_joined(*member, End{EndKind::not_started, -1, 0, event.detail, event.rank});
  row(*attempt, std::string(k_row_failed), "not_started", &end);
  clean_up(Attempt{*attempt});
  // The restore is tried twice more, because a disk that could not be read once may be readable the next time.
  if (event.hopeless && note_setback(s().setbacks, {}, Cause::host, event.detail, at_) >= k_hopeless_max)
    return done(JobState::failed, std::nullopt, "inputs_lost", "no host can start the job: " + event.detail);
  // Damage does not heal when other resources become free: it is retried ever more rarely.
  wait(event.damaged ? "checkpoint_damaged" : "not_started", event.detail, event.busy,
       event.refused || event.damaged ? k_rest_max : k_soon_max);
}

// Damage stays: the next attempt starts from the previous checkpoint, if there is one.
void Stepper::leave_damaged(const Attempt& attempt) {
  const CheckpointSeq bad = attempt.resumed_from;
  const std::optional<CheckpointSeq> better = bad.value == 0 ? std::nullopt : newest_before(s(), bad);
  if (!better || s().is_suspect(bad)) return;
  const std::string number = std::to_string(bad.value);
  record("checkpoint_suspect",
         "checkpoint " + number + " is damaged, and no copy can replace it: going back to checkpoint " +
             std::to_string(better->value),
         attempt.epoch);
  s().suspects.insert(s().suspects.begin(), bad);  // the last ones may be withdrawn
  s().restore = better;
}

// The other members of its gang may have been sent START: they are stopped, and the job's fate is decided when each has
// ended or is known never to start. In wait mode, nothing else prevents a job from running twice.
void Stepper::not_joined(Member& member, const End& end) {
  member.end = end;
  member.part = Part::collected;
  after_end(Attempt{*std::as_const(s()).attempt()});
}

void Stepper::operator()(const MemberPrepared& event) {
  Member* member = living(event.epoch, event.rank);
  if (member == nullptr || phase<Launching>() == nullptr || member->part >= Part::prepared) return;
  member->part = Part::prepared;
  record("member_prepared", "rank " + std::to_string(event.rank) + " is ready on " + member->host.value, event.epoch,
         member->host);
}

void Stepper::operator()(const MembersConnected& event) {
  Launching* launching = phase<Launching>();
  if (current(event.epoch) == nullptr || launching == nullptr || launching->connected) return;
  launching->connected = true;
  launching->port = event.port;
  launching->token = event.token;
  for (std::size_t i = 0; i < event.addresses.size() && i < launching->attempt.members.size(); ++i)
    launching->attempt.members[i].address = event.addresses[i];
  record("gang_connected", event.text, event.epoch);
}

void Stepper::operator()(const LaunchAccepted& event) {
  Member* member = living(event.epoch, event.rank);
  Launching* launching = phase<Launching>();
  if (member == nullptr || launching == nullptr || member->part >= Part::promised) return;
  member->part = Part::promised;
  const bool first_word = launching->doing == k_sending;
  record("accepted", member->host.value + " accepted the attempt" + (first_word ? took(*launching, at_) : ""),
         event.epoch, member->host);
  if (first_word) launching->doing.clear();
}

void Stepper::operator()(const Preparing& event) {
  Member* member = living(event.epoch, event.rank);
  Launching* launching = phase<Launching>();
  if (member == nullptr || launching == nullptr || event.doing == member->doing) return;
  const bool is_word = !event.doing.empty() && event.doing.size() <= k_doing_max &&
                       std::ranges::all_of(event.doing, [](char c) { return c == '-' || (c >= 'a' && c <= 'z'); });
  if (!is_word) return;
  record("preparing", member->host.value + ": " + doing_in_words(event.doing) + took(*launching, at_), event.epoch,
         member->host);
  explain("starting", "starting on " + member->host.value + ": " + doing_in_words(event.doing));
  member->doing = event.doing;
  launching->doing = event.doing;
  launching->doing_since = at_;
}

void Stepper::operator()(const PayloadStarted& event) {
  Member* member = living(event.epoch, event.rank);
  const Launching* launching = phase<Launching>();
  if (member == nullptr || launching == nullptr || member->part >= Part::running) return;
  member->part = Part::running;
  member->doing.clear();
  Attempt* attempt = current(event.epoch);
  if (!attempt->all(Part::running))
    return record("member_started", "rank " + std::to_string(event.rank) + " runs on " + member->host.value,
                  event.epoch, member->host);
  const WallTime told = at_ - event.ago;
  attempt->started_at = std::max(told, launching->placed_at);
  s().recovering = false;
  s().start_failures_in_row = 0;
  for (const Member& one : attempt->members) forget_setbacks(s().setbacks, one.host);
  forget_setback(s().setbacks, {}, Cause::host);
  record("attempt_started",
         "attempt " + std::to_string(attempt->number.value) + " runs on " + attempt->where() + ", " +
             format_duration(between(launching->placed_at, at_)) + " after placement" + took(*launching, at_),
         event.epoch, attempt->lead().host);
  explain("running", "running on " + attempt->where());
  row(*attempt, std::string(k_row_running), "");
  s().phase = Running{Attempt{*attempt}, {}};
}

void Stepper::operator()(const CheckpointCommitted& event) {
  if (event.seq <= s().head) return;
  s().head = event.seq;
  s().restore.reset();
  record(
      "checkpoint",
      "checkpoint " + std::to_string(event.seq.value) + " is safe" + (event.detail.empty() ? "" : ": " + event.detail),
      event.epoch);
  if (Attempt* attempt = event.as_left ? nullptr : current(event.epoch)) {
    attempt->last_saved_at = at_;
    note_progress(s(), attempt->resumed_from);
    s().restarts_in_row = 0;
    Running* running = phase<Running>();
    if (running != nullptr && running->move && event.host_number > running->move->after) running->move->saved = true;
  }
}

void Stepper::operator()(const CancelRequested& event) {
  if (phase<Done>() != nullptr) return;
  s().limit.clear();
  s().limit_text.clear();
  record("cancel_requested", "cancellation requested, grace " + format_duration(event.grace), s().epoch);
  stop_for_cancel(event.grace);
}

void Stepper::operator()(const LimitReached& event) {
  if (phase<Done>() != nullptr || s().cancel || event.limit.empty()) return;
  s().limit = event.limit;
  s().limit_text = event.text;
  record("limit_reached", event.text, s().epoch);
  stop_for_cancel(event.grace);
}

void Stepper::operator()(const TwinSucceeded& event) {
  if (phase<Done>() != nullptr || s().cancel || event.text.empty()) return;
  s().overtaken = event.text;
  s().overtaken_by = event.by;
  s().epoch.value += 1;
  record(std::string(overtaken_name(event.by)), event.text, s().epoch);
  stop_for_cancel(Duration::zero());
}

void Stepper::operator()(const PriceChanged& event) {
  Attempt* attempt = current(event.epoch);
  Member* member = attempt == nullptr ? nullptr : attempt->member(event.rank);
  if (member == nullptr || phase<Collecting>() != nullptr) return;
  double& price = member->price_per_hour;
  if (price == event.usd_per_hour) return;
  record("price_changed",
         member->host.value + formatted(" now costs %.2f USD an hour, before %.2f", event.usd_per_hour, price),
         event.epoch, member->host);
  price = event.usd_per_hour;
}

void Stepper::operator()(const DeadlinePassed& event) {
  if (phase<Done>() != nullptr || s().late) return;
  s().late = true;
  record("deadline_passed", event.text, s().epoch);
}

void Stepper::stop_for_cancel(Duration grace) {
  s().cancel = grace;
  if (phase<Waiting>() != nullptr) return cancelled("the job had not started");
  if (phase<Collecting>() != nullptr) return;
  const Attempt attempt = *std::as_const(s()).attempt();
  explain(!s().overtaken.empty() ? std::string(overtaken_name(s().overtaken_by))
          : s().limit.empty()    ? "cancelling"
                                 : s().limit,
          "stopping on " + attempt.where());
  s().phase = Stopping{attempt, grace, "", {}};
}

void Stepper::cancelled(const std::string& how) {
  if (!s().overtaken.empty()) {
    const bool failed = s().overtaken_by == Overtaken::tasks_failed;
    return done(failed ? JobState::failed : JobState::succeeded, failed ? 1 : 0,
                std::string(overtaken_name(s().overtaken_by)), s().overtaken);
  }
  if (s().limit.empty()) return done(JobState::cancelled, std::nullopt, "cancelled", "cancelled; " + how);
  done(JobState::cancelled, std::nullopt, s().limit, s().limit_text + "; " + how);
}

void Stepper::operator()(const ResumeRequested& event) {
  if (phase<Done>() == nullptr) return;
  State& state = s();
  state.failures.clear();
  state.avoided.clear();
  state.setbacks.clear();
  state.cancel.reset();
  state.limit.clear();
  state.limit_text.clear();
  state.overtaken.clear();
  state.overtaken_by = Overtaken::twin;
  state.failures_max = 0;
  state.late = false;
  state.restarts_in_row = 0;
  state.start_failures_in_row = 0;
  state.recovering = false;
  state.gone_back = 0;
  state.restore = event.from;
  std::string text = "resumed by the user";
  if (event.from) {
    text += " from checkpoint " + std::to_string(event.from->value);
  } else if (state.is_suspect(state.head)) {
    state.restore = newest_trusted(state).value_or(CheckpointSeq{});
    const std::string from = state.restore->value == 0 ? "the beginning" : "checkpoint " + std::to_string(state.restore->value);
    text += " from " + from + ", since checkpoint " + std::to_string(state.head.value) + " is suspect";
  }
  record("resumed", std::move(text), state.epoch);
  explain("resumed", "waiting for a host");
  state.phase = Waiting{Duration::zero(), "resumed", ""};
}

void Stepper::operator()(const CleanedUp& event) {
  std::erase_if(s().pending_cleanups, [&](const PendingCleanup& end) {
    if (end.host != event.host || end.epoch != event.epoch) return false;
    if (end.stale)
      record("settled", event.host.value + " is back: its stale attempt is stopped and cleaned up", end.epoch,
             end.host);
    return true;
  });
}

void Stepper::operator()(const HostForgotten& event) {
  if (const Attempt* found = std::as_const(s()).attempt()) {
    const Attempt attempt = *found;
    for (const Member& member : attempt.members)
      if (member.host == event.host) (*this)(HostLost{attempt.epoch, Duration::zero(), member.rank});
  }
  std::erase_if(s().pending_cleanups, [&](const PendingCleanup& end) { return end.host == event.host; });
  forget_setbacks(s().setbacks, event.host);
}

}  // namespace gridctl::job
