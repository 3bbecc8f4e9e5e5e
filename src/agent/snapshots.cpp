// SPDX-License-Identifier: Apache-2.0
#include "agent/snapshots.hpp"

#include <fcntl.h>

#include <algorithm>

#include "agent/checkpoints.hpp"
#include "agent/results.hpp"
#include "os/log.hpp"

namespace gridctl::agent {
namespace {
constexpr std::size_t k_open_max = 4;                      // snapshots; a pack is seldom made of more
constexpr Duration k_wait_max = std::chrono::seconds{20};  // a connection that is silent for a minute is broken
}  // namespace

Result<Duration> reserve_upload(const AttemptDir& attempt, std::uint64_t bytes, std::uint64_t limit, BootTime now) {
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(attempt.path / "uploads.lock"));
  const Path file = attempt.path / "uploads";
  const auto before = read_number(file);  // what cannot be read is none
  const std::int64_t free_at = before && *before ? **before : 0;
  const BootTime begin{std::clamp(free_at, now.ns, (now + k_wait_max).ns)};
  const auto takes = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(limit)));
  const BootTime end = begin + std::min(takes, k_wait_max);
  TRY(os::write_file_atomically(file, std::to_string(end.ns) + "\n"));
  return end - now;
}

Result<HostSnapshots::Files> HostSnapshots::find(const wire::CheckpointRef& checkpoint) const {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(checkpoint.job, checkpoint.epoch));
  if (checkpoint.number != wire::k_results_number)
    return Files{snapshot_files(attempt, checkpoint.number), snapshot_manifest(attempt, checkpoint.number)};
  TRY_ASSIGN(const Workplace place, find_workplace(attempt));
  return Files{place.work, place.manifest};
}

Result<Bytes> HostSnapshots::manifest(const wire::CheckpointRef& checkpoint) {
  TRY_ASSIGN(const Files files, find(checkpoint));
  const Path& path = files.manifest;
  if (!os::exists(path))
    return make_error(Code::not_found, "this host has no snapshot " + std::to_string(checkpoint.number) + " of job " +
                                           checkpoint.job.value + " any more");
  TRY_ASSIGN(const std::string text, os::read_file(path, store::k_manifest_max));
  const ByteView bytes = as_bytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

Result<HostSnapshots::Open*> HostSnapshots::open(const wire::CheckpointRef& checkpoint) {
  const auto found = std::ranges::find_if(open_, [&](const std::unique_ptr<Open>& one) {
    return one->reference.job == checkpoint.job && one->reference.epoch == checkpoint.epoch &&
           one->reference.number == checkpoint.number;
  });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return open_.back().get();
  }
  TRY_ASSIGN(const Bytes bytes, manifest(checkpoint));
  TRY_ASSIGN(const Files files, find(checkpoint));
  auto opened = std::make_unique<Open>();
  opened->reference = checkpoint;
  TRY_ASSIGN(opened->tree, store::parse_manifest(bytes));
  TRY_ASSIGN(opened->directory, os::open_file(files.files, O_RDONLY | O_DIRECTORY));
  opened->chunks = std::make_unique<store::DirectoryChunks>(opened->directory.get(), opened->tree);
  if (open_.size() == k_open_max) open_.erase(open_.begin());
  open_.push_back(std::move(opened));
  return open_.back().get();
}

Result<Bytes> HostSnapshots::chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) {
  TRY_ASSIGN(Open * snapshot, open(checkpoint));
  return snapshot->chunks->read(digest);
}

std::uint64_t HostSnapshots::upload_limit(const wire::CheckpointRef& checkpoint) {
  if (limit_ && limit_->first == checkpoint) return limit_->second;
  const Result<AttemptDir> attempt = requests_.attempt(checkpoint.job, checkpoint.epoch);
  const Result<wire::AttemptSpec> spec = attempt ? read_spec(*attempt) : Result<wire::AttemptSpec>(attempt.error());
  limit_.emplace(checkpoint, spec ? spec->upload_limit : 0);
  return limit_->second;
}

// Several connections send at the same time, each from its own process: they take turns through a file.
void HostSnapshots::sent(const wire::CheckpointRef& checkpoint, std::size_t bytes) {
  const std::uint64_t limit = upload_limit(checkpoint);
  if (limit == 0) return;
  const Result<AttemptDir> attempt = requests_.attempt(checkpoint.job, checkpoint.epoch);
  const BootTime now = os::system_clock().boot();
  const Result<Duration> wait =
      attempt ? reserve_upload(*attempt, bytes, limit, now) : Result<Duration>(attempt.error());
  if (!wait) return os::log(os::LogLevel::warn, "cannot keep to the upload limit: " + wait.error().one_line());
  os::pause_for(*wait);
}

std::vector<wire::CheckpointRef> HostSnapshots::all_like(const wire::CheckpointRef& checkpoint) const {
  std::vector<wire::CheckpointRef> all{checkpoint};
  const Result<AttemptDir> attempt = requests_.attempt(checkpoint.job, checkpoint.epoch);
  if (!attempt) return all;
  const std::vector<HeldSnapshot> held = held_snapshots(*attempt, false);
  for (auto one = held.rbegin(); one != held.rend(); ++one)
    if (one->checkpoint.number != checkpoint.number)
      all.push_back({checkpoint.job, checkpoint.epoch, one->checkpoint.number});
  return all;
}

Result<void> HostSnapshots::needed(const wire::CheckpointRef& checkpoint, const std::set<std::uint64_t>& bases) const {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(checkpoint.job, checkpoint.epoch));
  return note_bases(attempt, checkpoint.number, bases);
}

}  // namespace gridctl::agent
