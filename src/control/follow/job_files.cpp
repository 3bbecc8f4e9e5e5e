// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_files.hpp"

#include "control/follow/log_file.hpp"
#include "control/follow/secrets.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

Result<std::uint64_t> JobFiles::log_next_offset(const JobId& job, AttemptNumber attempt, int rank) {
  return control::log_next_offset(paths_.log_of(job, attempt, rank));
}

Result<void> JobFiles::log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                  std::string_view bytes) {
  return control::log_append(paths_.log_of(job, attempt, rank), offset, bytes);
}

Result<std::string> JobFiles::log_tail(const JobId& job, AttemptNumber attempt, int rank, std::size_t lines) {
  return control::log_tail(paths_.log_of(job, attempt, rank), lines);
}

Result<std::map<std::string, std::string>> JobFiles::secrets(const JobId& job, const std::vector<std::string>& names) {
  return read_secrets(paths_.secrets_of(job), names);
}

Result<void> JobFiles::keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) {
  return write_secrets(paths_.secrets_of(job), secrets);
}

Result<void> JobFiles::remove_secrets(const JobId& job) { return os::remove_tree(paths_.secrets_of(job)); }

}  // namespace gridctl::control
