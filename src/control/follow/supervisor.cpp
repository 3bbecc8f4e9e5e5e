// SPDX-License-Identifier: Apache-2.0
#include "control/follow/supervisor.hpp"

#include <algorithm>
#include <utility>

#include "control/follow/following.hpp"
#include "control/follow/log_file.hpp"
#include "control/follow/queue.hpp"
#include "control/measure/network_watch.hpp"
#include "control/reach/connect_agent.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {
constexpr unsigned k_connect_threads = 16;  // a login to a dead host blocks one for up to 20 s
constexpr unsigned k_work_threads = 8;
constexpr std::size_t k_last_lines = 20;  // of a failed job's output, into its history
}  // namespace

Supervisor::Supervisor(os::Loop& loop, os::Clock& clock, registry::Registry registry, ControllerId controller)
    : loop_(loop),
      clock_(clock),
      registry_(std::move(registry)),
      controller_(std::move(controller)),
      paths_{registry_.directory()},
      connect_pool_(std::make_unique<os::Pool>(k_connect_threads)),
      work_pool_(std::make_unique<os::Pool>(k_work_threads)) {
  network_ = std::make_unique<NetworkWatch>(
      loop_, clock_, registry_, paths_, link_meter_, [this](const HostName& name) { return work_place(name); },
      [this](const std::string& name) {
        const auto found = hosts_.find(name);
        return found != hosts_.end() && found->second->monitor->is_up();
      });
}

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
  judge_moves(now);
  judge_limits(now);
  judge_budgets(now);
  judge_replicas(now);
  judge_deadlines(now);
  judge_prices(now);
  judge_preemptions(now);
  wake_waiting(now);
  keep_standbys(now);
  const Result<std::int64_t> version = registry_.data_version();
  if (!version) report(version.error(), "while looking at the registry");
  if (version && (*version != seen_version_ || now >= next_reload_)) {
    const bool others_wrote = *version != seen_version_;
    seen_version_ = *version;
    next_reload_ = now + k_reload_pause;
    reload();
    if (others_wrote) load_standings();
  }
  save_news_of_hosts();
  judge_hosts(now);
  network_->tick(now);
  sweep_health(now);
  recheck_gpus(now);
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
        job->accepted.insert(row->machine.attempt()->epoch.value);
      // A daemon before us may have sent START.
      if (std::holds_alternative<job::Launching>(row->machine.phase))
        job->doubt = {LaunchDoubt::Kind::sent, clock_.boot(), "", false};
    }
    job->limits = limits_of(row->spec, row->submitted_at);
    job->owner = row->spec.owner;
    job->replicas = row->spec.replicas;
    job->replica_of = row->spec.replica_of;
    job->priority = row->spec.priority;
    job->load = load_of(row->spec.resources);
    job->saves = row->spec.checkpoint.interval != job::CheckpointPolicy::Interval::off;
    job->submitted_at = row->submitted_at;
    if (job->state == row->machine) {
      trust(job);
      carry_out(job);  // what could not be recorded when it was due is tried again
      continue;
    }
    adopt(job, row->machine);
  }
  // Not listed any more: what could not be recorded was its end.
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    if (!job->unsure) continue;
    if (const Result<registry::Job> row = registry_.job({id})) adopt(job, row->machine);
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
        [this, name](const wire::AgentHello& hello) {
          os::log(os::LogLevel::info, name + ": connected");
          if (const auto found = hosts_.find(name); found != hosts_.end()) on_connected(*found->second, hello);
        },
        [name](const Error& error) { os::log(os::LogLevel::info, name + ": " + error.one_line()); },
        [this, name](const wire::HealthReply& reply, Duration took) {
          if (const auto found = hosts_.find(name); found != hosts_.end()) on_health(*found->second, reply, took);
        }};
    listener.pinged = [this, name](Duration rtt) { network_->pinged({name}, rtt); };
    host->monitor = std::make_shared<HostMonitor>(
        loop_, *connect_pool_, clock_,
        [provider, paths = paths_, controller = controller_, &clock = clock_](BootTime deadline)
            -> Result<AgentSession> { return open_session(provider, paths, controller, deadline, clock); },
        std::move(listener));
  }
  std::erase_if(hosts_, [&](const auto& entry) { return !present.contains(entry.first); });
  reliability_.keep_only(present);
}

namespace {
bool holds_room(const job::State& state) {
  return state.attempt() != nullptr && !std::holds_alternative<job::Collecting>(state.phase);
}
}  // namespace

// Takes over a state that the registry has committed, by whomever, and starts what it calls for.
void Supervisor::adopt(const JobPtr& job, const job::State& state) {
  const bool held = holds_room(job->state);
  job->state = state;
  trust(job);
  // A poll may have told that it runs before START was answered, or though the answer was lost: it is ours to renew.
  if (std::holds_alternative<job::Running>(state.phase)) job->accepted.insert(state.epoch.value);
  if (held && !holds_room(state)) capacity_freed();
  if (!std::holds_alternative<job::Waiting>(state.phase)) {
    job->place_timer.reset();
    if (state.moving().empty()) job->promised.reset();
  }
  if (job::is_final(state.visible())) {
    const Result<void> removed = os::remove_tree(paths_.secrets_of(state.id));
    if (!removed) report(removed.error(), "while removing secrets");
    drop_standby(job);
  }
  carry_out(job);
}

// Its state is the registry's.
void Supervisor::trust(const JobPtr& job) {
  job->unsure = false;
  *job->wanted = std::holds_alternative<job::Launching>(job->state.phase) ? job->state.epoch.value : 0;
}

void Supervisor::apply(const JobPtr& job, job::Happening what) {
  take(job, registry_.apply(job->state.id, {clock_.wall(), std::move(what)}));
}

void Supervisor::take(const JobPtr& job, const Result<job::Step>& step) {
  if (!step) {
    // If nothing was committed, the fact will be seen again, by a poll or by the effect's next try. But the end of a
    // commit may have failed, and what we know of the job may be over.
    report(step.error(), "while recording an event of job " + job->state.id.value);
    job->unsure = true;
    *job->wanted = 0;
    next_reload_ = {};
    return;
  }
  reliability_.on_step(job->state, *step);
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
  if (job->unsure) return;
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

std::optional<HostAccess> Supervisor::work_place(const HostName& name) {
  const auto found = hosts_.find(name.value);
  if (found == hosts_.end()) return std::nullopt;
  return HostAccess{found->second->provider, controller_, paths_, &clock_, &link_meter_, found->second->life};
}

}  // namespace gridctl::control
