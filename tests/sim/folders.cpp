// SPDX-License-Identifier: Apache-2.0
#include "folders.hpp"

#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

template <class Effect>
Result<void> SimFolders::pass(Point point, const JobId& job, Effect effect) {
  const Fate fate = world_.pass(laptop_, job.value, point);
  if (fate == Fate::late) world_.laptops[static_cast<std::size_t>(laptop_)]->wait_for_disk();
  if (fate == Fate::fails) return make_error(Code::io, "the disk fails");
  effect();
  if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return {};
}

Result<void> SimFolders::log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                    std::string_view bytes) {
  return pass(Point::folders_log_append, job, [&] {
    world_.truth->logged(job, attempt, rank, offset, bytes);
    std::string& log = logs_[{job.value, attempt.value, rank}];
    if (offset > log.size()) log.resize(offset, '?');
    log.replace(offset, std::string::npos, bytes);
  });
}

Result<std::string> SimFolders::log_tail(const JobId& job, AttemptNumber attempt, int rank, std::size_t lines) {
  const std::string& all = logs_[{job.value, attempt.value, rank}];
  std::size_t at = all.size();
  for (std::size_t left = lines + 1; left > 0 && at != std::string::npos && at > 0; --left) at = all.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? all : all.substr(at + 1);
}

Result<std::map<std::string, std::string>> SimFolders::secrets(const JobId& job, const std::vector<std::string>& names) {
  std::map<std::string, std::string> out;
  for (const std::string& name : names) {
    const auto found = secrets_.find({job.value, name});
    if (found == secrets_.end()) return make_error(Code::not_found, "no secret " + name);
    out[name] = found->second;
  }
  return out;
}

Result<void> SimFolders::keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) {
  return pass(Point::folders_keep_secrets, job, [&] { put_secrets(job, secrets); });
}

Result<void> SimFolders::remove_secrets(const JobId& job) {
  const Result<void> done = pass(Point::folders_remove_secrets, job, [&] {
    std::erase_if(secrets_, [&](const auto& entry) { return entry.first.first == job.value; });
  });
  if (!done) kept_by_fault_.insert(job.value);  // housekeeping comes for them an hour later, and is not here
  return done;
}

}  // namespace gridctl::sim
