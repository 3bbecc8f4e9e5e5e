// SPDX-License-Identifier: Apache-2.0
#include "agent/requests.hpp"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "agent/fence.hpp"
#include "agent/job_view.hpp"
#include "agent/process_tree.hpp"
#include "agent/supervise.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_reported_max = 256;                     // attempts in one reply: it stays below a frame
constexpr Duration k_first_word = std::chrono::seconds{2};      // from a start to its supervisor's lock
constexpr Duration k_settle_wait = std::chrono::seconds{30};    // an engine's call and a ledger's write
constexpr Duration k_lease_max = std::chrono::hours{24 * 366};  // keeps sums of times far from overflow

Error stale(Epoch asked, Epoch fence) {
  return make_error(Code::refused, "epoch " + std::to_string(asked.value) + " is not above this host's fence " +
                                       std::to_string(fence.value));
}

Result<void> check_lease(BootTime echo, Duration lease, BootTime now) {
  if (lease <= Duration{} || lease > k_lease_max) return make_error(Code::refused, "the lease has no sensible length");
  if (echo.ns <= 0 || echo > now) return make_error(Code::refused, "the echoed time was never given out by this host");
  if (now >= echo + lease)
    return make_error(Code::refused, "the lease would have ended before it began: the echo is too old");
  return {};
}

}  // namespace

Requests::Requests(Path home, ControllerId controller, os::Clock& clock)
    : home_(std::move(home)),
      controller_(std::move(controller)),
      clock_(clock),
      ledger_(lease_directory(), Machine::real(), clock) {}

Result<AttemptDir> Requests::attempt(const JobId& job, Epoch epoch) const {
  TRY_ASSIGN(const JobDir folder, JobDir::at(home_, controller_, job));
  return AttemptDir{folder.attempt(epoch)};
}

Result<wire::PrepareReply> Requests::prepare(const wire::PrepareRequest& request) {
  TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, request.job));
  TRY_ASSIGN(const Epoch fence, read_fence(job));
  if (request.epoch <= fence) return stale(request.epoch, fence);
  return wire::PrepareReply{clock_.boot(), os::boot_id()};
}

Result<wire::StartReply> Requests::start(const wire::StartRequest& request) {
  const Epoch epoch = request.spec.epoch;
  TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, request.spec.job));
  TRY_ASSIGN(const os::FileLock lock, job.lock());
  TRY_ASSIGN(const Epoch fence, read_fence(job));
  const AttemptDir attempt{job.attempt(epoch)};
  if (epoch <= fence) {
    const auto op = os::read_file(attempt.op_file(), 4096);
    if (!op || trim(*op) != request.op.value) return stale(epoch, fence);
    adopt(attempt);
    return wire::StartReply{true};
  }
  // From here on every answer is a promise about this epoch.
  TRY(raise_fence(job, epoch));
  TRY(accept(job, request));
  return wire::StartReply{false};
}

Result<void> Requests::accept(const JobDir& job, const wire::StartRequest& request) {
  const wire::AttemptSpec& spec = request.spec;
  if (request.boot_id != os::boot_id())
    return make_error(Code::refused, "this host was restarted since it was asked (boot id differs)");
  TRY(check_lease(request.echo, request.lease, clock_.boot()));
  TRY(check_spec(spec));
  TRY(check_secrets(spec, request.secrets));
  TRY(check_no_older(job, spec.epoch));

  Lease lease;
  lease.controller = controller_;
  lease.job = spec.job;
  lease.epoch = spec.epoch;
  lease.uid = ::geteuid();
  const Machine machine = Machine::real();
  lease.boot_id = machine.boot_id;
  lease.pid_namespace = machine.pid_namespace;
  lease.supervisor = os::identify(::getpid()).value_or(os::ProcessId{});  // until the real one has taken over
  lease.deadline = request.echo + request.lease;
  lease.grace = spec.stop_grace;
  lease.cpus = spec.cpus;
  lease.memory_bytes = spec.memory_bytes;
  lease.gpus = spec.gpu_uuids;
  TRY(ledger_.take(lease, machine_capacity()));

  const AttemptDir attempt{job.attempt(spec.epoch)};
  const auto settle = [&]() -> Result<void> {
    TRY(write_secrets(attempt, request.secrets));
    TRY(create_attempt(attempt, {request.op, request.boot_id, lease.deadline, spec}));
    TRY_ASSIGN(const int pid, spawn_supervisor(attempt));
    lease.supervisor = os::identify(pid).value_or(lease.supervisor);
    return ledger_.take(lease, machine_capacity());
  };
  auto settled = settle();
  if (settled || os::exists(attempt.path)) return {};  // a folder is an acceptance: adoption will start it
  (void)ledger_.release(controller_, spec.job, spec.epoch);
  return settled;
}

// Two attempts of one job never overlap on a host, whatever the controller believes.
Result<void> Requests::check_no_older(const JobDir& job, Epoch epoch) {
  TRY_ASSIGN(const auto epochs, job.epochs());
  bool busy = false;
  for (const Epoch older : epochs) {
    const AttemptDir attempt{job.attempt(older)};
    if (older >= epoch) continue;
    TRY_ASSIGN(const auto stored, read_stored_status(attempt, clock_));
    if (!stored || stored->ended() || stored->boot_id != os::boot_id()) continue;
    busy = true;
    TRY_ASSIGN(const auto spec, read_spec(attempt));
    if (!os::exists(attempt.stop_file()))
      TRY(os::write_file_durably(attempt.stop_file(), std::to_string(spec.stop_grace.count()) + "\n"));
    adopt(attempt);
  }
  if (busy) return make_error(Code::busy, "an older attempt of this job is still ending on this host");
  return {};
}

Result<void> Requests::stop(const wire::StopRequest& request) {
  TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, request.job));
  TRY_ASSIGN(const os::FileLock lock, job.lock());
  TRY(raise_fence(job, request.epoch));
  TRY_ASSIGN(const auto epochs, job.epochs());
  const std::int64_t grace = std::max<std::int64_t>(0, request.grace.count());
  for (const Epoch epoch : epochs) {
    if (epoch > request.epoch) continue;
    const AttemptDir attempt{job.attempt(epoch)};
    TRY_ASSIGN(const auto stored, read_stored_status(attempt, clock_));
    if (!stored || stored->ended()) continue;
    TRY_ASSIGN(const auto before, read_number(attempt.stop_file()));
    if (!before || *before > grace) TRY(os::write_file_durably(attempt.stop_file(), std::to_string(grace) + "\n"));
    adopt(attempt);
  }
  return {};
}

// An attempt of an earlier boot is told as ended at once; its supervisor needs a moment to tidy up after it.
bool Requests::await_settled(const AttemptDir& attempt, const std::string& boot_id) {
  adopt(attempt);
  if (boot_id == os::boot_id()) return false;
  for (const BootTime give_up = clock_.boot() + k_settle_wait; clock_.boot() < give_up;) {
    const auto stored = read_stored_status(attempt, clock_);
    if (stored && *stored && (*stored)->ended()) return true;
    ::poll(nullptr, 0, 20);
  }
  return false;
}

Result<void> Requests::clean(const wire::CleanRequest& request) {
  TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, request.job));
  TRY_ASSIGN(const os::FileLock lock, job.lock());
  TRY_ASSIGN(const auto epochs, job.epochs());
  for (const Epoch epoch : epochs) {
    if (epoch > request.epoch) continue;
    const AttemptDir attempt{job.attempt(epoch)};
    TRY_ASSIGN(const auto stored, read_stored_status(attempt, clock_));
    if (!stored) continue;
    if (!stored->ended() && !await_settled(attempt, stored->boot_id))
      return make_error(Code::busy, "attempt with epoch " + std::to_string(epoch.value) + " has not ended yet");
    // Its supervisor has written its last word and is about to go.
    TRY_ASSIGN(const os::FileLock over, os::FileLock::acquire(attempt.supervisor_lock()));
    if (os::exists(attempt.path / "leftover")) {
      TRY_ASSIGN(const auto spec, read_spec(attempt));
      TRY(make_engine(spec.engine)->remove(attempt_name(request.job, epoch)));
    }
    remove_links(attempt);
    if (const auto secrets = attempt.secrets()) TRY(os::remove_tree(*secrets));
    TRY(ledger_.release(controller_, request.job, epoch));
    TRY(os::remove_tree(attempt.path));
    TRY(os::remove_file(job.path.parent_path() / "notify" / (request.job.value + "." + std::to_string(epoch.value))));
  }
  return {};
}

wire::PollReply Requests::blank_reply() const {
  wire::PollReply reply;
  reply.host_time = clock_.boot();
  reply.boot_id = os::boot_id();
  double load = 0;
  if (::getloadavg(&load, 1) == 1) reply.load1 = load;
  if (const auto free = os::free_bytes(home_)) reply.disk_free_bytes = *free;
  return reply;
}

Result<wire::PollReply> Requests::poll(const wire::PollRequest& request) {
  wire::PollReply reply = blank_reply();
  const auto told = [&](const JobId& job, Epoch epoch) {
    return std::any_of(reply.attempts.begin(), reply.attempts.end(),
                       [&](const wire::AttemptStatus& status) { return status.job == job && status.epoch == epoch; });
  };
  for (const auto& want : request.attempts) {
    if (reply.attempts.size() >= k_reported_max)
      return make_error(Code::refused, "a poll names more than 256 attempts");
    TRY_ASSIGN(auto status, poll_one(request, want));
    reply.attempts.push_back(std::move(status));
  }
  for (const JobId& id : jobs()) {
    TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, id));
    TRY_ASSIGN(const auto epochs, job.epochs());
    for (const Epoch epoch : epochs) {
      if (reply.attempts.size() >= k_reported_max || told(id, epoch)) continue;
      TRY_ASSIGN(auto status, read_status(AttemptDir{job.attempt(epoch)}, clock_));
      if (!status) continue;
      TRY_ASSIGN(status->max_epoch, read_fence(job));
      reply.attempts.push_back(std::move(*status));
    }
  }
  return reply;
}

Result<wire::AttemptStatus> Requests::poll_one(const wire::PollRequest& request, const wire::PollRequest::Want& want) {
  TRY_ASSIGN(const JobDir job, JobDir::at(home_, controller_, want.job));
  TRY_ASSIGN(const os::FileLock lock, job.lock());
  const AttemptDir attempt{job.attempt(want.epoch)};
  TRY_ASSIGN(auto status, read_status(attempt, clock_));
  if (!status) {
    // "Not here" is a promise: first make it impossible that it comes here later.
    wire::AttemptStatus absent;
    absent.job = want.job;
    absent.epoch = want.epoch;
    TRY_ASSIGN(absent.max_epoch, raise_fence(job, want.epoch));
    return absent;
  }
  TRY_ASSIGN(status->max_epoch, read_fence(job));
  TRY_ASSIGN(const auto stored, read_stored_status(attempt, clock_));
  if (stored && !stored->ended()) {
    if (status->phase != wire::AttemptPhase::ended) {
      // A full disk takes the renewal, not the answer: a host that is silent for want of a block would be given up.
      if (const auto renewed = renew(attempt, request, want.checkpoints_kept_from); !renewed)
        os::log(os::LogLevel::warn, "cannot renew: " + renewed.error().one_line());
    }
    adopt(attempt);
  }
  return std::move(*status);
}

Result<void> Requests::renew(const AttemptDir& attempt, const wire::PollRequest& request, std::uint64_t kept_from) {
  const BootTime now = clock_.boot();
  TRY_ASSIGN(const auto deadline, read_number(attempt.deadline_file()));
  const BootTime wanted = request.echo + request.lease;
  // Only forward, and never once it has passed: the supervisor may be stopping the job at this moment.
  if (deadline && now.ns < *deadline && wanted.ns > *deadline && check_lease(request.echo, request.lease, now))
    TRY(os::write_file_atomically(attempt.deadline_file(), std::to_string(wanted.ns) + "\n"));
  TRY_ASSIGN(const auto kept, read_number(attempt.kept_file()));
  if (kept_from > static_cast<std::uint64_t>(kept.value_or(0)) && kept_from < INT64_MAX)
    TRY(os::write_file_atomically(attempt.kept_file(), std::to_string(kept_from) + "\n"));
  return {};
}

std::optional<wire::PollReply> Requests::report(const JobId& job, Epoch epoch) {
  const auto folder = JobDir::at(home_, controller_, job);
  if (!folder) return std::nullopt;
  auto status = read_status(AttemptDir{folder->attempt(epoch)}, clock_);
  if (!status || !*status) return std::nullopt;
  if (const auto fence = read_fence(*folder)) (*status)->max_epoch = *fence;
  wire::PollReply reply = blank_reply();
  reply.attempts.push_back(std::move(**status));
  return reply;
}

std::vector<JobId> Requests::jobs() const {
  std::vector<JobId> found;
  const auto names = os::list_directory(home_ / "jobs" / controller_.value);
  if (!names) return found;
  for (const std::string& name : *names)
    if (name != "notify" && check_component("a job", name)) found.push_back({name});
  return found;
}

// Its first supervisor was started a moment ago and has not said anything yet.
bool Requests::just_accepted(const AttemptDir& attempt) const {
  if (os::exists(attempt.status_file())) return false;
  const auto made = os::status_of(attempt.op_file());
  if (!made || !*made) return false;
  const Duration age{clock_.wall().ms * 1'000'000 - (*made)->mtime_ns};
  return age >= Duration{-k_first_word.count()} && age < k_first_word;
}

void Requests::adopt(const AttemptDir& attempt) {
  const auto stored = read_stored_status(attempt, clock_);
  if (!stored || !*stored || (*stored)->ended()) return;
  // Asked of the kernel, not by taking the lock: a supervisor that begins at this moment would find it held and go.
  if (lock_holder(attempt.supervisor_lock())) return;
  if (just_accepted(attempt)) return;
  if (const auto spawned = spawn_supervisor(attempt); !spawned)
    os::log(os::LogLevel::error, "cannot start a supervisor: " + spawned.error().one_line());
}

void Requests::adopt_all() {
  for (const JobId& id : jobs()) {
    const auto job = JobDir::at(home_, controller_, id);
    if (!job) continue;
    const auto epochs = job->epochs();
    if (!epochs) continue;
    for (const Epoch epoch : *epochs) adopt(AttemptDir{job->attempt(epoch)});
  }
}

}  // namespace gridctl::agent
