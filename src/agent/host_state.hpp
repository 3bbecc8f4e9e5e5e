// SPDX-License-Identifier: Apache-2.0
// Describes the state of a host that requests read and change, as an interface: folders and processes in the agent
// (requests.cpp), values in the simulator. A member that changes something has done so when it returns success;
// "durable" ones have done so for good, even if the power fails afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/host_limits.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

struct AttemptKey {
  JobId job;
  Epoch epoch;
};

// Holds the status of an attempt without interpretation. `boot_id` is that of its writer.
struct StoredStatus {
  std::string boot_id;
  wire::AttemptStatus status;
  [[nodiscard]] bool ended() const { return status.phase == wire::AttemptPhase::ended; }
};

class HostState {
 public:
  using Lock = std::shared_ptr<void>;  // held until the last copy is gone
  virtual ~HostState() = default;

  [[nodiscard]] virtual BootTime now() = 0;
  [[nodiscard]] virtual std::string boot_id() = 0;
  [[nodiscard]] virtual wire::PollReply blank_reply() = 0;  // time, boot id, load, free space

  // Returns the jobs of this controller.
  [[nodiscard]] virtual std::vector<JobId> jobs() = 0;
  [[nodiscard]] virtual Result<Lock> lock(const JobId& job) = 0;
  [[nodiscard]] virtual Result<Epoch> fence(const JobId& job) = 0;                  // 0 = none yet
  [[nodiscard]] virtual Result<void> set_fence(const JobId& job, Epoch epoch) = 0;  // durable
  [[nodiscard]] virtual Result<std::vector<Epoch>> epochs(const JobId& job) = 0;    // of attempts here, ascending

  // Returns the state of an attempt. nullopt: there is no such attempt, or no such order.
  [[nodiscard]] virtual Result<std::optional<StoredStatus>> stored(const AttemptKey& key) = 0;
  [[nodiscard]] virtual Result<std::optional<wire::AttemptStatus>> status(const AttemptKey& key) = 0;  // interpreted
  [[nodiscard]] virtual std::optional<OpId> accepted_by(const AttemptKey& key) = 0;
  [[nodiscard]] virtual bool exists(const AttemptKey& key) = 0;
  [[nodiscard]] virtual Result<Duration> stop_grace(const AttemptKey& key) = 0;  // as specified at its start
  [[nodiscard]] virtual Result<std::optional<std::int64_t>> stop_order(const AttemptKey& key) = 0;  // grace in ns
  [[nodiscard]] virtual Result<void> order_stop(const AttemptKey& key, std::int64_t grace_ns) = 0;  // durable
  [[nodiscard]] virtual Result<std::optional<std::int64_t>> deadline(const AttemptKey& key) = 0;    // ns
  [[nodiscard]] virtual Result<void> set_deadline(const AttemptKey& key, BootTime deadline) = 0;
  [[nodiscard]] virtual Result<std::optional<std::int64_t>> kept_from(const AttemptKey& key) = 0;
  [[nodiscard]] virtual Result<void> set_kept_from(const AttemptKey& key, std::uint64_t number) = 0;
  [[nodiscard]] virtual Result<void> set_tempo(const AttemptKey& key, const wire::Tempo& tempo) = 0;
  [[nodiscard]] virtual Result<void> set_limits(const AttemptKey& key, const HostLimits& limits) = 0;

  // The following functions start an attempt. The lease is in our own name until the attempt's supervisor has it.
  [[nodiscard]] virtual Result<void> check(const wire::StartRequest& request) = 0;  // limits of the specification
  [[nodiscard]] virtual Result<void> take_lease(const wire::StartRequest& request) = 0;
  [[nodiscard]] virtual Result<void> release_lease(const AttemptKey& key) = 0;
  [[nodiscard]] virtual Result<void> create(const wire::StartRequest& request) = 0;  // secrets and folder: whole or not
  [[nodiscard]] virtual Result<void> begin(const wire::StartRequest& request) = 0;   // a supervisor, and its lease
  // Gives an attempt that has not ended a live supervisor.
  virtual void adopt(const AttemptKey& key) = 0;

  // The following functions end an attempt. await_settled waits a while until the supervisor of an earlier boot's
  // attempt has tidied up.
  [[nodiscard]] virtual bool await_settled(const AttemptKey& key) = 0;
  // Gets called before remove(): the working directory stays for this long.
  [[nodiscard]] virtual Result<void> keep_work(const AttemptKey&, Duration) { return {}; }
  [[nodiscard]] virtual Result<void> remove(const AttemptKey& key) = 0;  // all but the fence
};

}  // namespace gridctl::agent
