// SPDX-License-Identifier: Apache-2.0
// Represents a tree as a value, with its one canonical encoding, the manifest: gridctl-store(5). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::store {

inline constexpr std::uint32_t k_chunk_max = 4u << 20;                  // bytes of one chunk
inline constexpr std::size_t k_manifest_max = 64u << 20;                // bytes; about 7 TiB of chunks
inline constexpr std::uint32_t k_blob_max = k_manifest_max;             // bytes of what a store keeps under one digest
inline constexpr std::uint32_t k_entries_max = 2'000'000;               // of one tree
inline constexpr std::size_t k_component_max = 255, k_path_max = 4095;  // bytes, as Linux has it
inline constexpr std::size_t k_depth_max = 64;                          // components of a path
inline constexpr std::size_t k_target_max = 4095;                       // bytes of a link's target

struct Chunk {
  Digest digest;
  std::uint32_t size = 0;  // 1..k_chunk_max
  bool operator==(const Chunk&) const = default;
};

enum class EntryKind : std::uint8_t { directory = 1, file = 2, symlink = 3 };

struct Entry {
  EntryKind kind = EntryKind::file;
  std::uint16_t mode = 0;  // bits 0777
  std::string path;        // relative to the tree; bytes, foreign
  std::uint64_t size = 0;  // of files
  std::vector<Chunk> chunks;
  std::string target;  // of links
  bool operator==(const Entry&) const = default;
};

struct Tree {
  std::vector<Entry> entries;  // ascending by path, each parent among them
  bool operator==(const Tree&) const = default;

  [[nodiscard]] std::uint64_t total_bytes() const;
  [[nodiscard]] std::uint64_t file_count() const;
  // Returns the approximate space of its files and names on a disk, in blocks: one chunk may appear in it a million
  // times.
  [[nodiscard]] std::uint64_t disk_bytes() const;
  // Returns the written space, without full chunks of zeros, which become holes.
  [[nodiscard]] std::uint64_t written_bytes() const;
  // Returns each digest once, in the order of the files.
  [[nodiscard]] std::vector<Chunk> unique_chunks() const;
  [[nodiscard]] const Entry* find(std::string_view path) const;
};

// Returns the earlier version of this file: the one with the same path, or otherwise the newest whose path differs only
// in its numbers (step-300/model.pt after step-200/model.pt). nullptr if there is none.
[[nodiscard]] const Entry* earlier_file(const Tree& earlier, std::string_view path);
// Returns, for chunks that `earlier` lacks, the chunk at the same offset of the earlier file.
[[nodiscard]] std::unordered_map<Digest, Digest> earlier_chunks(const Tree& tree, const Tree& earlier);

// Sets the limits for reading a foreign manifest.
struct TreeLimits {
  std::uint64_t bytes_max = 0;  // quota: sum of file sizes; 0 = none
  std::uint32_t entries_max = k_entries_max;
  bool links_stay_inside = false;  // refuse links that could lead out of the tree (checkpoints)
};

// Checks a path of a tree; the error says what is wrong with it.
[[nodiscard]] Result<void> check_path(std::string_view path);
// Returns true if a link at `path` to `target` cannot leave the tree, whatever other such links the tree holds: the
// target is relative and has ".." only at its start, at most as many as the link is deep.
[[nodiscard]] bool link_stays_inside(std::string_view path, std::string_view target);

// Sorts, then checks every rule of a tree.
[[nodiscard]] Result<Tree> make_tree(std::vector<Entry> entries, const TreeLimits& limits = {});

// REQUIRES: the tree came from make_tree or parse_manifest.
[[nodiscard]] Bytes to_manifest(const Tree& tree);
// Fails with checkpoint_damaged if it is not a canonical manifest within the limits.
[[nodiscard]] Result<Tree> parse_manifest(ByteView manifest, const TreeLimits& limits = {});
// Returns the SHA-256 of the manifest.
[[nodiscard]] Digest root_of(ByteView manifest);

// Merges two trees: takes all of `above`, and of `below` everything that does not conflict with it.
[[nodiscard]] Result<Tree> overlay(const Tree& below, const Tree& above);

}  // namespace gridctl::store
