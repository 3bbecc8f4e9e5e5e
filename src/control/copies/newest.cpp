// SPDX-License-Identifier: Apache-2.0
#include "control/copies/newest.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "store/remote.hpp"

namespace gridctl::control {
namespace {

constexpr std::uint64_t k_newest_file_max = 128 * 1024;  // bytes; 200 jobs take a quarter of it
constexpr std::size_t k_records_read_max = 200;          // of one remote, the highest number of each job

std::string who_of(const store::Newest& seen) {
  const std::string at = format_rfc3339(seen.seen_at);
  return seen.seen_at_remote == store::k_seen_in_key_file ? "the key file of " + at
                                                         : "remote " + seen.seen_at_remote + " as it was on " + at;
}

// Returns the highest number of each job there.
std::vector<store::RecordName> highest(const store::RemoteListing& there) {
  std::map<JobId, CheckpointSeq> newest;
  for (const store::RecordName& name : there.records) newest[name.job] = std::max(newest[name.job], name.seq);
  std::vector<store::RecordName> names;
  for (const auto& [job, seq] : newest) names.push_back({job, seq});
  return names;
}

Result<std::vector<Witness>> ask(store::Backend& backend, const store::StoreKey& key, const std::string& remote,
                                 const store::CopyRecord& shown) {
  TRY_ASSIGN(const store::RemoteListing there, store::list_remote(backend));
  std::vector<store::RecordName> names = highest(there);
  std::stable_partition(names.begin(), names.end(),
                        [&](const store::RecordName& name) { return name.job == shown.job; });
  if (names.size() > k_records_read_max) names.resize(k_records_read_max);
  std::vector<Witness> found;
  for (const store::RecordName& name : names) {
    const Result<store::CopyRecord> record = store::read_record(backend, name, key);
    if (!record && record.error().code != Code::checkpoint_damaged && record.error().code != Code::unsupported &&
        record.error().code != Code::not_found)
      return record.error();
    if (record && (record->job == shown.job || record->job_name == shown.job_name))
      found.push_back({"remote " + remote, remote, record->job, record->seq, record->created_at});
  }
  if (found.empty()) found.push_back({"remote " + remote, "", shown.job, {}, {}});
  return found;
}

}  // namespace

Result<std::vector<store::Newest>> seen_newest(const Paths& paths, const store::StoreKey& key) {
  if (!os::exists(paths.newest())) return std::vector<store::Newest>{};
  TRY_ASSIGN(const std::string text, os::read_file(paths.newest(), k_newest_file_max));
  Result<std::vector<store::Newest>> seen = store::parse_newest(text, key);
  if (seen) return seen;
  return std::move(seen).error().with_context("while reading " + paths.newest().native()).with_hint("rm " + paths.newest().native());
}

Result<void> remember_newest(const Paths& paths, const store::StoreKey& key, const std::vector<store::Newest>& more) {
  if (more.empty()) return {};
  TRY(os::make_directories(paths.root, 0700));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(paths.newest().native() + ".lock"));
  TRY_ASSIGN(std::vector<store::Newest> seen, seen_newest(paths, key));
  const std::vector<store::Newest> now = store::merged(seen, more);
  if (now == seen) return {};
  return os::write_file_durably(paths.newest(), store::to_text(now, key));
}

Result<std::vector<store::Newest>> newest_to_export(registry::AllRecords& registry, const Paths& paths,
                                                    const store::StoreKey& key, WallTime now) {
  TRY_ASSIGN(std::vector<store::Newest> all, seen_newest(paths, key));
  TRY_ASSIGN(const std::vector<registry::Copy> copies, registry.copies());
  std::map<JobId, CheckpointSeq> newest;
  for (const registry::Copy& copy : copies) newest[copy.job] = std::max(newest[copy.job], copy.seq);
  std::vector<store::Newest> ours;
  for (const auto& [id, seq] : newest) {
    const Result<registry::Job> job = registry.job(id);
    const Result<registry::Checkpoint> checkpoint = registry.checkpoint(id, seq);
    if (job && checkpoint)
      ours.push_back({id, job->name, seq, checkpoint->created_at, now, std::string(store::k_seen_in_key_file)});
  }
  return store::merged(std::move(all), ours);
}

const Witness* Testimony::newer_than(const store::CopyRecord& shown) const {
  const Witness* newest = nullptr;
  for (const Witness& one : witnesses) {
    if (!one.knows_newer_than(shown)) continue;
    const bool reachable_first = newest != nullptr && newest->seq == one.seq && newest->remote.empty();
    if (newest == nullptr || newest->created_at.ms < one.created_at.ms || reachable_first) newest = &one;
  }
  return newest;
}

Result<Testimony> ask_witnesses(registry::AllRecords& registry, const Paths& paths, AgentNetwork& net,
                                const store::StoreKey& key, const std::string& from, const store::CopyRecord& shown, os::Clock& clock) {
  Testimony all;
  TRY_ASSIGN(const std::vector<store::Newest> seen, seen_newest(paths, key));
  for (const store::Newest& one : seen)
    if (one.job == shown.job || one.job_name == shown.job_name)
      all.witnesses.push_back({who_of(one), "", one.job, one.seq, one.created_at, one.seen_at_remote == from});
  TRY_ASSIGN(const std::vector<registry::Copy> copies, registry.copies_of(shown.job));
  for (const registry::Copy& copy : copies) {
    const Result<registry::Checkpoint> checkpoint = registry.checkpoint(copy.job, copy.seq);
    if (copy.remote == from && checkpoint)
      all.witnesses.push_back({"this machine, which copied it there", "", copy.job, copy.seq, checkpoint->created_at});
  }
  TRY_ASSIGN(const std::vector<registry::Remote> remotes, registry.remotes());
  for (const registry::Remote& remote : remotes) {
    if (remote.name == from) continue;
    const auto asked = [&]() -> Result<std::vector<Witness>> {
      TRY_ASSIGN(const RemoteAccess access, access_to(registry, remote));
      TRY_ASSIGN(const std::unique_ptr<store::Backend> backend, open_remote(access, net, clock));
      return ask(*backend, key, remote.name, shown);
    };
    const Result<std::vector<Witness>> said = asked();
    if (said) all.witnesses.insert(all.witnesses.end(), said->begin(), said->end());
    else all.silent.push_back(remote.name + ": " + said.error().one_line());
  }
  return all;
}

}  // namespace gridctl::control
