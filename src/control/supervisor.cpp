// SPDX-License-Identifier: Apache-2.0
#include "control/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "control/attempt_spec.hpp"
#include "control/following.hpp"
#include "control/host_facts.hpp"
#include "control/log_file.hpp"
#include "control/reach.hpp"
#include "control/secrets.hpp"
#include "os/log.hpp"
#include "sched/interval.hpp"
#include "sched/place.hpp"

namespace gridctl::control {

namespace {
constexpr unsigned k_connect_threads = 16;  // a login to a dead host blocks one for up to 20 s
constexpr unsigned k_work_threads = 8;
constexpr std::size_t k_last_lines = 20;  // of a failed job's output, into its history
constexpr Duration k_first_contact = std::chrono::milliseconds{200};  // placing looks so often for the first try of all
constexpr Duration k_first_contact_max = std::chrono::seconds{3};     // hosts, but does not wait longer for a dead one
}  // namespace

Supervisor::Supervisor(os::Loop& loop, os::Clock& clock, registry::Registry registry, ControllerId controller)
    : loop_(loop),
      clock_(clock),
      registry_(std::move(registry)),
      controller_(std::move(controller)),
      paths_{registry_.directory()},
      connect_pool_(std::make_unique<os::Pool>(k_connect_threads)),
      work_pool_(std::make_unique<os::Pool>(k_work_threads)) {}

Supervisor::~Supervisor() = default;

Result<void> Supervisor::start() {
  started_at_ = clock_.boot();
  TRY(registry_.data_version());  // a registry that cannot be read is an error now, not a line in the log
  timer_ = loop_.every(k_tick, [this] { tick(); });
  tick();
  return {};
}

bool Supervisor::is_idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return !entry.second->state.needs_supervisor() && entry.second->under_way.empty();
  });
}

bool Supervisor::has_work() {
  const Result<std::vector<JobId>> ids = registry_.unfinished();
  return !ids || !ids->empty() || !is_idle();
}

void Supervisor::report(const Error& error, const std::string& doing) {
  os::log(os::LogLevel::warn, doing + ": " + error.one_line());
}

void Supervisor::tick() {
  const BootTime now = clock_.boot();
  const Result<std::int64_t> version = registry_.data_version();
  if (!version) report(version.error(), "while looking at the registry");
  if (version && (*version != seen_version_ || now >= next_reload_)) {
    seen_version_ = *version;
    next_reload_ = now + k_reload_pause;
    reload();
  }
  judge_hosts(now);
}

void Supervisor::reload() {
  load_providers();
  const Result<std::vector<JobId>> ids = registry_.unfinished();
  if (!ids) return report(ids.error(), "while listing jobs");
  for (const JobId& id : *ids) {
    const Result<registry::Job> row = registry_.job(id);
    if (!row) {
      report(row.error(), "while reading job " + id.value);
      continue;
    }
    JobPtr& job = jobs_[id.value];
    if (job == nullptr) {
      job = std::make_shared<Following>();
      const Result<std::vector<registry::Checkpoint>> list = registry_.checkpoints(id);
      if (!list) report(list.error(), "while reading checkpoints");
      if (list)
        for (const registry::Checkpoint& c : *list)
          job->saved[c.epoch.value] = std::max(job->saved[c.epoch.value], c.host_number);
      if (std::holds_alternative<job::Running>(row->machine.phase) ||
          std::holds_alternative<job::Stopping>(row->machine.phase))
        job->accepted.insert(row->machine.epoch.value);
    } else if (job->state == row->machine) {
      continue;
    }
    adopt(job, row->machine);
  }
  std::erase_if(jobs_, [](const auto& entry) {
    return !entry.second->state.needs_supervisor() && entry.second->under_way.empty();
  });
  renew_wants();
}

void Supervisor::load_providers() {
  const Result<std::vector<registry::Provider>> all = registry_.providers();
  if (!all) return report(all.error(), "while listing providers");
  std::set<std::string> present;
  for (const registry::Provider& provider : *all) {
    present.insert(provider.name.value);
    std::unique_ptr<Host>& host = hosts_[provider.name.value];
    const bool same = host != nullptr && host->provider.address == provider.address &&
                      host->provider.identities == provider.identities && host->provider.jump == provider.jump;
    if (host == nullptr) host = std::make_unique<Host>();
    host->provider = provider;
    if (same) continue;
    const std::string name = provider.name.value;
    HostMonitor::Listener listener{
        [this, name](const wire::PollReply& reply) {
          if (const auto found = hosts_.find(name); found != hosts_.end()) on_poll(*found->second, reply);
        },
        [this](const wire::LogRequest& asked, std::uint64_t offset, const std::string& bytes) {
          const auto job = jobs_.find(asked.job.value);
          const job::Attempt* attempt = job == jobs_.end() ? nullptr : job->second->state.attempt();
          if (attempt == nullptr || attempt->epoch != asked.epoch) return;
          const Result<void> written = log_append(paths_.log_of(asked.job, attempt->number), offset, bytes);
          if (!written) report(written.error(), "while writing a job's output");
        },
        [name](const wire::AgentHello&) { os::log(os::LogLevel::info, name + ": connected"); },
        [name](const Error& error) { os::log(os::LogLevel::info, name + ": " + error.one_line()); }};
    host->monitor = std::make_shared<HostMonitor>(
        loop_, *connect_pool_, clock_,
        [provider, paths = paths_, controller = controller_, &clock = clock_](BootTime deadline)
            -> Result<AgentSession> { return open_session(provider, paths, controller, deadline, clock); },
        std::move(listener));
  }
  std::erase_if(hosts_, [&](const auto& entry) { return !present.contains(entry.first); });
}

// Takes over a state that the registry has committed, by whomever, and starts what it calls for.
void Supervisor::adopt(const JobPtr& job, const job::State& state) {
  job->state = state;
  if (!std::holds_alternative<job::Waiting>(state.phase)) job->place_timer.reset();
  if (job::is_final(state.visible())) {
    const Result<void> removed = os::remove_tree(paths_.secrets_of(state.id));
    if (!removed) report(removed.error(), "while removing secrets");
  }
  carry_out(job);
}

void Supervisor::apply(const JobPtr& job, job::Happening what) {
  const Result<job::Step> step = registry_.apply(job->state.id, {clock_.wall(), std::move(what)});
  if (!step) {
    // Nothing was committed: the fact will be seen again, by a poll or by the effect's next try.
    report(step.error(), "while recording an event of job " + job->state.id.value);
    return;
  }
  if (!step->state.needs_supervisor() || !(step->state == job->state) || !step->effects.empty())
    adopt(job, step->state);
  renew_wants();
}

// A program that failed by itself is explained by what it said last.
void Supervisor::note_last_output(const Following& job) {
  const auto* collecting = std::get_if<job::Collecting>(&job.state.phase);
  if (collecting == nullptr || collecting->end.success()) return;
  const job::EndKind kind = collecting->end.kind;
  if (kind != job::EndKind::exited && kind != job::EndKind::signalled && kind != job::EndKind::oom) return;
  const Result<std::string> tail = log_tail(paths_.log_of(job.state.id, collecting->attempt.number), k_last_lines);
  if (!tail || tail->empty()) return;
  const auto noted = registry_.note(job.state.id, clock_.wall(),
                                    {"last_output", *tail, collecting->attempt.epoch, collecting->attempt.host()});
  if (!noted) report(noted.error(), "while recording the last output");
}

void Supervisor::carry_out(const JobPtr& job) {
  for (const job::Effect& effect : job::pending(job->state)) {
    const std::string name = job::effect_name(effect);
    if (job->under_way.contains(name) || job->later.contains(name)) continue;
    std::visit([&](const auto& one) { carry_out(job, one); }, effect);
  }
}

void Supervisor::try_later(const JobPtr& job, const std::string& name, Duration pause) {
  job->later[name] = loop_.after(pause, [this, job, name] {
    const os::Loop::Timer self = std::move(job->later[name]);
    job->later.erase(name);
    carry_out(job);
  });
}

// --- Placing ---------------------------------------------------------------------------------------------------------

void Supervisor::carry_out(const JobPtr& job, const job::Place& effect) {
  if (job->place_timer != nullptr) return;
  job->place_timer = loop_.after(effect.after, [this, job] { place(job); });
}

std::vector<sched::HostFacts> Supervisor::host_facts(Duration lost_after) const {
  const BootTime now = clock_.boot();
  std::vector<sched::HostFacts> all;
  for (const auto& [name, host] : hosts_) {
    sched::HostFacts facts = facts_of(host->provider);
    // As the job itself would judge it: the host that it has just left must not get it again.
    facts.reachable = host->monitor->is_up() && host->monitor->silence().judge(lost_after) == job::Liveness::answering;
    for (const auto& [id, job] : jobs_) {
      const job::Attempt* attempt = job->state.attempt();
      if (attempt == nullptr) continue;
      for (const job::Member& member : attempt->members)
        if (member.host == facts.name) take_away(facts, member);
    }
    if (now < host->busy_until) {
      facts.cpus_free = 0;
      for (const Gpu& gpu : facts.inventory.gpus) facts.busy_gpus.push_back(gpu.uuid);
    }
    all.push_back(std::move(facts));
  }
  return all;
}

void Supervisor::place(const JobPtr& job) {
  job->place_timer.reset();
  if (!std::holds_alternative<job::Waiting>(job->state.phase)) return;
  const bool all_tried = clock_.boot() - started_at_ > k_first_contact_max ||
                         std::all_of(hosts_.begin(), hosts_.end(), [](const auto& entry) {
                           return entry.second->monitor->is_up() || entry.second->monitor->was_tried();
                         });
  if (!all_tried) {
    job->place_timer = loop_.after(k_first_contact, [this, job] { place(job); });
    return;
  }
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while placing");
  const sched::Decision decision =
      sched::place(row->spec, host_facts(row->spec.recovery.lost_after), job->state.avoided);
  const Result<void> explained = registry_.save_explanation(job->state.id, sched::explain(decision));
  if (!explained) report(explained.error(), "while saving an explanation");
  if (!decision.placement) return apply(job, job::NotPlaced{decision.could_ever_fit, sched::summary(decision)});
  const sched::Placement& chosen = *decision.placement;
  const job::Member member{0,           chosen.host,         chosen.engine,        chosen.gpu_uuids,
                           chosen.cpus, chosen.memory_bytes, chosen.price_per_hour};
  apply(job, job::Placed{{member}, chosen.reason});
}

// --- Launching -------------------------------------------------------------------------------------------------------

std::optional<WorkPlace> Supervisor::work_place(const HostName& name) {
  const auto found = hosts_.find(name.value);
  if (found == hosts_.end()) return std::nullopt;
  return WorkPlace{found->second->provider, controller_, paths_, &clock_};
}

void Supervisor::carry_out(const JobPtr& job, const job::Launch& effect) {
  const job::Attempt& attempt = effect.attempt;
  const std::string name = job::effect_name(job::Effect{effect});
  if (job->accepted.contains(attempt.epoch.value)) return;  // the payload is coming up: polls will tell
  const std::optional<WorkPlace> place = work_place(attempt.host());
  if (!place) return apply(job, job::HostForgotten{attempt.host()});
  Result<registry::Job> row = registry_.job(job->state.id);
  Result<std::vector<registry::Input>> inputs = registry_.inputs(job->state.id);
  Result<std::vector<registry::AttemptRecord>> history = registry_.attempts(job->state.id);
  if (!row || !inputs || !history) {
    report(!row ? row.error() : !inputs ? inputs.error() : history.error(), "while preparing a launch");
    return try_later(job, name, k_launch_retry);
  }
  std::optional<registry::Checkpoint> restore;
  if (effect.restore.value > 0) {
    Result<registry::Checkpoint> found = registry_.checkpoint(job->state.id, effect.restore);
    if (!found) {
      report(found.error(), "while preparing a launch");
      return try_later(job, name, k_launch_retry);
    }
    restore = *found;
  }
  Result<std::map<std::string, std::string>> secrets =
      read_secrets(paths_.secrets_of(job->state.id), row->spec.secrets);
  if (!secrets) return apply(job, job::LaunchFailed{attempt.epoch, secrets.error().one_line(), false, {}});

  const job::Member& member = attempt.members.front();
  std::optional<Vendor> vendor;
  for (const Gpu& gpu : place->provider.inventory.gpus)
    if (!member.gpu_uuids.empty() && gpu.uuid == member.gpu_uuids.front()) vendor = gpu.vendor;
  const sched::HostHistory host_history{place->provider.host_class, 0, 0};
  const job::CheckpointPolicy& policy = row->spec.checkpoint;
  const Duration interval = policy.interval == job::CheckpointPolicy::Interval::fixed
                                ? policy.every
                                : sched::checkpoint_interval({}, {host_history}).every;
  std::string restart_reason;
  for (const registry::AttemptRecord& former : *history)
    if (former.number < attempt.number) restart_reason = former.reason;
  const AttemptFacts facts{*row, attempt, *inputs, restore, place->provider.host, vendor, interval, restart_reason};
  LaunchOrder order{build_attempt_spec(facts), row->spec.recovery.lease, *secrets};
  in_background(
      job, name, [place = *place, order = std::move(order)] { return launch(place, order); },
      [this, job, name, epoch = attempt.epoch, host_name = attempt.host()](LaunchResult result) {
        if (job->state.epoch != epoch || !std::holds_alternative<job::Launching>(job->state.phase)) return;
        if (result.kind == LaunchResult::Kind::accepted) {
          job->accepted.insert(epoch.value);
          apply(job, job::LaunchAccepted{epoch});
          if (const auto host = hosts_.find(host_name.value); host != hosts_.end()) host->second->monitor->poll_now();
        } else if (result.kind == LaunchResult::Kind::unknown) {
          os::log(os::LogLevel::info, "launch on " + host_name.value + ": " + result.detail);
          try_later(job, name, k_launch_retry);
        } else {
          if (const auto host = hosts_.find(host_name.value); result.busy && host != hosts_.end())
            host->second->busy_until = clock_.boot() + k_busy_memory;
          apply(job, job::LaunchFailed{epoch, result.detail, result.host_fault, result.host_max_epoch});
        }
      });
}

// --- Ending ----------------------------------------------------------------------------------------------------------

void Supervisor::carry_out(const JobPtr& job, const job::Stop& effect) {
  const std::optional<WorkPlace> place = work_place(effect.host);
  if (!place) return apply(job, job::HostForgotten{effect.host});
  const std::string name = job::effect_name(job::Effect{effect});
  in_background(
      job, name, [place = *place, effect, id = job->state.id] { return stop(place, id, effect.epoch, effect.grace); },
      [this, job, name, effect](const Result<void>& result) {
        if (!result) report(result.error(), "while stopping job " + job->state.id.value);
        job->accepted.insert(effect.epoch.value);  // STOP has fenced it: asking about it can do no harm any more
        try_later(job, name, k_stop_retry);        // until its end is seen
        renew_wants();
        if (const auto host = hosts_.find(effect.host.value); host != hosts_.end()) host->second->monitor->poll_now();
      });
}

void Supervisor::carry_out(const JobPtr& job, const job::Collect& effect) {
  const std::optional<WorkPlace> place = work_place(effect.host);
  if (!place) return apply(job, job::HostForgotten{effect.host});
  const std::string name = job::effect_name(job::Effect{effect});
  const std::uint64_t known = job->saved[effect.epoch.value];
  in_background(
      job, name,
      [place = *place, effect, id = job->state.id, known] {
        return collect(place, id, effect.epoch, effect.attempt, known);
      },
      [this, job, name, effect](Result<Gathered> result) {
        if (!result) {
          // Tried again until the host answers or is given up: its last checkpoint may be there.
          report(result.error(), "while collecting from " + effect.host.value);
          return try_later(job, name, k_launch_retry);
        }
        if (result->checkpoint) commit(job, effect.epoch, effect.attempt, *result->checkpoint);
        note_last_output(*job);
        apply(job, job::Collected{effect.epoch, result->problem});
      });
}

void Supervisor::carry_out(const JobPtr& job, const job::Settle& effect) {
  const job::LooseEnd end = effect.end;
  const auto host = hosts_.find(end.host.value);
  if (host == hosts_.end()) return apply(job, job::HostForgotten{end.host});
  const std::string name = job::effect_name(job::Effect{effect});
  if (!host->second->monitor->is_up()) return try_later(job, name, k_settle_retry);
  in_background(
      job, name,
      [place = *work_place(end.host), end, id = job->state.id, known = job->saved[end.epoch.value]] {
        return settle(place, id, end, known);
      },
      [this, job, name, end](Result<Gathered> result) {
        if (!result) {
          report(result.error(), "while cleaning up on " + end.host.value);
          return try_later(job, name, k_settle_retry);
        }
        if (result->checkpoint) commit(job, end.epoch, end.attempt, *result->checkpoint);
        apply(job, job::Settled{end.host, end.epoch});
      });
}

}  // namespace gridctl::control
