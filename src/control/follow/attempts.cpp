// SPDX-License-Identifier: Apache-2.0
// Handles the reports of hosts on attempts, and interprets their silence.
#include "control/follow/attempts.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/follow/heartbeat_rules.hpp"
#include "control/reach/pace.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_limits_period = std::chrono::seconds{5};  // what is left to jobs is told anew
constexpr int k_doublings_max = 10;
constexpr std::size_t k_notes_told_max = 200;  // of one job: a host may say a new one each time
constexpr std::size_t k_reason_max = 2000;     // bytes of what a host says of a job in one line

std::string pull_name(std::uint64_t epoch, int rank) {
  return "pull/" + std::to_string(epoch) + "/" + std::to_string(rank);
}

std::set<std::string> gpus_of(const job::Attempt& attempt, const HostName& host) {
  std::set<std::string> gpus;
  for (const job::Member& member : attempt.members)
    if (member.host == host) gpus.insert(member.gpu_uuids.begin(), member.gpu_uuids.end());
  return gpus;
}

}  // namespace

Attempts::Attempts(const World& world, JobBook& book, Fleet& fleet, Pacer& pacer)
    : world_(world), book_(book), fleet_(fleet), pacer_(pacer), allowances_(world, book) {
  book_.listen(*this);
  book_.on_due([this](TrackedJob& job) { carry_out(job); });
  fleet_.listen(*this);
}

// --- Jobs ------------------------------------------------------------------------------------------------------------

void Attempts::found(const TrackedJob& job) {
  Doing& mine = work(job.id());
  const Result<std::vector<registry::Checkpoint>> list = world_.records.checkpoints(job.id());
  if (!list) report(list.error(), "while reading checkpoints");
  const job::Attempt* attempt = job.state().attempt();
  // A gang's checkpoint does not keep the members' own numbers, so its newest part is fetched again.
  if (list)
    for (const registry::Checkpoint& one : *list) {
      const bool alone = attempt != nullptr && attempt->epoch == one.epoch && !attempt->is_gang();
      if (job.spec().num_nodes > 1 && !alone) continue;
      std::uint64_t& saved = mine.saved[{one.epoch.value, 0}];
      saved = std::max(saved, one.host_number);
    }
  if (job::is_final(job.state().visible())) forget_secrets(job.id());
  // An earlier daemon may have sent START.
  if (const auto* launching = job.in<job::Launching>())
    for (const job::Member& member : launching->attempt.members)
      mine.doubts[{attempt->epoch.value, member.rank}] = {LaunchDoubt::Kind::sent, world_.clock.boot(), "", false};
}

void Attempts::forget_secrets(const JobId& id) { report(world_.folders.remove_secrets(id), "while removing secrets"); }

void Attempts::changed(const TrackedJob& job, const job::State& before) {
  Doing& mine = work(job.id());
  const job::State& now = job.state();
  *mine.wanted = job.in<job::Launching>() != nullptr ? now.epoch.value : 0;
  if (now.epoch > before.epoch)
    std::erase_if(mine.doubts, [&](const auto& entry) { return entry.first.first < now.epoch.value; });
  if (job::is_final(now.visible()) && !job::is_final(before.visible())) forget_secrets(job.id());
  const auto holds = [](const job::State& state) {
    return state.attempt() != nullptr && !std::holds_alternative<job::Collecting>(state.phase);
  };
  if (holds(before) && (!holds(now) || now.epoch != before.epoch)) fleet_.capacity_freed();
  renew_soon();
}

void Attempts::stepped(const job::State& before, const job::Step& step) { fleet_.reliability().on_step(before, step); }

void Attempts::became_unsure(const TrackedJob& job) { *work(job.id()).wanted = 0; }

void Attempts::forgotten(const JobId& id) {
  work_.erase(id.value);
  allowances_.forgotten(id);
}

bool Attempts::is_under_way(const JobId& id, const std::string& name) const {
  const auto found = work_.find(id.value);
  return found != work_.end() && (found->second.under_way.contains(name) || found->second.later.contains(name));
}

void Attempts::try_later(const JobId& id, const std::string& name, Duration pause) {
  work(id).later[name] = world_.run.after(pause, [this, id, name] {
    TrackedJob* job = book_.find(id);
    if (job == nullptr) return;
    const os::Executor::Timer self = std::move(work(id).later[name]);
    work(id).later.erase(name);
    carry_out(*job);
  });
}

std::uint64_t Attempts::newest_there(const TrackedJob& job) const {
  const job::Attempt* attempt = job.state().attempt();
  const auto found = work_.find(job.id().value);
  if (attempt == nullptr || found == work_.end()) return 0;
  // The number of a gang's checkpoint is the sum of its members' numbers.
  std::uint64_t sum = 0;
  for (const job::Member& member : attempt->members) {
    std::uint64_t newest = 0;
    for (const auto* numbers : {&found->second.saved, &found->second.listed})
      if (const auto one = numbers->find({attempt->epoch.value, member.rank}); one != numbers->end())
        newest = std::max(newest, one->second);
    sum += newest;
  }
  return sum;
}

// --- Hosts -----------------------------------------------------------------------------------------------------------

void Attempts::tick(BootTime now) {
  judge_silence();
  if (now - limits_told_ < k_limits_period) return;
  limits_told_ = now;
  bool limited = false;
  for (const auto& [id, job] : book_.placed()) limited = limited || allowances_.concern(*job);
  if (limited) renew_soon();
}

bool Attempts::is_counted(const TrackedJob& job) const {
  const job::Attempt* attempt = job.state().attempt();
  const auto mine = work_.find(job.id().value);
  return attempt == nullptr ||
         std::all_of(attempt->members.begin(), attempt->members.end(), [&](const job::Member& member) {
           const bool runs = member.part >= job::Part::promised && member.part < job::Part::ended;
           return !runs || (mine != work_.end() && mine->second.heard.contains({attempt->epoch.value, member.rank}));
         });
}

void Attempts::polled(const FleetHost& host, const wire::PollReply& reply) {
  for (const wire::AttemptStatus& status : reply.attempts)
    if (TrackedJob* job = book_.find(status.job)) on_status(host, *job, status);
}

void Attempts::on_status(const FleetHost& host, TrackedJob& job, const wire::AttemptStatus& status) {
  const job::Attempt* attempt = job.state().attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->on(host.provider.name);
  if (member == nullptr || job.unsure) return;
  const int rank = member->rank;
  Doing& mine = work(job.id());
  const Which which{status.epoch.value, rank};
  if (status.epoch == attempt->epoch) {
    mine.heard[which] = world_.clock.boot();
    const std::chrono::milliseconds left{status.allowed_ms};
    allowances_.reported(job, status.allowed_ms < 0 ? std::nullopt : std::optional<Duration>(left));
  }
  Reading reading = read_status(job.state(), host.provider.name, mine.fenced.contains(which), status);
  if (const wire::HostCheckpoint* newest = newest_beyond(status, mine.listed[which]))
    mine.listed[which] = newest->number;
  const JobId id = job.id();
  for (job::Event& event : reading.events) book_.apply(id, std::move(event));
  if (reading.output) fetch_log(host, job, rank, status);
  if (reading.checkpoints) note_no_checkpoint(host, job, which, status);
  if (reading.checkpoints) pull_newest(host, job, rank, status);
  sync_results(host, job, rank, status);
}

// Reports that the host could take no checkpoint for too long and why, or that it can again.
void Attempts::note_no_checkpoint(const FleetHost& host, const TrackedJob& job, Which which,
                                  const wire::AttemptStatus& status) {
  // The text is masked before it is cut: half a secret is not recognised.
  std::string text = status.no_checkpoint;
  if (!text.empty()) text = sanitize(world_.folders.masked(job.id(), std::move(text)).substr(0, k_reason_max));
  std::string& told = work(job.id()).no_checkpoint[which];
  if (text == told) return;
  const bool well = text.empty();
  told = text;
  book_.note(job.id(),
             {well ? "checkpoints_again" : "no_checkpoint",
              well ? "gridctl can take checkpoints again" : std::move(text), status.epoch, host.provider.name});
}

void Attempts::fetch_log(const FleetHost& host, const TrackedJob& job, int rank, const wire::AttemptStatus& status) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return;
  const Result<std::uint64_t> offset = world_.folders.log_next_offset(job.id(), attempt->number, rank);
  if (!offset) return report(offset.error(), "while reading a job's log");
  if (*offset >= status.log_bytes) return;
  // A host that repeats itself, without getting nearer to the end, is asked no more often than others.
  const bool moves = std::exchange(work(job.id()).log_asked[{status.epoch.value, rank}], *offset) != *offset;
  if (fleet_.request_log(host.provider.name, {status.job, status.epoch, *offset, k_log_piece}) && moves &&
      status.log_bytes - *offset > k_log_piece)
    fleet_.poll_now(host.provider.name);  // there is more: come again at once
}

void Attempts::logged(const FleetHost& host, const wire::LogRequest& asked, std::uint64_t offset,
                      const std::string& bytes) {
  const TrackedJob* job = book_.find(asked.job);
  const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->on(host.provider.name);
  if (member == nullptr || attempt->epoch != asked.epoch) return;
  report(world_.folders.log_append(asked.job, attempt->number, member->rank, offset, bytes),
         "while writing a job's output");
}

void Attempts::liveness_changed(const FleetHost& host) {
  const std::string word(job::liveness_name(host.liveness));
  const std::string& name = host.provider.name.value;
  const std::string text =
      host.liveness == job::Liveness::answering
          ? name + " answers again"
          : name + " is " + word + ": silent for " + format_duration(host.monitor->silence().counted());
  note_at(host.provider.name, "host_" + word, text);
}

// Adds the line to the history of each job that has a member there.
void Attempts::note_at(const HostName& host, const std::string& kind, const std::string& text) {
  for (const auto& [id, job] : book_.placed())
    if (const job::Attempt& attempt = *job->state().attempt(); attempt.on(host) != nullptr)
      book_.note(job->id(), {kind, text, attempt.epoch, host});
}

// A refused login is not silence: jobs stay, and their owner is told what to do.
void Attempts::login_refused(const FleetHost& host, const Error& error) {
  const std::string text = host.provider.name.value +
                           " answers, but refuses our login; the job stays on it: " + error.message +
                           (error.hint.empty() ? "" : "; " + error.hint);
  note_at(host.provider.name, "host_login_refused", text);
}

// Adds a program's own fault on a GPU to the history of the job that runs there too.
void Attempts::health_changed(const FleetHost& host, const std::vector<sched::Change>& changes) {
  if (changes.empty()) return;
  for (const auto& [id, job] : book_.placed()) {
    const job::Attempt& attempt = *job->state().attempt();
    const std::set<std::string> gpus = gpus_of(attempt, host.provider.name);
    for (const sched::Change& change : changes)
      if (gpus.contains(change.unit))
        book_.note(job->id(),
                   {"gpu_" + change.kind, change.unit + ": " + change.text, attempt.epoch, host.provider.name});
  }
}

void Attempts::judge_silence() {
  book_.each_placed([&](TrackedJob& job) {
    if (job.unsure) return;
    std::vector<job::HostLost> lost;
    for (const job::Member& member : job.state().attempt()->members)
      if (const FleetHost* host = fleet_.find(member.host))
        if (auto one = read_silence(job.state(), member, host->monitor->silence())) lost.push_back(*one);
    for (const job::HostLost& one : lost) book_.apply(job.id(), one);
  });
}

// --- Checkpoints -----------------------------------------------------------------------------------------------------

std::optional<Digest> Attempts::head_root(const TrackedJob& job) {
  if (job.state().head.value == 0) return std::nullopt;
  const Result<registry::Checkpoint> head = world_.records.checkpoint(job.id(), job.state().head);
  return head ? std::optional{head->root} : std::nullopt;
}

void Attempts::pull_newest(const FleetHost& host, TrackedJob& job, int rank, const wire::AttemptStatus& status) {
  const Which which{status.epoch.value, rank};
  const wire::HostCheckpoint* found = newest_beyond(status, newest_part(job.id(), which));
  const std::string name = pull_name(status.epoch.value, rank);
  const job::Attempt* attempt = job.state().attempt();
  if (found == nullptr || attempt == nullptr || is_under_way(job.id(), name)) return;
  const std::optional<HostReach> reach = fleet_.reach(host.provider.name);
  if (!reach) return;
  in_background(
      job.id(), name, {os::Lane::Kind::bulk, host.provider.name.value},
      [world = world_, reach = *reach, id = job.id(), epoch = status.epoch, newest = *found, head = head_root(job)] {
        return world.freight.pull(reach, id, epoch, newest, head);
      },
      [this, name, which, number = attempt->number, gang = attempt->is_gang()](TrackedJob& mine,
                                                                               Result<Pulled> result) {
        int& failed = work(mine.id()).pulls_failed[which];
        if (result && gang) {  // also when the attempt is over meanwhile: a part is no checkpoint
          failed = 0;
          keep_part(mine, which, *result);
          return merge_parts(mine, {});
        }
        if (result) {
          failed = 0;
          return commit(mine, which, number, *result);
        }
        const Duration pause = std::min(k_pull_retry * (1 << std::min(failed++, k_doublings_max)), k_pull_retry_max);
        report(result.error(), "while fetching a checkpoint of job " + mine.id().value);
        book_.note(mine.id(), {"checkpoint_fetch_failed", result.error().one_line(), {which.first}, {}});
        try_later(mine.id(), name, pause);
      });
}

void Attempts::commit(TrackedJob& job, Which which, AttemptNumber attempt, const Pulled& pulled) {
  if (!commit_whole(job, {which.first}, attempt, pulled)) return;
  std::uint64_t& saved = work(job.id()).saved[which];
  saved = std::max(saved, pulled.from.number);
  renew_soon();
}

bool Attempts::commit_whole(TrackedJob& job, Epoch epoch, AttemptNumber attempt, const Pulled& pulled) {
  registry::Checkpoint row;
  row.job = job.id();
  row.epoch = epoch;
  row.attempt = attempt;
  row.root = pulled.from.root;
  row.created_at = world_.clock.wall();
  row.bytes = pulled.bytes;
  row.stored_bytes = pulled.stored_bytes;
  row.files = pulled.files;
  row.host_number = pulled.from.number;
  row.how = sanitize(world_.folders.masked(job.id(), pulled.from.how));
  row.provisional = pulled.from.provisional;
  row.as_left = pulled.from.as_left;
  row.torn = pulled.from.torn;
  for (const auto& [name, value] : pulled.from.metrics) row.metrics[world_.folders.masked(job.id(), name)] = value;
  if (pulled.from.written_ms) row.stall = std::chrono::milliseconds{*pulled.from.written_ms};
  row.upload = std::chrono::milliseconds{pulled.from.age_ms} + pulled.took;
  const Result<registry::JobRecords::Commit> committed = world_.records.commit_checkpoint(row);
  if (!committed) {
    report(committed.error(), "while committing a checkpoint of job " + job.id().value);
    return false;
  }
  // An earlier try may have committed it without an answer.
  if (!(committed->step.state == job.state())) book_.adopt(job, committed->step.state);
  note_left_out(job, epoch, pulled);
  prune(job);
  pacer_.retune(job);
  return true;
}

// Reports once what the merge waited for, and what a checkpoint lacks.
void Attempts::note_left_out(const TrackedJob& job, Epoch epoch, const Pulled& pulled) {
  std::set<std::string>& told = work(job.id()).notes_told;
  std::vector<std::string> fresh;
  for (const std::string& note : pulled.from.notes)
    if (told.size() < k_notes_told_max && told.insert(note).second) fresh.push_back(sanitize(note.substr(0, k_reason_max)));
  if (!fresh.empty()) book_.note(job.id(), {"checkpoint_notes", join(fresh, "; "), epoch, {}});
}

void Attempts::prune(const TrackedJob& job) {
  const auto old = world_.records.prunable(job.id(), job.spec().checkpoint.keep);
  if (!old) return report(old.error(), "while looking for old checkpoints");
  for (const registry::Checkpoint& one : *old)
    report(world_.records.remove_checkpoint(one.job, one.seq), "while removing an old checkpoint");
}

// --- What hosts are to do --------------------------------------------------------------------------------------------

void Attempts::renew_soon() {
  if (std::exchange(renewing_, true)) return;
  world_.run.post([this] { renew(); });
}

// Tells every monitor which attempts to renew and how often to poll.
void Attempts::renew() {
  renewing_ = false;
  std::vector<Duration> patience;
  std::map<std::string, HostUse> use;
  for (const auto& [id, job] : book_.placed()) {
    const job::Attempt* attempt = job->state().attempt();
    const Duration lost_after = job->state().policy.lost_after;
    patience.push_back(lost_after);
    Doing& mine = work_[id];
    const auto* running = job->in<job::Running>();
    const sched::Interval interval = pacer_.interval_of(*job);
    wire::Tempo tempo{running != nullptr && running->move ? interval.soon : interval.every, interval.pause};
    if (job->save_every > Duration{} && running != nullptr && !running->move) tempo.interval = job->save_every;
    const std::optional<HostMonitor::AttemptLimits> limits = allowances_.running(*job);
    for (const job::Member& member : attempt->members) {
      HostUse& here = use[member.host.value];
      here.patience = std::min(here.patience.value_or(lost_after), lost_after);
      here.gpus.insert(member.gpu_uuids.begin(), member.gpu_uuids.end());
      const Which which{attempt->epoch.value, member.rank};
      if (member.part < job::Part::promised && !mine.fenced.contains(which)) continue;
      here.wants.push_back({{job->id(), attempt->epoch, mine.saved[which], tempo}, job->state().policy.lease, limits});
    }
  }
  fleet_.set_use(std::move(use), heartbeat_for(patience, book_.size() > 0));
}

}  // namespace gridctl::control
