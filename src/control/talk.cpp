// SPDX-License-Identifier: Apache-2.0
#include "control/talk.hpp"

#include <utility>

namespace gridctl::control {

bool is_uncertain(Code code) {
  return code == Code::host_unreachable || code == Code::timed_out || code == Code::protocol_violation;
}

OpId operation(const JobId& job, Epoch epoch, const std::string& what) {
  return {job.value + ".e" + std::to_string(epoch.value) + "." + what};
}

wire::PollRequest look_request(const JobId& job, Epoch epoch) {
  wire::PollRequest request;
  request.attempts.push_back({job, epoch, 0});
  return request;
}

Result<wire::AttemptStatus> look_answer(const Answer& answer, const JobId& job, Epoch epoch) {
  if (const auto* reply = std::get_if<wire::PollReply>(&answer))
    for (const wire::AttemptStatus& status : reply->attempts)
      if (status.job == job && status.epoch == epoch) return status;
  return make_error(Code::protocol_violation, "the agent's poll reply leaves out the attempt that was asked for");
}

wire::StopRequest stop_request(const JobId& job, Epoch epoch, Duration grace) {
  // The grace is part of the name: a second request with less patience is another operation.
  return {operation(job, epoch, "stop-" + std::to_string(grace.count() / 1'000'000)), job, epoch, grace};
}

LaunchResult not_started(const Error& error, bool host_fault) {
  LaunchResult result;
  result.detail = error.one_line();
  result.host_fault = host_fault;
  return result;
}

LaunchTalk::LaunchTalk(wire::AttemptSpec spec, Duration lease, std::map<std::string, std::string> secrets)
    : start_{operation(spec.job, spec.epoch, "start"), {}, {}, lease, std::move(spec), std::move(secrets)} {}

Ask LaunchTalk::first() const {
  return wire::PrepareRequest{operation(start_.spec.job, start_.spec.epoch, "prepare"), start_.spec.job,
                              start_.spec.epoch};
}

LaunchTalk::Next LaunchTalk::next(const Result<Answer>& answer) {
  const LaunchResult accepted{LaunchResult::Kind::accepted, "", false, false, {}};
  const auto unknown = [](const Error& error) {
    return LaunchResult{LaunchResult::Kind::unknown, error.one_line(), false, false, {}};
  };
  switch (asked_) {
    case Asked::prepare: {
      // Nothing can start from this: the host learns of the epoch only. Who talks nonsense is not asked again.
      if (!answer && is_uncertain(answer.error().code))
        return not_started(answer.error(), answer.error().code == Code::protocol_violation);
      if (!answer) return refused(answer.error());
      const auto* prepared = std::get_if<wire::PrepareReply>(&*answer);
      if (prepared == nullptr)
        return not_started(make_error(Code::protocol_violation, "the agent's answer to prepare is none"), true);
      start_.echo = prepared->host_time;
      start_.boot_id = prepared->boot_id;
      asked_ = Asked::start;
      return Ask{start_};
    }
    case Asked::start:
      if (answer) return accepted;
      if (is_uncertain(answer.error().code)) return unknown(answer.error());
      return refused(answer.error());
    case Asked::look: {
      if (!answer) return unknown(answer.error());
      const Result<wire::AttemptStatus> status = look_answer(*answer, start_.spec.job, start_.spec.epoch);
      if (!status) return unknown(status.error());
      if (status->phase != wire::AttemptPhase::absent) return accepted;
      refusal_.host_max_epoch = status->max_epoch;
      return refusal_;
    }
  }
  return refusal_;
}

// A refusal is a promise that this epoch never runs there; unless the very attempt is there already, because an earlier
// START of ours got through and only its answer was lost.
LaunchTalk::Next LaunchTalk::refused(const Error& error) {
  refusal_ = not_started(error, error.code != Code::busy && error.code != Code::refused);
  refusal_.busy = error.code == Code::busy;
  if (error.code != Code::refused) return refusal_;
  asked_ = Asked::look;
  return Ask{look_request(start_.spec.job, start_.spec.epoch)};
}

SettleTalk::SettleTalk(JobId job, job::LooseEnd end) : job_(std::move(job)), end_(std::move(end)) {}

Ask SettleTalk::first() const { return look_request(job_, end_.epoch); }

Ask SettleTalk::repeat() {
  asked_ = Asked::look;
  return first();
}

Ask SettleTalk::fetched() {
  asked_ = Asked::clean;
  return wire::CleanRequest{operation(job_, end_.epoch, "clean"), job_, end_.epoch};
}

SettleTalk::Next SettleTalk::next(const Result<Answer>& answer) {
  if (!answer) return answer.error();
  if (asked_ == Asked::clean) return Settled{};
  if (asked_ == Asked::stop) return Pause{};
  Result<wire::AttemptStatus> status = look_answer(*answer, job_, end_.epoch);
  if (!status) return status.error();
  const bool over = status->phase == wire::AttemptPhase::ended || status->phase == wire::AttemptPhase::absent;
  if (over && end_.stale) return Fetch{std::move(*status)};
  if (over) return fetched();
  if (stop_sent_) return Pause{};
  stop_sent_ = true;
  asked_ = Asked::stop;
  return Ask{stop_request(job_, end_.epoch, Duration::zero())};
}

}  // namespace gridctl::control
