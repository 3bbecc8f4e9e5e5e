// SPDX-License-Identifier: Apache-2.0
#include "agent/snapshots.hpp"

#include <fcntl.h>

#include "agent/checkpoints.hpp"

namespace gridctl::agent {

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

Result<void> HostSnapshots::open(const wire::CheckpointRef& checkpoint) {
  if (open_ && open_->reference.job == checkpoint.job && open_->reference.epoch == checkpoint.epoch &&
      open_->reference.number == checkpoint.number)
    return {};
  TRY_ASSIGN(const Bytes bytes, manifest(checkpoint));
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(checkpoint.job, checkpoint.epoch));
  auto opened = std::make_unique<Open>();
  opened->reference = checkpoint;
  TRY_ASSIGN(opened->tree, store::parse_manifest(bytes));
  TRY_ASSIGN(opened->directory, os::open_file(snapshot_files(attempt, checkpoint.number), O_RDONLY | O_DIRECTORY));
  opened->chunks = std::make_unique<store::DirectoryChunks>(opened->directory.get(), opened->tree);
  open_ = std::move(opened);
  return {};
}

Result<Bytes> HostSnapshots::chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) {
  TRY(open(checkpoint));
  return open_->chunks->read(digest);
}

}  // namespace gridctl::agent
