// SPDX-License-Identifier: Apache-2.0
// Implements garbage collection and verification of a ChunkStore.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "store/fingerprints.hpp"
#include "store/gc.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {

PackDecision decide(const PackUse& pack, WallTime now, const GcPolicy& policy) {
  const Duration age = std::chrono::milliseconds{now.ms - pack.used_at.ms};  // negative after a clock step: young
  if (pack.live_bytes == pack.bytes) return {PackFate::keep, "all live"};
  const Duration age_min = std::max(policy.age_min, k_gc_age_floor);
  if (age < age_min) return {PackFate::keep, "used within " + format_duration(age_min)};
  if (pack.live_bytes == 0) return {PackFate::remove, "nothing live"};
  if (static_cast<double>(pack.live_bytes) < policy.rewrite_below * static_cast<double>(pack.bytes))
    return {PackFate::rewrite, "mostly dead"};
  return {PackFate::keep, "mostly live"};
}

namespace {

constexpr std::size_t k_damages_max = 1000;  // kept in a report

struct Candidate {
  std::string name;
  std::int64_t mtime_ns = 0;
  std::uint64_t bytes = 0;
};

// Returns nullopt if the pack vanished or cannot be parsed: neither may be removed here.
Result<std::optional<PackIndex>> index_of(const os::Path& path, const std::string& name) {
  auto fd = os::open_file(path, O_RDONLY);
  if (!fd && fd.error().code == Code::not_found) return std::optional<PackIndex>();
  if (!fd) return std::move(fd).error();
  auto index = read_pack(fd->get(), name);
  if (index) return std::optional(*std::move(index));
  const Code code = index.error().code;
  if (code == Code::checkpoint_damaged || code == Code::unsupported) return std::optional<PackIndex>();
  return std::move(index).error();
}

// Returns the bases of all differences, live or not: each may be used at any time.
Result<std::set<BaseId>> bases_in(const os::Path& packs, const std::vector<std::string>& names) {
  std::set<BaseId> bases;
  for (const std::string& name : names) {
    if (!name.ends_with(".pack")) continue;
    TRY_ASSIGN(const auto index, index_of(packs / name, name));
    if (!index) continue;
    for (const PackEntry& entry : index->entries)
      if (entry.base) bases.insert(entry.base);
  }
  return bases;
}

PackUse measure(const std::string& name, const PackIndex& index, const std::function<bool(const Digest&)>& live) {
  PackUse use{name, 0, 0, {}};
  for (const PackEntry& entry : index.entries) {
    use.bytes += entry.length;
    if (live(entry.id)) use.live_bytes += entry.length;
  }
  return use;
}

Result<std::uint64_t> sweep_unfinished(const os::Path& directory, WallTime now, Duration age_min) {
  std::uint64_t removed = 0;
  TRY_ASSIGN(const auto names, os::list_directory(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(".part")) continue;
    TRY_ASSIGN(const auto status, os::status_of(directory / name));
    if (!status || Duration{now.ms * 1'000'000 - status->mtime_ns} < age_min) continue;
    TRY(os::remove_file(directory / name));
    ++removed;
  }
  return removed;
}

Result<os::FileLock> lock_collection(const os::Path& store) {
  TRY_ASSIGN(std::optional<os::FileLock> lock, os::FileLock::try_acquire(store / "collect.lock"));
  if (!lock) return make_error(Code::busy, "another process collects garbage in '" + store.native() + "'");
  return *std::move(lock);
}

// Checks the time again under the lock: a writer that has claimed the pack since the plan keeps it.
Result<bool> remove_if_unclaimed(const os::Path& path, const Candidate& pack, const os::Path& lock_path) {
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(lock_path));
  TRY_ASSIGN(const auto status, os::status_of(path));
  if (!status || status->mtime_ns != pack.mtime_ns) return false;
  TRY(os::remove_file(path));
  return true;
}

}  // namespace

Result<GcReport> ChunkStore::collect(const std::unordered_set<Digest>& digests, const GcPolicy& policy) {
  State& state = *state_;
  const std::unordered_set<Digest> ids = state.ids_of(digests);
  std::set<BaseId> bases;
  const auto live = [&](const Digest& id) { return ids.contains(id) || bases.contains(base_id(id)); };
  TRY_ASSIGN(const os::FileLock only_one, lock_collection(state.directory));
  const os::MutexLock lock(state.mutex);
  TRY(state.refresh(true));

  GcReport report;
  std::vector<Candidate> remove;
  TRY_ASSIGN(const auto names, os::list_directory(state.packs_directory()));
  TRY_ASSIGN(bases, bases_in(state.packs_directory(), names));
  for (const std::string& name : names) {
    if (!name.ends_with(".pack")) continue;
    TRY_ASSIGN(const auto status, os::status_of(state.pack_path(name)));
    TRY_ASSIGN(const auto index, index_of(state.pack_path(name), name));
    if (!status || !index || !state.has_key_of(*index)) continue;
    PackUse use = measure(name, *index, live);
    use.used_at = {status->mtime_ns / 1'000'000};
    const PackFate fate = decide(use, state.clock().wall(), policy).fate;
    bool sound = true;
    if (fate == PackFate::rewrite) {
      // The pack is checked before anything is copied: a damaged pack stays as it is, and no collection copies it
      // again.
      TRY_ASSIGN(sound, state.copy_out(name, *index, live, State::OnDamage::check_first));
      if (sound) report.bytes_copied += use.live_bytes;
    }
    if (fate == PackFate::keep || !sound) {
      ++report.packs_kept;
      continue;
    }
    ++(fate == PackFate::remove ? report.packs_removed : report.packs_rewritten);
    remove.push_back({name, status->mtime_ns, use.bytes});
  }
  TRY(state.publish_all());  // copies are durable before any original goes

  for (const Candidate& pack : remove) {
    TRY_ASSIGN(const bool removed,
               remove_if_unclaimed(state.pack_path(pack.name), pack, state.directory / "write.lock"));
    if (removed) report.bytes_freed += pack.bytes;
  }
  if (!remove.empty()) TRY(os::sync_directory(state.packs_directory()));
  TRY(sweep_fingerprints(state.directory, [&](const Digest& id) { return ids.contains(id); }));
  TRY_ASSIGN(report.unfinished_removed,
             sweep_unfinished(state.directory / "tmp", state.clock().wall(), policy.unfinished_age));
  TRY(state.refresh(true));
  return report;
}

Result<VerifyReport> ChunkStore::verify_pack(const Digest& id) {
  TRY(has({}));  // lists the packs, where bases are looked for
  const std::string name = pack_name(id);
  auto fd = os::open_file(state_->pack_path(name), O_RDONLY);
  if (!fd && fd.error().code == Code::not_found)
    return make_error(Code::not_found, "pack " + name + " is not in the store '" + directory().native() + "'");
  if (!fd) return std::move(fd).error();
  const auto index = read_pack(fd->get(), name);
  if (!index) return VerifyReport{1, {{name, 0, {}, index.error().one_line()}}};
  const bool sealed = static_cast<bool>(index->key);
  if (sealed && (cipher() == nullptr || cipher()->id() != index->key))
    return VerifyReport{1, {{name, 0, {}, "it is encrypted with another key, " + to_hex(ByteView{index->key.bytes})}}};
  VerifyReport report;
  const auto read_base = [this](const BaseId& base) { return state_->read_base(base); };
  for (const PackEntry& entry : index->entries) {
    const auto content = read_blob(fd->get(), name, {entry.id, {0, entry, sealed}}, cipher(), read_base);
    if (content) continue;
    ++report.damages_total;
    if (report.damages.size() < k_damages_max)
      report.damages.push_back({name, entry.offset, entry.id, content.error().one_line()});
  }
  return report;
}

Result<bool> ChunkStore::State::copy_out(const std::string& name, const PackIndex& pack,
                                         const std::function<bool(const Digest&)>& wanted, OnDamage on_damage) {
  TRY_ASSIGN(const SharedFd fd, open_pack(name));
  const bool checking[] = {true, false};
  for (const bool check_only : checking) {
    if (check_only && on_damage == OnDamage::skip) continue;
    for (const PackEntry& entry : pack.entries) {
      if (!wanted(entry.id)) continue;
      Bytes stored;
      Result<Bytes> content = Bytes();
      {
        const os::MutexUnlock meanwhile(mutex);  // of a difference, the base is read too
        content = read_blob(
            fd->get(), name, {entry.id, {0, entry, static_cast<bool>(pack.key)}}, options.cipher.get(),
            [this](const BaseId& base) { return read_base(base); }, Proof::hash, &stored);
      }
      if (!content && content.error().code != Code::checkpoint_damaged) return content.error();
      if (!content && on_damage == OnDamage::check_first) return false;
      if (!content || check_only) continue;
      TRY(append_copy(entry, pack, *content, stored));
    }
  }
  return true;
}

// Open content in a store with a key is encrypted during the copy.
Result<void> ChunkStore::State::append_copy(PackEntry entry, const PackIndex& from, ByteView plain, ByteView stored) {
  if (from.key || !sealing()) return append(entry, stored);
  entry.id = id_of(crypto::sha256(plain));
  return append(entry, options.cipher->seal(entry.id, entry.plain_length, stored));
}

// Computes ids with the key and, for packs older than the key, without it.
std::unordered_set<Digest> ChunkStore::State::ids_of(const std::unordered_set<Digest>& digests) const {
  std::unordered_set<Digest> ids = digests;
  if (!sealing()) return ids;
  for (const Digest& digest : digests) ids.insert(id_of(digest));
  return ids;
}

Result<std::uint64_t> ChunkStore::set_aside(const VerifyReport& report) {
  State& state = *state_;
  TRY_ASSIGN(const os::FileLock only_one, lock_collection(state.directory));
  const os::MutexLock lock(state.mutex);
  std::set<std::string> packs;
  for (const Damage& damage : report.damages) {
    if (os::exists(state.pack_path(damage.pack))) packs.insert(damage.pack);
  }
  for (auto name = packs.begin(); name != packs.end();) {
    TRY_ASSIGN(const auto index, index_of(state.pack_path(*name), *name));
    if (index && !state.has_key_of(*index)) {  // nothing is known of it, nor that it is damaged
      name = packs.erase(name);
      continue;
    }
    if (index)
      TRY(state.copy_out(
          *name, *index, [](const Digest&) { return true; }, State::OnDamage::skip));
    ++name;
  }
  TRY(state.publish_all());
  TRY(os::make_directories(state.directory / "damaged"));
  for (const std::string& name : packs) {
    TRY_ASSIGN(const os::FileLock set_lock, state.lock_pack_set());
    TRY(os::rename_path(state.pack_path(name), state.directory / "damaged" / name));
  }
  TRY(os::sync_directory(state.directory / "damaged"));
  TRY(os::sync_directory(state.packs_directory()));
  TRY(state.refresh(true));
  return packs.size();
}

}  // namespace gridctl::store
