// SPDX-License-Identifier: Apache-2.0
// Output and secrets of jobs, as values. They outlive the daemon.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "control/reach/job_folders.hpp"
#include "world.hpp"

namespace gridctl::sim {

class SimFolders : public control::JobFolders {
 public:
  SimFolders(World& world, int laptop) : world_(world), laptop_(laptop) {}
  [[nodiscard]] Result<std::uint64_t> log_next_offset(const JobId& job, AttemptNumber attempt, int rank) override {
    return logs_[{job.value, attempt.value, rank}].size();
  }
  [[nodiscard]] Result<void> log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                        std::string_view bytes) override;
  [[nodiscard]] Result<std::string> log_tail(const JobId& job, AttemptNumber attempt, int rank, std::size_t lines) override;
  [[nodiscard]] Result<std::map<std::string, std::string>> secrets(const JobId& job,
                                                                   const std::vector<std::string>& names) override;
  [[nodiscard]] Result<void> keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) override;
  [[nodiscard]] Result<void> remove_secrets(const JobId& job) override;

  [[nodiscard]] Result<std::string> bag_journal(const JobId& job) override;
  [[nodiscard]] Result<void> bag_append(const JobId& job, std::string_view records) override;
  [[nodiscard]] Result<void> bag_replace(const JobId& job, std::string_view journal) override;
  [[nodiscard]] Result<std::uint64_t> bag_output_end(const JobId& job, std::uint32_t worker, Epoch epoch) override {
    return task_output_[{job.value, worker, epoch.value}].size();
  }
  [[nodiscard]] Result<void> bag_output(const JobId& job, std::uint32_t worker, Epoch epoch, std::uint64_t offset,
                                        std::string_view bytes) override;

  [[nodiscard]] Result<control::GatheredTasks> bag_gather(const JobId& job, const job::Spec& spec,
                                                          const std::optional<Digest>& below) override;

  // By the user.
  [[nodiscard]] bool resume_bag(const JobId& job);  // false: nothing of it is left to run
  void put_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) {
    for (const auto& [name, value] : secrets) secrets_[{job.value, name}] = value;
  }
  // For the eye of Truth.
  [[nodiscard]] const std::string* log(const JobId& job, AttemptNumber attempt, int rank) const {
    const auto found = logs_.find({job.value, attempt.value, rank});
    return found == logs_.end() ? nullptr : &found->second;
  }
  void drop_secrets(const JobId& job) {
    std::erase_if(secrets_, [&](const auto& entry) { return entry.first.first == job.value; });
  }
  [[nodiscard]] bool has_secrets(const JobId& job) const {
    const auto first = secrets_.lower_bound({job.value, ""});
    return first != secrets_.end() && first->first.first == job.value;
  }
  void leave_secrets(const JobId& job) { kept_by_fault_.insert(job.value); }  // to housekeeping, as above
  [[nodiscard]] bool removal_failed(const JobId& job) const { return kept_by_fault_.contains(job.value); }

 private:
  // Does it, or what a fault makes of it.
  template <class Effect>
  Result<void> pass(Point point, const JobId& job, Effect effect);

  void append(const JobId& job, std::string_view records);

  World& world_;
  const int laptop_;
  std::map<std::string, std::string> journals_;  // of bags
  std::map<std::tuple<std::string, std::uint32_t, std::uint64_t>, std::string> task_output_;
  std::map<std::tuple<std::string, std::uint64_t, int>, std::string> logs_;
  std::map<std::pair<std::string, std::string>, std::string> secrets_;
  std::set<std::string> kept_by_fault_;
};

}  // namespace gridctl::sim
