// SPDX-License-Identifier: Apache-2.0
#include "folders.hpp"

#include "bag/bag.hpp"
#include "bag_truth.hpp"
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

// --- Bags ------------------------------------------------------------------------------------------------------------

Result<std::string> SimFolders::bag_journal(const JobId& job) {
  if (journals_.contains(job.value)) world_.bags->reread(job, journals_[job.value]);
  return journals_[job.value];
}

void SimFolders::append(const JobId& job, std::string_view records) {
  std::string& journal = journals_[job.value];
  if (journal.empty()) journal = bag::k_magic;
  journal += records;
  world_.bags->appended(job, records);
}

// What fails in the middle leaves what it has written, and so does a daemon that dies.
Result<void> SimFolders::bag_append(const JobId& job, std::string_view records) {
  const bool dies = world_.kill_here();
  const bool full = world_.laptops[static_cast<std::size_t>(laptop_)]->disk_full;
  const std::string_view begun = records.substr(0, dies || full || world_.points.is_active() ? world_.rng.below(records.size() + 1) : 0);
  if (dies || full) {
    append(job, begun);
    if (dies) throw Killed{};
    return make_error(Code::no_space, "the disk is full");
  }
  bool done = false;
  const Result<void> written = pass(Point::folders_bag_append, job, [&] { append(job, records), done = true; });
  if (!done) append(job, begun);
  return written;
}

Result<void> SimFolders::bag_replace(const JobId& job, std::string_view journal) {
  return pass(Point::folders_bag_replace, job, [&] {
    world_.bags->reread(job, std::string(journal));
    journals_[job.value] = journal;
  });
}

Result<void> SimFolders::bag_output(const JobId& job, std::uint32_t worker, Epoch epoch, std::uint64_t offset,
                                    std::string_view bytes) {
  return pass(Point::folders_bag_output, job, [&] {
    world_.bags->printed(job, worker, epoch, offset, bytes);
    std::string& kept = task_output_[{job.value, worker, epoch.value}];
    if (offset > kept.size()) kept.resize(offset, '\0');
    if (offset + bytes.size() > kept.size()) kept.replace(offset, std::string::npos, bytes);
  });
}

Result<control::GatheredTasks> SimFolders::bag_gather(const JobId& job, const job::Spec&, const std::optional<Digest>&) {
  TRY(pass(Point::folders_bag_gather, job, [] {}));
  Content files;
  files.job = world_.index_of(job);
  files.made_at = world_.now;
  files.is_output = true;
  return control::GatheredTasks{world_.truth->make_content(files), 1000, ""};
}

bool SimFolders::resume_bag(const JobId& job) {
  const bag::Progress now = world_.bags->read(job).progress();
  if (now.tasks > 0 && now.done == now.tasks) return false;
  append(job, bag::encode(bag::Resumed{}));
  return true;
}

}  // namespace gridctl::sim
