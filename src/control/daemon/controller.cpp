// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/controller.hpp"

#include "control/reach/pace.hpp"

namespace gridctl::control {

Controller::Controller(const World& world, const Settings& settings, std::span<const ConcernMaker> concerns)
    : world_(world),
      tick_(settings.tick),
      fleet_(world, settings.health_every),
      book_(world),
      placement_(world, book_, fleet_),
      attempts_(world, book_, fleet_, placement_),
      mover_(world, book_, fleet_, attempts_, placement_),
      rota_(world.clock) {
  const Controls controls{world_, fleet_, book_, attempts_, placement_, mover_};
  for (const ConcernMaker make : concerns) concerns_.push_back(make(controls));
  placement_.consult(concerns_);
  mover_.consult(concerns_);
  book_.listen(*this);  // after the rooms: concerns hear of what those know already
  fleet_.listen(*this);
}

Result<void> Controller::start() {
  TRY(world_.records.data_version());  // a registry that cannot be read is an error now, not a line in the log
  timer_ = world_.run.every(tick_, [this] { tick(); });
  tick();
  return {};
}

void Controller::tick() {
  const BootTime now = world_.clock.boot();
  mover_.tick(now);
  rota_.tick(now, concerns_);
  placement_.tick(now);
  const Result<std::int64_t> version = world_.records.data_version();
  if (!version) report(version.error(), "while looking at the registry");
  if (version && (*version != seen_version_ || now >= next_refresh_ || book_.wants_refresh())) {
    const bool others_wrote = *version != seen_version_;
    // Without the list of hosts, every job's host would look as if it had been removed.
    if (fleet_.refresh()) {
      seen_version_ = *version;
      const bool remind = now >= next_refresh_;
      next_refresh_ = remind ? now + k_reload_pause : next_refresh_;
      book_.refresh();
      if (remind) book_.remind();
      attempts_.renew_soon();
      if (others_wrote) fleet_.load_standings();
    }
  }
  fleet_.tick(now);
  attempts_.tick(now);
}

void Controller::save() {
  fleet_.save_news();
  fleet_.reliability().save();
}

void Controller::found(const TrackedJob& job) {
  for (const auto& concern : concerns_) concern->found(job);
}

void Controller::changed(const TrackedJob& job, const job::State& before) {
  for (const auto& concern : concerns_) concern->changed(job, before);
}

void Controller::forgotten(const JobId& id) {
  for (const auto& concern : concerns_) concern->forgotten(id);
}

void Controller::gpu_lost(const FleetHost& host, const std::string& gpu, const std::string& why) {
  for (const auto& concern : concerns_) concern->gpu_lost(host, gpu, why);
}

}  // namespace gridctl::control
