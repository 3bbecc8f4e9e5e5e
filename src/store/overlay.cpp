// SPDX-License-Identifier: Apache-2.0
#include "store/overlay.hpp"

namespace gridctl::store {

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
