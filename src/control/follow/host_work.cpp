// SPDX-License-Identifier: Apache-2.0
#include "control/follow/host_work.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/health.hpp"
#include "control/follow/heartbeat_rules.hpp"
#include "control/follow/read_output.hpp"
#include "control/reach/pace.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/request.hpp"
#include "wire/own.hpp"

namespace gridctl::control {

namespace {

using transfer::BulkLink;

constexpr int k_results_tries = 3;                              // of an attempt's outputs, by a host that answers
constexpr Duration k_stop_patience = std::chrono::seconds{90};  // beyond the grace, until a stop is complete
constexpr Duration k_stop_look = std::chrono::milliseconds{200};
constexpr std::uint64_t k_standby_rate = 20'000'000;  // bytes a second: a host that writes slower is no standby

LaunchResult unfit_result(const Unfit& unfit) {
  LaunchResult result;
  result.detail = unfit.why;
  result.host_fault = !unfit.busy;
  result.busy = unfit.busy;
  return result;
}

BootTime soon(os::Clock& clock) { return clock.boot() + k_work_answer; }

// Sends one typed question of the conversations in launch_protocol.hpp, and returns the answer.
Result<Answer> put(wire::Link& link, os::Clock& clock, std::uint32_t stream, const Request& question) {
  const std::string payload = std::visit([](const auto& request) { return wire::encode(request); }, question);
  TRY_ASSIGN(const std::string text, ask(link, stream, payload, soon(clock)));
  if (std::holds_alternative<wire::PrepareRequest>(question)) {
    TRY_ASSIGN(wire::PrepareReply reply, wire::parse_prepare_reply(text));
    return Answer{std::move(reply)};
  }
  if (std::holds_alternative<wire::PollRequest>(question)) {
    TRY_ASSIGN(wire::PollReply reply, wire::parse_poll_reply(text));
    return Answer{std::move(reply)};
  }
  return Answer{Ack{}};
}

Result<wire::AttemptStatus> look(wire::Link& link, const MemberWork& work) {
  TRY_ASSIGN(const Answer answer, put(link, work.world.clock, 1, Request{look_request(work.job, work.epoch)}));
  return look_answer(answer, work.job, work.epoch);
}

Result<void> push_inputs(const MemberWork& work, const BulkLink& link, const wire::AttemptSpec& spec) {
  Freight& freight = work.world.freight;
  HostReach host = work.host;
  host.shown_for = work.job;
  if (spec.workdir) TRY(freight.push(host, link, *spec.workdir).context("while sending the working directory"));
  for (const wire::TreeRef& mount : spec.mounts)
    TRY(freight.push(host, link, mount.root).context("while sending the mount " + mount.target));
  if (spec.image_archive) TRY(freight.push(host, link, *spec.image_archive).context("while sending the image"));
  return {};
}

// Chunks in the host's own snapshots of the job are not sent.
HostReach with_snapshots_of(const JobId& job, HostReach host) {
  host.job = host.shown_for = job;
  return host;
}

// `part`: sent to the host instead of the complete checkpoint.
Result<void> push_checkpoint(const MemberWork& work, const BulkLink& link, const wire::AttemptSpec& spec,
                             const std::optional<OwnPart>& part) {
  if (!spec.restore) return {};
  Freight& freight = work.world.freight;
  const HostReach host = with_snapshots_of(work.job, work.host);
  TRY((part ? freight.push_part(host, link, *part) : freight.push(host, link, *spec.restore))
          .context("while sending checkpoint " + spec.restore_name));
  return {};
}

// Damaged checkpoints are sent complete: only that path heals them.
std::optional<OwnPart> part_for(const MemberWork& work, const LaunchOrder& order) {
  const std::optional<wire::Gang>& gang = order.spec.gang;
  if (!order.own_part || !order.spec.restore || !gang) return std::nullopt;
  Result<std::optional<OwnPart>> part = work.world.freight.part_of(
      *order.spec.restore, {gang->first_rank(), gang->here().ranks}, gang->world_size());
  return part ? *std::move(part) : std::nullopt;
}

bool is_damage(const Result<void>& pushed) {
  return !pushed && (pushed.error().code == Code::checkpoint_damaged || pushed.error().code == Code::not_found);
}

// Pushes everything, and heals what is damaged here if possible. After an error, a connection's state is unknown:
// `link` is then another one.
Result<void> push_whole(const MemberWork& work, BulkLink& link, const LaunchOrder& order,
                        const std::optional<OwnPart>& part, LaunchResult& told) {
  Result<void> pushed = push_inputs(work, link, order.spec);
  told.hopeless = is_damage(pushed);
  TRY(pushed);
  pushed = push_checkpoint(work, link, order.spec, part);
  if (!is_damage(pushed)) return pushed;
  const Result<std::string> healed = work.world.freight.heal(order.copies, *order.spec.restore);
  told.damaged = !healed || healed->empty();
  if (!healed) return std::move(pushed).context(healed.error().one_line());
  if (healed->empty()) return pushed;
  told.healed_from = *healed;
  TRY_ASSIGN(link, work.world.freight.reach(work.host, k_reach_patience));
  pushed = push_checkpoint(work, link, order.spec, part);
  told.damaged = is_damage(pushed);
  return pushed;
}

// START carries the limits as of now: the time was drawn from the host a moment ago, but sending the files may have
// taken hours.
Request limited(Request question, const LaunchOrder& order, BootTime now) {
  if (auto* start = std::get_if<wire::StartRequest>(&question); start != nullptr && order.allowance) {
    start->allowance = wire::Allowance{order.allowance->run, order.allowance->run_limit, {}};
    if (order.allowance->time_until)
      start->allowance->time = std::max(*order.allowance->time_until - now, Duration{});
  }
  return question;
}

// Sends the files that the host lacks, then asks it to prepare; or finds that the attempt cannot start there.
LaunchTalk::Next begin_launch(const MemberWork& work, BulkLink& link, const LaunchOrder& order,
                              const std::optional<OwnPart>& part, LaunchTalk& talk, LaunchResult& told) {
  if (order.doubt.kind == LaunchDoubt::Kind::refused) return talk.first();
  if (const Result<void> pushed = push_whole(work, link, order, part, told); !pushed)
    return talk.give_up(not_started(pushed.error(), pushed.error().code == Code::no_space));
  if (const auto unfit =
          unfit_to_start(*link.link, work.world.clock, work.host.provider.inventory, order.spec.gpu_uuids))
    return talk.give_up(unfit_result(*unfit));
  return talk.first();
}

}  // namespace

LaunchResult launch(const MemberWork& work, const LaunchOrder& order) {
  const std::optional<OwnPart> part = part_for(work, order);
  wire::AttemptSpec spec = order.spec;
  if (part) spec.restore = part->root;
  LaunchTalk talk(std::move(spec), order.lease, order.secrets, order.doubt, order.start);
  Result<BulkLink> link = work.world.freight.reach(work.host, k_reach_patience);
  if (!link) return talk.unreached(link.error());
  LaunchResult told;  // of the sending
  LaunchTalk::Next next = begin_launch(work, *link, order, part, talk, told);
  for (std::uint32_t stream = 2; std::holds_alternative<Request>(next); ++stream) {
    const Request& question = std::get<Request>(next);
    // Sending files takes long. An attempt that was given up in the meantime must not start: its successor may run. But
    // an earlier START may have arrived, and the side that withdrew this one may not know yet what was committed, so
    // the host is asked.
    if (std::holds_alternative<wire::StartRequest>(question) && order.wanted && *order.wanted != order.spec.epoch.value)
      next = talk.give_up(not_started(make_error(Code::cancelled, "the start is no longer wanted"), false));
    else next = talk.next(put(*link->link, work.world.clock, stream, limited(question, order, work.world.clock.boot())));
  }
  LaunchResult result = std::get<LaunchResult>(next);
  result.healed_from = std::move(told.healed_from);
  result.damaged = told.damaged && result.kind == LaunchResult::Kind::not_started;
  result.hopeless = told.hopeless && result.kind == LaunchResult::Kind::not_started;
  if (part) result.given = format_size(part->bytes) + " of " + format_size(part->of_bytes);
  return result;
}

Result<void> stop(const MemberWork& work, Duration grace) {
  TRY_ASSIGN(const BulkLink bulk, work.world.freight.reach(work.host, k_reach_patience));
  TRY(put(*bulk.link, work.world.clock, 1, Request{stop_request(work.job, work.epoch, grace)}));
  return {};
}

Result<std::uint64_t> make_standby(const World& world, const HostReach& host, const JobId& job, const Digest& root,
                                   const std::vector<Digest>& others) {
  HostReach bounded = host;
  bounded.budget = std::make_shared<WorkBudget>(world.clock, WorkBudget::Limits{});
  TRY_ASSIGN(const BulkLink link, world.freight.reach(bounded, k_reach_patience));
  for (const Digest& other : others) TRY(world.freight.push(bounded, link, other));
  TRY_ASSIGN(const std::uint64_t bytes, world.freight.push(with_snapshots_of(job, bounded), link, root));
  const BootTime patience = soon(world.clock) + std::chrono::seconds{bytes / k_standby_rate};
  bounded.budget->allow(patience - world.clock.boot());
  TRY(ask(*link.link, 2, wire::encode(wire::StandbyRequest{job, root}), patience));
  return bytes;
}

Result<void> drop_standby(const World& world, const HostReach& host, const JobId& job) {
  TRY_ASSIGN(const BulkLink link, world.freight.reach(host, k_reach_patience));
  TRY(ask(*link.link, 2, wire::encode(wire::StandbyRequest{job, {}}), soon(world.clock)));
  return {};
}

bool is_worth_retrying(Code code, bool patient) {
  return is_uncertain(code) || code == Code::auth_refused || code == Code::no_space ||
         (patient && (code == Code::io || code == Code::engine));
}

Result<Gathered> collect(const MemberWork& work, std::uint64_t known, const std::optional<Digest>& head, bool patient,
                         const ResultsWanted& results) {
  TRY_ASSIGN(const BulkLink bulk, work.world.freight.reach(work.host, k_reach_patience));
  wire::Link& link = *bulk.link;
  TRY_ASSIGN(const wire::AttemptStatus status, look(link, work));
  Gathered out;
  if (const Result<void> read = read_output(link, work.world.clock, work.world.folders,
                                            {work.job, work.epoch, work.attempt, work.rank}, status.log_bytes);
      !read) {
    if (is_worth_retrying(read.error().code, patient)) return read.error();
    out.problem = "the end of the output is missing: " + read.error().one_line();
  }
  // Fetches the rest of $GRIDCTL_METRICS if some was fetched before; a program that writes none is not asked.
  const OutputOf metrics{work.job, work.epoch, work.attempt, k_metrics_rank};
  if (const auto told = work.world.folders.log_next_offset(work.job, work.attempt, k_metrics_rank);
      work.rank == 0 && told && *told > 0)
    if (const Result<void> read = read_output(link, work.world.clock, work.world.folders, metrics, k_metrics_bytes_max);
        !read && is_uncertain(read.error().code))
      return read.error();
  for (const wire::HostCheckpoint& checkpoint : last_beyond(status, known)) {
    Result<Pulled> pulled = work.world.freight.pull(work.host, work.job, work.epoch, checkpoint, head);
    if (pulled) {
      out.checkpoints.push_back(std::move(*pulled));
    } else if (is_worth_retrying(pulled.error().code, patient)) {
      return pulled.error();
    } else {
      out.problem = "the last checkpoint could not be fetched: " + pulled.error().one_line();
      out.lacks_checkpoint = true;
    }
  }
  Result<GatheredResults> gathered =
      gather_results(work.world.freight, work.host, link, work.world.clock, work.job, work.epoch, results);
  if (gathered) {
    mask_names(work.world.folders, work.job, gathered->reply);
    out.results = std::move(*gathered);
    return out;
  }
  // A fetch that takes for ever is retried only this often; a silent host is given up elsewhere.
  const bool enough = results.failures != nullptr && gathered.error().code != Code::host_unreachable &&
                      ++*results.failures >= k_results_tries;
  if (!enough && is_worth_retrying(gathered.error().code, patient)) return gathered.error();
  if (gathered.error().code == Code::unsupported || gathered.error().code == Code::not_found) return out;
  out.results_left = true;
  out.problem = "the outputs could not be fetched: " + gathered.error().one_line() + "; " + work.host.provider.name.value +
                " keeps them for " + format_duration(k_keep_work) + ": gridctl job pull " + work.job.value;
  return out;
}

Result<Gathered> clean_up(const MemberWork& work, const job::PendingCleanup& end, std::uint64_t known,
                          const std::optional<Digest>& head, std::optional<Epoch> keep, bool patient) {
  const BootTime patience = work.world.clock.boot() + k_stop_patience;
  Gathered out;
  ResultsWanted nothing;  // a stale attempt's files stay on its host for a while
  nothing.nothing = true;
  TRY_ASSIGN(const BulkLink bulk, work.world.freight.reach(work.host, k_reach_patience));
  CleanUpTalk talk(work.job, end);
  CleanUpTalk::Next next = talk.first();
  for (std::uint32_t stream = 1;; ++stream) {
    if (const auto* failed = std::get_if<Error>(&next)) return *failed;
    if (std::holds_alternative<CleanUpTalk::CleanedUp>(next)) return out;
    if (std::holds_alternative<CleanUpTalk::Fetch>(next)) {
      TRY_ASSIGN(out, collect(work, known, head, patient, nothing));
      if (!out.checkpoints.empty()) return out;
      next = talk.fetched();
    } else if (std::holds_alternative<CleanUpTalk::Pause>(next)) {
      if (work.world.clock.boot() > patience)
        return make_error(Code::timed_out, "the attempt on " + end.host.value + " does not end in time");
      work.world.run.pause(k_stop_look);
      next = talk.repeat();
    } else {
      const Request& question = std::get<Request>(next);
      // An agent that does not know this field removes the snapshots with the rest.
      if (keep && std::holds_alternative<wire::CleanRequest>(question))
        (void)ask(*bulk.link, stream++, wire::encode(wire::KeepRequest{work.job, *keep}), soon(work.world.clock));
      next = talk.next(put(*bulk.link, work.world.clock, stream, question));
    }
  }
}

}  // namespace gridctl::control
