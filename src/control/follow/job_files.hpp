// SPDX-License-Identifier: Apache-2.0
// A job's output and secrets in a state directory.
#pragma once

#include "control/reach/job_folders.hpp"
#include "control/reach/paths.hpp"

namespace gridctl::control {

class JobFiles : public JobFolders {
 public:
  explicit JobFiles(Paths paths) : paths_(std::move(paths)) {}

  [[nodiscard]] Result<std::uint64_t> log_next_offset(const JobId& job, AttemptNumber attempt, int rank) override;
  [[nodiscard]] Result<void> log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                        std::string_view bytes) override;
  [[nodiscard]] Result<std::string> log_tail(const JobId& job, AttemptNumber attempt, int rank,
                                             std::size_t lines) override;
  [[nodiscard]] Result<std::map<std::string, std::string>> secrets(const JobId& job,
                                                                   const std::vector<std::string>& names) override;
  [[nodiscard]] Result<void> keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) override;
  [[nodiscard]] Result<void> remove_secrets(const JobId& job) override;

 private:
  const Paths paths_;
};

}  // namespace gridctl::control
