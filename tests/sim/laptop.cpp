// SPDX-License-Identifier: Apache-2.0
#include "laptop.hpp"

#include <algorithm>

#include "control/fleet/free_capacity.hpp"

namespace gridctl::sim {

using control::k_busy_memory;
using control::k_launch_retry;
using control::k_reload_pause;
using control::k_settle_retry;
using control::k_stop_retry;

namespace {
constexpr Duration k_first_contact = std::chrono::milliseconds{200};

// What matters to a host here: names, resources, where to go on from.
wire::AttemptSpec attempt_spec(const job::State& state, const job::Attempt& attempt,
                               const std::optional<registry::Checkpoint>& restore) {
  const job::Member& member = attempt.lead();
  wire::AttemptSpec spec;
  spec.job = state.id;
  spec.job_name = state.id.value;
  spec.attempt = attempt.number;
  spec.epoch = attempt.epoch;
  spec.run = "train";
  if (restore) spec.restore = restore->root, spec.restore_name = checkpoint_name(state.id, restore->seq);
  spec.gpu_uuids = member.gpu_uuids;
  spec.cpus = member.cpus;
  return spec;
}
}  // namespace

Laptop::Laptop(World& world, int index)
    : world_(world),
      index_(index),
      random_(world.rng.fork()),
      records_(world.options.registry == RegistryKind::sqlite ? make_sqlite_records(random_)
                                                              : make_memory_records(random_)) {
  for (const auto& host : world.hosts) {
    registry::Provider provider;
    provider.name = host->name();
    provider.inventory = host->inventory();
    providers_.push_back(std::move(provider));
  }
}

Laptop::~Laptop() = default;

void Laptop::begin() {
  if (!node().up) node().up = true;
  if (running_) return;
  running_ = true;
  monitors_.assign(static_cast<std::size_t>(world_.options.hosts), {});
  jobs_.clear();
  wants_.clear();
  open_ = false;
  next_reload_ = {};
  world_.say("daemon of laptop", index_, " starts");
  after(Duration{0}, [this] { tick(); });
}

void Laptop::die(bool power_lost) {
  if (!running_) return;
  world_.wake(index_);
  running_ = false;
  ++node().life;
  if (power_lost) node().booted_at = world_.now, node().boot_base = 20 * k_s, ++node().boots;
  records_->close(power_lost);
  jobs_.clear();
}

// As `job submit` does, from another process: tried until it is acknowledged.
void Laptop::submit_jobs() {
  for (int i = 0; i < world_.options.jobs; ++i) {
    SimJob& job = world_.jobs[static_cast<std::size_t>(i)];
    if (job.laptop != index_ || job.submitted) continue;
    const Result<job::State> before = records_->machine(job.id);
    if (!before && before.error().code != Code::not_found) continue;
    if (!before && !records_->submit(job.id, job.spec, wall())) continue;
    job.submitted = true;
    world_.truth->submitted(i);
    world_.say(job.id.value, " is submitted on laptop", index_);
  }
}

void Laptop::user_cancels(int which, bool at_once) {
  SimJob& job = world_.jobs[static_cast<std::size_t>(which)];
  if (job.laptop != index_ || !open_ || !job.submitted) return;
  const Result<job::State> before = records_->machine(job.id);
  if (!before) return;
  const job::Happening what = job::CancelRequested{at_once ? Duration{0} : std::chrono::seconds{30}};
  const Result<job::Step> step = records_->apply(job.id, {wall(), what});
  if (!step) return;
  world_.truth->stepped(index_, *before, what, step->state);
  world_.truth->cancelled(which);
}

void Laptop::tick() {
  if (records_->was_killed()) {
    world_.say("daemon of laptop", index_, " is killed inside the registry");
    world_.after(k_s, -1, [this] { begin(); });
    return die(false);
  }
  records_->set_trouble(disk_full, registry_trouble);
  records_->set_kills(!world_.healed && world_.options.kill_point > 0);
  if (!open_) open_ = records_->open().has_value();
  if (open_) {
    submit_jobs();
    const BootTime now = clock();
    if (now >= next_reload_) {
      next_reload_ = now + k_reload_pause;
      reload();
    }
    judge_hosts(now);
  }
  after(Duration{world_.options.tick}, [this] { tick(); });
}

void Laptop::reload() {
  const Result<std::vector<JobId>> ids = records_->unfinished();
  if (!ids) return;
  for (const JobId& id : *ids) {
    const Result<job::State> state = records_->machine(id);
    if (!state) {
      if (state.error().code == Code::not_found) world_.truth->lost_job(index_, id, "not found");
      continue;
    }
    world_.truth->looked(index_, *state);
    if (state->head.value > 0) world_.truth->head_is(index_, *state, records_->checkpoint(id, state->head));
    JobPtr& job = jobs_[id.value];
    if (job == nullptr) {
      job = std::make_shared<Following>();
      if (const auto list = records_->checkpoints(id))
        for (const registry::Checkpoint& c : *list)
          job->saved[c.epoch.value] = std::max(job->saved[c.epoch.value], c.host_number);
      if (std::holds_alternative<job::Running>(state->phase) || std::holds_alternative<job::Stopping>(state->phase))
        job->accepted.insert(state->epoch.value);
      // A daemon before us may have sent START.
      if (std::holds_alternative<job::Launching>(state->phase))
        job->doubt = {control::LaunchDoubt::Kind::sent, clock(), "", false};
    } else if (job->state == *state) {
      job->unsure = false;
      carry_out(job);  // what could not be recorded when it was due is tried again
      continue;
    }
    adopt(JobPtr(job), *state);
  }
  // Not listed any more: what could not be recorded was its end.
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    if (!job->unsure) continue;
    const Result<job::State> state = records_->machine({id});
    if (!state) continue;
    world_.truth->looked(index_, *state);
    adopt(job, *state);
  }
  for (const SimJob& job : world_.jobs)
    if (job.laptop == index_ && job.submitted) {
      const Result<job::State> state = records_->machine(job.id);
      if (!state && state.error().code == Code::not_found) world_.truth->lost_job(index_, job.id, "not found");
      if (state) world_.truth->looked(index_, *state);
    }
  std::erase_if(jobs_, [](const auto& entry) {
    return !entry.second->state.needs_supervisor() && entry.second->under_way.empty();
  });
  renew_wants();
}

void Laptop::adopt(const JobPtr& job, const job::State& state) {
  job->state = state;
  job->unsure = false;
  if (std::holds_alternative<job::Running>(state.phase)) job->accepted.insert(state.epoch.value);
  carry_out(job);
}

void Laptop::apply(const JobPtr& job, job::Happening what) {
  const job::State before = job->state;
  const Result<job::Step> step = records_->apply(before.id, {wall(), what});
  if (!step) {  // it may have been committed all the same
    job->unsure = true;
    next_reload_ = {};
    return;
  }
  if (world_.tracing)
    for (const job::Record& record : step->records)
      world_.say("laptop", index_, " ", before.id.value, " [", record.kind, "] ", record.text);
  world_.truth->stepped(index_, before, what, step->state);
  if (!step->state.needs_supervisor() || !(step->state == job->state) || !step->effects.empty())
    adopt(job, step->state);
  renew_wants();
}

void Laptop::carry_out(const JobPtr& job) {
  if (job->unsure) return;
  for (const job::Effect& effect : job::pending(job->state)) {
    const std::string name = job::effect_name(effect);
    if (job->under_way.contains(name) || job->later.contains(name)) continue;
    std::visit([&](const auto& one) { carry_out(job, one); }, effect);
  }
}

void Laptop::try_later(const JobPtr& job, const std::string& name, Duration pause) {
  job->later.insert(name);
  after(pause, [this, job, name] {
    job->later.erase(name);
    carry_out(job);
  });
}

void Laptop::done(const JobPtr& job, const std::string& name) { job->under_way.erase(name); }

void Laptop::carry_out(const JobPtr& job, const job::Place& effect) {
  if (job->place_timer) return;
  job->place_timer = true;
  after(effect.after, [this, job] {
    job->place_timer = false;
    if (!job->unsure && std::holds_alternative<job::Waiting>(job->state.phase)) place(job);
  });
}

// As the supervisor gathers it: what is free is room.cpp's to say.
std::vector<sched::HostFacts> Laptop::host_facts(Duration lost_after) {
  std::vector<control::HostNow> now;
  for (int i = 0; i < world_.options.hosts; ++i) {
    const Monitor& seen = monitor(i);
    control::HostNow one;
    one.provider = &providers_[static_cast<std::size_t>(i)];
    one.boot_id = seen.boot_id;
    one.held = seen.held ? &*seen.held : nullptr;
    one.full = clock() < seen.busy_until;
    one.reachable = seen.link == Monitor::Link::up && seen.silence.judge(lost_after) <= job::Liveness::suspect;
    now.push_back(one);
  }
  std::vector<control::Claim> claims;
  for (const auto& [id, job] : jobs_) {
    const job::Attempt* attempt = job->state.attempt();
    const bool ended = std::holds_alternative<job::Collecting>(job->state.phase);
    if (attempt != nullptr)
      for (const job::Member& member : attempt->members)
        claims.push_back({job->state.id, attempt->epoch, ended ? nullptr : &member});
  }
  return control::facts_now(now, claims);
}

void Laptop::place(const JobPtr& job) {
  const bool contacted = std::all_of(monitors_.begin(), monitors_.end(), [](const Monitor& one) { return one.tried; });
  if (!contacted && world_.now < 3 * k_s) {
    job->place_timer = true;
    after(k_first_contact, [this, job] {
      job->place_timer = false;
      if (!job->unsure && std::holds_alternative<job::Waiting>(job->state.phase)) place(job);
    });
    return;
  }
  const Result<registry::Job> row = records_->job(job->state.id);
  if (!row) return;
  const sched::Decision decision =
      sched::place(row->spec, host_facts(row->spec.recovery.lost_after), job->state.avoided);
  if (!decision.placement) return apply(job, job::NotPlaced{decision.could_ever_fit, sched::summary(decision)});
  job->doubt = {};
  apply(job, job::Placed{{control::member_of(*decision.placement)}, decision.placement->reason});
}

void Laptop::carry_out(const JobPtr& job, const job::Launch& effect) {
  const job::Attempt attempt = *job->state.attempt();
  const std::string name = job::effect_name(job::Effect{effect});
  const Result<registry::Job> row = records_->job(job->state.id);
  if (!row) return try_later(job, name, k_launch_retry);
  std::optional<registry::Checkpoint> restore;
  if (effect.restore.value > 0) {
    const Result<registry::Checkpoint> found = records_->checkpoint(job->state.id, effect.restore);
    if (!found) {
      if (found.error().code == Code::not_found)
        throw Violation("S7", "the checkpoint that " + job->state.id.value + " starts from is not there");
      return try_later(job, name, k_launch_retry);
    }
    if (found->stray) throw Violation("S2", job->state.id.value + " starts from a stray");
    restore = *found;
  }
  const std::vector<registry::Input> no_inputs;
  auto talk =
      std::make_shared<control::LaunchTalk>(attempt_spec(job->state, attempt, restore), row->spec.recovery.lease,
                                            std::map<std::string, std::string>{}, job->doubt);
  const int host = host_of(effect.host);
  job->under_way.insert(name);
  reach(host, [=, this, epoch = attempt.epoch](Result<Session> session) {
    if (!session) return launched(job, name, epoch, host, talk->unreached(session.error()));
    // The trees travel first; a link that breaks meanwhile shows at the next question.
    const bool push = job->doubt.kind != control::LaunchDoubt::Kind::refused;
    const Nanos time = push ? world_.rng.between(0, world_.options.transfer_time) : 0;
    world_.after(time, index_, [=, this] {
      run_launch(job, epoch, *session, talk, control::LaunchTalk::Next{talk->first()},
                 [=, this](const control::LaunchResult& result) { launched(job, name, epoch, host, result); });
    });
  });
}

void Laptop::launched(const JobPtr& job, const std::string& name, Epoch epoch, int host, control::LaunchResult result) {
  done(job, name);
  world_.say("laptop", index_, " ", job->state.id.value, " launch/", epoch.value, " result ",
             static_cast<int>(result.kind), " ", result.detail);
  if (job->state.epoch == epoch && std::holds_alternative<job::Launching>(job->state.phase)) {
    const control::LaunchVerdict verdict =
        control::judge_launch(result, job->doubt, job->state.policy.lost_after, clock());
    if (verdict == control::LaunchVerdict::accepted) {
      job->accepted.insert(epoch.value);
      job->doubt = {control::LaunchDoubt::Kind::sent, clock(), "", false};  // should the commit fail, it is asked again
      apply(job, job::LaunchAccepted{epoch});
      monitor(host).next_poll = clock();
    } else if (verdict == control::LaunchVerdict::again) {
      try_later(job, name, k_launch_retry);
    } else {
      if (result.busy) monitor(host).busy_until = clock() + k_busy_memory;
      const bool certain = result.kind == control::LaunchResult::Kind::not_started;
      apply(job, control::launch_failed(epoch, 0, result));
      if (certain && !job->unsure) world_.truth->recorded_never(host, index_, job->state.id, epoch);
    }
  }
  carry_out(job);
}

void Laptop::carry_out(const JobPtr&, const job::Connect&) {}

void Laptop::carry_out(const JobPtr& job, const job::Stop& effect) {
  const std::string name = job::effect_name(job::Effect{effect});
  job->under_way.insert(name);
  const int host = host_of(effect.host);
  const auto over = [=, this](const Result<control::Answer>& answer) {
    done(job, name);
    (void)answer;
    job->accepted.insert(effect.epoch.value);  // as the real one does
    try_later(job, name, k_stop_retry);
    renew_wants();
    monitor(host).next_poll = clock();
    carry_out(job);
  };
  reach(host, [=, this](Result<Session> session) {
    if (!session) return over(session.error());
    ask(*session, control::Request{control::stop_request(job->state.id, effect.epoch, effect.grace)}, over);
  });
}

void Laptop::carry_out(const JobPtr& job, const job::Collect& effect) {
  const std::string name = job::effect_name(job::Effect{effect});
  job->under_way.insert(name);
  collect(job, host_of(effect.host), effect.epoch, job->saved[effect.epoch.value],
          [=, this](Result<std::optional<wire::HostCheckpoint>> result) {
            done(job, name);
            if (!result && (control::is_uncertain(result.error().code) || result.error().code == Code::no_space)) {
              try_later(job, name, k_launch_retry);
              return carry_out(job);
            }
            if (result && *result) {
              commit(job, effect.epoch, effect.attempt, **result);
              if (job->saved[effect.epoch.value] < (*result)->number) {
                try_later(job, name, k_launch_retry);
                return carry_out(job);
              }
            }
            apply(job, job::Collected{effect.epoch, result ? "" : result.error().one_line()});
            carry_out(job);
          });
}

void Laptop::carry_out(const JobPtr& job, const job::CleanUp& effect) {
  const job::PendingCleanup end = effect.end;
  const std::string name = job::effect_name(job::Effect{effect});
  const int host = host_of(end.host);
  if (monitor(host).link != Monitor::Link::up) return try_later(job, name, k_settle_retry);
  job->under_way.insert(name);
  const auto over = [=, this](Result<std::optional<wire::HostCheckpoint>> result) {
    done(job, name);
    if (!result) {
      world_.say("laptop", index_, " ", job->state.id.value, " ", name, ": ", result.error().one_line());
      try_later(job, name, k_settle_retry);
      return carry_out(job);
    }
    if (!*result) {
      apply(job, job::CleanedUp{end.host, end.epoch});
    } else {
      commit(job, end.epoch, end.attempt, **result);
      if (job->saved[end.epoch.value] < (*result)->number) try_later(job, name, k_settle_retry);
    }
    carry_out(job);
  };
  reach(host, [=, this](Result<Session> session) {
    if (!session) return over(session.error());
    auto talk = std::make_shared<control::CleanUpTalk>(job->state.id, end);
    run_settle(job, *session, talk, control::CleanUpTalk::Next{talk->first()}, end, clock() + std::chrono::seconds{90},
               std::nullopt, over);
  });
}

void Laptop::commit(const JobPtr& job, Epoch epoch, AttemptNumber attempt, const wire::HostCheckpoint& from) {
  registry::Checkpoint row;
  row.job = job->state.id;
  row.epoch = epoch;
  row.attempt = attempt;
  row.root = from.root;
  row.created_at = wall();
  row.bytes = from.bytes;
  row.files = from.files;
  row.host_number = from.number;
  row.how = from.how;
  const job::State before = job->state;
  const auto committed = records_->commit_checkpoint(row);
  if (!committed) return;
  world_.truth->committed(index_, committed->checkpoint, before, committed->became_head);
  world_.say("laptop", index_, " ", row.job.value, " checkpoint ", committed->checkpoint.seq.value, " of epoch ",
             epoch.value, committed->became_head ? " is the head" : " is kept aside");
  job->saved[epoch.value] = std::max(job->saved[epoch.value], from.number);
  if (const auto all = records_->checkpoints(job->state.id)) world_.truth->listed(*all);
  if (committed->became_head) {
    world_.truth->stepped(index_, before, job::CheckpointCommitted{epoch, committed->checkpoint.seq, "", from.number},
                          committed->step.state);
  } else {
    world_.truth->looked(index_, committed->step.state);
  }
  if (!(committed->step.state == job->state)) adopt(job, committed->step.state);
  if (const auto old = records_->prunable(job->state.id, world_.options.keep))
    for (const registry::Checkpoint& c : *old) {
      if (!records_->remove_checkpoint(c.job, c.seq)) continue;
      world_.truth->dropped(index_, c);
    }
  renew_wants();
}

}  // namespace gridctl::sim
