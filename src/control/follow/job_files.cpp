// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_files.hpp"

#include <fcntl.h>

#include <span>

#include "control/follow/bag_files.hpp"
#include "control/follow/bag_results.hpp"
#include "control/follow/log_file.hpp"
#include "control/follow/secrets.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

namespace {
constexpr const char* k_masked_mark = "masked";  // beside the logs of a job that has secrets
}

// Masks are read again when files were added: a resumed job may have other values.
Result<std::shared_ptr<const Masks>> JobFiles::masks_of(const JobId& job) {
  const os::MutexLock lock(mutex_);
  const auto found = known_.find(job);
  TRY_ASSIGN(const std::optional<os::FileStatus> folder, os::status_of(paths_.secrets_of(job)));
  if (!folder) return found == known_.end() ? std::make_shared<const Masks>() : found->second.masks;
  if (found != known_.end() && found->second.read_at_ns == folder->mtime_ns) return found->second.masks;
  TRY_ASSIGN(auto values, read_secrets(paths_.secrets_of(job)));
  Known& known = known_[job];
  for (const auto& [name, value] : values) of_all_.add(value);
  for (auto& [name, value] : values) known.values[name + " " + std::to_string(folder->mtime_ns)] = std::move(value);
  known.read_at_ns = folder->mtime_ns;
  known.masks = std::make_shared<const Masks>(known.values);
  return known.masks;
}

std::string JobFiles::masked(const JobId& job, std::string text) {
  const Result<std::shared_ptr<const Masks>> masks = masks_of(job);
  if (!masks)
    return text.empty() ? text : "(omitted because the job's secrets cannot be read: " + masks.error().one_line() + ")";
  (*masks)->mask_cut(text);
  return text;
}

std::string JobFiles::masked_of_all(std::string text) {
  bool knows_all = true;
  {
    const os::MutexLock lock(mutex_);
    std::swap(knows_all, knows_all_);
  }
  if (!knows_all)
    if (const auto jobs = os::list_directory(paths_.secrets()))
      for (const std::string& job : *jobs) (void)masks_of({job});
  const os::MutexLock lock(mutex_);
  of_all_.mask(text);
  return text;
}

Result<std::uint64_t> JobFiles::log_next_offset(const JobId& job, AttemptNumber attempt, int rank) {
  return control::log_next_offset(paths_.log_of(job, attempt, rank));
}

Result<void> JobFiles::log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                  std::string_view bytes) {
  const os::Path log = paths_.log_of(job, attempt, rank), mark = paths_.logs_of(job) / k_masked_mark;
  TRY_ASSIGN(const std::shared_ptr<const Masks> masks, masks_of(job));
  if (masks->empty()) {
    if (!os::exists(mark)) return control::log_append(log, offset, bytes);
    return log_leave_out(log, offset, bytes.size(), "they arrived when the job's secrets were no longer known here");
  }
  if (!os::exists(mark)) {
    TRY(os::make_directories(mark.parent_path()));
    TRY(os::write_file_durably(mark, ""));
  }
  return control::log_append(log, offset, bytes, *masks);
}

Result<std::string> JobFiles::log_tail(const JobId& job, AttemptNumber attempt, int rank, std::size_t lines) {
  return control::log_tail(paths_.log_of(job, attempt, rank), lines);
}

Result<std::string> JobFiles::log_ends(const JobId& job, AttemptNumber attempt, int rank, std::size_t each) {
  TRY_ASSIGN(const os::Fd file, os::open_file(paths_.log_of(job, attempt, rank), O_RDONLY));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(file.get()));
  const auto part = [&](std::uint64_t begin, std::uint64_t end) -> Result<std::string> {
    std::string text(end - begin, '\0');
    TRY_ASSIGN(const std::size_t got, os::read_at(file.get(), std::as_writable_bytes(std::span(text)), begin));
    text.resize(got);
    return text;
  };
  if (status.size <= 2 * each) return part(0, status.size);
  TRY_ASSIGN(std::string first, part(0, each));
  TRY_ASSIGN(const std::string last, part(status.size - each, status.size));
  first.resize(first.rfind('\n') + 1);  // no line is made of two halves
  return first + last.substr(last.find('\n') + 1);
}

Result<std::string> JobFiles::bag_journal(const JobId& job) { return read_bag_journal(paths_.bag_of(job)); }
Result<void> JobFiles::bag_append(const JobId& job, std::string_view records) {
  return append_bag_journal(paths_.bag_of(job), records);
}
Result<void> JobFiles::bag_replace(const JobId& job, std::string_view journal) {
  return replace_bag_journal(paths_.bag_of(job), journal);
}
Result<std::uint64_t> JobFiles::bag_output_end(const JobId& job, std::uint32_t worker, Epoch epoch) {
  return bag_output_size(bag_output_path(paths_.bag_of(job), worker, epoch));
}
Result<void> JobFiles::bag_output(const JobId& job, std::uint32_t worker, Epoch epoch, std::uint64_t offset,
                                  std::string_view bytes) {
  TRY_ASSIGN(const std::shared_ptr<const Masks> masks, masks_of(job));
  return append_bag_output(bag_output_path(paths_.bag_of(job), worker, epoch), offset, bytes, *masks);
}
Result<GatheredTasks> JobFiles::bag_gather(const JobId& job, const job::Spec& spec, const std::optional<Digest>& below) {
  return gather_tasks(paths_, job, spec, below);
}
Result<std::string> JobFiles::bag_items(const JobId& job) { return read_bag_items(paths_.bag_of(job)); }

Result<std::map<std::string, std::string>> JobFiles::secrets(const JobId& job, const std::vector<std::string>& names) {
  (void)masks_of(job);  // before a host can say a word of them
  return read_secrets(paths_.secrets_of(job), names);
}

Result<void> JobFiles::keep_secrets(const JobId& job, const std::map<std::string, std::string>& secrets) {
  return write_secrets(paths_.secrets_of(job), secrets);
}

Result<void> JobFiles::remove_secrets(const JobId& job) { return os::remove_tree(paths_.secrets_of(job)); }

}  // namespace gridctl::control
