// SPDX-License-Identifier: Apache-2.0
// Carries out effects on hosts: launching, stopping, collecting, cleaning up. Each is repeated until the host has
// answered.
#include <utility>

#include "control/follow/attempt_spec.hpp"
#include "control/follow/attempts.hpp"
#include "control/follow/lent_hosts.hpp"
#include "control/reach/pace.hpp"
#include "job/going_back.hpp"
#include "os/log.hpp"
#include "sched/geo/residency.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

namespace {
constexpr int k_give_up_results = 1000;        // failures: more than are ever tried
constexpr Duration k_unfetched_retry = std::chrono::milliseconds{200};
constexpr std::size_t k_last_lines = 20;  // of a failed job's output, into its history
constexpr std::size_t k_judged_lines = 200;  // of which the last words are looked for
}

void Attempts::carry_out(TrackedJob& job) {
  if (job.unsure) return;
  const JobId id = job.id();
  // A user who cancels a job that has ended does not want to wait for its outputs: they stay on the host.
  if (Doing& mine = work(id); mine.collecting != nullptr && mine.results_failures != nullptr && !mine.cancel_before &&
                              job.state().cancel && job.state().overtaken.empty() && job.in<job::Collecting>() != nullptr) {
    *mine.results_failures = k_give_up_results;
    mine.collecting->cancel();
    mine.cancel_before = true;
  }
  for (const job::Effect& effect : job::pending(job.state())) {
    if (is_under_way(id, job::effect_name(effect))) continue;
    std::visit([&](const auto& one) { carry_out(job, one); }, effect);
    if (job.unsure) return;
  }
}

void Attempts::carry_out(TrackedJob& job, const job::Place& effect) { pacer_.place_after(job, effect.after); }

std::optional<MemberWork> Attempts::work_with(TrackedJob& job, const HostName& host, Epoch epoch, AttemptNumber attempt,
                                              int rank) {
  std::optional<HostReach> reach = fleet_.reach(host);
  if (reach) return MemberWork{world_, *std::move(reach), job.id(), epoch, attempt, rank};
  book_.apply(job.id(), job::HostForgotten{host});
  return std::nullopt;
}

// --- Launching -------------------------------------------------------------------------------------------------------

Result<LaunchOrder> Attempts::launch_order(const TrackedJob& job, const job::Launch& effect) {
  const job::Attempt& attempt = *job.state().attempt();
  const job::Member& member = *attempt.member(effect.rank);
  TRY_ASSIGN(const std::vector<registry::Input> inputs, world_.records.inputs(job.id()));
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> history, world_.records.attempts(job.id()));
  std::optional<registry::Checkpoint> restore;
  if (effect.restore.value > 0) {
    TRY_ASSIGN(restore, world_.records.checkpoint(job.id(), effect.restore));
  }
  const job::CheckpointPolicy& policy = job.spec().checkpoint;
  const bool fixed = policy.interval == job::CheckpointPolicy::Interval::fixed;
  const sched::Interval tuned = pacer_.interval_of(job);
  std::string restart_reason;
  for (const registry::AttemptRecord& former : history)
    if (former.number < attempt.number) restart_reason = former.reason;
  std::vector<registry::Provider> hosts;  // of the members, by rank
  for (const job::Member& one : attempt.members) {
    const FleetHost* host = fleet_.find(one.host);
    hosts.push_back(host == nullptr ? registry::Provider{} : host->provider);
  }
  const registry::Provider& here = hosts[static_cast<std::size_t>(effect.rank)];
  const bool is_lent = sched::is_lent(here.host_class, here.labels);
  GangRendezvous rendezvous;
  if (const auto* launching = job.in<job::Launching>()) rendezvous = {launching->port, launching->token};
  const AttemptFacts facts{job.row,        attempt,
                           member,         inputs,
                           restore,        std::move(hosts),
                           rendezvous,     fixed ? policy.every : tuned.every,
                           restart_reason, fixed ? policy.every : tuned.pause,
                           is_lent,        is_on_lent(fleet_, &attempt)};
  const Doing& mine = work(job.id());
  LaunchOrder order{build_attempt_spec(facts), job.spec().recovery.lease, {}, {}, mine.wanted, {}, {}, effect.start};
  // A program that failed from this checkpoint may have missed data that other ranks wrote.
  order.own_part = job.spec().checkpoint.local_shards && attempt.is_gang() &&
                   std::none_of(job.state().failures.begin(), job.state().failures.end(),
                                [&](const job::Failure& one) { return one.restored == effect.restore; });
  if (const auto doubt = mine.doubts.find({effect.epoch.value, effect.rank}); doubt != mine.doubts.end())
    order.doubt = doubt->second;
  order.allowance = allowances_.at_start(job);
  if (!restore) return order;
  Result<CopiesOf> copies = world_.freight.copies_of(restore->job, restore->seq);
  if (copies) order.copies = *std::move(copies);
  else report(copies.error(), "while looking for copies of a checkpoint");
  return order;
}

void Attempts::carry_out(TrackedJob& job, const job::Launch& effect) {
  const std::string name = job::effect_name(job::Effect{effect});
  const JobId id = job.id();
  const std::optional<MemberWork> with =
      work_with(job, effect.host, effect.epoch, job.state().attempt()->number, effect.rank);
  if (!with) return;
  Result<std::map<std::string, std::string>> secrets = world_.folders.secrets(id, job.spec().secrets);
  if (!secrets)
    return book_.apply(id, job::LaunchFailed{.epoch = effect.epoch,
                                             .detail = secrets.error().one_line(),
                                             .host_fault = false,
                                             .rank = effect.rank,
                                             .hopeless = secrets.error().code == Code::not_found});
  Result<LaunchOrder> order = launch_order(job, effect);
  if (!order) {
    report(order.error(), "while preparing a launch");
    return try_later(id, name, k_launch_retry);
  }
  if (order->allowance && order->allowance->waits) return try_later(id, name, k_launch_retry);
  order->secrets = *std::move(secrets);
  in_background(
      id, name, {os::Lane::Kind::urgent, effect.host.value},
      [with = *with, order = *std::move(order)] { return launch(with, order); },
      [this, name, effect](TrackedJob& mine, LaunchResult result) {
        launched(mine.id(), name, effect, std::move(result));
      });
}

void Attempts::launched(const JobId& id, const std::string& name, const job::Launch& effect, LaunchResult result) {
  TrackedJob& job = *book_.find(id);
  if (!result.healed_from.empty())
    book_.note(id, {"checkpoint_healed", "the checkpoint was damaged here; restored " + result.healed_from,
                    effect.epoch, effect.host});
  if (job.state().epoch != effect.epoch || job.in<job::Launching>() == nullptr) return;
  LaunchDoubt& doubt = work(id).doubts[{effect.epoch.value, effect.rank}];
  const LaunchVerdict verdict = judge_launch(result, doubt, job.state().policy.lost_after, world_.clock.boot());
  if (verdict == LaunchVerdict::accepted || verdict == LaunchVerdict::prepared)
    work(id).heard[{effect.epoch.value, effect.rank}] = world_.clock.boot();  // nothing of it ran before
  switch (verdict) {
    case LaunchVerdict::accepted:
      doubt = {LaunchDoubt::Kind::sent, world_.clock.boot(), "", false};  // should the commit fail, it is asked again
      book_.apply(id, job::LaunchAccepted{effect.epoch, effect.rank});
      fleet_.poll_now(effect.host);
      return;
    case LaunchVerdict::prepared:
      if (!result.given.empty())
        book_.note(id, {"own_shards",
                        effect.host.value + " got the parts of the checkpoint that its ranks need: " + result.given,
                        effect.epoch, effect.host});
      return book_.apply(id, job::MemberPrepared{effect.epoch, effect.rank});
    case LaunchVerdict::again:
      os::log(os::LogLevel::info, "launch on " + effect.host.value + ": " + result.detail);
      return try_later(id, name, k_launch_retry);
    case LaunchVerdict::failed: break;
  }
  if (result.busy) fleet_.refused_for_room(effect.host, world_.clock.boot() + k_busy_memory);
  book_.apply(id, launch_failed(effect.epoch, effect.rank, result));
}

// --- Ending ----------------------------------------------------------------------------------------------------------

void Attempts::carry_out(TrackedJob& job, const job::Stop& effect) {
  const auto with = work_with(job, effect.host, effect.epoch, job.state().attempt()->number, effect.rank);
  if (!with) return;
  const std::string name = job::effect_name(job::Effect{effect});
  in_background(
      job.id(), name, {os::Lane::Kind::urgent, effect.host.value},
      [with = *with, grace = effect.grace] { return stop(with, grace); },
      [this, name, effect](TrackedJob& mine, const Result<void>& result) {
        if (!result) report(result.error(), "while stopping job " + mine.id().value);
        // STOP has fenced the attempt, so asking about it does no harm.
        work(mine.id()).fenced.insert({effect.epoch.value, effect.rank});
        try_later(mine.id(), name, k_stop_retry);  // until its end is seen
        renew_soon();
        fleet_.poll_now(effect.host);
      });
}

// The last output explains a program that failed on its own.
Attempts::Said Attempts::note_last_output(const TrackedJob& job, int rank) {
  const auto* collecting = job.in<job::Collecting>();
  if (collecting == nullptr || collecting->end.success() || collecting->end.rank != rank) return {};
  const job::EndKind kind = collecting->end.kind;
  if (kind != job::EndKind::exited && kind != job::EndKind::signalled && kind != job::EndKind::oom) return {};
  const AttemptNumber attempt = collecting->attempt.number;
  const Result<std::string> tail = world_.folders.log_tail(job.id(), attempt, rank, k_last_lines);
  if (!tail || tail->empty()) return {};
  book_.note(job.id(), {"last_output", *tail, collecting->attempt.epoch, collecting->attempt.member(rank)->host});
  const Result<std::string> more = world_.folders.log_tail(job.id(), attempt, rank, k_judged_lines);
  // The text is masked before the line is cut: half a secret would not be recognised.
  const std::string judged = world_.folders.masked(job.id(), more ? *more : *tail);
  Said said{job::gist_of(*tail), job::judge_last_words(judged, collecting->end.exit_code), false};
  if (!job.state().late_directory && job::makes_directory(*tail, job.spec().checkpoint.path)) {
    said.makes_directory = true;
    said.words = {job::Advice::restart,
                  "the program creates its checkpoint directory itself, so gridctl restarts it without one",
                  job.spec().checkpoint.path + ": File exists"};
  }
  return said;
}

void Attempts::carry_out(TrackedJob& job, const job::Collect& effect) {
  const auto with = work_with(job, effect.host, effect.epoch, effect.attempt, effect.rank);
  if (!with || (job.state().attempt()->is_gang() && gather_again(job, effect))) return;
  const std::string name = job::effect_name(job::Effect{effect});
  Doing& mine = work(job.id());
  const Which which{effect.epoch.value, effect.rank};
  const bool patient = mine.collect_tries[which]++ < k_collect_tries;
  ResultsWanted results = results_wanted(job, effect.rank);
  if (results.tree && !results.nothing) {
    if (mine.results_failures == nullptr) {
      mine.results_failures = std::make_shared<std::atomic<int>>(0);
      mine.cancel_before = job.state().cancel.has_value();
    }
    results.failures = mine.results_failures;
  }
  MemberWork within = *with;
  within.host = with_budget(std::move(within.host), world_.clock);
  mine.collecting = within.host.budget;
  in_background(
      job.id(), name, {os::Lane::Kind::bulk, effect.host.value},
      [with = std::move(within), known = newest_part(job.id(), which), head = head_root(job), patient, results] {
        return collect(with, known, head, patient, results);
      },
      [this, name, which, effect, results, gang = job.state().attempt()->is_gang()](TrackedJob& its,
                                                                                    Result<Gathered> result) {
        const JobId id = its.id();
        if (!result) {
          // Collecting is retried until the host answers or is given up: the last checkpoint may be there.
          report(result.error(), "while collecting from " + effect.host.value);
          return try_later(id, name, k_launch_retry);
        }
        const auto collected = [this, name, effect, problem = result->problem, left = result->results_left, results,
                                gathered = result->results](TrackedJob& one) {
          if (gathered && !has_newer_results(one, effect.epoch)) {
            const auto kept = keep_results(world_.records, one.id(), effect.epoch, effect.host, results, *gathered, true,
                                           world_.clock.wall());
            if (!kept) {  // the job must not end without them
              report(kept.error(), "while recording the outputs");
              return try_later(one.id(), name, k_launch_retry);
            }
          }
          if (left) {
            const auto noted = note_left_there(world_.records, one.id(), effect.epoch, effect.host, world_.clock.wall());
            if (!noted) {  // nobody would know that they are there
              report(noted.error(), "while recording the outputs");
              return try_later(one.id(), name, k_launch_retry);
            }
          }
          work(one.id()).results_failures.reset();
          Said said = note_last_output(one, effect.rank);
          book_.apply(one.id(), job::Collected{effect.epoch, problem, effect.rank, std::move(said.gist),
                                               std::move(said.words), said.makes_directory, left});
        };
        if (gang) {
          for (const Pulled& pulled : result->checkpoints) keep_part(its, which, pulled);
          work(id).gathered.insert(which);
          work(id).under_way.insert(name);
          return merge_parts(its, [this, name, collected](TrackedJob& one, bool safe) {
            if (safe)
              return commit_left(one, [this, name, collected](TrackedJob& same, bool kept) {
                work(same.id()).under_way.erase(name);
                if (!kept) return try_later(same.id(), name, k_launch_retry);
                collected(same);
              });
            work(one.id()).under_way.erase(name);
            try_later(one.id(), name, k_launch_retry);
          });
        }
        for (const Pulled& pulled : result->checkpoints) {
          commit(its, which, effect.attempt, pulled);
          // The job must not end without this checkpoint, because the host would then remove it.
          if (work(id).saved[which] < pulled.from.number) return try_later(id, name, k_launch_retry);
        }
        collected(its);
      });
}

void Attempts::carry_out(TrackedJob& job, const job::CleanUp& effect) {
  const job::PendingCleanup end = effect.end;
  const FleetHost* host = fleet_.find(end.host);
  if (host == nullptr) return book_.apply(job.id(), job::HostForgotten{end.host});
  const std::string name = job::effect_name(job::Effect{effect});
  if (!host->is_up()) return try_later(job.id(), name, k_settle_retry);
  if (job.unfetched.contains(end.epoch.value)) return try_later(job.id(), name, k_unfetched_retry);
  const Which which{end.epoch.value, end.rank};
  // A part that is already here is reported anyway; a job that asks for no checkpoint gets none.
  const bool asks_for_none = job::interval_on(job.spec(), is_lent_host(fleet_, end.host)) == job::CheckpointPolicy::Interval::off;
  const std::uint64_t known = asks_for_none ? newest_part(job.id(), which) : work(job.id()).saved[which];
  // The next attempt may start from these on that host; a finished job needs none.
  std::optional<Epoch> keep;
  if (head_root(job)) keep = job.state().visible() == job::JobState::succeeded ? Epoch{} : end.epoch;
  const bool patient = work(job.id()).collect_tries[which]++ < k_collect_tries;
  in_background(
      job.id(), name, {os::Lane::Kind::bulk, end.host.value},
      [with = *work_with(job, end.host, end.epoch, end.attempt, end.rank), end, known, head = head_root(job), keep, patient] {
        return clean_up(with, end, known, head, keep, patient);
      },
      [this, name, which, end](TrackedJob& mine, Result<Gathered> result) {
        const JobId id = mine.id();
        if (!result) {
          report(result.error(), "while cleaning up on " + end.host.value);
          return try_later(id, name, k_settle_retry);
        }
        if (result->lacks_checkpoint)
          book_.note(id, {"collect_incomplete", result->problem, end.epoch, end.host});
        if (result->checkpoints.empty()) return book_.apply(id, job::CleanedUp{end.host, end.epoch});
        if (mine.spec().num_nodes > 1) {  // one member's part is no checkpoint
          book_.note(id, {"checkpoint_incomplete",
                          "the part of a checkpoint on " + end.host.value +
                              " is not kept: the parts of the other members are gone",
                          end.epoch, end.host});
          work(id).saved[which] = result->checkpoints.back().from.number;
          return try_later(id, name, Duration{});
        }
        for (const Pulled& pulled : result->checkpoints) {
          commit(mine, which, end.attempt, pulled);
          if (work(id).saved[which] < pulled.from.number) return try_later(id, name, k_settle_retry);
        }
      });
}

}  // namespace gridctl::control
