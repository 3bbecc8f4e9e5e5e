// SPDX-License-Identifier: Apache-2.0
#include "supervision.hpp"

#include <algorithm>
#include <csignal>

#include "faults.hpp"
#include "view.hpp"

namespace gridctl::sim {

namespace {
constexpr int k_write_tries = 600;  // one a second, as the real one
}

template <class Act>
void Supervision::turn(Act act) {
  if (stage_ == Stage::gone) return;
  try {
    act();
  } catch (const Killed&) {
    host_.world_.say("supervisor of ", std::get<1>(key_), " epoch ", std::get<2>(key_), " on host", host_.index_,
                     " is killed");
    stage_ = Stage::gone;
  }
  if (stage_ != Stage::gone) return;
  host_.alive_.erase(pid_);
  Folder* mine = host_.folder(key_);
  if (mine == nullptr || mine->supervisor != pid_) return;
  mine->supervisor = 0;
  if (payload_lives()) mine->launches.back().payload->loses_supervisor(host_.world_.now);
}

void Supervision::later(Nanos delay, void (Supervision::*what)()) {
  host_.world_.after(delay, host_.world_.host_node(host_.index_), [&host = host_, key = key_, pid = pid_, what] {
    const auto found = host.supervisions_.find(key);
    if (found != host.supervisions_.end() && found->second->pid() == pid) (found->second.get()->*what)();
  });
}

void Supervision::kill_point() {
  if (host_.world_.kill_here()) throw Killed{};
}

bool Supervision::payload_lives() { return !folder().launches.empty() && folder().launches.back().init_lives; }

void Supervision::begin() {
  turn([this] {
    if (stage_ != Stage::born) return;
    stage_ = Stage::preparing;
    status_.job = {std::get<1>(key_)};
    status_.epoch = Epoch{std::get<2>(key_)};
    status_.phase = wire::AttemptPhase::starting;
    if (folder().emptied) {
      status_.end = wire::EndReason::host_rebooted;
      return conclude();
    }
    View view(host_, std::get<0>(key_));
    if (auto before = view.status({status_.job, status_.epoch}); before && *before) status_ = std::move(**before);
    clock_.set_deadline(BootTime{folder().deadline});
    if (status_.end == wire::EndReason::none) read_control();
    if (status_.end != wire::EndReason::none) return conclude();
    live();
  });
}

void Supervision::live() {
  Folder& mine = folder();
  if (!mine.launches.empty()) {
    Launch& newest = mine.launches.back();
    if (newest.init_lives) return follow();
    if (newest.once) return conclude();
    newest.once = true;  // in doubt: whoever comes later finds that it is too late
    kill_point();
  }
  if (clock_.is_stopping()) return conclude();
  prepare();
}

void Supervision::prepare() {
  if (const auto taken = update_lease(false); !taken) {
    status_.end = wire::EndReason::start_failed;
    status_.detail = taken.error().one_line();
    return conclude();
  }
  kill_point();
  status_.doing = "workdir";
  publish();
  arm_timer();
  const Nanos time = host_.world_.options.start_time;
  const auto spread = static_cast<Nanos>(static_cast<double>(time) * host_.world_.options.start_spread);
  later(time - spread + spread / 2 + static_cast<Nanos>(host_.world_.rng.below(static_cast<std::uint64_t>(spread))),
        &Supervision::prepared);
}

void Supervision::prepared() {
  turn([this] {
    if (stage_ != Stage::preparing) return;
    if (clock_.is_stopping()) return conclude();
    if (host_.disk_full) {
      status_.end = wire::EndReason::disk_full;
      return conclude();
    }
    constexpr int k_in_row_max = 3;  // five are held against the job
    World& world = host_.world_;
    const auto job =
        std::find_if(world.jobs.begin(), world.jobs.end(), [&](const SimJob& one) { return one.id == status_.job; });
    const bool fails =
        !world.healed && world.rng.chance(world.options.start_problem) && job->start_problems < k_in_row_max;
    if (fails) ++job->start_problems;  // until a start is known to have gone well
    if (fails) {
      status_.end = wire::EndReason::start_failed;
      status_.detail = "the engine failed";
      return conclude();
    }
    launch();
  });
}

void Supervision::launch() {
  stage_ = Stage::launching;
  folder().launches.emplace_back();
  kill_point();
  (void)update_lease(true);
  kill_point();
  if (host_.world_.sleep_launch()) {
    Fault nap{FaultKind::host_sleep, host_.world_.now, 0, host_.index_};
    nap.duration = host_.world_.rng.between(k_s, host_.world_.options.lease + k_min);
    schedule(host_.world_, nap);
  }
  const std::size_t which = folder().launches.size() - 1;
  // The engine goes on with it whether we live or not.
  const Nanos late = pass(Point::attempt_launch) == Fate::late ? host_.world_.points.delay() : 0;
  host_.world_.after(late + host_.world_.rng.between(k_ms, 2 * k_s), host_.world_.host_node(host_.index_),
                     [&host = host_, key = key_, which] {
                       Folder* mine = host.folder(key);
                       if (mine == nullptr || which >= mine->launches.size() || mine->launches[which].once) return;
                       Launch& launch = mine->launches[which];
                       launch.once = true;
                       if (!agent::lease_lasts(BootTime{mine->deadline}, host.clock())) {
                         launch.exit = agent::ExitRecord{"run", -1, 0, 0, 0, false, true};
                         return;
                       }
                       if (host.clock().ns >= mine->deadline)
                         throw Violation("S5", std::get<1>(key) + " begins when its lease has passed");
                       launch.init_lives = true;
                       launch.running_since = host.clock();
                       const wire::AttemptSpec& spec = mine->start->spec;
                       launch.payload = host.world_.truth->payload_starts(host.index_, std::get<0>(key), spec);
                       const Content* from = spec.restore ? host.world_.truth->content(*spec.restore) : nullptr;
                       mine->snapshot_of = from == nullptr ? 0 : from->step;
                       host.run_payload(key, launch.payload, mine->snapshot_of);
                       host.strike(key, which);
                       host.arm_last_line(key, which);
                       host.watch_lease(key, launch.payload, mine->deadline);
                     });
  if (host_.world_.kill_launch()) {
    // Nobody adopts it before others have asked for what it holds.
    Fault cut{FaultKind::cut_both, host_.world_.now, host_.world_.rng.between(0, k_min), host_.index_};
    cut.laptop = std::get<0>(key_);
    schedule(host_.world_, cut);
    throw Killed{};
  }
  later(50 * k_ms, &Supervision::timer);
}

void Supervision::follow() {
  stage_ = Stage::following;
  folder().launches.back().payload->has_supervisor(host_.world_.now);
  const Payload* payload = folder().launches.back().payload;
  agent::Lease lease = host_.lease_of(std::get<0>(key_), *folder().start);
  lease.supervisor = {static_cast<int>(pid_), 1};
  lease.payload = host_.init_[payload];
  lease.deadline = clock_.deadline();
  (void)host_.take(lease);
  kill_point();
  status_.started_ms_ago = std::max<std::int64_t>(status_.started_ms_ago, 0);
  status_.phase = clock_.is_stopping() ? wire::AttemptPhase::stopping : wire::AttemptPhase::running;
  status_.doing.clear();
  if (clock_.is_stopping()) host_.world_.say("a stop was wanted before the payload was ours");
  keep_limits();
  publish();
  arm_timer();
  look_for_checkpoint();
}

Result<void> Supervision::update_lease(bool launching) {
  agent::Lease lease = host_.lease_of(std::get<0>(key_), *folder().start);
  lease.supervisor = {static_cast<int>(pid_), 1};
  lease.deadline = clock_.deadline();
  lease.launching = launching;
  return host_.take(lease);
}

void Supervision::control_changed() {
  turn([this] {
    if (stage_ == Stage::concluding) return;
    read_control();
    arm_timer();
  });
}

void Supervision::read_control() {
  const Folder& mine = folder();
  (void)clock_.renew(BootTime{mine.deadline});
  const BootTime now = host_.clock();
  if (mine.stop) act(clock_.order(wire::EndReason::stopped, Duration{*mine.stop}, now));
  const bool before = clock_.is_stopping();
  const agent::StopStep expired = clock_.expire(mine.start->spec.stop_grace, now);
  if (!before && clock_.is_stopping() && payload_lives())
    host_.world_.truth->lease_ends(*mine.launches.back().payload, now, BootTime{mine.deadline});
  act(expired);
  keep_limits();
}

void Supervision::keep_limits() {
  const Folder& mine = folder();
  const auto since = payload_lives() ? std::optional{mine.launches.back().running_since} : std::nullopt;
  const auto due = agent::due_of(mine.limits, since);
  clock_.set_limit(due ? std::optional{due->at} : std::nullopt);
  const agent::StopStep step = clock_.exhaust(mine.start->spec.stop_grace, host_.clock());
  if (step != agent::StopStep::none && due) {
    status_.detail = due->limit;
    if (since) host_.world_.truth->limit_ends(*mine.launches.back().payload, due->limit);
  }
  status_.allowed_ms = agent::allowed_ms(mine.limits, since, host_.clock());
  act(step);
  if (since) host_.world_.truth->runs(*mine.launches.back().payload, mine.start->spec.stop_grace);
}

void Supervision::act(agent::StopStep step) {
  if (step == agent::StopStep::none || stage_ != Stage::following || !payload_lives()) return;
  status_.phase = wire::AttemptPhase::stopping;
  publish();
  if (step != agent::StopStep::terminate || host_.world_.rng.chance(0.3)) return;  // some ignore TERM
  Payload* payload = folder().launches.back().payload;
  const std::size_t which = folder().launches.size() - 1;
  host_.world_.after(host_.world_.rng.between(k_ms, 10 * k_s), host_.world_.host_node(host_.index_),
                     [&host = host_, key = key_, which, payload] {
                       if (!payload->alive) return;
                       agent::ExitRecord record{"run", 143, 0, 0, 0, true, false};
                       host.payload_over(key, which, Why::ordered, &record);
                     });
}

void Supervision::kill_payload() {
  if (payload_lives()) host_.payload_over(key_, folder().launches.size() - 1, Why::ordered, nullptr);
}

void Supervision::arm_timer() {
  if (stage_ == Stage::concluding || stage_ == Stage::gone) return;
  const Nanos due = host_.node().when(clock_.due(host_.clock()));
  later(std::max<Nanos>(due - host_.world_.now, 0), &Supervision::timer);
}

void Supervision::timer() {
  turn([this] {
    if (stage_ == Stage::concluding) return;
    if (stage_ == Stage::launching) {
      const Launch& newest = folder().launches.back();
      if (newest.init_lives) return follow();
      if (newest.once) return conclude();  // it began and has ended already
      return later(100 * k_ms, &Supervision::timer);
    }
    if (!clock_.is_stopping()) {
      if (host_.clock() < clock_.due(host_.clock())) return;
      read_control();
      return arm_timer();
    }
    if (stage_ == Stage::preparing) return conclude();
    if (!clock_.kill_now(host_.clock())) return;
    kill_payload();
    arm_timer();
  });
}

void Supervision::payload_ended() {
  turn([this] {
    if (stage_ == Stage::following) conclude();
  });
}

void Supervision::publish() {
  kill_point();
  untold_ = host_.disk_full || pass(Point::attempt_write_status) == Fate::fails;
  if (!untold_) write_status();
}

Fate Supervision::pass(Point point) {
  return host_.world_.pass(host_.world_.host_node(host_.index_), std::get<1>(key_), point);
}

void Supervision::write_status() {
  Folder& mine = folder();
  const BootTime now = host_.clock();
  const auto ms_since = [now](BootTime then) { return std::max<std::int64_t>((now - then).count() / k_ms, 0); };
  if (status_.started_ms_ago >= 0 && !mine.launches.empty())
    status_.started_ms_ago = status_.running_ms_ago = ms_since(mine.launches.back().running_since);
  status_.checkpoints.clear();
  for (const Snapshot& snapshot : mine.snapshots) {
    status_.checkpoints.push_back(snapshot.checkpoint);
    status_.checkpoints.back().age_ms = ms_since(snapshot.taken_at);
  }
  status_.log_bytes = mine.log.size();
  mine.status = status_;
  mine.status_boot = host_.boot_id();
  mine.status_at = host_.world_.now;
}

void Supervision::look_for_checkpoint() {
  turn([this] {
    if (stage_ != Stage::following) return;
    if (untold_) publish();
    const bool before = clock_.is_stopping();
    keep_limits();
    if (!before && clock_.is_stopping()) arm_timer();  // the agent's loop does so at each turn
    snapshot();
    later(k_s, &Supervision::look_for_checkpoint);
  });
}

void Supervision::snapshot() {
  Folder& mine = folder();
  if (!mine.saved || *mine.saved <= mine.snapshot_of || host_.disk_full) return;
  if (pass(Point::attempt_snapshot) == Fate::fails) return;
  wire::HostCheckpoint whole;
  whole.how = "format";
  const Nanos step = *mine.saved;
  take(std::move(whole), {host_.world_.truth->index(status_.job), step, status_.epoch, host_.index_});
  mine.snapshot_of = step;
  while (mine.snapshots.size() > 2 &&
         mine.snapshots.front().checkpoint.number < static_cast<std::uint64_t>(mine.kept.value_or(0)))
    mine.snapshots.erase(mine.snapshots.begin());
  publish();
}

void Supervision::take(wire::HostCheckpoint checkpoint, Content content) {
  Folder& mine = folder();
  Snapshot taken{std::move(checkpoint), host_.clock()};
  taken.checkpoint.number = mine.next_snapshot++;
  taken.checkpoint.root = host_.world_.truth->make_content(content);
  taken.checkpoint.bytes = 1000;
  taken.checkpoint.files = 1;
  kill_point();
  mine.snapshots.push_back(taken);
}

// A program that was killed may have begun a save: what lies there is more than is surely whole.
void Supervision::take_left() {
  Folder& mine = folder();
  World& world = host_.world_;
  const Payload* payload = mine.launches.back().payload;
  const bool was_killed = payload != nullptr && !payload->alive && payload->why != Why::finished;
  if (!was_killed || host_.disk_full || std::exchange(mine.left_taken, true) || !world.rng.chance(world.options.half_saved)) return;
  if (mine.start->spec.bag || !mine.start->spec.checkpoints) return;
  wire::HostCheckpoint left;
  left.how = "left";
  left.provisional = left.as_left = true;
  left.torn = world.rng.chance(0.4);
  Content content{world.truth->index(status_.job), mine.saved.value_or(0) + 1, status_.epoch, host_.index_};
  content.as_left = true;
  content.torn = left.torn;
  take(std::move(left), content);
}

void Supervision::conclude() {
  stage_ = Stage::concluding;
  kill_payload();
  kill_point();
  Folder& mine = folder();
  agent::Evidence evidence;
  if (!mine.launches.empty()) evidence.record = mine.launches.back().exit;
  evidence.stop_reason = clock_.reason();
  agent::judge_end(evidence, status_);
  if (status_.end == wire::EndReason::exited && status_.exit_code != 0 && host_.disk_full)
    status_.end = wire::EndReason::disk_full;
  kill_point();
  if (pass(Point::attempt_release_lease) == Fate::late)
    return later(host_.world_.points.delay(), &Supervision::give_back);
  keep_last();
}

void Supervision::give_back() {
  turn([this] { keep_last(); });
}

// It is told as ended when all that it made is kept.
void Supervision::keep_last() {
  host_.release(key_);
  kill_point();
  if (status_.end != wire::EndReason::host_rebooted && !folder().launches.empty()) snapshot(), take_left();
  status_.phase = wire::AttemptPhase::ended;
  status_.ended_ms_ago = 0;
  write_end(0);
}

void Supervision::write_end(int tries) {
  kill_point();
  const Fate fate = pass(Point::attempt_write_end);
  if ((host_.disk_full || fate != Fate::well) && tries < k_write_tries) {
    host_.world_.after(k_s, host_.world_.host_node(host_.index_), [&host = host_, key = key_, pid = pid_, tries] {
      const auto found = host.supervisions_.find(key);
      if (found == host.supervisions_.end() || found->second->pid() != pid) return;
      Supervision& self = *found->second;
      self.turn([&] { self.write_end(tries + 1); });
    });
    return;
  }
  write_status();
  folder().synced = true;
  stage_ = Stage::gone;
}

}  // namespace gridctl::sim
