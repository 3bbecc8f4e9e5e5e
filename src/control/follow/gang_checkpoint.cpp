// SPDX-License-Identifier: Apache-2.0
// A checkpoint of several hosts: each member's part is fetched by itself; when every part of one step is here, they are
// committed as one.
#include <algorithm>

#include "control/follow/attempts.hpp"
#include "control/reach/pace.hpp"
#include "sched/ranks.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_parts_kept = 4;  // of one member: others may be so many saves behind
constexpr const char* k_merge = "merge";
}  // namespace

void Attempts::keep_part(TrackedJob& job, Which which, const Pulled& pulled) {
  const job::Attempt* attempt = job.state().attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(which.second);
  if (member == nullptr || attempt->epoch.value != which.first) return;  // of an epoch that is over: never one alone
  CheckpointPart part;
  part.member = member->host.value;
  for (const job::Member& one : attempt->members) {
    const auto ranks =
        static_cast<std::uint32_t>(sched::ranks_on_host(job.spec(), static_cast<int>(one.gpu_uuids.size())));
    if (one.rank < member->rank) part.first_rank += ranks;
    if (one.rank == member->rank) part.ranks = ranks;
  }
  part.root = pulled.from.root;
  part.number = pulled.from.number;
  std::deque<KeptPart>& kept = work(job.id()).parts[which];
  kept.push_back({std::move(part), pulled});
  while (kept.size() > k_parts_kept) kept.pop_front();
}

std::uint64_t Attempts::newest_part(const JobId& id, Which which) {
  const std::deque<KeptPart>& kept = work(id).parts[which];
  return std::max(work(id).saved[which], kept.empty() ? 0 : kept.back().part.number);
}

// Calls `then` when the parts that are here have been looked at.
void Attempts::merge_parts(TrackedJob& job, std::function<void(TrackedJob&)> then) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return then(job);
  std::vector<std::vector<CheckpointPart>> members;
  for (const job::Member& member : attempt->members) {
    std::vector<CheckpointPart>& parts = members.emplace_back();
    for (const KeptPart& kept : work(job.id()).parts[{attempt->epoch.value, member.rank}]) parts.push_back(kept.part);
    if (parts.empty()) return then(job);  // a member has saved nothing yet
  }
  const Epoch epoch = attempt->epoch;
  const AttemptNumber number = attempt->number;
  const std::string name = std::string(k_merge) + "/" + std::to_string(epoch.value) + "/" + std::to_string(++merges_);
  in_background(
      job.id(), name, {os::Lane::Kind::urgent, {}},
      [world = world_, members = std::move(members)] { return world.freight.merge(members); },
      [this, epoch, number, then = std::move(then)](TrackedJob& mine, const Result<MergedParts>& merged) {
        take_merged(mine, epoch, number, merged);
        then(mine);
      });
}

void Attempts::take_merged(TrackedJob& job, Epoch epoch, AttemptNumber number, const Result<MergedParts>& merged) {
  const JobId id = job.id();
  if (!merged) {
    report(merged.error(), "while putting together a checkpoint of job " + id.value);
    return book_.note(id, {"checkpoint_fetch_failed", merged.error().one_line(), epoch, {}});
  }
  Doing& mine = work(id);
  if (!merged->missing.empty()) {
    if (std::exchange(mine.missing_told, merged->missing) != merged->missing)
      book_.note(id, {"checkpoint_incomplete", merged->missing, epoch, {}});
    return;
  }
  mine.missing_told.clear();
  std::uint64_t sum = 0;  // grows with every new part
  Pulled whole;
  bool is_new = false;
  for (std::size_t rank = 0; rank < merged->numbers.size(); ++rank) {
    const Which which{epoch.value, static_cast<int>(rank)};
    sum += merged->numbers[rank];
    is_new = is_new || merged->numbers[rank] > mine.saved[which];
    for (const KeptPart& kept : mine.parts[which]) {
      if (kept.part.number != merged->numbers[rank]) continue;
      if (rank == 0) whole.from = kept.pulled.from;
      whole.stored_bytes += kept.pulled.stored_bytes;
      whole.took = std::max(whole.took, kept.pulled.took);
    }
  }
  if (!is_new) return;
  whole.from.root = merged->root;
  whole.from.number = sum;
  whole.bytes = merged->bytes;
  whole.files = merged->files;
  if (!commit_whole(job, epoch, number, whole)) return;
  for (std::size_t rank = 0; rank < merged->numbers.size(); ++rank) {
    const Which which{epoch.value, static_cast<int>(rank)};
    std::uint64_t& saved = work(id).saved[which];
    saved = std::max(saved, merged->numbers[rank]);
    std::deque<KeptPart>& kept = work(id).parts[which];
    while (!kept.empty() && kept.front().part.number < merged->numbers[rank]) kept.pop_front();
  }
  if (!merged->conflicts.empty())
    book_.note(
        id, {"checkpoint_conflict", "members saved different files under one name: " + merged->conflicts, epoch, {}});
  renew_soon();
}

}  // namespace gridctl::control
