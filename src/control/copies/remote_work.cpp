// SPDX-License-Identifier: Apache-2.0
#include "control/copies/remote_work.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "control/copies/chunks.hpp"
#include "control/copies/copy_plan.hpp"

namespace gridctl::control {

namespace {

store::CopyRecord record_of(const registry::CopyWanted& wanted) {
  const registry::Checkpoint& from = wanted.checkpoint;
  store::CopyRecord record;
  record.job = from.job;
  record.seq = from.seq;
  record.epoch = from.epoch;
  record.attempt = from.attempt;
  record.root = from.root;
  record.created_at = from.created_at;
  record.bytes = from.bytes;
  record.files = from.files;
  record.job_name = wanted.job_name;
  record.how = from.how;
  return record;
}

Result<os::FileLock> lock_remote(const Paths& paths, const std::string& name, bool wait) {
  const os::Path folder = paths.chunk_store() / "copies", file = folder / (name + ".lock");
  TRY(os::make_directories(folder));
  if (wait) return os::FileLock::acquire(file);
  TRY_ASSIGN(std::optional<os::FileLock> lock, os::FileLock::try_acquire(file));
  if (lock) return *std::move(lock);
  return make_error(Code::busy, "another process of this state directory is using remote " + name);
}

Result<store::StoreKey> key_here(const Paths& paths) {
  TRY_ASSIGN(std::optional<store::StoreKey> key, load_key(paths));
  if (key) return *std::move(key);
  return make_error(Code::state_unreadable, "there is no store key", "gridctl key import FILE");
}

}  // namespace

std::string describe(const store::CopyStats& copied) {
  if (copied.bytes_sent == 0) return "";
  const std::string text = ", " + format_size(copied.bytes_sent) + " sent";
  if (copied.bytes_elsewhere == 0) return text;
  if (copied.bytes_elsewhere == copied.bytes_sent) return text + " directly from its host";
  return text + ", " + format_size(copied.bytes_elsewhere) + " of it directly from its host";
}

Result<store::RemoteMark> own_mark(const Paths& paths, registry::HostRecords& registry) {
  TRY(open_chunks(paths));  // makes the key where there is none yet
  TRY_ASSIGN(const store::StoreKey key, key_here(paths));
  TRY_ASSIGN(ControllerId controller, registry.controller_id());
  return store::RemoteMark{key.id(), std::move(controller)};
}

RemoteWork::RemoteWork(Paths paths, AgentNetwork& net, registry::AllRecords& registry, registry::Remote remote, os::Clock& clock,
                     os::FileLock lock, store::StoreKey key, store::ChunkStore chunks)
    : paths_(std::move(paths)),
      net_(&net),
      registry_(&registry),
      remote_(std::move(remote)),
      clock_(&clock),
      lock_(std::move(lock)),
      key_(std::make_unique<store::StoreKey>(std::move(key))),
      chunks_(std::move(chunks)) {}

Result<RemoteWork> RemoteWork::open(const Paths& paths, AgentNetwork& net, registry::AllRecords& registry, const registry::Remote& remote,
                                  os::Clock& clock, bool wait, std::shared_ptr<UploadMemory> uploads,
                                    const OpenRemote& open) {
  TRY_ASSIGN(os::FileLock lock, lock_remote(paths, remote.name, wait));
  TRY_ASSIGN(store::ChunkStore chunks, open_chunks(paths));
  TRY_ASSIGN(store::StoreKey key, key_here(paths));
  RemoteWork work(paths, net, registry, remote, clock, std::move(lock), std::move(key), std::move(chunks));
  work.uploads_ = uploads ? std::move(uploads) : std::make_shared<UploadMemory>();
  TRY_ASSIGN(const RemoteAccess access, access_to(registry, remote));
  TRY_ASSIGN(work.backend_, open(access, net, clock));
  work.link_ = {work.backend_.get(), work.key_.get()};
  TRY(store::check_mark(*work.backend_, {work.key_->id(), access.controller}));
  TRY_ASSIGN(work.there_, store::list_remote(*work.backend_));
  return work;
}

Result<store::CopyStats> RemoteWork::copy(const registry::CopyWanted& wanted, const store::CopyProgress& progress) {
  const registry::Checkpoint& from = wanted.checkpoint;
  HostUploads by_host({*net_, *registry_, chunks_, *key_, *backend_, *clock_, *uploads_}, from);
  store::RemoteLink link = link_;
  std::uint64_t done = 0, total = 0;
  const store::CopyProgress told = [&](std::uint64_t now_done, std::uint64_t now_total) {
    done = now_done, total = now_total;
    return !progress || progress(done, total);
  };
  if (const Result<RemoteUrl> url = parse_remote_url(remote_.url); url && url->kind == RemoteKind::bucket)
    link.elsewhere = [&](const store::PackFile& pack) { by_host.put(pack, [&] { return told(done, total); }); };
  TRY_ASSIGN(const store::CopyStats stats, store::copy_checkpoint(chunks_, link, there_, record_of(wanted), told));
  const WallTime now = clock_->wall();
  const auto save = [&]() -> Result<void> {
    TRY(registry_->add_copy({remote_.name, from.job, from.seq, now}));
    TRY(registry_->note_answer(remote_.name, now));
    return registry_->note(
        from.job, now,
        {"checkpoint_copied",
         "checkpoint " + std::to_string(from.seq.value) + " copied to " + remote_.name + describe(stats),
         from.epoch,
         {}});
  };
  TRY(registry_->together(save));
  return stats;
}

Result<std::uint64_t> RemoteWork::forget_obsolete() {
  TRY_ASSIGN(const auto kept, registry_->kept_checkpoints());
  TRY_ASSIGN(const auto copies, registry_->copies());
  const std::vector<registry::Copy> obsolete = obsolete_at(remote_.name, kept, copies);
  for (const registry::Copy& copy : obsolete) {
    TRY(store::forget_copy(*backend_, there_, {copy.job, copy.seq}));
    TRY(registry_->remove_copy(copy));
  }
  return obsolete.size();
}

Result<store::RemotePruned> RemoteWork::prune() {
  TRY_ASSIGN(const store::RemotePruned pruned, store::prune_remote(link_));
  TRY_ASSIGN(there_, store::list_remote(*backend_));
  return pruned;
}

Result<store::RemoteCheck> RemoteWork::check(double share, const store::CopyProgress& progress) {
  TRY_ASSIGN(store::RemoteCheck found, store::check_remote(link_, share, progress));
  TRY_ASSIGN(const auto copyable, registry_->copyable());
  TRY_ASSIGN(const auto copies, registry_->copies());
  for (const registry::CopyWanted& wanted : copyable) {
    const store::RecordName name{wanted.checkpoint.job, wanted.checkpoint.seq};
    const bool told = std::any_of(copies.begin(), copies.end(), [&](const registry::Copy& copy) {
      return copy.remote == remote_.name && copy.job == name.job && copy.seq == name.seq;
    });
    if (!told || found.bad_records.contains(name)) continue;
    const auto there = found.sound.find(name);
    if (there != found.sound.end() && there->second.root == wanted.checkpoint.root) continue;
    found.findings.push_back("the record of " + checkpoint_name(name.job, name.seq) +
                             (there == found.sound.end() ? " is missing" : " belongs to another checkpoint"));
    found.bad_records.insert(name);
  }
  return found;
}

Result<void> RemoteWork::replace_copy(const registry::CopyWanted& wanted) {
  const store::RecordName name{wanted.checkpoint.job, wanted.checkpoint.seq};
  TRY(registry_->remove_copy({remote_.name, name.job, name.seq, {}}));  // it is none until it is made anew
  TRY(store::forget_copy(*backend_, there_, name));
  TRY(copy(wanted));
  return {};
}

Result<bool> RemoteWork::heal_here(const registry::CopyWanted& wanted, Repair& report) {
  const registry::Checkpoint& from = wanted.checkpoint;
  const Result<store::Healed> healed = store::heal_checkpoint(chunks_, link_, {from.job, from.seq}, from.root);
  const std::string name = checkpoint_name(from.job, from.seq);
  if (!healed && healed.error().code != Code::checkpoint_damaged && healed.error().code != Code::not_found)
    return healed.error();
  if (!healed) {
    report.failed.push_back(name + " is damaged here: " + healed.error().one_line());
    return false;
  }
  if (healed->blobs > 0)
    report.done.push_back(name + ": restored here: " + std::to_string(healed->blobs) +
                          (healed->blobs == 1 ? " chunk, " : " chunks, ") + format_size(healed->bytes));
  if (!from.verified) TRY(registry_->set_verified(from.job, from.seq, true));
  return true;
}

Result<RemoteWork::Repair> RemoteWork::repair(const store::RemoteCheck& found) {
  Repair report;
  TRY_ASSIGN(const auto copyable, registry_->copyable());
  // Restores what is damaged here first, while its copy is still untouched.
  std::map<store::RecordName, const registry::CopyWanted*> whole;
  for (const registry::CopyWanted& wanted : copyable) {
    TRY_ASSIGN(const bool is_whole, heal_here(wanted, report));
    if (is_whole) whole.emplace(store::RecordName{wanted.checkpoint.job, wanted.checkpoint.seq}, &wanted);
  }
  std::set<Digest> needed;  // by copies that are the only ones left, damaged as they are
  for (const store::RecordName& name : found.bad_records) {
    if (whole.contains(name)) continue;
    report.failed.push_back("the copy of " + checkpoint_name(name.job, name.seq) +
                            " is damaged, and the checkpoint is incomplete here");
    const Result<store::CopyRecord> record = store::read_record(*backend_, name, *key_);
    if (record)
      for (const store::NeededPack& pack : record->packs) needed.insert(pack.id);
  }
  for (const Digest& pack : found.bad_packs) {
    if (needed.contains(pack) || !there_.packs.contains(pack)) continue;
    TRY(backend_->remove(store::object_name(store::NeededPack{pack, 0})));
    there_.packs.erase(pack);
  }
  for (const store::RecordName& name : found.bad_records) {
    const auto wanted = whole.find(name);
    if (wanted == whole.end()) continue;
    TRY(replace_copy(*wanted->second));
    report.done.push_back("the copy of " + checkpoint_name(name.job, name.seq) + " was rewritten");
  }
  return report;
}

}  // namespace gridctl::control
