// SPDX-License-Identifier: Apache-2.0
// Output and secrets of jobs, as values. They outlive the daemon.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "bag/journal.hpp"
#include "control/reach/job_folders.hpp"

namespace gridctl::sim {

class SimFolders : public control::JobFolders {
 public:
  [[nodiscard]] Result<std::uint64_t> log_next_offset(const JobId& job, AttemptNumber attempt, int rank) override {
    return logs_[{job.value, attempt.value, rank}].size();
  }
  [[nodiscard]] Result<void> log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                        std::string_view bytes) override {
    std::string& log = logs_[{job.value, attempt.value, rank}];
    if (offset > log.size()) log.resize(offset, '?');
    log.replace(offset, std::string::npos, bytes);
    return {};
  }
  [[nodiscard]] Result<std::string> log_tail(const JobId& job, AttemptNumber attempt, int rank, std::size_t) override {
    return logs_[{job.value, attempt.value, rank}];
  }
  [[nodiscard]] Result<std::map<std::string, std::string>> secrets(const JobId& job,
                                                                   const std::vector<std::string>& names) override {
    std::map<std::string, std::string> out;
    for (const std::string& name : names) {
      const auto found = secrets_.find({job.value, name});
      if (found == secrets_.end()) return make_error(Code::not_found, "no secret " + name);
      out[name] = found->second;
    }
    return out;
  }
  [[nodiscard]] Result<void> keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) override {
    for (const auto& [name, value] : secrets) secrets_[{job.value, name}] = value;
    return {};
  }
  [[nodiscard]] Result<void> remove_secrets(const JobId& job) override {
    std::erase_if(secrets_, [&](const auto& entry) { return entry.first.first == job.value; });
    return {};
  }

  // Journals as they would stand on the disk: what was appended is there, whenever the daemon dies.
  [[nodiscard]] Result<std::string> bag_journal(const JobId& job) override { return journals_[job.value]; }
  [[nodiscard]] Result<void> bag_append(const JobId& job, std::string_view records) override {
    std::string& journal = journals_[job.value];
    if (journal.empty()) journal = bag::k_magic;
    journal += records;
    return {};
  }
  [[nodiscard]] Result<void> bag_replace(const JobId& job, std::string_view journal) override {
    journals_[job.value] = journal;
    return {};
  }
  [[nodiscard]] Result<std::uint64_t> bag_output_end(const JobId&, std::uint32_t, Epoch) override { return 0; }

 private:
  std::map<std::string, std::string> journals_;
  std::map<std::tuple<std::string, std::uint64_t, int>, std::string> logs_;
  std::map<std::pair<std::string, std::string>, std::string> secrets_;
};

}  // namespace gridctl::sim
