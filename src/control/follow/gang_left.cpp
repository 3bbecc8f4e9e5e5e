// SPDX-License-Identifier: Apache-2.0
// Turns everything that a gang's members left at the attempt's end into one checkpoint, beside the last complete one.
#include <algorithm>
#include <utility>

#include "control/follow/attempts.hpp"
#include "control/reach/pace.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_left_number = 1ull << 40;  // after all others of its epoch, and one for each

// Another member may have failed before all were heard to run: the attempt has no start then, and this one has files.
bool has_run(const job::Member& member) {
  if (!member.end) return false;
  const job::EndKind kind = member.end->kind;
  return kind != job::EndKind::absent && kind != job::EndKind::not_started && kind != job::EndKind::start_failed &&
         kind != job::EndKind::image_failed;
}
}  // namespace

// Fetches again what an earlier daemon collected from members, before the last of them counts as collected. Returns
// false if nothing is missing.
bool Attempts::gather_again(TrackedJob& job, const job::Collect& effect) {
  const job::Attempt& attempt = *job.state().attempt();
  const std::string name = job::effect_name(job::Effect{effect});
  Doing& mine = work(job.id());
  for (const job::Member& member : attempt.members) {
    const Which which{attempt.epoch.value, member.rank};
    const bool given_up = std::ranges::any_of(job.state().pending_cleanups, [&](const job::PendingCleanup& end) {
      return end.host == member.host && end.epoch == attempt.epoch;
    });
    const bool was_there = member.part == job::Part::collected && has_run(member);
    if (!was_there || given_up || mine.gathered.contains(which)) continue;
    const FleetHost* host = fleet_.find(member.host);
    const std::optional<HostReach> reach = fleet_.reach(member.host);
    if (!reach || host->liveness == job::Liveness::lost || mine.collect_tries[which]++ >= k_collect_tries) {
      mine.gathered.insert(which);
      book_.note(job.id(), {"checkpoint_fetch_failed",
                            "cannot fetch the last checkpoint's part on " + member.host.value + " again", attempt.epoch,
                            member.host});
      continue;
    }
    ResultsWanted nothing;
    nothing.nothing = true;
    const MemberWork with{world_, *reach, job.id(), attempt.epoch, attempt.number, member.rank};
    return in_background(
        job.id(), name, {os::Lane::Kind::bulk, member.host.value},
        [with, known = newest_part(job.id(), which), head = head_root(job), nothing] {
          return collect(with, known, head, true, nothing);
        },
        [this, name, which](TrackedJob& its, const Result<Gathered>& result) {
          if (!result) {
            report(result.error(), "while collecting again");
            return try_later(its.id(), name, k_launch_retry);
          }
          for (const Pulled& pulled : result->checkpoints) keep_part(its, which, pulled);
          work(its.id()).gathered.insert(which);
        });
  }
  return false;
}

// Calls `then` when the checkpoint is kept, or if there is nothing to keep yet; `safe` is false if it may be kept at
// another try.
void Attempts::commit_left(TrackedJob& job, std::function<void(TrackedJob&, bool safe)> then) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return then(job, true);
  Doing& mine = work(job.id());
  std::vector<std::vector<CheckpointPart>> members;
  Pulled all;
  bool any = false;
  for (const job::Member& member : attempt->members) {
    const Which which{attempt->epoch.value, member.rank};
    if (!mine.gathered.contains(which)) return then(job, true);
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
  if (!any) return then(job, true);
  // One such part means that the others are taken as they are too; the part of rank 0 need not be one.
  members.front().front().as_left = true;
  all.from.as_left = all.from.provisional = true;
  all.from.how = "left";
  // The last two members may be gathered at the same time: each waits for its own.
  in_background(
      job.id(), "left/" + std::to_string(attempt->epoch.value) + "/" + std::to_string(++merges_), {os::Lane::Kind::urgent, {}},
      [world = world_, members = std::move(members)] { return world.freight.merge(members); },
      [this, epoch = attempt->epoch, number = attempt->number, all, then = std::move(then)](
          TrackedJob& its, const Result<MergedParts>& merged) mutable {
        Doing& its_work = work(its.id());
        if (!merged) {
          const std::string text = merged.error().one_line();
          if (std::exchange(its_work.missing_told, text) != text) book_.note(its.id(), {"checkpoint_fetch_failed", text, epoch, {}});
          return then(its, !is_worth_retrying(merged.error().code, its_work.merges_failed[epoch.value]++ < k_collect_tries));
        }
        all.from.root = merged->root;
        all.from.number = k_left_number;
        all.bytes = merged->bytes;
        all.files = merged->files;
        const bool safe = head_root(its) == merged->root || commit_whole(its, epoch, number, all);
        if (safe) its_work.left.clear();
        then(its, safe);
      });
}

}  // namespace gridctl::control
