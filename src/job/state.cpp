// SPDX-License-Identifier: Apache-2.0
#include "job/state.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/check.hpp"

namespace gridctl::job {

namespace {

// Limits of the machine, each with its reason.
constexpr Duration k_backoff_max = std::chrono::seconds{60};  // a flapping grid is retried at most once a minute
constexpr Duration k_place_retry = std::chrono::seconds{5};   // until the scheduler is asked again when nothing fits
constexpr int k_start_failures_max = 5;                       // then the job's own image or set-up is to blame

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

constexpr std::array<std::string_view, 7> k_state_names{"PENDING",   "STARTING", "RUNNING",  "RECOVERING",
                                                        "SUCCEEDED", "FAILED",   "CANCELLED"};

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

// Killed from outside: an operator, the kernel, a dying engine. Programs do not kill themselves with these.
bool is_outside_signal(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGHUP || signal == SIGINT;
}

// One step under construction: the new state and what is to be recorded.
class Stepper {
 public:
  Stepper(const State& state, WallTime at) : at_(at) { out_.state = state; }

  void operator()(const Placed& event);
  void operator()(const NotPlaced& event);
  void operator()(const LaunchFailed& event);
  void operator()(const LaunchAccepted& event);
  void operator()(const PayloadStarted& event);
  void operator()(const AttemptEnded& event);
  void operator()(const HostLost& event);
  void operator()(const Collected& event);
  void operator()(const CheckpointCommitted& event);
  void operator()(const CancelRequested& event);
  void operator()(const ResumeRequested& event);
  void operator()(const Settled& event);
  void operator()(const HostForgotten& event);

  void record(std::string kind, std::string text, Epoch epoch = {}, HostName host = {}) {
    out_.records.push_back({std::move(kind), std::move(text), epoch, std::move(host)});
  }
  Step take() && { return std::move(out_); }

 private:
  State& s() { return out_.state; }
  template <class P>
  P* phase() {
    return std::get_if<P>(&s().phase);
  }
  // The current attempt when `epoch` is its epoch: the fence of this machine.
  Attempt* current(Epoch epoch);
  void row(const Attempt& attempt, std::string state, std::string reason, const End* end = nullptr);
  void explain(std::string reason, std::string text);
  void avoid(const HostName& host, std::string reason);
  void wait(std::string why, std::string detail);
  void done(JobState state, std::optional<int> exit_code, std::string reason, std::string text);
  void finish(const Attempt& attempt, const End& end);
  void charge(const Attempt& attempt, const End& end);
  void retry_elsewhere(const Attempt& attempt, const End& end);
  void count_lost_work(const Attempt& attempt);

  WallTime at_;
  Step out_;
};

Attempt* Stepper::current(Epoch epoch) {
  Attempt* attempt =
      std::visit(Overloaded{[](Launching& p) { return &p.attempt; }, [](Running& p) { return &p.attempt; },
                            [](Stopping& p) { return &p.attempt; }, [](Collecting& p) { return &p.attempt; },
                            [](auto&) -> Attempt* { return nullptr; }},
                 s().phase);
  return attempt != nullptr && attempt->epoch == epoch ? attempt : nullptr;
}

void Stepper::row(const Attempt& attempt, std::string state, std::string reason, const End* end) {
  AttemptRow row{attempt, std::move(state), std::move(reason), {}, {}};
  if (end != nullptr) {
    row.ended_at = at_;
    if (end->kind == EndKind::exited) row.exit_code = end->exit_code;
  }
  out_.attempts.push_back(std::move(row));
}

void Stepper::explain(std::string reason, std::string text) {
  s().reason = std::move(reason);
  s().reason_text = std::move(text);
}

void Stepper::avoid(const HostName& host, std::string reason) {
  for (Avoided& known : s().avoided)
    if (known.host == host) {
      known.reason = std::move(reason);
      return;
    }
  s().avoided.push_back({host, std::move(reason)});
}

void Stepper::wait(std::string why, std::string detail) {
  Duration backoff = Duration::zero();  // the first restart is immediate
  if (s().restarts_in_row > 0) backoff = std::chrono::seconds{1} * (1ll << std::min(s().restarts_in_row - 1, 6));
  ++s().restarts_in_row;
  explain(why, detail);
  s().phase = Waiting{std::min(backoff, k_backoff_max), std::move(why), std::move(detail)};
}

void Stepper::done(JobState state, std::optional<int> exit_code, std::string reason, std::string text) {
  record(reason == "cancelled" ? "cancelled" : state == JobState::succeeded ? "succeeded" : "failed", text, s().epoch);
  explain(std::move(reason), std::move(text));
  s().recovering = false;
  s().phase = Done{state, exit_code, at_};
}

void Stepper::count_lost_work(const Attempt& attempt) {
  if (!attempt.started_at) return;
  const WallTime safe = attempt.last_saved_at.value_or(*attempt.started_at);
  s().lost += std::chrono::milliseconds{std::max<std::int64_t>(at_.ms - safe.ms, 0)};
}

void Stepper::operator()(const Placed& event) {
  const Waiting* waiting = phase<Waiting>();
  if (waiting == nullptr || event.members.empty()) return;
  State& state = s();
  state.epoch.value += 1;
  state.attempts.value += 1;
  if (state.recovering) ++state.recoveries;
  Attempt attempt{state.attempts, state.epoch, event.members, state.restore.value_or(state.head), event.reason, {}, {}};
  const std::string from = attempt.resumed_from.value == 0
                               ? "from the beginning"
                               : "from checkpoint " + std::to_string(attempt.resumed_from.value);
  record("placed",
         "attempt " + std::to_string(attempt.number.value) + " goes to " + attempt.host().value + ", " + from + ": " +
             event.reason,
         attempt.epoch, attempt.host());
  explain("starting", "starting on " + attempt.host().value);
  row(attempt, "starting", "");
  state.phase = Launching{std::move(attempt)};
}

void Stepper::operator()(const NotPlaced& event) {
  Waiting* waiting = phase<Waiting>();
  if (waiting == nullptr) return;
  const std::string why = event.could_ever_fit ? "waiting_for_provider" : "no_provider_fits";
  if (s().reason_text != event.summary) record(why, event.summary);
  explain(why, event.summary);
  *waiting = Waiting{k_place_retry, why, event.summary};
}

void Stepper::operator()(const LaunchFailed& event) {
  const Attempt* attempt = current(event.epoch);
  if (attempt == nullptr || phase<Launching>() == nullptr) return;
  if (event.host_max_epoch > s().epoch) {
    record("epoch_adopted",
           attempt->host().value + " knows epoch " + std::to_string(event.host_max_epoch.value) +
               ": this state directory is older than the host",
           event.epoch, attempt->host());
    s().epoch = event.host_max_epoch;
  }
  const End end{EndKind::start_failed, -1, 0, event.detail};
  if (event.host_fault) {
    finish(Attempt{*attempt}, end);
    return;
  }
  // Nobody's fault (the resource was taken a moment ago, or this machine's own trouble): ask again, blame no one.
  record("launch_failed", event.detail, event.epoch, attempt->host());
  row(*attempt, "failed", "not_started", &end);
  s().loose_ends.push_back({attempt->host(), attempt->epoch, attempt->number, false});
  wait("not_started", event.detail);
}

void Stepper::operator()(const LaunchAccepted& event) {
  const Attempt* attempt = current(event.epoch);
  if (attempt == nullptr || phase<Launching>() == nullptr) return;
  record("accepted", attempt->host().value + " accepted the attempt", event.epoch, attempt->host());
}

void Stepper::operator()(const PayloadStarted& event) {
  Attempt* attempt = current(event.epoch);
  if (attempt == nullptr || phase<Launching>() == nullptr) return;
  attempt->started_at = at_;
  s().recovering = false;
  s().start_failures_in_row = 0;
  record("attempt_started", "attempt " + std::to_string(attempt->number.value) + " runs on " + attempt->host().value,
         event.epoch, attempt->host());
  explain("running", "running on " + attempt->host().value);
  row(*attempt, "running", "");
  s().phase = Running{Attempt{*attempt}};
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
    finish(attempt, event.end);
    return;
  }
  explain("collecting", "fetching the last checkpoint and output from " + attempt.host().value);
  s().phase = Collecting{attempt, event.end};
}

void Stepper::operator()(const HostLost& event) {
  const Attempt* found = current(event.epoch);
  if (found == nullptr) return;
  const Attempt attempt = *found;
  record("host_lost", attempt.host().value + " is given up after " + format_duration(event.silent_for) + " of silence",
         event.epoch, attempt.host());
  if (const Collecting* collecting = phase<Collecting>()) {
    const End end = collecting->end;  // how it ended is known; only its last files are not
    finish(attempt, end);
    return;
  }
  finish(attempt, End{EndKind::host_lost, -1, 0, "silent for " + format_duration(event.silent_for)});
}

void Stepper::operator()(const Collected& event) {
  const Collecting* collecting = phase<Collecting>();
  if (collecting == nullptr || collecting->attempt.epoch != event.epoch) return;
  const Collecting copy = *collecting;
  if (!event.problem.empty()) record("collect_incomplete", event.problem, event.epoch, copy.attempt.host());
  finish(copy.attempt, copy.end);
}

// The attempt is over, `end` says how. Decides what becomes of the job.
void Stepper::finish(const Attempt& attempt, const End& end) {
  const bool stale = end.kind == EndKind::host_lost;
  s().loose_ends.push_back({attempt.host(), attempt.epoch, attempt.number, stale});
  const bool cancelled = s().cancel.has_value() && !end.success();
  const std::string row_state = end.success() ? "succeeded" : cancelled ? "stopped" : stale ? "lost" : "failed";
  row(attempt, row_state, std::string(end_kind_name(end.kind)), &end);
  if (end.success()) {
    done(JobState::succeeded, 0, "succeeded", "succeeded on " + attempt.host().value);
    return;
  }
  if (cancelled) {
    done(JobState::cancelled, std::nullopt, "cancelled", "cancelled; it ended with: " + in_words(end));
    return;
  }
  count_lost_work(attempt);
  s().recovering = true;
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
  if (end.kind == EndKind::start_failed || end.kind == EndKind::disk_full) avoid(attempt.host(), in_words(end));
  if (end.kind == EndKind::start_failed && ++s().start_failures_in_row >= k_start_failures_max) {
    done(JobState::failed, std::nullopt, "start_failed",
         "could not be started " + std::to_string(s().start_failures_in_row) + " times in a row, last on " +
             attempt.host().value + ": " + end.detail);
    return;
  }
  record("recovering", "starting again: " + in_words(end), attempt.epoch, attempt.host());
  wait(std::string(end_kind_name(end.kind)), in_words(end) + " (" + attempt.host().value + ")");
}

void Stepper::operator()(const CheckpointCommitted& event) {
  if (event.seq <= s().head) return;
  s().head = event.seq;
  s().restore.reset();
  record(
      "checkpoint",
      "checkpoint " + std::to_string(event.seq.value) + " is safe" + (event.detail.empty() ? "" : ": " + event.detail),
      event.epoch);
  if (Attempt* attempt = current(event.epoch)) {
    attempt->last_saved_at = at_;
    s().restarts_in_row = 0;
  }
}

void Stepper::operator()(const CancelRequested& event) {
  if (phase<Done>() != nullptr) return;
  s().cancel = event.grace;
  record("cancel_requested", "cancellation requested, grace " + format_duration(event.grace), s().epoch);
  if (phase<Waiting>() != nullptr) {
    done(JobState::cancelled, std::nullopt, "cancelled", "cancelled before it ran");
    return;
  }
  if (phase<Collecting>() != nullptr) return;
  const Attempt attempt = *std::as_const(s()).attempt();
  explain("cancelling", "stopping on " + attempt.host().value);
  s().phase = Stopping{attempt, event.grace};
}

void Stepper::operator()(const ResumeRequested& event) {
  if (phase<Done>() == nullptr) return;
  State& state = s();
  state.failures.clear();
  state.avoided.clear();
  state.cancel.reset();
  state.restarts_in_row = 0;
  state.start_failures_in_row = 0;
  state.recovering = false;
  state.restore = event.from;
  record(
      "resumed",
      event.from ? "resumed by the user from checkpoint " + std::to_string(event.from->value) : "resumed by the user",
      state.epoch);
  explain("resumed", "waiting for a host");
  state.phase = Waiting{Duration::zero(), "resumed", ""};
}

void Stepper::operator()(const Settled& event) {
  std::erase_if(s().loose_ends, [&](const LooseEnd& end) {
    if (end.host != event.host || end.epoch != event.epoch) return false;
    if (end.stale)
      record("settled", event.host.value + " is back: its stale attempt is stopped and cleaned up", end.epoch,
             end.host);
    return true;
  });
}

void Stepper::operator()(const HostForgotten& event) {
  const Attempt* attempt = std::as_const(s()).attempt();
  if (attempt != nullptr && attempt->host() == event.host) (*this)(HostLost{attempt->epoch, Duration::zero()});
  std::erase_if(s().loose_ends, [&](const LooseEnd& end) { return end.host == event.host; });
}

}  // namespace

std::string_view state_name(JobState state) { return k_state_names[static_cast<std::size_t>(state)]; }

Result<JobState> parse_state_name(std::string_view name) {
  for (std::size_t i = 0; i < k_state_names.size(); ++i)
    if (k_state_names[i] == name) return static_cast<JobState>(i);
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a job state");
}

bool is_final(JobState state) { return state >= JobState::succeeded; }

std::string_view end_kind_name(EndKind kind) {
  static constexpr std::array<std::string_view, 11> k_names{
      "exited",   "signalled",    "oom",       "stopped", "lease_expired", "host_rebooted",
      "vanished", "start_failed", "disk_full", "absent",  "host_lost"};
  return k_names[static_cast<std::size_t>(kind)];
}

JobState State::visible() const {
  return std::visit(
      Overloaded{[&](const Waiting&) { return recovering ? JobState::recovering : JobState::pending; },
                 [&](const Launching&) { return recovering ? JobState::recovering : JobState::starting; },
                 [](const Done& done) { return done.state; }, [](const auto&) { return JobState::running; }},
      phase);
}

const Attempt* State::attempt() const {
  return std::visit(
      Overloaded{[](const Launching& p) { return &p.attempt; }, [](const Running& p) { return &p.attempt; },
                 [](const Stopping& p) { return &p.attempt; }, [](const Collecting& p) { return &p.attempt; },
                 [](const auto&) -> const Attempt* { return nullptr; }},
      phase);
}

std::string effect_name(const Effect& effect) {
  return std::visit(Overloaded{[](const Place&) { return std::string("place"); },
                               [](const Launch& e) { return "launch/" + std::to_string(e.attempt.epoch.value); },
                               [](const Stop& e) { return "stop/" + std::to_string(e.epoch.value); },
                               [](const Collect& e) { return "collect/" + std::to_string(e.epoch.value); },
                               [](const Settle& e) {
                                 return "settle/" + std::to_string(e.end.epoch.value) + "/" + e.end.host.value;
                               }},
                    effect);
}

std::vector<Effect> pending(const State& state) {
  std::vector<Effect> effects;
  std::visit(Overloaded{[&](const Waiting& p) { effects.push_back(Place{p.backoff}); },
                        [&](const Launching& p) {
                          effects.push_back(Launch{p.attempt, p.attempt.resumed_from});
                        },
                        [&](const Stopping& p) {
                          effects.push_back(Stop{p.attempt.host(), p.attempt.epoch, p.grace});
                        },
                        [&](const Collecting& p) {
                          effects.push_back(Collect{p.attempt.host(), p.attempt.epoch, p.attempt.number});
                        },
                        [](const auto&) {}},
             state.phase);
  for (const LooseEnd& end : state.loose_ends) effects.push_back(Settle{end});
  return effects;
}

Step submitted(JobId id, const Spec& spec, WallTime at) {
  State state;
  state.id = std::move(id);
  state.policy = spec.recovery;
  state.phase = Waiting{Duration::zero(), "submitted", ""};
  state.reason = "submitted";
  state.reason_text = "waiting for a host";
  Stepper stepper(state, at);
  stepper.record("submitted", "submitted as " + spec.name);
  Step out = std::move(stepper).take();
  out.effects = pending(out.state);
  return out;
}

Step step(const State& state, const Event& event) {
  Stepper stepper(state, event.at);
  std::visit(stepper, event.what);
  Step out = std::move(stepper).take();
  const std::vector<Effect> before = pending(state);
  // A new question to the scheduler is due whenever Waiting was entered again, even with the same backoff.
  const bool asked_again =
      std::holds_alternative<NotPlaced>(event.what) && std::holds_alternative<Waiting>(out.state.phase);
  for (Effect& effect : pending(out.state)) {
    const bool is_new = std::find(before.begin(), before.end(), effect) == before.end();
    if (is_new || (asked_again && std::holds_alternative<Place>(effect))) out.effects.push_back(std::move(effect));
  }
  return out;
}

}  // namespace gridctl::job
