// SPDX-License-Identifier: Apache-2.0
// The registry's operations that a supervisor uses, so that the simulator can run on the real one (SQLite on a file
// system that loses what was not synced) and on one in memory that is fast.
#pragma once

#include <memory>
#include <vector>

#include "registry/registry.hpp"
#include "random.hpp"

namespace gridctl::sim {

class Records {
 public:
  virtual ~Records() = default;
  virtual Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at) = 0;
  virtual Result<job::Step> apply(const JobId& id, const job::Event& event) = 0;
  virtual Result<registry::Registry::Commit> commit_checkpoint(registry::Checkpoint checkpoint) = 0;
  virtual Result<registry::Job> job(const JobId& id) = 0;
  virtual Result<job::State> machine(const JobId& id) = 0;
  virtual Result<std::vector<JobId>> unfinished() = 0;
  virtual Result<std::vector<registry::Checkpoint>> checkpoints(const JobId& id) = 0;
  virtual Result<registry::Checkpoint> checkpoint(const JobId& id, CheckpointSeq seq) = 0;
  virtual Result<std::vector<registry::Checkpoint>> prunable(const JobId& id, int keep) = 0;
  virtual Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) = 0;

  virtual void close(bool power_lost) = 0;  // the process is gone; with the power, also what was not synced
  virtual Result<void> open() = 0;
  virtual void set_trouble(bool disk_full, bool errors) = 0;
  virtual void set_kills(bool) {}  // whether the process may be killed inside an operation
  [[nodiscard]] virtual bool was_killed() const { return false; }
};

[[nodiscard]] std::unique_ptr<Records> make_memory_records(Random& random);
[[nodiscard]] std::unique_ptr<Records> make_sqlite_records(Random& random);

}  // namespace gridctl::sim
