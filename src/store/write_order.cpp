// SPDX-License-Identifier: Apache-2.0
#include "store/write_order.hpp"

#include <algorithm>

#include "store/big_endian.hpp"

namespace gridctl::store {
namespace {

constexpr EntryKind k_numbered[] = {EntryKind::file, EntryKind::directory};

}  // namespace

void number_writes(std::vector<Entry>& entries, const std::function<std::int64_t(const Entry&)>& changed_at) {
  for (const EntryKind kind : k_numbered) {
    std::vector<std::int64_t> times;
    for (const Entry& entry : entries)
      if (entry.kind == kind) times.push_back(changed_at(entry));
    std::ranges::sort(times);
    times.erase(std::ranges::unique(times).begin(), times.end());
    for (Entry& entry : entries) {
      if (entry.kind != kind) continue;
      const auto before = std::ranges::lower_bound(times, changed_at(entry)) - times.begin();
      entry.written = times.size() < 2 ? 0 : static_cast<std::uint32_t>(before + 1);
    }
  }
}

void renumber_writes(std::vector<Entry>& entries) {
  // Each entry is numbered once, and its own number is all that is read.
  number_writes(entries, [](const Entry& entry) { return std::int64_t{entry.written}; });
}

bool has_write_order(const Tree& tree) {
  return std::ranges::any_of(tree.entries, [](const Entry& entry) { return entry.written != 0; });
}

Result<void> check_write_order(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries)
    if (entry.kind == EntryKind::symlink && entry.written != 0) return damaged("a link has a number in the order of writing");
  for (const EntryKind kind : k_numbered) {
    const std::uint32_t last = last_write(entries, kind);
    if (last == 0) continue;
    if (last > entries.size()) return damaged("order of writing has gaps");
    std::vector<bool> seen(std::size_t{last} + 1);
    for (const Entry& entry : entries)
      if (entry.kind == kind) seen[entry.written] = true;
    if (seen[0] || last == 1 || std::ranges::count(seen, true) != std::ptrdiff_t{last})
      return damaged("order of writing has gaps");
  }
  return {};
}

std::uint32_t last_write(const std::vector<Entry>& entries, EntryKind kind) {
  std::uint32_t last = 0;
  for (const Entry& entry : entries)
    if (entry.kind == kind) last = std::max(last, entry.written);
  return last;
}

}  // namespace gridctl::store
