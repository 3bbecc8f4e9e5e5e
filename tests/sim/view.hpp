// SPDX-License-Identifier: Apache-2.0
// The host's state as the agent's core sees it on behalf of one laptop. At every change the process may be killed.
#pragma once

#include "agent/host_state.hpp"
#include "host.hpp"

namespace gridctl::sim {

class View : public agent::HostState {
 public:
  View(Host& host, int laptop) : host_(host), laptop_(laptop) {}

  BootTime now() override { return host_.clock(); }
  std::string boot_id() override { return host_.boot_id(); }
  wire::PollReply blank_reply() override;
  std::vector<JobId> jobs() override;
  Result<Lock> lock(const JobId&) override { return Lock{}; }
  Result<Epoch> fence(const JobId& job) override;
  Result<void> set_fence(const JobId& job, Epoch epoch) override;
  Result<std::vector<Epoch>> epochs(const JobId& job) override;
  Result<std::optional<agent::StoredStatus>> stored(const agent::AttemptKey& key) override;
  Result<std::optional<wire::AttemptStatus>> status(const agent::AttemptKey& key) override;
  std::optional<OpId> accepted_by(const agent::AttemptKey& key) override;
  bool exists(const agent::AttemptKey& key) override { return find(key) != nullptr; }
  Result<Duration> stop_grace(const agent::AttemptKey& key) override;
  Result<std::optional<std::int64_t>> stop_order(const agent::AttemptKey& key) override;
  Result<void> order_stop(const agent::AttemptKey& key, std::int64_t grace_ns) override;
  Result<std::optional<std::int64_t>> deadline(const agent::AttemptKey& key) override;
  Result<void> set_deadline(const agent::AttemptKey& key, BootTime deadline) override;
  Result<std::optional<std::int64_t>> kept_from(const agent::AttemptKey& key) override;
  Result<void> set_kept_from(const agent::AttemptKey& key, std::uint64_t number) override;
  Result<void> set_limits(const agent::AttemptKey& key, const agent::HostLimits& limits) override;
  Result<void> set_tempo(const agent::AttemptKey& key, const wire::Tempo& tempo) override;
  Result<void> check(const wire::StartRequest&) override { return {}; }
  Result<void> take_lease(const wire::StartRequest& request) override;
  Result<void> release_lease(const agent::AttemptKey& key) override;
  Result<void> create(const wire::StartRequest& request) override;
  Result<void> begin(const wire::StartRequest& request) override;
  void adopt(const agent::AttemptKey& key) override;
  bool await_settled(const agent::AttemptKey& key) override;
  Result<void> keep_work(const agent::AttemptKey& key, Duration how_long) override;
  Result<void> remove(const agent::AttemptKey& key) override;

  void adopt_all();

 private:
  [[nodiscard]] Host::Key key_of(const agent::AttemptKey& key) const {
    return {laptop_, key.job.value, key.epoch.value};
  }
  [[nodiscard]] Folder* find(const agent::AttemptKey& key) { return host_.folder(key_of(key)); }
  // Where the process may be killed, where a full disk says no, and what a fault point makes of it; and when it is done.
  [[nodiscard]] Result<void> change(Point point, const JobId& job, bool needs_space);
  [[nodiscard]] Result<void> meet(Point point, const JobId& job);  // the last of these
  [[nodiscard]] Result<void> changed();

  Host& host_;
  const int laptop_;
  Fate fate_ = Fate::well;  // of the change that is under way
};

}  // namespace gridctl::sim
