// SPDX-License-Identifier: Apache-2.0
// Manages a job's output and secrets in a state directory.
#pragma once

#include <map>
#include <memory>

#include "control/follow/masks.hpp"
#include "control/reach/job_folders.hpp"
#include "control/reach/paths.hpp"
#include "os/mutex.hpp"

namespace gridctl::control {

class JobFiles : public JobFolders {
 public:
  explicit JobFiles(Paths paths) : paths_(std::move(paths)) {}

  [[nodiscard]] Result<std::uint64_t> log_next_offset(const JobId& job, AttemptNumber attempt, int rank) override;
  [[nodiscard]] Result<void> log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                        std::string_view bytes) override;
  [[nodiscard]] Result<std::string> log_tail(const JobId& job, AttemptNumber attempt, int rank,
                                             std::size_t lines) override;
  [[nodiscard]] Result<std::string> log_ends(const JobId& job, AttemptNumber attempt, int rank,
                                             std::size_t each) override;
  [[nodiscard]] Result<std::string> bag_journal(const JobId& job) override;
  [[nodiscard]] Result<void> bag_append(const JobId& job, std::string_view records) override;
  [[nodiscard]] Result<void> bag_replace(const JobId& job, std::string_view journal) override;
  [[nodiscard]] Result<std::uint64_t> bag_output_end(const JobId& job, std::uint32_t worker, Epoch epoch) override;
  [[nodiscard]] Result<void> bag_output(const JobId& job, std::uint32_t worker, Epoch epoch, std::uint64_t offset,
                                        std::string_view bytes) override;
  [[nodiscard]] Result<std::string> bag_items(const JobId& job) override;
  [[nodiscard]] Result<GatheredTasks> bag_gather(const JobId& job, const job::Spec& spec,
                                                 const std::optional<Digest>& below) override;
  [[nodiscard]] std::string masked(const JobId& job, std::string text) override;
  // Masks the secrets of every job, for texts that belong to none: the daemon's log.
  [[nodiscard]] std::string masked_of_all(std::string text);
  [[nodiscard]] Result<std::map<std::string, std::string>> secrets(const JobId& job,
                                                                   const std::vector<std::string>& names) override;
  [[nodiscard]] Result<void> keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) override;
  [[nodiscard]] Result<void> remove_secrets(const JobId& job) override;

 private:
  // Returns empty for a job without secrets, and for one whose secrets were removed before this process started.
  [[nodiscard]] Result<std::shared_ptr<const Masks>> masks_of(const JobId& job);

  struct Known {
    std::int64_t read_at_ns = 0;                // the folder's time
    std::map<std::string, std::string> values;  // also those of before a resume
    std::shared_ptr<const Masks> masks = std::make_shared<const Masks>();
  };
  const Paths paths_;
  os::Mutex mutex_;
  Masks of_all_ GRIDCTL_GUARDED_BY(mutex_);  // of every value that was read
  bool knows_all_ GRIDCTL_GUARDED_BY(mutex_) = false;
  // Masks of jobs with secrets; they stay after the job has ended.
  std::map<JobId, Known> known_ GRIDCTL_GUARDED_BY(mutex_);
};

}  // namespace gridctl::control
