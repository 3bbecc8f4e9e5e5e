// SPDX-License-Identifier: Apache-2.0
// The part of the registry that is about how a job ran: attempts, checkpoints, results, pauses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

class RunRecords {
 public:
  struct Commit {
    Checkpoint checkpoint;
    bool became_head = false;
    job::Step step;
  };
  virtual ~RunRecords() = default;

  [[nodiscard]] virtual Result<std::vector<AttemptRecord>> attempts(const JobId& id) = 0;
  // The twin's newest checkpoint becomes the newest one of the job, which is told that it is done.
  [[nodiscard]] virtual Result<job::Step> take_result(const JobId& id, const JobId& twin,
                                                      const job::TimedEvent& event) = 0;
  // Why no checkpoint of the attempt that runs can be taken, as its host said last; "" when all is well.
  [[nodiscard]] virtual Result<std::string> no_checkpoint(const JobId& id) = 0;
  // Checkpoints. Commits as head only when the job's epoch is still `checkpoint.epoch` (tested in the SQL statement
  // that moves the head); otherwise it is kept as a stray. Sets seq. A repeat of (epoch, host_number), or one that is
  // older than what its epoch has as head already, changes nothing and returns the former row.
  [[nodiscard]] virtual Result<Commit> commit_checkpoint(Checkpoint checkpoint) = 0;
  // Oldest first, strays included.
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> checkpoints(const JobId& id) = 0;
  // nullopt: the head.
  [[nodiscard]] virtual Result<Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) = 0;
  [[nodiscard]] virtual Result<void> set_pinned(const JobId& id, CheckpointSeq seq, bool pinned) = 0;
  [[nodiscard]] virtual Result<void> set_verified(const JobId& id, CheckpointSeq seq, bool verified) = 0;
  // Refused for the head of an unfinished job.
  [[nodiscard]] virtual Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) = 0;
  // Checkpoints that `keep` does not want and that are neither pinned, head, nor the last two: may go.
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) = 0;
  [[nodiscard]] virtual Result<void> save_results(const Results& results) = 0;  // replaces those of the job
  [[nodiscard]] virtual Result<std::optional<Results>> results(const JobId& id) = 0;
  // The current attempt is paused from then on, unless it is already; and is not any more. `most` is what the user
  // says: it counts although the daemon noticed the pause before the command could record it.
  [[nodiscard]] virtual Result<bool> begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) = 0;
  [[nodiscard]] virtual Result<bool> end_pause(const JobId& id, WallTime at) = 0;
  // nullopt: it has no attempt that is paused.
  [[nodiscard]] virtual Result<std::optional<Pause>> paused(const JobId& id) = 0;

 protected:
  RunRecords() = default;
  RunRecords(RunRecords&&) noexcept = default;
  RunRecords& operator=(RunRecords&&) noexcept = default;
};

}  // namespace gridctl::registry
