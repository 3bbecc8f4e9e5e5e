// SPDX-License-Identifier: Apache-2.0
#include "agent/snapshots.hpp"

#include <fcntl.h>

#include <algorithm>

#include "agent/checkpoints.hpp"

namespace gridctl::agent {
namespace {
constexpr std::size_t k_open_max = 4;  // snapshots; a pack is seldom made of more
}  // namespace

Result<Bytes> HostSnapshots::manifest(const wire::CheckpointRef& checkpoint) {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(checkpoint.job, checkpoint.epoch));
  const Path path = snapshot_manifest(attempt, checkpoint.number);
  if (!os::exists(path))
    return make_error(Code::not_found, "this host has no snapshot " + std::to_string(checkpoint.number) + " of job " +
                                           checkpoint.job.value + " any more");
  TRY_ASSIGN(const std::string text, os::read_file(path, store::k_manifest_max));
  const ByteView bytes = as_bytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

Result<HostSnapshots::Open*> HostSnapshots::open(const wire::CheckpointRef& checkpoint) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const std::unique_ptr<Open>& one) {
    return one->reference.job == checkpoint.job && one->reference.epoch == checkpoint.epoch &&
           one->reference.number == checkpoint.number;
  });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
    return open_.back().get();
  }
  TRY_ASSIGN(const Bytes bytes, manifest(checkpoint));
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(checkpoint.job, checkpoint.epoch));
  auto opened = std::make_unique<Open>();
  opened->reference = checkpoint;
  TRY_ASSIGN(opened->tree, store::parse_manifest(bytes));
  TRY_ASSIGN(opened->directory, os::open_file(snapshot_files(attempt, checkpoint.number), O_RDONLY | O_DIRECTORY));
  opened->chunks = std::make_unique<store::DirectoryChunks>(opened->directory.get(), opened->tree);
  if (open_.size() == k_open_max) open_.erase(open_.begin());
  open_.push_back(std::move(opened));
  return open_.back().get();
}

Result<Bytes> HostSnapshots::chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) {
  TRY_ASSIGN(Open * snapshot, open(checkpoint));
  return snapshot->chunks->read(digest);
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
