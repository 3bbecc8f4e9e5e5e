// SPDX-License-Identifier: Apache-2.0
#include "store/copying.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "os/random.hpp"
#include "store/remote_source.hpp"
#include "store/store_state.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr int k_rounds_max = 8;  // of setting damaged packs aside

bool is_damage(Code code) { return code == Code::checkpoint_damaged || code == Code::not_found; }

std::vector<Digest> blobs_of(const Digest& root, const Tree& tree) {
  std::vector<Digest> digests{root};
  for (const Chunk& chunk : tree.unique_chunks()) digests.push_back(chunk.digest);
  return digests;
}

std::vector<NeededPack> needed(const std::vector<PackFile>& files) {
  std::vector<NeededPack> packs;
  for (const PackFile& file : files) packs.push_back({file.id, file.size});
  return packs;
}

bool are_there(const RemoteListing& there, const std::vector<NeededPack>& packs) {
  return std::ranges::all_of(packs, [&](const NeededPack& pack) {
    const auto found = there.packs.find(pack.id);
    return found != there.packs.end() && found->second == pack.size;
  });
}

// A missing file here counts as damage of the checkpoint.
Result<std::vector<PackFile>> packs_here(ChunkStore& store, const Digest& root) {
  const auto look = [&]() -> Result<std::vector<PackFile>> {
    TRY_ASSIGN(const Bytes manifest, store.get(root));
    TRY_ASSIGN(const Tree tree, parse_manifest(manifest));
    return store.packs_of(blobs_of(root, tree));
  };
  Result<std::vector<PackFile>> files = look();
  if (!files && files.error().code == Code::not_found) files.error().code = Code::checkpoint_damaged;
  return files;
}

// Keeps a copy that matches; removes another object with this name.
Result<bool> has_copy(const RemoteLink& remote, RemoteListing& there, const CopyRecord& wanted) {
  const RecordName name{wanted.job, wanted.seq};
  if (!std::ranges::binary_search(there.records, name)) return false;
  const Result<CopyRecord> found = read_record(*remote.backend, name, *remote.key);
  if (!found && !is_damage(found.error().code)) return found.error();
  if (found && found->root == wanted.root && found->epoch == wanted.epoch && are_there(there, found->packs))
    return true;
  TRY(forget_copy(*remote.backend, there, name));
  return false;
}

// Returns false if the pack is damaged here; then its intact blobs are in another pack, and the others are missing.
Result<bool> send_pack(ChunkStore& store, const RemoteLink& link, RemoteListing& there, const PackFile& file,
                       const Moved& moved) {
  Backend& remote = *link.backend;
  TRY_ASSIGN(const VerifyReport verified, store.verify_pack(file.id));
  if (verified.damages_total > 0) {
    TRY(store.set_aside(verified));
    return false;
  }
  const NeededPack pack{file.id, file.size};
  const std::string name = object_name(pack);
  if (there.packs.contains(file.id)) TRY(remote.remove(name));  // of another size: it was torn
  if (link.elsewhere) link.elsewhere(file);
  TRY_ASSIGN(const os::Fd fd, os::open_file(file.path, O_RDONLY));
  TRY(remote.put(name, file.size, reader_of(fd.get()), moved));
  there.packs[file.id] = file.size;
  return true;
}

// Returns false for the same reason as send_pack.
Result<bool> send_packs(ChunkStore& store, const RemoteLink& remote, RemoteListing& there,
                        const std::vector<PackFile>& files, const CopyProgress& progress, CopyStats& stats) {
  std::uint64_t total = 0, done = 0;
  for (const PackFile& file : files) total += file.size;
  for (const PackFile& file : files) {
    if (!are_there(there, {{file.id, file.size}})) {
      bool by_us = false;
      const auto moved = [&](std::uint64_t bytes) {
        by_us = true;
        return !progress || progress(done + bytes, total);
      };
      TRY_ASSIGN(const bool sound, send_pack(store, remote, there, file, moved));
      if (!sound) return false;
      ++stats.packs_sent;
      stats.bytes_sent += file.size;
      if (!by_us) stats.bytes_elsewhere += file.size;
    }
    done += file.size;
    if (progress && !progress(done, total)) return make_error(Code::cancelled, "copying was stopped");
  }
  return true;
}

Result<void> write_record(const RemoteLink& remote, RemoteListing& there, const CopyRecord& record) {
  const RecordName name{record.job, record.seq};
  TRY_ASSIGN(const bool written, remote.backend->put_new(object_name(name), seal_record(record, *remote.key)));
  if (!written) {  // by a try of ours whose answer was lost
    TRY_ASSIGN(const CopyRecord other, read_record(*remote.backend, name, *remote.key));
    if (other.root != record.root || !are_there(there, other.packs))
      return make_error(Code::exists, "another checkpoint " + checkpoint_name(name.job, name.seq) + " is there");
  }
  const auto at = std::ranges::lower_bound(there.records, name);
  if (at == there.records.end() || *at != name) there.records.insert(at, name);
  return {};
}

}  // namespace

Result<CopyStats> copy_checkpoint(ChunkStore& store, const RemoteLink& remote, RemoteListing& there, CopyRecord checkpoint,
                                  const CopyProgress& progress) {
  CopyStats stats;
  TRY_ASSIGN(const bool copied, has_copy(remote, there, checkpoint));
  if (copied) return stats;
  for (int round = 0;; ++round) {
    TRY_ASSIGN(const std::vector<PackFile> files, packs_here(store, checkpoint.root));
    if (files.size() > k_record_packs_max)
      return make_error(Code::unsupported, "the checkpoint needs " + std::to_string(files.size()) + " packs");
    checkpoint.packs = needed(files);
    TRY_ASSIGN(const bool sent, send_packs(store, remote, there, files, progress, stats));
    if (sent) break;
    if (round == k_rounds_max)
      return make_error(Code::checkpoint_damaged, "not copied, because its packs here keep turning out to be damaged");
  }
  TRY(write_record(remote, there, checkpoint));
  return stats;
}

Result<void> forget_copy(Backend& remote, RemoteListing& there, const RecordName& name) {
  TRY(remote.remove(object_name(name)));
  std::erase(there.records, name);
  return {};
}

Result<RemotePruned> prune_remote(const RemoteLink& remote) {
  TRY_ASSIGN(const RemoteListing there, list_remote(*remote.backend));
  std::set<Digest> wanted;
  for (const RecordName& name : there.records) {
    const Result<CopyRecord> record = read_record(*remote.backend, name, *remote.key);
    if (!record) return Error(record.error()).with_context("while reading which packs are needed; nothing was removed");
    for (const NeededPack& pack : record->packs) wanted.insert(pack.id);
  }
  RemotePruned pruned;
  for (const auto& [id, size] : there.packs) {
    if (wanted.contains(id)) continue;
    TRY(remote.backend->remove(object_name(NeededPack{id, size})));
    ++pruned.packs_removed;
    pruned.bytes_freed += size;
  }
  return pruned;
}

namespace {

// Opens the copy when something from it turns out to be needed.
class Healer {
 public:
  Healer(ChunkStore& store, const RemoteLink& remote, const RecordName& name, const Digest& root)
      : store_(store), remote_(remote), name_(name), root_(root) {}

  // Returns the blob, from here or otherwise from the remote.
  Result<Bytes> bring(const Digest& digest) {
    Result<Bytes> here = store_.get(digest);
    if (here || !is_damage(here.error().code)) return here;
    TRY(open());
    TRY_ASSIGN(Bytes content, source_->read(digest));
    TRY(store_.put(digest, content));
    ++healed_.blobs;
    healed_.bytes += content.size();
    return content;
  }
  [[nodiscard]] const Healed& healed() const { return healed_; }

 private:
  Result<void> open() {
    if (source_) return {};
    TRY_ASSIGN(const CopyRecord record, read_record(*remote_.backend, name_, *remote_.key));
    if (record.root != root_)
      return make_error(Code::checkpoint_damaged,
                        "the copy of " + checkpoint_name(name_.job, name_.seq) + " belongs to another checkpoint");
    TRY_ASSIGN(RemoteSource source, RemoteSource::open(*remote_.backend, *remote_.key, record.packs));
    source_ = std::make_unique<RemoteSource>(std::move(source));
    return {};
  }

  ChunkStore& store_;
  RemoteLink remote_;
  RecordName name_;
  Digest root_;
  std::unique_ptr<RemoteSource> source_;
  Healed healed_;
};

}  // namespace

Result<Healed> heal_checkpoint(ChunkStore& store, const RemoteLink& remote, const RecordName& name, const Digest& root) {
  Healer healer(store, remote, name, root);
  TRY_ASSIGN(const Bytes manifest, healer.bring(root));
  TRY_ASSIGN(const Tree tree, parse_manifest(manifest));
  for (const Chunk& chunk : tree.unique_chunks()) TRY(healer.bring(chunk.digest));
  TRY(store.seal());
  return healer.healed();
}

namespace {

Result<void> find_records(const RemoteListing& there, const RemoteLink& remote, RemoteCheck& check) {
  for (const RecordName& name : there.records) {
    Result<CopyRecord> record = read_record(*remote.backend, name, *remote.key);
    if (!record && !is_damage(record.error().code) && record.error().code != Code::unsupported) return record.error();
    if (record) {
      check.sound.emplace(name, *std::move(record));
      continue;
    }
    check.findings.push_back(record.error().one_line());
    check.bad_records.insert(name);
  }
  return {};
}

// Lists the packs of all readable records, and finds those that are missing or have another size.
std::vector<NeededPack> find_packs(const RemoteListing& there, RemoteCheck& check) {
  std::set<NeededPack> wanted;
  for (const auto& [name, record] : check.sound) wanted.insert(record.packs.begin(), record.packs.end());
  std::vector<NeededPack> present;
  for (const NeededPack& pack : wanted) {
    const auto found = there.packs.find(pack.id);
    if (found != there.packs.end() && found->second == pack.size) {
      present.push_back(pack);
      continue;
    }
    const bool is_missing = found == there.packs.end();
    check.findings.push_back(pack_name(pack.id) + (is_missing ? " is missing" : " has another size"));
    check.bad_packs.insert(pack.id);
  }
  check.packs = wanted.size();
  return present;
}

void draw(std::vector<NeededPack>& packs, double share) {
  for (std::size_t i = packs.size(); i > 1; --i) std::swap(packs[i - 1], packs[os::random_u64() % i]);
  const auto wanted = static_cast<std::size_t>(static_cast<double>(packs.size()) * std::clamp(share, 0.0, 1.0) + 0.999);
  if (wanted < packs.size()) packs.resize(std::max<std::size_t>(wanted, 1));
}

Result<void> read_packs(const RemoteLink& remote, const std::vector<NeededPack>& all, std::vector<NeededPack> drawn,
                        RemoteCheck& check, const CopyProgress& progress) {
  TRY_ASSIGN(RemoteSource source, RemoteSource::open(*remote.backend, *remote.key, all));
  for (const RemoteSource::Problem& problem : source.problems()) {
    check.findings.push_back(pack_name(problem.pack) + ": " + problem.why);
    check.bad_packs.insert(problem.pack);
  }
  std::uint64_t total = 0;
  for (const NeededPack& pack : drawn) total += pack.size;
  for (const NeededPack& pack : drawn) {
    if (check.bad_packs.contains(pack.id)) continue;
    TRY_ASSIGN(const std::string problem, source.check(pack.id, check.bytes_read));
    ++check.packs_read;
    if (!problem.empty()) {
      check.findings.push_back(problem);
      check.bad_packs.insert(pack.id);
    }
    if (progress && !progress(check.bytes_read, total)) return make_error(Code::cancelled, "the check was stopped");
  }
  return {};
}

}  // namespace

Result<RemoteCheck> check_remote(const RemoteLink& remote, double share, const CopyProgress& progress) {
  TRY_ASSIGN(const RemoteListing there, list_remote(*remote.backend));
  RemoteCheck check;
  check.records = there.records.size();
  TRY(find_records(there, remote, check));
  const std::vector<NeededPack> present = find_packs(there, check);
  std::vector<NeededPack> drawn = present;
  draw(drawn, share);
  TRY(read_packs(remote, present, std::move(drawn), check, progress));
  for (auto record = check.sound.begin(); record != check.sound.end();) {
    const auto& packs = record->second.packs;
    const bool bad =
        std::ranges::any_of(packs, [&](const NeededPack& pack) { return check.bad_packs.contains(pack.id); });
    if (bad) check.bad_records.insert(record->first);
    record = bad ? check.sound.erase(record) : std::next(record);
  }
  return check;
}

}  // namespace gridctl::store
