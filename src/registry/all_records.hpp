// SPDX-License-Identifier: Apache-2.0
// All that a state directory holds, as an interface: SQLite in the daemon and in commands (Registry), values in the
// simulator. What needs one part of it takes that part.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "registry/host_records.hpp"
#include "registry/job_records.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

// The part of the registry that is about remotes, and the copies of checkpoints there.
class CopyRecords {
 public:
  virtual ~CopyRecords() = default;

  // Returns those of every checkpoint kept, and of every job's inputs and outputs.
  [[nodiscard]] virtual Result<std::vector<Digest>> live_roots() = 0;
  [[nodiscard]] virtual Result<void> add_remote(const Remote& remote) = 0;  // exists when the name is taken
  [[nodiscard]] virtual Result<void> remove_remote(const std::string& name) = 0;  // with what is known of its copies
  [[nodiscard]] virtual Result<std::vector<Remote>> remotes() = 0;  // in the order they were added
  [[nodiscard]] virtual Result<Remote> remote(const std::string& name) = 0;  // not_found names what there is
  [[nodiscard]] virtual Result<void> note_answer(const std::string& remote, WallTime at) = 0;  // ends its trouble
  // The time it began stays as long as the code is the same. True when it is news.
  [[nodiscard]] virtual Result<bool> note_trouble(const std::string& remote, WallTime at, const Error& error) = 0;
  [[nodiscard]] virtual Result<void> add_copy(const Copy& copy) = 0;
  [[nodiscard]] virtual Result<void> remove_copy(const Copy& copy) = 0;
  [[nodiscard]] virtual Result<std::vector<Copy>> copies() = 0;  // by remote, job and number
  [[nodiscard]] virtual Result<std::vector<Copy>> copies_of(const JobId& job) = 0;  // the same, of one job
  [[nodiscard]] virtual Result<std::vector<CheckpointRef>> kept_checkpoints() = 0;  // of every job, strays included
  // Every checkpoint that is kept and worth a copy (strays only when pinned), with what its job asks for; newest first.
  [[nodiscard]] virtual Result<std::vector<CopyWanted>> copyable() = 0;
};

class AllRecords : public HostRecords, public JobRecords, public CopyRecords {
 public:
  using JobRecords::together;  // the same transaction, whichever part it is asked of
};

}  // namespace gridctl::registry
