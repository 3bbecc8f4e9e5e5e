// SPDX-License-Identifier: Apache-2.0
#include "cmd/checkpoint_lookup.hpp"

namespace gridctl::cmd {

Result<registry::Checkpoint> find_checkpoint(registry::Registry& registry, const std::string& text) {
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(text));
  TRY_ASSIGN(const JobId id, registry.resolve(name.job));
  Result<registry::Checkpoint> found = registry.checkpoint(id, name.seq);
  if (!found && found.error().hint.empty()) found.error().hint = "gridctl checkpoint ls " + id.value;
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
