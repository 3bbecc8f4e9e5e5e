// SPDX-License-Identifier: Apache-2.0
// Everything that the members of a gang left when its attempt ended becomes one checkpoint, beside the last complete one.
#include <algorithm>

#include "control/follow/attempts.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_left_number = 1ull << 40;  // after all others of its epoch, and one for each
}

// Calls `then` when it is kept, or when there is nothing to keep yet.
void Attempts::commit_left(TrackedJob& job, std::function<void(TrackedJob&)> then) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return then(job);
  Doing& mine = work(job.id());
  std::vector<std::vector<CheckpointPart>> members;
  Pulled all;
  bool any = false;
  for (const job::Member& member : attempt->members) {
    const Which which{attempt->epoch.value, member.rank};
    if (!mine.gathered.contains(which)) return then(job);
    CheckpointPart part;
    part.member = member.host.value;
    part.nothing = part.settled = true;
    const auto left = mine.left.find(which);
    const std::deque<KeptPart>& kept = mine.parts[which];
    const KeptPart* const newest = left != mine.left.end() ? &left->second : kept.empty() ? nullptr : &kept.back();
    members.push_back({newest != nullptr ? newest->part : part});
    if (left == mine.left.end()) continue;
    any = true;
    all.from.torn = all.from.torn || left->second.pulled.from.torn;
    all.from.number = std::max(all.from.number, left->second.part.number);
    all.stored_bytes += left->second.pulled.stored_bytes;
    all.from.notes.insert(all.from.notes.end(), left->second.pulled.from.notes.begin(), left->second.pulled.from.notes.end());
  }
  if (!any) return then(job);
  // One such part tells that the others are to be taken as they are, too; that of rank 0 need not be one.
  members.front().front().as_left = true;
  all.from.as_left = all.from.provisional = true;
  all.from.how = "left";
  in_background(
      job.id(), "left/" + std::to_string(attempt->epoch.value), {os::Lane::Kind::urgent, {}},
      [world = world_, members = std::move(members)] { return world.freight.merge(members); },
      [this, epoch = attempt->epoch, number = attempt->number, all, then = std::move(then)](
          TrackedJob& its, const Result<MergedParts>& merged) mutable {
        work(its.id()).left.clear();
        if (!merged) {
          book_.note(its.id(), {"checkpoint_fetch_failed", merged.error().one_line(), epoch, {}});
          return then(its);
        }
        all.from.root = merged->root;
        all.from.number = k_left_number;
        all.bytes = merged->bytes;
        all.files = merged->files;
        if (head_root(its) != merged->root) (void)commit_whole(its, epoch, number, all);
        then(its);
      });
}

}  // namespace gridctl::control
