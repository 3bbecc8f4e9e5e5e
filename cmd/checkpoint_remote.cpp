// SPDX-License-Identifier: Apache-2.0
#include "cmd/checkpoint_remote.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/remotes.hpp"

namespace gridctl::cmd {

namespace {

// Returns the matching copies, newest first; unreadable records are skipped, and named in the error.
Result<std::vector<store::CopyRecord>> matching(const RemoteCheckpoint& remote, const store::RemoteListing& there,
                                                const registry::CheckpointName& wanted) {
  std::vector<store::CopyRecord> found;
  std::set<std::string> jobs;
  std::string problems;
  for (const store::RecordName& name : there.records) {
    if (wanted.seq && *wanted.seq != name.seq) continue;
    Result<store::CopyRecord> record = store::read_record(*remote.backend, name, *remote.key);
    if (!record && record.error().code != Code::checkpoint_damaged && record.error().code != Code::unsupported)
      return record.error();
    if (!record) {
      problems = "; " + record.error().one_line();
      continue;
    }
    if (!name.job.value.starts_with(wanted.job) && record->job_name != wanted.job) continue;
    jobs.insert(name.job.value);
    found.push_back(*std::move(record));
  }
  if (found.empty())
    return make_error(Code::not_found, "the remote has no copy of '" + sanitize(wanted.job, 80) + "'" + problems);
  if (jobs.size() > 1)
    return make_error(Code::usage, "'" + sanitize(wanted.job, 80) + "' is the name of several jobs on the remote: " +
                                       join(std::vector<std::string>(jobs.begin(), jobs.end()), ", "));
  std::ranges::sort(found, std::ranges::greater{}, &store::CopyRecord::seq);
  return found;
}

Result<void> check_known(registry::RunRecords& registry, const store::CopyRecord& record) {
  const Result<registry::Checkpoint> known = registry.checkpoint(record.job, record.seq);
  if (!known || known->root == record.root) return {};
  return make_error(Code::checkpoint_damaged, "the remote has another checkpoint under " +
                                                  checkpoint_name(record.job, record.seq) +
                                                  " than the one copied to it");
}

}  // namespace

bool is_whole(const store::CopyRecord& record, const store::RemoteListing& there) {
  return std::ranges::all_of(record.packs, [&](const store::NeededPack& pack) {
    const auto listed = there.packs.find(pack.id);
    return listed != there.packs.end() && listed->second == pack.size;
  });
}

Result<store::Tree> RemoteCheckpoint::tree() const {
  Result<Bytes> manifest = source->read(record.root);
  if (!manifest && manifest.error().code == Code::not_found) manifest.error().code = Code::checkpoint_damaged;
  TRY_ASSIGN(const Bytes bytes, std::move(manifest));
  return store::parse_manifest(bytes, {.bytes_max = record.bytes});
}

Result<RemoteCheckpoint> find_remote(Context& context, registry::Registry& registry, const std::string& remote_name,
                                     const std::string& text) {
  TRY_ASSIGN(const registry::CheckpointName wanted, registry::parse_checkpoint_name(text));
  TRY_ASSIGN(const registry::Remote kept_at, registry.remote(remote_name));
  TRY_ASSIGN(const std::optional<store::StoreKey> key, control::load_key(context.paths()));
  if (!key) return make_error(Code::state_unreadable, "there is no store key", "gridctl key import FILE");
  TRY_ASSIGN(const control::RemoteAccess access, control::access_to(registry, kept_at));
  RemoteCheckpoint remote;
  remote.key = std::make_unique<store::StoreKey>(*key);
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  remote.net = std::make_unique<control::SshNetwork>(std::move(net));
  TRY_ASSIGN(remote.backend, control::open_remote(access, *remote.net, context.clock));
  TRY_ASSIGN(const store::RemoteListing there, store::list_remote(*remote.backend));
  TRY_ASSIGN(std::vector<store::CopyRecord> found, matching(remote, there, wanted));
  const auto whole =
      std::ranges::find_if(found, [&](const store::CopyRecord& record) { return is_whole(record, there); });
  if (whole == found.end())
    return make_error(Code::checkpoint_damaged,
                      "no copy of '" + sanitize(wanted.job, 80) + "' on the remote is complete",
                      "gridctl store check " + remote_name + " --all");
  remote.newest_seq = found.front().seq;
  remote.newest_at = found.front().created_at;
  remote.record = *std::move(whole);
  TRY(check_known(registry, remote.record));
  TRY_ASSIGN(store::RemoteSource source, store::RemoteSource::open(*remote.backend, *remote.key, remote.record.packs));
  remote.source = std::make_unique<store::RemoteSource>(std::move(source));
  return remote;
}

}  // namespace gridctl::cmd
