// SPDX-License-Identifier: Apache-2.0
// Builds one step of the state machine. Inside job only.
#pragma once

#include <string>
#include <utility>

#include "job/state.hpp"

namespace gridctl::job {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

inline constexpr int k_barren_max = 3;  // attempts in a row without a checkpoint: then another host is preferred

[[nodiscard]] std::string in_words(const End& end);
// Returns why another try would end the same way; empty: it may not.
[[nodiscard]] std::string never_works(const End& end);

// Represents one step under construction: the new state and what to record.
class Stepper {
 public:
  Stepper(const State& state, WallTime at) : at_(at) { out_.state = state; }

  void operator()(const Placed& event);
  void operator()(const NotPlaced& event);
  void operator()(const LaunchFailed& event);
  void leave_damaged(const Attempt& attempt);
  void operator()(const MemberPrepared& event);
  void operator()(const MembersConnected& event);
  void operator()(const LaunchAccepted& event);
  void operator()(const Preparing& event);
  void operator()(const PayloadStarted& event);
  void operator()(const AttemptEnded& event);
  void operator()(const HostLost& event);
  void operator()(const Drilled& event);
  void operator()(const Collected& event);
  void operator()(const CheckpointCommitted& event);
  void operator()(const CancelRequested& event);
  void operator()(const Hung& event);
  void operator()(const LimitReached& event);
  void operator()(const TwinSucceeded& event);
  void operator()(const PriceChanged& event);
  void operator()(const DeadlinePassed& event);
  void operator()(const MoveRequested& event);
  void operator()(const MoveDue& event);
  void operator()(const MoveBlocked& event);
  void operator()(const MoveWithdrawn& event);
  void operator()(const ResumeRequested& event);
  void operator()(const CleanedUp& event);
  void operator()(const HostForgotten& event);
  void operator()(const ServerReady& event);
  void operator()(const ServerReplaced& event);

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
  // Returns the current attempt if `epoch` is its epoch: this machine's fence.
  Attempt* current(Epoch epoch);
  // Returns the current attempt's member of that rank, if it has not ended.
  Member* living(Epoch epoch, int rank);
  [[nodiscard]] WallTime ended_at(const Attempt& attempt) const;
  void row(const Attempt& attempt, std::string state, std::string reason, const End* end = nullptr);
  void explain(std::string reason, std::string text);
  void avoid(const HostName& host, std::string reason);
  void wait(std::string why, std::string detail, bool for_room = false, Duration most = k_rest_max);
  void done(JobState state, std::optional<int> exit_code, std::string reason, std::string text);
  // A member has ended, or its host is given up (`member.end` says so): decides what becomes of the others.
  void after_end(const Attempt& attempt);
  void not_joined(Member& member, const End& end);
  // All members have ended; the remaining data is fetched.
  void collect(const Attempt& attempt, const End& end, const std::string& moving);
  // The attempt is over, as `end` says. Decides what becomes of the job. `moving`: see Collecting. A member's results
  // stay on its host only if it was lost or not yet collected.
  void finish(const Attempt& attempt, const End& end, const std::string& moving);
  void clean_up(const Attempt& attempt);
  // Handles the end that the user or a limit has requested.
  void cancelled(const std::string& how);
  void stop_for_cancel(Duration grace);
  void move_on(const Attempt& attempt, const std::string& moving);
  void stop_for_move(const Attempt& attempt, const std::string& why, std::string text);
  void charge(const Attempt& attempt, const End& end);
  void begin_anew(const Attempt& attempt, const End& end);
  void serve_again(const Attempt& attempt, const End& end);
  // Returns whether a checkpoint is to blame for the failure just charged: then it is marked, and another is chosen.
  bool go_back(const Attempt& attempt, const End& end);
  void retry_elsewhere(const Attempt& attempt, const End& end);
  // Returns whether an end that may be the program's own fault is blamed on the host once more.
  bool is_forgiven(const Attempt& attempt, const End& end);
  void count_lost_work(const Attempt& attempt);

  WallTime at_;
  Step out_;
};

}  // namespace gridctl::job
