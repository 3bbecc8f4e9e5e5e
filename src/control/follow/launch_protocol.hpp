// SPDX-License-Identifier: Apache-2.0
// Implements the two conversations in which the order of requests, and the meaning of an answer or its absence, decide
// whether a job can run twice. Pure: host_work.cpp runs them over a connection, the simulator over a simulated one.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/result.hpp"
#include "job/state.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

using Request =
    std::variant<wire::PrepareRequest, wire::StartRequest, wire::StopRequest, wire::CleanRequest, wire::PollRequest>;
struct Ack {};  // an answer without content
using Answer = std::variant<Ack, wire::PrepareReply, wire::StartReply, wire::PollReply>;

// Returns true if the link broke or fell silent: the request may have been carried out.
[[nodiscard]] bool is_uncertain(Code code);
// Returns an operation's name, which is the same for every repetition.
[[nodiscard]] OpId operation(const JobId& job, Epoch epoch, const std::string& what);
// Returns the question about one attempt, which renews nothing.
[[nodiscard]] wire::PollRequest look_request(const JobId& job, Epoch epoch);
[[nodiscard]] Result<wire::AttemptStatus> look_answer(const Answer& answer, const JobId& job, Epoch epoch);
[[nodiscard]] wire::StopRequest stop_request(const JobId& job, Epoch epoch, Duration grace);

struct LaunchResult {
  enum class Kind : std::uint8_t {
    accepted,     // the host has it
    prepared,     // it would start it: START is not sent yet
    not_started,  // certain: it will never run under this epoch
    unknown,      // the answer to START was lost: ask again with the same operation
    unpromised,   // the host refused, and could not promise that an earlier START of this epoch will not be met
  } kind = Kind::not_started;
  std::string detail;
  bool host_fault = false;  // this host cannot run it; else something that passes (network, a resource just taken)
  bool busy = false;        // the resource is held by somebody
  bool refused = false;     // the host will not, behind a fence
  bool disk_full = false;   // the host's
  bool damaged = false;     // its checkpoint is damaged here, and no copy replaces it
  bool hopeless = false;    // what the job was submitted with is damaged here: no host can start it
  bool nonsense = false;    // what the host said could not be understood: this tells nothing about the job
  Epoch host_max_epoch;     // the host's fence when it refused
  bool sent = false;        // a START has gone out in this try
  std::string healed_from;  // what was damaged here of its checkpoint was brought back: "2 chunks, 3 MiB, from NAME"
  std::string given;        // of its checkpoint, when that was not all: "12.0 MiB of 34.0 MiB"
};
[[nodiscard]] LaunchResult not_started(const Error& error, bool host_fault);

[[nodiscard]] job::LaunchFailed launch_failed(Epoch epoch, int rank, const LaunchResult& result);

// States whether earlier tries to start an epoch may still have an effect.
struct LaunchDoubt {
  enum class Kind : std::uint8_t {
    none,     // nothing was ever sent
    sent,     // a START went out and was not answered, or its sender was killed
    refused,  // it was refused without a promise: it is not sent again, the host is asked until it promises
  } kind = Kind::none;
  BootTime since{};  // of the last START
  std::string why;   // of the refusal
  bool disk_full = false;
};
// Names the result of a try.
enum class LaunchVerdict : std::uint8_t { accepted, prepared, failed, again };
// A host that answers but cannot promise (its disk is full) is given up `lost_after` the last START: in wait mode, no
// lease of that START can be left by then. Silence judges a silent host.
[[nodiscard]] LaunchVerdict judge_launch(LaunchResult& result, LaunchDoubt& doubt, Duration lost_after, BootTime now);

// Sends PREPARE and START, and after a refusal looks whether an earlier START of ours was the reason; the look makes
// the host promise that the epoch never runs there.
class LaunchTalk {
 public:
  LaunchTalk(wire::AttemptSpec spec, Duration lease, std::map<std::string, std::string> secrets, LaunchDoubt doubt = {},
             bool start = true);
  using Next = std::variant<Request, LaunchResult>;
  [[nodiscard]] Request first();
  [[nodiscard]] Next next(const Result<Answer>& answer);
  // Called instead of first() if there is no connection.
  [[nodiscard]] LaunchResult unreached(const Error& error) const;
  // Called instead of first() if the attempt cannot be started from here.
  [[nodiscard]] Next give_up(LaunchResult why);

 private:
  enum class Asked : std::uint8_t { prepare, start, look };
  [[nodiscard]] Next refused(const Error& error);
  [[nodiscard]] Request look();
  [[nodiscard]] Next looked(const Result<Answer>& answer);
  [[nodiscard]] bool is_in_doubt() const { return sent_ || doubt_.kind != LaunchDoubt::Kind::none; }
  [[nodiscard]] LaunchResult of_kind(LaunchResult::Kind kind, std::string detail = "") const;

  wire::StartRequest start_;
  LaunchDoubt doubt_;
  const bool start_now_;  // else it ends when the host is prepared
  Asked asked_ = Asked::prepare;
  bool sent_ = false;
  LaunchResult refusal_;
};

// Looks until the attempt is over, with one STOP if it is not; fetches what a stale attempt saved; cleans.
class CleanUpTalk {
 public:
  CleanUpTalk(JobId job, job::PendingCleanup end);
  struct Pause {};  // a moment, then repeat()
  struct Fetch {    // then fetched()
    wire::AttemptStatus status;
  };
  struct CleanedUp {};
  using Next = std::variant<Request, Pause, Fetch, CleanedUp, Error>;
  [[nodiscard]] Request first() const;
  [[nodiscard]] Next next(const Result<Answer>& answer);
  [[nodiscard]] Request repeat();
  [[nodiscard]] Request fetched();

 private:
  enum class Asked : std::uint8_t { look, stop, clean };
  JobId job_;
  job::PendingCleanup end_;
  Asked asked_ = Asked::look;
  bool stop_sent_ = false;
};

}  // namespace gridctl::control
