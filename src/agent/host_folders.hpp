// SPDX-License-Identifier: Apache-2.0
// Manages the host's state in folders (gridctl-agent(7), FILES). It keeps no state of jobs in memory: any number of these
// may work on one home at once, in any processes.
#pragma once

#include "agent/attempt_dir.hpp"
#include "agent/host_state.hpp"
#include "agent/ledger.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {

class HostFolders : public HostState {
 public:
  HostFolders(Path home, ControllerId controller, os::Clock& clock);

  BootTime now() override { return clock_.boot(); }
  std::string boot_id() override { return os::boot_id(); }
  wire::PollReply blank_reply() override;

  std::vector<JobId> jobs() override;
  Result<Lock> lock(const JobId& job) override;
  Result<Epoch> fence(const JobId& job) override { return read_fence(folder(job)); }
  Result<void> set_fence(const JobId& job, Epoch epoch) override { return write_fence(folder(job), epoch); }
  Result<std::vector<Epoch>> epochs(const JobId& job) override { return folder(job).epochs(); }

  Result<std::optional<StoredStatus>> stored(const AttemptKey& key) override {
    return read_stored_status(attempt(key), clock_);
  }
  Result<std::optional<wire::AttemptStatus>> status(const AttemptKey& key) override;
  std::optional<OpId> accepted_by(const AttemptKey& key) override;
  bool exists(const AttemptKey& key) override { return os::exists(attempt(key).path); }
  Result<Duration> stop_grace(const AttemptKey& key) override;
  Result<std::optional<std::int64_t>> stop_order(const AttemptKey& key) override {
    return read_number(attempt(key).stop_file());
  }
  Result<void> order_stop(const AttemptKey& key, std::int64_t grace_ns) override {
    return os::write_file_durably(attempt(key).stop_file(), std::to_string(grace_ns) + "\n");
  }
  Result<std::optional<std::int64_t>> deadline(const AttemptKey& key) override {
    return read_number(attempt(key).deadline_file());
  }
  Result<void> set_deadline(const AttemptKey& key, BootTime deadline) override {
    return os::write_file_atomically(attempt(key).deadline_file(), std::to_string(deadline.ns) + "\n");
  }
  Result<std::optional<std::int64_t>> kept_from(const AttemptKey& key) override {
    return read_number(attempt(key).kept_file());
  }
  Result<void> set_kept_from(const AttemptKey& key, std::uint64_t number) override {
    return os::write_file_atomically(attempt(key).kept_file(), std::to_string(number) + "\n");
  }
  Result<void> set_limits(const AttemptKey& key, const HostLimits& limits) override;
  Result<void> set_tempo(const AttemptKey& key, const wire::Tempo& tempo) override;

  Result<void> check(const wire::StartRequest& request) override;
  Result<void> take_lease(const wire::StartRequest& request) override;
  Result<void> release_lease(const AttemptKey& key) override {
    return ledger_.release(controller_, key.job, key.epoch);
  }
  Result<void> create(const wire::StartRequest& request) override;
  Result<void> begin(const wire::StartRequest& request) override;
  void adopt(const AttemptKey& key) override;

  bool await_settled(const AttemptKey& key) override;
  Result<void> keep_work(const AttemptKey& key, Duration at_least) override;
  Result<void> remove(const AttemptKey& key) override;
  // Finishes removals that a crash interrupted.
  void finish_removals();

  // REQUIRES of all members with a job: its id is a safe path component (checked by JobDir::at).
  [[nodiscard]] JobDir folder(const JobId& job) const;
  [[nodiscard]] AttemptDir attempt(const AttemptKey& key) const { return {folder(key.job).attempt(key.epoch)}; }

 private:
  [[nodiscard]] Result<void> make_room(const JobId& job);  // for the folder of a job that has none, on a lent machine
  bool forget(const JobId& job);                           // if nothing but an old promise is left; true: it is gone
  [[nodiscard]] Lease lease_of(const wire::StartRequest& request) const;
  [[nodiscard]] bool just_accepted(const AttemptDir& attempt) const;

  Path home_;
  ControllerId controller_;
  os::Clock& clock_;
  Ledger ledger_;
  BootTime forget_at_{};  // when promises may be looked through again
};

}  // namespace gridctl::agent
