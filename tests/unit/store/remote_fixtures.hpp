// SPDX-License-Identifier: Apache-2.0
// A store with checkpoints in it, and a directory that keeps copies.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/copying.hpp"
#include "store/dir_remote.hpp"
#include "store/remote_source.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::testing {

using Files = std::map<std::string, std::string>;  // path -> content

inline std::shared_ptr<const StoreKey> key_named(std::string_view secret) {
  return std::make_shared<const StoreKey>(digest_of(secret));
}

inline ChunkStore open_store(const os::Path& path, std::shared_ptr<const StoreKey> key) {
  StoreOptions options;
  options.cipher = std::move(key);
  auto store = ChunkStore::open(path, options);
  EXPECT_TRUE(store) << store.error().one_line();
  return *std::move(store);
}

// Each file is one chunk. `before` names what stood in the files' remotes, for differences.
inline CopyRecord save(ChunkStore& store, const Files& files, std::uint64_t seq, const Files& before = {}) {
  std::vector<Entry> entries;
  for (const auto& [path, text] : files) {
    Entry entry;
    entry.mode = 0644;
    entry.path = path;
    entry.size = text.size();
    entry.chunks = {{digest_of(text), static_cast<std::uint32_t>(text.size())}};
    const auto old = before.find(path);
    const Digest base = old == before.end() ? Digest{} : digest_of(old->second);
    EXPECT_TRUE(store.put_hashed(entry.chunks[0].digest, as_bytes(text), old == before.end() ? nullptr : &base));
    entries.push_back(std::move(entry));
  }
  const Tree tree = *make_tree(std::move(entries));
  const Bytes manifest = to_manifest(tree);
  CopyRecord record;
  record.job = {"job1"};
  record.seq = {seq};
  record.epoch = {7};
  record.attempt = {2};
  record.root = root_of(manifest);
  record.created_at = {1'700'000'000'000};
  record.bytes = tree.total_bytes();
  record.files = tree.file_count();
  record.job_name = "train-gpt";
  record.how = "format";
  EXPECT_TRUE(store.put(record.root, manifest));
  EXPECT_TRUE(store.seal());
  return record;
}

// What a reader makes of it; an error when anything of it cannot be had.
inline Result<Files> load(ChunkReader& reader, const Digest& root) {
  TRY_ASSIGN(const Bytes manifest, reader.read(root));
  TRY_ASSIGN(const Tree tree, parse_manifest(manifest));
  Files files;
  for (const Entry& entry : tree.entries)
    for (const Chunk& chunk : entry.chunks) {
      TRY_ASSIGN(const Bytes content, reader.read(chunk.digest));
      files[entry.path] += as_text(content);
    }
  return files;
}

// From the remote alone.
inline Result<Files> load_from(Backend& remote, const StoreKey& key, const RecordName& name) {
  TRY_ASSIGN(const CopyRecord record, read_record(remote, name, key));
  TRY_ASSIGN(RemoteSource source, RemoteSource::open(remote, key, record.packs));
  return load(source, record.root);
}

}  // namespace gridctl::store::testing
