// SPDX-License-Identifier: Apache-2.0
#include "control/housekeeping.hpp"

#include <unordered_set>
#include <utility>

#include "os/log.hpp"
#include "registry/registry.hpp"
#include "store/tree.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_period = std::chrono::hours{1};
}

Result<store::GcReport> collect_garbage(const Paths& paths) {
  TRY_ASSIGN(store::ChunkStore store, store::ChunkStore::open(paths.chunk_store()));
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const std::vector<Digest> roots, registry.live_roots());
  std::unordered_set<Digest> live;
  for (const Digest& root : roots) {
    TRY_ASSIGN(const Bytes manifest, store.get(root));
    TRY_ASSIGN(const store::Tree tree, store::parse_manifest(manifest));
    live.insert(root);
    for (const store::Entry& entry : tree.entries)
      for (const store::Chunk& chunk : entry.chunks) live.insert(chunk.digest);
  }
  return store.collect([&](const Digest& digest) { return live.contains(digest); });
}

Housekeeping::Housekeeping(os::Loop& loop, Paths paths) {
  timer_ = loop.every(k_period, [this, paths = std::move(paths)] {
    if (pool_.pending() > 0) return;
    pool_.submit([paths] {
      const Result<store::GcReport> report = collect_garbage(paths);
      if (!report) os::log(os::LogLevel::warn, "garbage was not collected: " + report.error().one_line());
      else if (report->bytes_freed > 0) os::log(os::LogLevel::info, "freed " + format_size(report->bytes_freed));
    });
  });
}

}  // namespace gridctl::control
