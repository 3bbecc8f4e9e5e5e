// SPDX-License-Identifier: Apache-2.0
#include "control/follow/launch_protocol.hpp"

#include <utility>

#include "control/follow/results.hpp"

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
  return make_error(Code::protocol_violation, "the agent's poll reply omits the requested attempt");
}

wire::StopRequest stop_request(const JobId& job, Epoch epoch, Duration grace) {
  // The grace is part of the name: a second request with a shorter grace is another operation.
  return {operation(job, epoch, "stop-" + std::to_string(grace.count() / 1'000'000)), job, epoch, grace};
}

LaunchResult not_started(const Error& error, bool host_fault) {
  LaunchResult result;
  result.detail = error.one_line();
  result.host_fault = host_fault;
  result.disk_full = host_fault && error.code == Code::no_space;
  result.nonsense = host_fault && error.code == Code::protocol_violation;
  return result;
}

job::LaunchFailed launch_failed(Epoch epoch, int rank, const LaunchResult& result) {
  job::EndKind kind = job::EndKind::start_failed;
  if (result.disk_full) kind = job::EndKind::disk_full;
  else if (result.nonsense) kind = job::EndKind::absent;
  return {epoch,          result.detail, result.host_fault, result.host_max_epoch, kind,
          result.refused, rank,          result.damaged,    result.busy,           result.hopeless};
}

LaunchVerdict judge_launch(LaunchResult& result, LaunchDoubt& doubt, Duration lost_after, BootTime now) {
  switch (result.kind) {
    case LaunchResult::Kind::accepted: return LaunchVerdict::accepted;
    case LaunchResult::Kind::prepared: return LaunchVerdict::prepared;
    case LaunchResult::Kind::not_started: return LaunchVerdict::failed;
    case LaunchResult::Kind::unknown:
      if (result.sent) doubt = {LaunchDoubt::Kind::sent, now, "", false};
      return LaunchVerdict::again;
    case LaunchResult::Kind::unpromised: break;
  }
  doubt = {LaunchDoubt::Kind::refused, result.sent ? now : doubt.since, result.detail, result.disk_full};
  if (now - doubt.since <= lost_after) return LaunchVerdict::again;
  result.host_fault = true;
  return LaunchVerdict::failed;
}

LaunchTalk::LaunchTalk(wire::AttemptSpec spec, Duration lease, std::map<std::string, std::string> secrets,
                       LaunchDoubt doubt, bool start)
    : start_{operation(spec.job, spec.epoch, "start"), {}, {}, lease, std::move(spec), std::move(secrets)},
      doubt_(std::move(doubt)),
      start_now_(start) {}

LaunchResult LaunchTalk::of_kind(LaunchResult::Kind kind, std::string detail) const {
  LaunchResult result;
  result.kind = kind;
  result.detail = std::move(detail);
  result.sent = sent_;
  return result;
}

Request LaunchTalk::look() {
  asked_ = Asked::look;
  return look_request(start_.spec.job, start_.spec.epoch);
}

Request LaunchTalk::first() {
  if (doubt_.kind == LaunchDoubt::Kind::refused) {
    refusal_.detail = doubt_.why;
    refusal_.host_fault = true;
    refusal_.disk_full = doubt_.disk_full;
    return look();
  }
  return wire::PrepareRequest{operation(start_.spec.job, start_.spec.epoch, "prepare"), start_.spec.job,
                              start_.spec.epoch};
}

LaunchResult LaunchTalk::unreached(const Error& error) const {
  return is_in_doubt() ? of_kind(LaunchResult::Kind::unknown, error.one_line()) : not_started(error, false);
}

LaunchTalk::Next LaunchTalk::give_up(LaunchResult why) {
  if (!is_in_doubt()) return why;
  refusal_ = std::move(why);
  return look();
}

LaunchTalk::Next LaunchTalk::next(const Result<Answer>& answer) {
  switch (asked_) {
    case Asked::prepare: {
      if (!answer && is_uncertain(answer.error().code)) {
        // No start can result from this: the host learns only the epoch. A host that answers nonsense is not asked
        // again.
        if (!is_in_doubt()) return not_started(answer.error(), answer.error().code == Code::protocol_violation);
        return of_kind(LaunchResult::Kind::unknown, answer.error().one_line());
      }
      if (!answer) return refused(answer.error());
      const auto* prepared = std::get_if<wire::PrepareReply>(&*answer);
      if (prepared == nullptr)
        return give_up(
            not_started(make_error(Code::protocol_violation, "the agent's answer to prepare is not valid"), true));
      start_.echo = prepared->host_time;
      start_.boot_id = prepared->boot_id;
      if (!start_now_) return of_kind(LaunchResult::Kind::prepared);
      asked_ = Asked::start;
      sent_ = true;
      return Request{start_};
    }
    case Asked::start:
      if (answer) return of_kind(LaunchResult::Kind::accepted);
      if (is_uncertain(answer.error().code)) return of_kind(LaunchResult::Kind::unknown, answer.error().one_line());
      return refused(answer.error());
    case Asked::look: return looked(answer);
  }
  return refusal_;
}

LaunchTalk::Next LaunchTalk::looked(const Result<Answer>& answer) {
  const Result<wire::AttemptStatus> status =
      answer ? look_answer(*answer, start_.spec.job, start_.spec.epoch) : answer.error();
  if (!status && is_uncertain(status.error().code))
    return of_kind(LaunchResult::Kind::unknown, status.error().one_line());
  if (!status) {
    if (is_in_doubt()) refusal_.kind = LaunchResult::Kind::unpromised;
    if (status.error().code == Code::no_space) refusal_.disk_full = true;  // why it cannot promise, whatever it refused
    refusal_.sent = sent_;
    return refusal_;
  }
  if (status->phase != wire::AttemptPhase::absent) return of_kind(LaunchResult::Kind::accepted);
  refusal_.host_max_epoch = status->max_epoch;
  return refusal_;
}

// "busy" and "refused" come from behind a fence; other errors may also come before a fence could be written (a full
// disk). The very attempt may already be there, because an earlier START got through and only its answer was lost.
LaunchTalk::Next LaunchTalk::refused(const Error& error) {
  refusal_ = not_started(error, error.code != Code::busy && error.code != Code::refused);
  refusal_.busy = error.code == Code::busy;
  refusal_.refused = error.code == Code::refused;
  if (error.code == Code::busy || (error.code != Code::refused && !is_in_doubt())) return refusal_;
  return look();
}

CleanUpTalk::CleanUpTalk(JobId job, job::PendingCleanup end) : job_(std::move(job)), end_(std::move(end)) {}

Request CleanUpTalk::first() const { return look_request(job_, end_.epoch); }

Request CleanUpTalk::repeat() {
  asked_ = Asked::look;
  return first();
}

Request CleanUpTalk::fetched() {
  asked_ = Asked::clean;
  return wire::CleanRequest{operation(job_, end_.epoch, "clean"), job_, end_.epoch,
                            end_.keep_work ? k_keep_work : Duration{}};
}

CleanUpTalk::Next CleanUpTalk::next(const Result<Answer>& answer) {
  if (!answer) return answer.error();
  if (asked_ == Asked::clean) return CleanedUp{};
  if (asked_ == Asked::stop) return Pause{};
  Result<wire::AttemptStatus> status = look_answer(*answer, job_, end_.epoch);
  if (!status) return status.error();
  const bool over = status->phase == wire::AttemptPhase::ended || status->phase == wire::AttemptPhase::absent;
  if (over && end_.stale) return Fetch{std::move(*status)};
  if (over) return fetched();
  if (stop_sent_) return Pause{};
  stop_sent_ = true;
  asked_ = Asked::stop;
  return Request{stop_request(job_, end_.epoch, Duration::zero())};
}

}  // namespace gridctl::control
