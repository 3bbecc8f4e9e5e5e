// SPDX-License-Identifier: Apache-2.0
#include "agent/host_folders.hpp"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "agent/attempt_dir.hpp"
#include "agent/checkpoints.hpp"
#include "agent/foreign_files.hpp"
#include "agent/guest_disk.hpp"
#include "agent/job_view.hpp"
#include "agent/ledger.hpp"
#include "agent/owner_terms.hpp"
#include "agent/process_tree.hpp"
#include "agent/results.hpp"
#include "agent/supervise.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_first_word = std::chrono::seconds{2};    // from a start to its supervisor's lock
constexpr Duration k_settle_wait = std::chrono::seconds{30};  // an engine's call and a ledger's write
constexpr std::size_t k_guest_jobs_max = 10'000;  // folders of one researcher: the owner's commands read them all
constexpr Duration k_promise_kept = std::chrono::hours{24};  // about a job that has nothing else here
constexpr Duration k_forget_pause = std::chrono::minutes{1};
const std::string k_old_prefix = ".old-";                     // of an attempt's folder that is being removed

std::vector<Path> removals_of(const Path& job) {
  std::vector<Path> found;
  if (const auto names = os::list_directory(job))
    for (const std::string& name : *names)
      if (name.starts_with(k_old_prefix)) found.push_back(job / name);
  return found;
}

// A power cut may have taken the specification: any engine that has the container removes it.
Result<void> remove_container(const AttemptDir& dir, const std::string& name) {
  const Result<wire::AttemptSpec> spec = read_spec(dir);
  if (spec) return make_engine(spec->engine)->remove(name);
  Result<void> removed = spec.error();
  for (const EngineKind kind : {EngineKind::podman, EngineKind::docker})
    if (make_engine(kind)->remove(name)) removed = {};
  return removed;
}
}  // namespace

HostFolders::HostFolders(Path home, ControllerId controller, os::Clock& clock)
    : home_(std::move(home)),
      controller_(std::move(controller)),
      clock_(clock),
      ledger_(lease_directory(), Machine::real(), clock) {}

JobDir HostFolders::folder(const JobId& job) const {
  return {controller_, job, home_ / "jobs" / controller_.value / job.value};
}

wire::PollReply HostFolders::blank_reply() {
  wire::PollReply reply;
  reply.host_time = clock_.boot();
  reply.boot_id = os::boot_id();
  double load = 0;
  if (::getloadavg(&load, 1) == 1) reply.load1 = load;
  if (const auto free = os::free_bytes(home_)) reply.disk_free_bytes = free_for(home_, controller_, *free);
  reply.held = held_shares(ledger_, controller_);
  return reply;
}

std::vector<JobId> HostFolders::jobs() {
  std::vector<JobId> found;
  const auto names = os::list_directory(home_ / "jobs" / controller_.value);
  if (!names) return found;
  for (const std::string& name : *names)
    if (name != k_notify_folder && check_component("a job", name)) found.push_back({name});
  return found;
}

// A promise about a job that never comes takes a folder, too. No request is under way for a day, so promises that are
// older than that may be forgotten where there are too many.
Result<void> HostFolders::make_room(const JobId& job) {
  if (os::exists(folder(job).path) || !os::exists(home_ / wire::k_guests_folder / controller_.value)) return {};
  std::vector<JobId> all = jobs();
  if (all.size() < k_guest_jobs_max) return {};
  if (clock_.boot() >= forget_at_) {
    forget_at_ = clock_.boot() + k_forget_pause;
    std::erase_if(all, [&](const JobId& one) { return forget(one); });
  }
  if (all.size() < k_guest_jobs_max) return {};
  return make_error(Code::refused, "this machine remembers " + std::to_string(all.size()) +
                                       " jobs of this researcher, which is as many as it does; those without files here are forgotten after a day");
}

bool HostFolders::forget(const JobId& job) {
  const JobDir dir = folder(job);
  const auto promised = os::status_of(dir.path);
  const auto epochs = dir.epochs();
  if (!promised || !*promised || !epochs || !epochs->empty() || !removals_of(dir.path).empty()) return false;
  const std::int64_t changed_ms = (*promised)->mtime_ns / 1'000'000;
  if (clock_.wall().ms - changed_ms < std::chrono::duration_cast<std::chrono::milliseconds>(k_promise_kept).count()) return false;
  return os::remove_tree(dir.path).has_value();
}

Result<HostState::Lock> HostFolders::lock(const JobId& job) {
  TRY(make_room(job));
  TRY_ASSIGN(os::FileLock lock, folder(job).lock());
  return Lock{std::make_shared<os::FileLock>(std::move(lock))};
}

Result<std::optional<wire::AttemptStatus>> HostFolders::status(const AttemptKey& key) {
  TRY_ASSIGN(const auto before, stored(key));
  TRY_ASSIGN(auto status, read_status(attempt(key), clock_));
  if (!status || !before || before->ended() || before->boot_id == os::boot_id()) return status;
  // The power went before its supervisor could report the last snapshot.
  status->checkpoints.clear();
  for (const HeldSnapshot& held : held_snapshots(attempt(key), false)) status->checkpoints.push_back(held.checkpoint);
  return status;
}

std::optional<OpId> HostFolders::accepted_by(const AttemptKey& key) {
  const auto op = os::read_file(attempt(key).op_file(), 4096);
  if (!op) return std::nullopt;
  return OpId{std::string(trim(*op))};
}

Result<Duration> HostFolders::stop_grace(const AttemptKey& key) {
  TRY_ASSIGN(const auto spec, read_spec(attempt(key)));
  return spec.stop_grace;
}

Result<void> HostFolders::set_tempo(const AttemptKey& key, const wire::Tempo& tempo) {
  const AttemptDir folder = attempt(key);
  for (const auto& [file, wanted] :
       {std::pair{folder.interval_file(), tempo.interval}, {folder.pause_file(), tempo.pause}}) {
    const std::int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(wanted).count();
    const auto told = read_number(file);
    if (ms <= 0 || (told && *told == ms)) continue;
    TRY(os::write_file_atomically(file, std::to_string(ms) + "\n"));
  }
  return {};
}

Result<void> HostFolders::set_limits(const AttemptKey& key, const HostLimits& limits) {
  const AttemptDir folder = attempt(key);
  const auto text = os::read_file(folder.limits_file(), k_limits_bytes);
  if (const auto known = text ? parse_limits(*text) : std::nullopt; known && nearly_equal(*known, limits)) return {};
  return os::write_file_atomically(folder.limits_file(), to_text(limits));
}

Result<void> HostFolders::check(const wire::StartRequest& request) {
  TRY(check_spec(request.spec));
  return check_secrets(request.spec, request.secrets);
}

Lease HostFolders::lease_of(const wire::StartRequest& request) const {
  const wire::AttemptSpec& spec = request.spec;
  Lease lease = our_lease(controller_, spec.job, spec.epoch);
  lease.deadline = request.echo + request.lease;
  lease.grace = spec.stop_grace;
  lease.cpus = spec.cpus;
  lease.memory_bytes = spec.memory_bytes;
  lease.gpus = spec.gpu_uuids;
  return lease;
}

Result<void> HostFolders::take_lease(const wire::StartRequest& request) {
  Lease lease = lease_of(request);
  lease.supervisor = os::identify(::getpid()).value_or(os::ProcessId{});  // until the real one has taken over
  return ledger_.take(lease, capacity_for(home_, controller_));
}

Result<void> HostFolders::create(const wire::StartRequest& request) {
  const AttemptDir dir = attempt({request.spec.job, request.spec.epoch});
  const HostLimits limits = request.allowance ? limits_at_start(*request.allowance, request.echo) : HostLimits{};
  return create_attempt(
      dir, {request.op, request.boot_id, request.echo + request.lease, request.spec, limits, request.secrets});
}

Result<void> HostFolders::begin(const wire::StartRequest& request) {
  TRY_ASSIGN(const int pid, spawn_supervisor(attempt({request.spec.job, request.spec.epoch})));
  // The supervisor may be at work already, or have finished. If it has gone without a word, we hold the lease until
  // another is started.
  const auto supervisor = os::identify(pid);
  const auto ourselves = os::identify(::getpid());
  if (!supervisor || !ourselves) return {};
  Lease lease = lease_of(request);
  lease.supervisor = *supervisor;
  return ledger_.hand_over(lease, *ourselves);
}

// Its first supervisor was started a moment ago and has not reported anything yet.
bool HostFolders::just_accepted(const AttemptDir& attempt) const {
  if (os::exists(attempt.status_file())) return false;
  const auto made = os::status_of(attempt.op_file());
  if (!made || !*made) return false;
  const Duration age{clock_.wall().ms * 1'000'000 - (*made)->mtime_ns};
  return age >= Duration{-k_first_word.count()} && age < k_first_word;
}

void HostFolders::adopt(const AttemptKey& key) {
  const AttemptDir dir = attempt(key);
  const auto stored = read_stored_status(dir, clock_);
  if (!stored || !*stored || (*stored)->ended()) return;
  // The kernel is asked, without taking the lock: a supervisor that starts at this moment would find it held and exit.
  if (lock_holder(dir.supervisor_lock())) return;
  if (just_accepted(dir)) return;
  if (const auto spawned = spawn_supervisor(dir); !spawned)
    os::log(os::LogLevel::error, "cannot start a supervisor: " + spawned.error().one_line());
}

bool HostFolders::await_settled(const AttemptKey& key) {
  for (const BootTime give_up = clock_.boot() + k_settle_wait; clock_.boot() < give_up;) {
    const auto found = stored(key);
    if (found && *found && (*found)->ended()) return true;
    ::poll(nullptr, 0, 20);
  }
  return false;
}

Result<void> HostFolders::keep_work(const AttemptKey& key, Duration at_least) {
  return KeptWork(home_).take(attempt(key), at_least);
}

Result<void> HostFolders::remove(const AttemptKey& key) {
  const AttemptDir dir = attempt(key);
  // Its supervisor has written its last status and is about to exit.
  TRY_ASSIGN(const os::FileLock over, os::FileLock::acquire(dir.supervisor_lock()));
  if (os::exists(dir.path / "leftover")) TRY(remove_container(dir, attempt_name(key.job, key.epoch, home_)));
  remove_links(dir);
  if (const auto kept = KeptWork(home_).take(dir); !kept)
    os::log(os::LogLevel::warn, "cannot keep the files that the job left: " + kept.error().one_line());
  if (const auto secrets = dir.secrets()) TRY(os::remove_tree(*secrets));
  TRY(ledger_.release(controller_, key.job, key.epoch));
  // This happens before the folder is removed: otherwise, nothing would come back for it.
  TRY(os::remove_file(folder(key.job).path.parent_path() / k_notify_folder /
                      (key.job.value + "." + std::to_string(key.epoch.value))));
  // The folder is renamed first: a supervisor that was started late would create its lock again in the folder.
  const Path old = dir.path.parent_path() / (k_old_prefix + dir.path.filename().string());
  TRY(remove_job_files(old));
  TRY(os::rename_path(dir.path, old));
  return remove_job_files(old);
}

void HostFolders::finish_removals() {
  for (const JobId& job : jobs()) {
    const auto left = removals_of(folder(job).path);
    if (left.empty() && !has_drafts(folder(job))) continue;
    // A process that removes or creates a folder now holds the lock, and our help would disturb it.
    const auto guard = lock(job);
    if (!guard) continue;
    for (const Path& path : left) (void)remove_job_files(path);
    remove_drafts(folder(job));
  }
}

}  // namespace gridctl::agent
