// SPDX-License-Identifier: Apache-2.0
#include "control/copies/housekeeping.hpp"

#include <unordered_set>
#include <utility>

#include "control/copies/chunks.hpp"
#include "control/reach/report.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "registry/registry.hpp"
#include "store/stored_tree.hpp"
#include "store/tree.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_period = std::chrono::hours{1};
constexpr Duration k_collect_every = std::chrono::hours{24};
constexpr Duration k_secrets_age = std::chrono::hours{1};     // a submit records its job within seconds
constexpr Duration k_temporary_age = std::chrono::hours{24};  // as the store's unfinished packs

bool is_older(const os::FileStatus& status, WallTime now, Duration age) {
  return Duration{now.ms * 1'000'000 - status.mtime_ns} >= age;
}

Result<std::uint64_t> sweep_secrets(const Paths& paths, WallTime now) {
  const os::Path folder = paths.root / "secrets";
  if (!os::exists(folder)) return 0;
  std::uint64_t removed = 0;
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const auto names, os::list_directory(folder));
  for (const std::string& name : names) {
    TRY_ASSIGN(const auto status, os::status_of(folder / name));
    if (!status || !is_older(*status, now, k_secrets_age)) continue;
    const auto remove_unless_needed = [&]() -> Result<void> {
      const Result<registry::Job> job = registry.job({name});
      if (!job && job.error().code != Code::not_found) return job.error();
      if (job && !job::is_final(job->state)) return {};
      ++removed;
      return os::remove_tree(folder / name);
    };
    TRY(registry.together(remove_unless_needed));  // the job must not be resumed meanwhile
  }
  return removed;
}

// Removes logs and bags of jobs that a command, killed half-way, had already forgotten.
Result<std::uint64_t> sweep_forgotten(const Paths& paths, WallTime now) {
  std::uint64_t removed = 0;
  if (!os::exists(paths.root / "logs") && !os::exists(paths.root / "bags")) return removed;
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const std::vector<registry::JobRow> jobs, registry.jobs({}));
  std::unordered_set<std::string> known;
  for (const registry::JobRow& job : jobs) known.insert(job.id.value);
  for (const os::Path& folder : {paths.root / "logs", paths.root / "bags"}) {
    if (!os::exists(folder)) continue;
    TRY_ASSIGN(const auto names, os::list_directory(folder));
    for (const std::string& name : names) {
      if (known.contains(name)) continue;
      TRY_ASSIGN(const auto status, os::status_of(folder / name));
      if (!status || !is_older(*status, now, k_secrets_age)) continue;
      TRY(os::remove_tree(folder / name));
      ++removed;
    }
  }
  return removed;
}

// Matches the temporary names of os::write_file_durably.
Result<std::uint64_t> sweep_temporary(const os::Path& folder, WallTime now) {
  if (!os::exists(folder)) return 0;
  std::uint64_t removed = 0;
  TRY_ASSIGN(const auto names, os::list_directory(folder));
  for (const std::string& name : names) {
    if (!name.starts_with('.') || name.find(".tmp-") == std::string::npos) continue;
    TRY_ASSIGN(const auto status, os::status_of(folder / name));
    if (!status || status->kind != os::FileKind::regular || !is_older(*status, now, k_temporary_age)) continue;
    TRY(os::remove_file(folder / name));
    ++removed;
  }
  return removed;
}

os::Path collected_file(const Paths& paths) { return paths.chunk_store() / "collected"; }

bool is_collection_due(const Paths& paths, WallTime now) {
  if (!os::exists(paths.chunk_store())) return false;
  const auto status = os::status_of(collected_file(paths));
  return !status || !*status || is_older(**status, now, k_collect_every);
}

void collect_and_tell(const Paths& paths) {
  const Result<store::GcReport> report = collect_garbage(paths);
  if (!report) return os::log(os::LogLevel::warn, "cannot collect garbage: " + report.error().one_line());
  if (report->bytes_freed > 0) os::log(os::LogLevel::info, "freed " + format_size(report->bytes_freed));
  control::report(os::write_file_atomically(collected_file(paths), ""), "while noting the collection");
}

void sweep_and_tell(const Paths& paths, WallTime now) {
  const Result<std::uint64_t> swept = sweep_leftovers(paths, now);
  if (!swept) return os::log(os::LogLevel::warn, "cannot remove leftovers: " + swept.error().one_line());
  if (*swept > 0) os::log(os::LogLevel::info, "removed leftovers: " + std::to_string(*swept));
}
}  // namespace

Result<store::GcReport> collect_garbage(const Paths& paths) {
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths));
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const std::vector<Digest> roots, registry.live_roots());
  std::unordered_set<Digest> live;
  for (const Digest& root : roots) {
    TRY_ASSIGN(const store::Tree tree, store::tree_at(store, root));
    live.insert(root);
    for (const store::Entry& entry : tree.entries)
      for (const store::Chunk& chunk : entry.chunks) live.insert(chunk.digest);
  }
  return store.collect(live);
}

Result<std::uint64_t> sweep_leftovers(const Paths& paths, WallTime now) {
  TRY_ASSIGN(std::uint64_t removed, sweep_secrets(paths, now));
  TRY_ASSIGN(const std::uint64_t forgotten, sweep_forgotten(paths, now));
  removed += forgotten;
  std::vector<os::Path> folders{paths.root, paths.chunk_store()};
  if (os::exists(paths.root / "logs")) {
    TRY_ASSIGN(const auto jobs, os::list_directory(paths.root / "logs"));
    for (const std::string& job : jobs) folders.push_back(paths.logs_of({job}));
  }
  for (const os::Path& folder : folders) {
    TRY_ASSIGN(const std::uint64_t more, sweep_temporary(folder, now));
    removed += more;
  }
  return removed;
}

Housekeeping::Housekeeping(os::Loop& loop, Paths paths) {
  pool_.submit([paths] {
    const WallTime now = os::system_clock().wall();
    sweep_and_tell(paths, now);
    if (is_collection_due(paths, now)) collect_and_tell(paths);
  });
  timer_ = loop.every(k_period, [this, paths = std::move(paths)] {
    if (pool_.pending() > 0) return;
    pool_.submit([paths] {
      sweep_and_tell(paths, os::system_clock().wall());
      collect_and_tell(paths);
    });
  });
}

}  // namespace gridctl::control
