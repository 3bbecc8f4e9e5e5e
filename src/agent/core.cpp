// SPDX-License-Identifier: Apache-2.0
#include "agent/core.hpp"

#include <algorithm>

#include "os/log.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_reported_max = 256;                     // attempts in one reply: it stays below a frame
constexpr Duration k_lease_max = std::chrono::hours{24 * 366};  // keeps sums of times far from overflow

Error stale(Epoch asked, Epoch fence) {
  return make_error(Code::refused, "epoch " + std::to_string(asked.value) + " is not above this host's fence " +
                                       std::to_string(fence.value));
}

}  // namespace

Result<void> check_lease(BootTime echo, Duration lease, BootTime now) {
  if (lease <= Duration{} || lease > k_lease_max)
    return make_error(Code::refused, "the length of the lease is not valid");
  if (echo.ns <= 0 || echo > now) return make_error(Code::refused, "this host never sent the echoed time");
  if (now >= echo + lease)
    return make_error(Code::refused, "the lease would have ended before it began: the echo is too old");
  return {};
}

Result<Epoch> Core::raise_fence(const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const Epoch current, host_.fence(job));
  if (current >= epoch) return current;
  TRY(host_.set_fence(job, epoch));
  return epoch;
}

Result<wire::PrepareReply> Core::prepare(const wire::PrepareRequest& request) {
  TRY_ASSIGN(const Epoch fence, host_.fence(request.job));
  if (request.epoch <= fence) return stale(request.epoch, fence);
  return wire::PrepareReply{host_.now(), host_.boot_id()};
}

Result<wire::StartReply> Core::start(const wire::StartRequest& request) {
  const AttemptKey key{request.spec.job, request.spec.epoch};
  TRY_ASSIGN(const HostState::Lock lock, host_.lock(key.job));
  TRY_ASSIGN(const Epoch fence, host_.fence(key.job));
  if (key.epoch <= fence) {
    if (host_.accepted_by(key) != request.op) return stale(key.epoch, fence);
    host_.adopt(key);
    return wire::StartReply{true};
  }
  // From here on, every answer is a promise about this epoch.
  TRY(raise_fence(key.job, key.epoch));
  TRY(accept(request));
  return wire::StartReply{false};
}

Result<void> Core::accept(const wire::StartRequest& request) {
  const AttemptKey key{request.spec.job, request.spec.epoch};
  if (request.boot_id != host_.boot_id())
    return make_error(Code::refused, "this host has restarted since the request (the boot id differs)");
  TRY(check_lease(request.echo, request.lease, host_.now()));
  TRY(host_.check(request));
  TRY(check_no_older(key));
  const auto settle = [&]() -> Result<void> {
    TRY(host_.take_lease(request));  // after an error it may be written all the same
    TRY(host_.create(request));
    return host_.begin(request);
  };
  auto settled = settle();
  if (settled || host_.exists(key)) return {};  // a folder is an acceptance: adoption will start it
  (void)host_.release_lease(key);
  return settled;
}

// Two attempts of one job never overlap on a host, whatever the controller believes.
Result<void> Core::check_no_older(const AttemptKey& key) {
  TRY_ASSIGN(const auto epochs, host_.epochs(key.job));
  bool busy = false;
  for (const Epoch epoch : epochs) {
    if (epoch >= key.epoch) continue;
    const AttemptKey older{key.job, epoch};
    TRY_ASSIGN(const auto stored, host_.stored(older));
    if (!stored || stored->ended() || stored->boot_id != host_.boot_id()) continue;
    busy = true;
    TRY_ASSIGN(const Duration grace, host_.stop_grace(older));
    TRY_ASSIGN(const auto before, host_.stop_order(older));
    if (!before) TRY(host_.order_stop(older, grace.count()));
    host_.adopt(older);
  }
  if (busy) return make_error(Code::busy, "an older attempt of this job is still ending on this host");
  return {};
}

Result<void> Core::stop(const wire::StopRequest& request) {
  TRY_ASSIGN(const HostState::Lock lock, host_.lock(request.job));
  TRY(raise_fence(request.job, request.epoch));
  TRY_ASSIGN(const auto epochs, host_.epochs(request.job));
  const std::int64_t grace = std::max<std::int64_t>(0, request.grace.count());
  for (const Epoch epoch : epochs) {
    if (epoch > request.epoch) continue;
    const AttemptKey key{request.job, epoch};
    TRY_ASSIGN(const auto stored, host_.stored(key));
    if (!stored || stored->ended()) continue;
    TRY_ASSIGN(const auto before, host_.stop_order(key));
    if (!before || *before > grace) TRY(host_.order_stop(key, grace));
    host_.adopt(key);
  }
  return {};
}

Result<void> Core::clean(const wire::CleanRequest& request) {
  TRY_ASSIGN(const HostState::Lock lock, host_.lock(request.job));
  TRY_ASSIGN(const auto epochs, host_.epochs(request.job));
  for (const Epoch epoch : epochs) {
    if (epoch > request.epoch) continue;
    const AttemptKey key{request.job, epoch};
    TRY_ASSIGN(const auto stored, host_.stored(key));
    if (!stored) continue;
    // An attempt of an earlier boot is reported as ended at once; its supervisor needs a moment to tidy up.
    if (!stored->ended()) {
      host_.adopt(key);
      if (stored->boot_id == host_.boot_id() || !host_.await_settled(key))
        return make_error(Code::busy, "attempt with epoch " + std::to_string(epoch.value) + " has not ended yet");
    }
    if (request.keep_work > Duration{}) TRY(host_.keep_work(key, request.keep_work));
    TRY(host_.remove(key));
  }
  return {};
}

Result<wire::PollReply> Core::poll(const wire::PollRequest& request) {
  wire::PollReply reply = host_.blank_reply();
  const auto told = [&](const JobId& job, Epoch epoch) {
    return std::ranges::any_of(
        reply.attempts, [&](const wire::AttemptStatus& status) { return status.job == job && status.epoch == epoch; });
  };
  for (const auto& want : request.attempts) {
    if (reply.attempts.size() >= k_reported_max)
      return make_error(Code::refused, "a poll names more than 256 attempts");
    TRY_ASSIGN(auto status, poll_one(request, want));
    reply.attempts.push_back(std::move(status));
  }
  for (const JobId& id : host_.jobs()) {
    TRY_ASSIGN(const auto epochs, host_.epochs(id));
    for (const Epoch epoch : epochs) {
      if (reply.attempts.size() >= k_reported_max || told(id, epoch)) continue;
      TRY_ASSIGN(auto status, host_.status({id, epoch}));
      if (!status) continue;
      TRY_ASSIGN(status->max_epoch, host_.fence(id));
      reply.attempts.push_back(std::move(*status));
    }
  }
  return reply;
}

Result<wire::AttemptStatus> Core::poll_one(const wire::PollRequest& request, const wire::PollRequest::Want& want) {
  const AttemptKey key{want.job, want.epoch};
  TRY_ASSIGN(const HostState::Lock lock, host_.lock(want.job));
  TRY_ASSIGN(auto status, host_.status(key));
  if (!status) {
    // "Not here" is a promise: first make it impossible that the attempt arrives later.
    wire::AttemptStatus absent;
    absent.job = want.job;
    absent.epoch = want.epoch;
    TRY_ASSIGN(absent.max_epoch, raise_fence(want.job, want.epoch));
    return absent;
  }
  TRY_ASSIGN(status->max_epoch, host_.fence(want.job));
  TRY_ASSIGN(const auto stored, host_.stored(key));
  if (stored && !stored->ended()) {
    if (status->phase != wire::AttemptPhase::ended && stored->boot_id == host_.boot_id()) {
      // A full disk prevents the renewal, not the answer: otherwise, one missing disk block would make the host silent
      // and lost.
      if (const auto renewed = renew(request, want); !renewed)
        os::log(os::LogLevel::warn, "cannot renew: " + renewed.error().one_line());
    }
    host_.adopt(key);
  }
  return std::move(*status);
}

Result<void> Core::renew(const wire::PollRequest& request, const wire::PollRequest::Want& want) {
  const AttemptKey key{want.job, want.epoch};
  const std::uint64_t kept_from = want.checkpoints_kept_from;
  const BootTime now = host_.now();
  TRY_ASSIGN(const auto deadline, host_.deadline(key));
  const BootTime wanted = request.echo + request.lease;
  // The deadline moves only forward, and never after it has passed: the supervisor may be stopping the job at this
  // moment.
  if (deadline && now.ns < *deadline && wanted.ns > *deadline && check_lease(request.echo, request.lease, now))
    TRY(host_.set_deadline(key, wanted));
  TRY_ASSIGN(const auto kept, host_.kept_from(key));
  if (kept_from > static_cast<std::uint64_t>(kept.value_or(0)) && kept_from < INT64_MAX)
    TRY(host_.set_kept_from(key, kept_from));
  if (want.allowance && request.echo.ns > 0 && request.echo <= now)
    TRY(host_.set_limits(key, limits_from(*want.allowance, request.echo)));
  return host_.set_tempo(key, want.tempo);
}

}  // namespace gridctl::agent
