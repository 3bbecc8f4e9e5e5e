// SPDX-License-Identifier: Apache-2.0
#include "store/tree.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "store/big_endian.hpp"
#include "store/rank_files.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_tree_magic = "GRIDTREE";
constexpr std::uint16_t k_tree_version = 1;
constexpr std::size_t k_entry_bytes_min = 1 + 2 + 2 + 1;  // kind, mode, path length, one byte of path
constexpr std::size_t k_chunk_bytes = 4 + 32;
constexpr std::uint64_t k_disk_block = 4096;  // bytes, of most file systems

Result<void> check_component(std::string_view component) {
  if (component.empty()) return damaged("path has an empty component");
  if (component == "." || component == "..") return damaged("path has a component '" + std::string(component) + "'");
  if (component.size() > k_component_max) return damaged("path has a component longer than 255 bytes");
  return {};
}

Result<void> check_file(const Entry& entry) {
  std::uint64_t sum = 0;
  for (const Chunk& chunk : entry.chunks) {
    if (chunk.size == 0 || chunk.size > k_chunk_max) return damaged("chunk length is not 1 to 4 MiB");
    sum += chunk.size;
  }
  if (sum != entry.size) return damaged("chunk lengths do not add up to the size of the file");
  return {};
}

Result<void> check_link(const Entry& entry, const TreeLimits& limits) {
  if (entry.target.empty() || entry.target.size() > k_target_max || entry.target.find('\0') != std::string::npos)
    return damaged("link target is empty, too long or has a zero byte");
  if (limits.links_stay_inside && !link_stays_inside(entry.path, entry.target))
    return damaged("link to " + quoted_path(entry.target) + " may lead out of the tree");
  return {};
}

Result<void> check_entry(const Entry& entry, const TreeLimits& limits) {
  TRY(check_path(entry.path));
  if ((entry.mode & ~0777u) != 0) return damaged("mode has bits beyond 0777");
  if (entry.kind != EntryKind::file && (entry.size != 0 || !entry.chunks.empty()))
    return damaged("only files have a size and chunks");
  if (entry.kind != EntryKind::symlink && !entry.target.empty()) return damaged("only links have a target");
  switch (entry.kind) {
    case EntryKind::directory: return {};
    case EntryKind::file: return check_file(entry);
    case EntryKind::symlink: return entry.mode == 0777 ? check_link(entry, limits) : damaged("link mode is not 0777");
  }
  return damaged("unknown kind of entry");
}

// Checks order, uniqueness and parents; REQUIRES: nothing. Directories are remembered by path, so the cost is linear.
Result<void> check_order(const std::vector<Entry>& entries) {
  std::unordered_set<std::string_view> directories;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (previous != nullptr && !(previous->path < entry.path))
      return damaged("entry " + quoted_path(entry.path) + " appears twice or out of order");
    const std::string_view parent = folder_of(entry.path);
    if (!parent.empty() && !directories.contains(parent))
      return damaged("entry " + quoted_path(entry.path) + " is below something that is not a directory of the tree");
    if (entry.kind == EntryKind::directory) directories.insert(entry.path);
    previous = &entry;
  }
  return {};
}

Result<void> check_tree(const Tree& tree, const TreeLimits& limits) {
  if (tree.entries.size() > limits.entries_max) return damaged("tree has more than the allowed number of entries");
  std::uint64_t total = 0;
  for (const Entry& entry : tree.entries) {
    TRY(check_entry(entry, limits).context("in entry " + quoted_path(entry.path)));
    if (entry.size > UINT64_MAX - total) return damaged("sizes of the tree overflow");
    total += entry.size;
    if (limits.bytes_max != 0 && total > limits.bytes_max)
      return damaged("tree contains more than the " + format_size(limits.bytes_max) + " allowed");
  }
  return check_order(tree.entries);
}

std::string text_of(ByteView bytes) { return std::string(as_text(bytes)); }

Result<Entry> read_entry(Reader& in) {
  Entry entry;
  entry.kind = static_cast<EntryKind>(in.number<std::uint8_t>());
  entry.mode = in.number<std::uint16_t>();
  entry.path = text_of(in.bytes(in.number<std::uint16_t>()));
  if (entry.kind == EntryKind::file) {
    entry.size = in.number<std::uint64_t>();
    const auto count = in.number<std::uint32_t>();
    if (count > in.left() / k_chunk_bytes) return damaged("manifest ends within a list of chunks");
    entry.chunks.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto size = in.number<std::uint32_t>();
      entry.chunks.push_back({in.digest(), size});
    }
  } else if (entry.kind == EntryKind::symlink) {
    entry.target = text_of(in.bytes(in.number<std::uint16_t>()));
  }
  if (!in.good()) return damaged("manifest ends within an entry");
  return entry;
}

}  // namespace

std::uint64_t Tree::total_bytes() const {
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.size;
  return total;
}

std::uint64_t Tree::disk_bytes() const {
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += k_disk_block + (entry.size + k_disk_block - 1) / k_disk_block * k_disk_block;
  return total;
}

std::uint64_t Tree::written_bytes() const {
  static const Digest zeros = crypto::sha256(Bytes(k_chunk_max));
  std::uint64_t holes = 0;
  for (const Entry& entry : entries)
    for (const Chunk& chunk : entry.chunks)
      if (chunk.size == k_chunk_max && chunk.digest == zeros) holes += chunk.size;
  return disk_bytes() - holes;
}

std::uint64_t Tree::file_count() const {
  return static_cast<std::uint64_t>(std::ranges::count(entries, EntryKind::file, &Entry::kind));
}

std::vector<Chunk> Tree::unique_chunks() const {
  std::vector<Chunk> chunks;
  std::unordered_set<Digest> seen;
  for (const Entry& entry : entries) {
    for (const Chunk& chunk : entry.chunks) {
      if (seen.insert(chunk.digest).second) chunks.push_back(chunk);
    }
  }
  return chunks;
}

const Entry* Tree::find(std::string_view path) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), path,
                                   [](const Entry& entry, std::string_view wanted) { return entry.path < wanted; });
  return at != entries.end() && at->path == path ? &*at : nullptr;
}

namespace {
// "step-#/model.pt"
std::string shape_of(std::string_view path) {
  std::string shape;
  bool in_number = false;
  for (const char c : path) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) shape.push_back(c);
    else if (!in_number) shape.push_back('#');
    in_number = digit;
  }
  return shape;
}
}  // namespace

const Entry* earlier_file(const Tree& earlier, std::string_view path) {
  const Entry* found = earlier.find(path);
  if (found != nullptr) return found->kind == EntryKind::file ? found : nullptr;
  const std::string shape = shape_of(path);
  if (shape == path) return nullptr;
  for (const Entry& entry : earlier.entries) {
    if (entry.kind != EntryKind::file || shape_of(entry.path) != shape) continue;
    // The longer number is the greater one.
    if (found == nullptr || entry.path.size() >= found->path.size()) found = &entry;
  }
  return found;
}

std::unordered_map<Digest, Digest> earlier_chunks(const Tree& tree, const Tree& earlier) {
  std::unordered_set<Digest> kept;
  for (const Chunk& chunk : earlier.unique_chunks()) kept.insert(chunk.digest);
  std::unordered_map<Digest, Digest> before;
  for (const Entry& entry : tree.entries) {
    const Entry* from = entry.kind == EntryKind::file ? earlier_file(earlier, entry.path) : nullptr;
    if (from == nullptr) continue;
    std::uint64_t offset = 0, earlier_offset = 0;
    auto there = from->chunks.begin();
    for (const Chunk& chunk : entry.chunks) {
      while (there != from->chunks.end() && earlier_offset < offset) earlier_offset += (there++)->size;
      const bool same_remote = there != from->chunks.end() && earlier_offset == offset && there->size == chunk.size;
      if (same_remote && !kept.contains(chunk.digest)) before.emplace(chunk.digest, there->digest);
      offset += chunk.size;
    }
  }
  return before;
}

Result<void> check_path(std::string_view path) {
  if (path.empty()) return damaged("path is empty");
  if (path.size() > k_path_max) return damaged("path is longer than 4095 bytes");
  if (path.front() == '/') return damaged("path is absolute");
  if (path.find('\0') != std::string_view::npos) return damaged("path has a zero byte");
  std::size_t depth = 0;
  for (std::size_t begin = 0; begin <= path.size(); ++depth) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    TRY(check_component(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (depth > k_depth_max) return damaged("path is deeper than 64 components");
  return {};
}

bool link_stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.size() > k_target_max || target.front() == '/') return false;
  if (target.find('\0') != std::string_view::npos) return false;
  auto ups_left = static_cast<std::ptrdiff_t>(std::ranges::count(path, '/'));
  bool descended = false;
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('/', begin), target.size());
    const std::string_view component = target.substr(begin, end - begin);
    begin = end + 1;
    if (component.empty() || component == ".") continue;
    if (component != "..") descended = true;
    else if (descended || --ups_left < 0)
      return false;  // ".." behind a name may be behind a link: no telling where it leads
  }
  return true;
}

Result<Tree> make_tree(std::vector<Entry> entries, const TreeLimits& limits) {
  Tree tree{std::move(entries)};
  std::ranges::sort(tree.entries, {}, &Entry::path);
  TRY(check_tree(tree, limits));
  return tree;
}

Bytes to_manifest(const Tree& tree) {
  Bytes out;
  put_bytes(out, as_bytes(k_tree_magic));
  put_big_endian(out, k_tree_version);
  put_big_endian(out, std::uint16_t{0});
  put_big_endian(out, static_cast<std::uint32_t>(tree.entries.size()));
  put_big_endian(out, tree.total_bytes());
  for (const Entry& entry : tree.entries) {
    put_big_endian(out, static_cast<std::uint8_t>(entry.kind));
    put_big_endian(out, entry.mode);
    put_big_endian(out, static_cast<std::uint16_t>(entry.path.size()));
    put_bytes(out, as_bytes(entry.path));
    if (entry.kind == EntryKind::file) {
      put_big_endian(out, entry.size);
      put_big_endian(out, static_cast<std::uint32_t>(entry.chunks.size()));
      for (const Chunk& chunk : entry.chunks) {
        put_big_endian(out, chunk.size);
        put_bytes(out, chunk.digest.bytes);
      }
    } else if (entry.kind == EntryKind::symlink) {
      put_big_endian(out, static_cast<std::uint16_t>(entry.target.size()));
      put_bytes(out, as_bytes(entry.target));
    }
  }
  return out;
}

Result<Tree> parse_manifest(ByteView manifest, const TreeLimits& limits) {
  if (manifest.size() > k_manifest_max) return damaged("manifest is larger than 64 MiB");
  Reader in(manifest);
  if (as_text(in.bytes(k_tree_magic.size())) != k_tree_magic) return damaged("bytes are not a manifest");
  const auto version = in.number<std::uint16_t>();
  const auto features = in.number<std::uint16_t>();
  if (in.good() && (version != k_tree_version || features != 0)) {
    return make_error(Code::unsupported, "manifest has version " + std::to_string(version) + " and features " +
                                             std::to_string(features) + "; this gridctl knows version 1");
  }
  const auto count = in.number<std::uint32_t>();
  const auto total = in.number<std::uint64_t>();
  if (!in.good()) return damaged("manifest ends within its header");
  if (count > limits.entries_max || count > in.left() / k_entry_bytes_min)
    return damaged("manifest claims too many entries");
  Tree tree;
  tree.entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    TRY_ASSIGN(Entry entry, read_entry(in));
    tree.entries.push_back(std::move(entry));
  }
  if (in.left() != 0) return damaged("manifest has bytes after its last entry");
  TRY(check_tree(tree, limits));
  if (tree.total_bytes() != total) return damaged("sizes in the manifest do not add up");
  return tree;
}

Digest root_of(ByteView manifest) { return crypto::sha256(manifest); }

namespace {
// True when `tree` has something other than a directory where the path needs one.
bool is_blocked(const Tree& tree, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const Entry* const parent = tree.find(std::string_view(path).substr(0, slash));
    if (parent != nullptr && parent->kind != EntryKind::directory) return true;
  }
  return false;
}
}  // namespace

Result<Tree> overlay(const Tree& below, const Tree& above) {
  std::vector<Entry> entries = above.entries;
  for (const Entry& entry : below.entries)
    if (above.find(entry.path) == nullptr && !is_blocked(above, entry.path)) entries.push_back(entry);
  return make_tree(std::move(entries));
}

}  // namespace gridctl::store
