// SPDX-License-Identifier: Apache-2.0
// Handles checkpoints of several hosts: each member's part is fetched separately; when every part of one step is here,
// they are committed as one checkpoint.
#include <algorithm>
#include <limits>

#include "control/follow/attempts.hpp"
#include "control/follow/lent_hosts.hpp"
#include "control/reach/pace.hpp"
#include "sched/ranks.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_parts_kept = 4;  // of one member: others may be so many saves behind
constexpr const char* k_merge = "merge";
constexpr Duration k_missing_patience = std::chrono::seconds{20};
constexpr Duration k_others_wait = std::chrono::seconds{10};  // for a member that has saved nothing yet
constexpr Duration k_known_wait = std::chrono::seconds{1};
constexpr Duration k_merge_retry = std::chrono::seconds{2};
}  // namespace

void Attempts::keep_part(TrackedJob& job, Which which, const Pulled& pulled) {
  std::optional<CheckpointPart> part = part_of(job, which, pulled);
  if (!part) return;
  if (pulled.from.as_left) {
    part->as_left = true;
    work(job.id()).left.insert_or_assign(which, KeptPart{*std::move(part), pulled});
    return;
  }
  if (part->saved_at) work(job.id()).first_saved.try_emplace(which.first, *part->saved_at);
  std::deque<KeptPart>& kept = work(job.id()).parts[which];
  // A fetch that began earlier may end later: the newest stays the last.
  const auto after = std::ranges::find_if(kept, [&](const KeptPart& one) { return one.part.number > part->number; });
  kept.insert(after, {*std::move(part), pulled});
  while (kept.size() > k_parts_kept) kept.pop_front();
}

// Returns nullopt if the epoch is over: a part is never kept alone.
std::optional<CheckpointPart> Attempts::part_of(const TrackedJob& job, Which which, const Pulled& pulled) {
  const job::Attempt* attempt = job.state().attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(which.second);
  if (member == nullptr || attempt->epoch.value != which.first) return std::nullopt;
  CheckpointPart part;
  part.member = member->host.value;
  for (const job::Member& one : attempt->members) {
    const std::uint32_t ranks = sched::ranks_of(job.spec(), one);
    if (one.rank < member->rank) part.first_rank += ranks;
    if (one.rank == member->rank) part.ranks = ranks;
  }
  if (attempt->resumed_from.value > 0)
    if (const auto base = world_.records.checkpoint(job.id(), attempt->resumed_from)) part.base = base->root;
  part.root = pulled.from.root;
  part.number = pulled.from.number;
  part.saved_at = world_.clock.boot() - pulled.took - std::chrono::milliseconds{pulled.from.age_ms};
  if (const auto step = pulled.from.metrics.find("step"); step != pulled.from.metrics.end())
    part.step = static_cast<std::int64_t>(step->second);
  return part;
}

std::uint64_t Attempts::newest_part(const JobId& id, Which which) {
  // A host cannot give a checkpoint to an attempt that was asked for none.
  const TrackedJob* job = book_.find(id);
  const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
  const bool lent = attempt != nullptr && attempt->epoch.value == which.first && is_on_lent(fleet_, attempt);
  if (job != nullptr && job::interval_on(job->spec(), lent) == job::CheckpointPolicy::Interval::off)
    return std::numeric_limits<std::uint64_t>::max();
  const std::deque<KeptPart>& kept = work(id).parts[which];
  return std::max(work(id).saved[which], kept.empty() ? 0 : kept.back().part.number);
}

// A member counts as without files if its host reported, after the others saved, that it has none and will have none;
// or if enough time has passed since their first save. Parts that are saved often are not kept that long. A silent host
// may hold a part. A save that its layout calls complete needs little patience.
std::set<int> Attempts::members_without_files(const TrackedJob& job, const job::Attempt& attempt) {
  Doing& mine = work(job.id());
  bool known = true;
  const auto first = mine.first_saved.find(attempt.epoch.value);
  for (const job::Member& member : attempt.members)
    for (const KeptPart& kept : mine.parts[{attempt.epoch.value, member.rank}])
      known = known && !kept.pulled.from.provisional && kept.pulled.from.how.find(':') != std::string::npos;
  std::set<int> without;
  for (const job::Member& member : attempt.members) {
    const Which which{attempt.epoch.value, member.rank};
    const auto heard = mine.heard.find(which);
    if (!mine.parts[which].empty() || mine.listed[which] != 0) continue;
    const bool told = first != mine.first_saved.end() && heard != mine.heard.end() &&
                      heard->second - first->second >= (known ? k_known_wait : k_others_wait);
    if (told || mine.gathered.contains(which)) without.insert(member.rank);
  }
  return without;
}

void Attempts::try_merge_later(TrackedJob& job, Epoch epoch, Duration pause) {
  Doing& mine = work(job.id());
  const std::string name = std::string(k_merge) + "/" + std::to_string(epoch.value);
  if (mine.later.contains(name)) return;
  mine.later[name] = world_.run.after(pause, [this, id = job.id(), name, epoch] {
    const os::Executor::Timer self = std::move(work(id).later[name]);
    work(id).later.erase(name);
    TrackedJob* again = book_.find(id);
    const job::Attempt* attempt = again == nullptr ? nullptr : again->state().attempt();
    if (attempt != nullptr && attempt->epoch == epoch) merge_parts(*again, {});
  });
}

// Calls `then` after looking at the parts that are here; `safe` is false if their checkpoint may still be kept later.
void Attempts::merge_parts(TrackedJob& job, std::function<void(TrackedJob&, bool safe)> then) {
  if (!then) then = [](TrackedJob&, bool) {};
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return then(job, true);
  std::vector<std::vector<CheckpointPart>> members;
  const std::set<int> without = members_without_files(job, *attempt);
  bool waits = false;
  for (const job::Member& member : attempt->members) {
    std::vector<CheckpointPart>& parts = members.emplace_back();
    for (const KeptPart& kept : work(job.id()).parts[{attempt->epoch.value, member.rank}]) parts.push_back(kept.part);
    if (!parts.empty()) continue;
    CheckpointPart& none = parts.emplace_back();
    none.member = member.host.value;
    none.nothing = true;
    none.settled = work(job.id()).gathered.contains({attempt->epoch.value, member.rank});
    waits = waits || !without.contains(member.rank);
  }
  if (waits) {
    // The member may save nothing, or may only be slower.
    try_merge_later(job, attempt->epoch, k_merge_retry);
    return then(job, true);
  }
  const Epoch epoch = attempt->epoch;
  const AttemptNumber number = attempt->number;
  const std::string name = std::string(k_merge) + "/" + std::to_string(epoch.value) + "/" + std::to_string(++merges_);
  in_background(
      job.id(), name, {os::Lane::Kind::urgent, {}},
      [world = world_, members = std::move(members)] { return world.freight.merge(members); },
      [this, epoch, number, then = std::move(then)](TrackedJob& mine, const Result<MergedParts>& merged) {
        const bool safe = take_merged(mine, epoch, number, merged);
        if (!safe) try_merge_later(mine, epoch, k_merge_retry);
        then(mine, safe);
      });
}

// Returns false if the same parts may be kept at another try.
bool Attempts::take_merged(TrackedJob& job, Epoch epoch, AttemptNumber number, const Result<MergedParts>& merged) {
  const JobId id = job.id();
  Doing& mine = work(id);
  if (!merged) {
    report(merged.error(), "while merging a checkpoint of job " + id.value);
    const std::string text = merged.error().one_line();
    if (std::exchange(mine.missing_told, text) != text) book_.note(id, {"checkpoint_fetch_failed", text, epoch, {}});
    return !is_worth_retrying(merged.error().code, mine.merges_failed[epoch.value]++ < k_collect_tries);
  }
  if (!merged->missing.empty()) {
    // The parts of one save arrive one after another: only a lasting gap is worth a line.
    const BootTime now = world_.clock.boot();
    if (!mine.missing_since) mine.missing_since = now;
    const Duration missing_for = now - *mine.missing_since;
    const job::Attempt* attempt = job.state().attempt();
    const bool is_last = attempt != nullptr && std::ranges::all_of(attempt->members, [&](const job::Member& one) {
      return mine.gathered.contains({epoch.value, one.rank});
    });
    if (is_last && std::ranges::all_of(mine.parts, [](const auto& entry) { return entry.second.empty(); })) return true;
    if (missing_for < k_missing_patience && !is_last)
      return try_merge_later(job, epoch, k_missing_patience - missing_for), true;
    if (std::exchange(mine.missing_told, merged->missing) != merged->missing)
      book_.note(id, {"checkpoint_incomplete", merged->missing, epoch, {}});
    return true;
  }
  mine.missing_told.clear();
  mine.missing_since.reset();
  std::uint64_t sum = 0;  // grows with every new part
  Pulled whole;
  bool is_new = false;
  for (std::size_t rank = 0; rank < merged->numbers.size(); ++rank) {
    const Which which{epoch.value, static_cast<int>(rank)};
    sum += merged->numbers[rank];
    is_new = is_new || merged->numbers[rank] > mine.saved[which];
    for (const KeptPart& kept : mine.parts[which]) {
      if (kept.part.number != merged->numbers[rank]) continue;
      const bool provisional = whole.from.provisional || kept.pulled.from.provisional;
      if (whole.from.number == 0) whole.from = kept.pulled.from;
      whole.from.provisional = provisional;
      whole.stored_bytes += kept.pulled.stored_bytes;
      whole.took = std::max(whole.took, kept.pulled.took);
    }
  }
  if (!is_new) return true;
  whole.from.root = merged->root;
  whole.from.number = sum;
  whole.bytes = merged->bytes;
  whole.files = merged->files;
  if (!commit_whole(job, epoch, number, whole)) return false;
  for (std::size_t rank = 0; rank < merged->numbers.size(); ++rank) {
    const Which which{epoch.value, static_cast<int>(rank)};
    std::uint64_t& saved = work(id).saved[which];
    saved = std::max(saved, merged->numbers[rank]);
    std::deque<KeptPart>& kept = work(id).parts[which];
    while (!kept.empty() && kept.front().part.number < merged->numbers[rank]) kept.pop_front();
  }
  renew_soon();
  return true;
}

}  // namespace gridctl::control
