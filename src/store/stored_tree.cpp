// SPDX-License-Identifier: Apache-2.0
#include "store/stored_tree.hpp"

#include <utility>

#include "os/log.hpp"
#include "store/file_workers.hpp"
#include "store/fingerprints.hpp"

namespace gridctl::store {

Result<Tree> tree_at(ChunkStore& chunks, const Digest& root) {
  TRY_ASSIGN(const Bytes manifest, chunks.get(root));
  return parse_manifest(manifest);
}

Result<Digest> put_tree(ChunkStore& chunks, const Tree& tree) {
  const Bytes manifest = to_manifest(tree);
  const Digest root = root_of(manifest);
  TRY(chunks.put(root, manifest));
  return root;
}

Result<StoredTree> store_tree(ChunkStore& chunks, const os::Path& directory, ScanOptions options,
                              const std::optional<Digest>& previous) {
  std::optional<Tree> before;
  if (previous)
    if (auto tree = tree_at(chunks, *previous)) before = *std::move(tree);
  const Cipher* const cipher = chunks.cipher();
  Fingerprints fingerprints;
  if (before && cipher != nullptr) fingerprints = Fingerprints::load(chunks.directory(), *cipher, *previous);
  options.previous = before ? &*before : nullptr;
  options.fingerprints = &fingerprints;
  options.threads = threads_here();
  options.on_chunk_after = [&chunks](const Digest& digest, ByteView bytes, const Digest* base) {
    return chunks.put_hashed(digest, bytes, base);
  };
  TRY_ASSIGN(Scan scanned, scan(directory, options));
  if (scanned.tree.entries.empty())
    return make_error(Code::usage, directory.string() + " is empty: a checkpoint needs at least one file");
  TRY_ASSIGN(const Digest root, put_tree(chunks, scanned.tree));
  StoredTree made{root, std::move(scanned.tree), std::move(scanned.notes), 0};
  TRY_ASSIGN(const StoreStats stats, chunks.stats());
  TRY(chunks.seal());
  made.stored_bytes = stats.put_bytes;
  if (cipher == nullptr) return made;
  if (const auto saved = fingerprints.save(chunks.directory(), *cipher, made.root); !saved)
    os::log(os::LogLevel::warn, "the next save will hash everything: " + saved.error().one_line());
  return made;
}

}  // namespace gridctl::store
