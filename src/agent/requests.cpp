// SPDX-License-Identifier: Apache-2.0
#include "agent/requests.hpp"

#include "agent/announced.hpp"
#include "agent/attempt_dir.hpp"
#include "agent/pause.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_epoch_max = INT64_MAX;  // the fence and the ledger keep signed numbers
constexpr std::chrono::milliseconds k_shutdown_near = std::chrono::minutes{2};  // a job that began then would get nowhere
}

Requests::Requests(Path home, ControllerId controller, os::Clock& clock)
    : home_(std::move(home)),
      controller_(std::move(controller)),
      clock_(clock),
      host_(home_, controller_, clock),
      core_(host_) {}

Result<AttemptDir> Requests::attempt(const JobId& job, Epoch epoch) const {
  TRY_ASSIGN(const JobDir folder, JobDir::at(home_, controller_, job));
  return AttemptDir{folder.attempt(epoch)};
}

Result<HostState::Lock> Requests::lock(const JobId& job) {
  TRY(check_id(job));
  return host_.lock(job);
}

Result<void> Requests::check_id(const JobId& job) const {
  TRY(JobDir::at(home_, controller_, job));
  return {};
}

// A fence above could not be read again, and nobody could order the attempt to end.
Result<void> Requests::check_key(const JobId& job, Epoch epoch) const {
  TRY(check_id(job));
  if (epoch.value <= k_epoch_max) return {};
  return make_error(Code::refused, "epoch " + std::to_string(epoch.value) + " is beyond those of any job");
}

Result<wire::PrepareReply> Requests::prepare(const wire::PrepareRequest& request) {
  TRY(check_key(request.job, request.epoch));
  return core_.prepare(request);
}

Result<wire::StartReply> Requests::start(const wire::StartRequest& request) {
  TRY(check_key(request.spec.job, request.spec.epoch));
  if (const auto at = announced_shutdown(); at && at->ms - clock_.wall().ms < k_shutdown_near.count())
    return make_error(Code::refused, "this machine shuts down at " + format_rfc3339(*at));
  return core_.start(request);
}

Result<void> Requests::stop(const wire::StopRequest& request) {
  TRY(check_key(request.job, request.epoch));
  return core_.stop(request);
}

Result<void> Requests::clean(const wire::CleanRequest& request) {
  TRY(check_key(request.job, request.epoch));
  return core_.clean(request);
}

Result<wire::PauseReply> Requests::pause(const wire::PauseRequest& request) {
  TRY_ASSIGN(const AttemptDir dir, attempt(request.job, request.epoch));
  const AttemptKey key{request.job, request.epoch};
  {
    TRY_ASSIGN(const HostState::Lock lock, host_.lock(request.job));
    TRY_ASSIGN(const auto stored, host_.stored(key));
    if (!stored || stored->ended() || stored->boot_id != host_.boot_id())
      return make_error(Code::not_found, "the attempt does not run on this host");
    TRY(write_pause_order(dir, {request.op, request.resume, request.gpu_only}));
  }
  host_.adopt(key);
  return await_pause(dir, request, clock_);
}

Result<void> Requests::keep(const wire::KeepRequest& request, const OwnSnapshots& own) {
  TRY(check_id(request.job));
  const AttemptKey key{request.job, request.epoch};
  TRY_ASSIGN(const HostState::Lock lock, host_.lock(request.job));
  if (request.epoch.value == 0) {
    own.drop(request.job);
    return {};
  }
  if (!host_.exists(key)) return {};
  TRY_ASSIGN(const auto stored, host_.stored(key));
  if (stored && !stored->ended() && stored->boot_id == host_.boot_id())
    return make_error(Code::busy, "the attempt has not ended yet");
  return own.keep(host_.attempt(key));
}

Result<wire::PollReply> Requests::poll(const wire::PollRequest& request) {
  for (const auto& want : request.attempts) TRY(check_key(want.job, want.epoch));
  return core_.poll(request);
}

std::optional<wire::PollReply> Requests::report(const JobId& job, Epoch epoch) {
  const auto folder = JobDir::at(home_, controller_, job);
  if (!folder) return std::nullopt;
  auto status = read_status(AttemptDir{folder->attempt(epoch)}, clock_);
  if (!status || !*status) return std::nullopt;
  if (const auto fence = read_fence(*folder)) (*status)->max_epoch = *fence;
  wire::PollReply reply = host_.blank_reply();
  reply.attempts.push_back(std::move(**status));
  return reply;
}

void Requests::adopt_all() {
  for (const JobId& id : host_.jobs()) {
    const auto epochs = host_.epochs(id);
    if (!epochs) continue;
    for (const Epoch epoch : *epochs) host_.adopt({id, epoch});
  }
}

}  // namespace gridctl::agent
