// SPDX-License-Identifier: Apache-2.0
#include "agent/own_snapshots.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "agent/checkpoints.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_proof_time = std::chrono::seconds{20};  // of one request: the controller waits a minute for answers
constexpr std::uint64_t k_scarce = 20;                       // a disk with less than a 20th free is nearly full
constexpr std::size_t k_folders_max = 32;                    // snapshots of one job that are looked at
constexpr std::uint64_t k_newest = 2;                        // of an attempt are kept: the last may not have been committed
constexpr int k_looks_max = 3;                               // while `keep` moves some between a look and the opening
constexpr std::uint64_t k_snapshot_info_bytes_max = 16 * 1024;

Path info_of(const Path& folder) { return folder / "info"; }
Path damaged_mark(const Path& folder) { return folder / "damaged"; }

bool is_of_this_boot(const Path& folder) {
  const auto info = os::read_file(info_of(folder), k_snapshot_info_bytes_max);
  return info && info->starts_with(os::boot_id() + " ");
}

Result<void> open_into(const Path& folder, store::FileChunks& chunks) {
  TRY_ASSIGN(const std::string manifest, os::read_file(folder / "manifest", store::k_manifest_max));
  TRY_ASSIGN(store::Tree tree, store::parse_manifest(as_bytes(manifest)));
  TRY_ASSIGN(os::Fd directory, os::open_file(folder / "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  chunks.add(std::move(directory), std::move(tree));
  return {};
}

struct KeptSnapshot {
  Path folder;
  std::int64_t asked_ns = 0;  // when the controller asked for it last
};
// Lists the kept snapshots of all controllers and jobs, the longest unused first.
std::vector<KeptSnapshot> all_kept(const Path& all) {
  std::vector<KeptSnapshot> kept;
  const auto names = os::list_directory(all);
  if (!names) return kept;
  for (const std::string& name : *names) {
    const auto info = os::status_of(info_of(all / name));
    kept.push_back({all / name, info && *info ? (*info)->mtime_ns : 0});
  }
  std::ranges::sort(kept, {}, &KeptSnapshot::asked_ns);
  return kept;
}

bool is_nearly_full(const Path& home) {
  const auto space = os::disk_space(home);
  return space && space->free < space->total / k_scarce;
}

}  // namespace

OwnSnapshots::OwnSnapshots(Path home, ControllerId controller)
    : home_(std::move(home)), all_(home_ / "snapshots"), controller_(std::move(controller)) {}

std::vector<Path> OwnSnapshots::kept_of(const JobId& job) const {
  std::vector<Path> folders;
  const std::string prefix = controller_.value + "." + job.value + ".";
  if (const auto names = os::list_directory(all_))
    for (const std::string& name : *names)
      if (name.starts_with(prefix)) folders.push_back(all_ / name);
  return folders;
}

// Attempts come first: snapshots that `keep` moves in the meantime are found among the kept ones.
std::vector<Path> OwnSnapshots::folders_of(const JobId& job) const {
  std::vector<Path> folders;
  const auto mine = JobDir::at(home_, controller_, job);
  const auto epochs = mine ? mine->epochs() : Result<std::vector<Epoch>>(mine.error());
  if (epochs)
    for (auto epoch = epochs->rbegin(); epoch != epochs->rend(); ++epoch) {
      const AttemptDir attempt{mine->attempt(*epoch)};
      const std::vector<HeldSnapshot> held = held_snapshots(attempt, false);
      for (auto one = held.rbegin(); one != held.rend(); ++one)
        folders.push_back(attempt.snapshots() / std::to_string(one->checkpoint.number));
    }
  std::ranges::copy(kept_of(job), std::back_inserter(folders));
  std::erase_if(folders, [](const Path& folder) { return os::exists(damaged_mark(folder)); });
  if (folders.size() > k_folders_max) folders.resize(k_folders_max);
  return folders;
}

Result<store::FileChunks> OwnSnapshots::chunks_of(const JobId& job) const {
  TRY(check_component("the job id", job.value));
  for (int look = 1;; ++look) {
    store::FileChunks chunks;
    bool all = true;
    for (const Path& folder : folders_of(job)) all = open_into(folder, chunks).has_value() && all;
    if (all || look == k_looks_max) return chunks;
  }
}

void OwnSnapshots::find(const JobId& job, std::span<const Digest> chunks, std::vector<std::uint32_t>& missing) {
  if (missing.empty() || !check_component("the job id", job.value)) return;
  store::FileChunks of_this_boot, earlier;
  for (const Path& folder : folders_of(job)) {
    (void)open_into(folder, is_of_this_boot(folder) ? of_this_boot : earlier);
    if (folder.parent_path() == all_) (void)os::touch_file(info_of(folder));
  }
  const os::Clock& clock = os::system_clock();
  const BootTime until = clock.boot() + k_proof_time;
  std::erase_if(missing, [&](std::uint32_t index) {
    const Digest& chunk = chunks[index];
    if (of_this_boot.has(chunk) || proven_.contains(chunk)) return true;
    if (!earlier.has(chunk) || clock.boot() > until || !earlier.read(chunk)) return false;
    proven_.insert(chunk);
    return true;
  });
}

void OwnSnapshots::distrust(const JobId& job) const {
  for (const Path& folder : folders_of(job)) (void)os::write_file_atomically(damaged_mark(folder), "");
}

Result<void> OwnSnapshots::keep(const AttemptDir& attempt) const {
  const std::vector<HeldSnapshot> held = held_snapshots(attempt, false);
  if (held.empty() || is_nearly_full(home_)) return {};
  TRY_ASSIGN(const auto wanted, read_number(attempt.kept_file()));
  TRY(os::make_directories(all_));
  const std::string of_job = attempt.controller().value + "." + attempt.job().value + ".";
  const std::string of_attempt = of_job + std::to_string(attempt.epoch().value) + ".";
  for (const HeldSnapshot& one : held) {
    const std::uint64_t number = one.checkpoint.number;
    const bool is_newest = number + k_newest > held.back().checkpoint.number;
    if (!is_newest && number != static_cast<std::uint64_t>(wanted.value_or(0))) continue;
    const Path to = all_ / (of_attempt + std::to_string(number));
    TRY(os::remove_tree(to));
    TRY(os::rename_path(attempt.snapshots() / std::to_string(number), to));
    (void)os::touch_file(info_of(to));
  }
  for (const Path& folder : kept_of(attempt.job()))
    if (!folder.filename().native().starts_with(of_attempt)) TRY(os::remove_tree(folder));
  return {};
}

void OwnSnapshots::drop(const JobId& job) const {
  for (const Path& folder : kept_of(job)) (void)os::remove_tree(folder);
}

void OwnSnapshots::sweep(WallTime now) const {
  const std::int64_t oldest_ns = now.ms * 1'000'000 - std::chrono::nanoseconds{k_kept_life}.count();
  for (const KeptSnapshot& kept : all_kept(all_))
    if (kept.asked_ns < oldest_ns || is_nearly_full(home_)) (void)os::remove_tree(kept.folder);
}

void OwnSnapshots::make_room(std::uint64_t bytes, const JobId& besides) const {
  const std::string own = controller_.value + "." + besides.value + ".";
  for (const KeptSnapshot& kept : all_kept(all_)) {
    const auto free = os::free_bytes(home_);
    if (!free || *free >= bytes) return;
    if (!kept.folder.filename().native().starts_with(own)) (void)os::remove_tree(kept.folder);
  }
}

}  // namespace gridctl::agent
