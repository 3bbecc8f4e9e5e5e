// SPDX-License-Identifier: Apache-2.0
// The two conversations in which the order of requests, and what an answer or its absence means, decides whether a job
// can run twice. Pure: work.cpp holds them over a connection, the simulator over a simulated one.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/result.hpp"
#include "job/state.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

using Ask =
    std::variant<wire::PrepareRequest, wire::StartRequest, wire::StopRequest, wire::CleanRequest, wire::PollRequest>;
struct Yes {};  // an answer without content
using Answer = std::variant<Yes, wire::PrepareReply, wire::StartReply, wire::PollReply>;

// The link broke or fell silent: the request may have been carried out.
[[nodiscard]] bool is_uncertain(Code code);
// An operation's name; the same for every repetition of it.
[[nodiscard]] OpId operation(const JobId& job, Epoch epoch, const std::string& what);
// The question for one attempt that renews nothing, and its answer.
[[nodiscard]] wire::PollRequest look_request(const JobId& job, Epoch epoch);
[[nodiscard]] Result<wire::AttemptStatus> look_answer(const Answer& answer, const JobId& job, Epoch epoch);
[[nodiscard]] wire::StopRequest stop_request(const JobId& job, Epoch epoch, Duration grace);

struct LaunchResult {
  enum class Kind : std::uint8_t {
    accepted,     // the host has it
    not_started,  // certain: it will never run under this epoch
    unknown,      // the answer to START was lost: ask again with the same operation
  } kind = Kind::not_started;
  std::string detail;
  bool host_fault = false;  // this host cannot run it; else something that passes (network, a resource just taken)
  bool busy = false;        // the resource is held by somebody
  Epoch host_max_epoch;     // the host's fence when it refused
};
[[nodiscard]] LaunchResult not_started(const Error& error, bool host_fault);

// PREPARE, START, and after a refusal a look whether an earlier START of ours was the reason.
class LaunchTalk {
 public:
  LaunchTalk(wire::AttemptSpec spec, Duration lease, std::map<std::string, std::string> secrets);
  [[nodiscard]] Ask first() const;
  using Next = std::variant<Ask, LaunchResult>;
  [[nodiscard]] Next next(const Result<Answer>& answer);

 private:
  enum class Asked : std::uint8_t { prepare, start, look };
  [[nodiscard]] Next refused(const Error& error);

  wire::StartRequest start_;
  Asked asked_ = Asked::prepare;
  LaunchResult refusal_;
};

// Look until the attempt is over, with one STOP if it is not; fetch what a stale one saved; clean.
class SettleTalk {
 public:
  SettleTalk(JobId job, job::LooseEnd end);
  struct Pause {};  // a moment, then repeat()
  struct Fetch {    // then fetched()
    wire::AttemptStatus status;
  };
  struct Settled {};
  using Next = std::variant<Ask, Pause, Fetch, Settled, Error>;
  [[nodiscard]] Ask first() const;
  [[nodiscard]] Next next(const Result<Answer>& answer);
  [[nodiscard]] Ask repeat();
  [[nodiscard]] Ask fetched();

 private:
  enum class Asked : std::uint8_t { look, stop, clean };
  JobId job_;
  job::LooseEnd end_;
  Asked asked_ = Asked::look;
  bool stop_sent_ = false;
};

}  // namespace gridctl::control
