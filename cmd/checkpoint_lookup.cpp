// SPDX-License-Identifier: Apache-2.0
#include "cmd/checkpoint_lookup.hpp"

namespace gridctl::cmd {

Result<registry::Checkpoint> find_checkpoint(registry::JobRecords& registry, const std::string& text) {
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(text));
  TRY_ASSIGN(const JobId id, registry.resolve(name.job));
  Result<registry::Checkpoint> found = registry.checkpoint(id, name.seq);
  if (!found && found.error().hint.empty()) found.error().hint = "gridctl checkpoint ls " + id.value;
  return found;
}

Result<registry::Checkpoint> find_last(registry::JobRecords& registry, const std::string& text) {
  Result<registry::Checkpoint> found = find_checkpoint(registry, text);
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(text));
  if (name.seq) return found;
  TRY_ASSIGN(const JobId id, registry.resolve(name.job));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  if (!std::holds_alternative<job::Done>(job.machine.phase)) return found;
  TRY_ASSIGN(const std::vector<registry::Checkpoint> all, registry.checkpoints(id));
  for (const registry::Checkpoint& one : all)
    if (one.as_left && !one.stray && (!found || one.seq > found->seq)) found = one;
  return found;
}

Result<store::Tree> tree_of(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint) {
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  Result<Bytes> manifest = chunks.get(checkpoint.root);
  if (!manifest) {
    Error error = std::move(manifest).error();
    if (error.code == Code::not_found)
      error = make_error(Code::checkpoint_damaged, "the manifest of checkpoint " + name + " is missing from the store");
    return std::move(error).with_context("while reading checkpoint " + name);
  }
  return store::parse_manifest(*manifest).context("while reading checkpoint " + name);
}

}  // namespace gridctl::cmd
