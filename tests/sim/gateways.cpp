// SPDX-License-Identifier: Apache-2.0
#include "gateways.hpp"

#include <algorithm>

#include "host.hpp"
#include "job/twin.hpp"
#include "service_truth.hpp"
#include "truth.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_tick = k_s / 5;
constexpr Nanos k_enters = k_s / 2;      // until a stream is open
constexpr Nanos k_doubtful = 3 * k_s / 2;  // without a sign of the host
constexpr Nanos k_rise = k_s, k_fall = k_s / 2;  // two probes each
}  // namespace

Result<void> SimGateways::start(const JobId& service) {
  world_.services->gateway_starts(laptop_, service);
  // It may not even come to hold its lock.
  if (!world_.healed && world_.rng.chance(world_.options.gateway_fails)) return {};
  world_.after(world_.rng.between(50 * k_ms, k_s), -1, [this, service] { begin(service); });
  return {};
}

void SimGateways::begin(const JobId& service) {
  Service& mine = services_[service.value];
  registry::AllRecords* records = records_();
  if (mine.process || records == nullptr || world_.node(laptop_).asleep) return;
  const Result<registry::Job> leader = records->job(service);
  if (!leader) return;
  Process& fresh = mine.process.emplace();
  fresh.number = ++processes_;
  fresh.began = fresh.ticked = world_.now;
  const int slots = job::slots_of(leader->spec);
  fresh.rules.emplace(*leader->spec.service, leader->spec.twins, slots, mine.info.value_or(control::GatewayInfo{}));
  fresh.ways.resize(static_cast<std::size_t>(slots));
  world_.say("gateway ", fresh.number, " of ", service.value, " begins");
  tick(service, fresh.number);
}

void SimGateways::die() {
  for (auto& [id, mine] : services_) {
    if (mine.process) world_.say("gateway of ", id, " is killed");
    mine.process.reset();
  }
}

bool SimGateways::can_reach(const std::string& host) const {
  const int index = std::stoi(host.substr(4));
  const Node& there = world_.node(world_.host_node(index));
  const Link& link = world_.link(laptop_, index);
  return there.up && !there.asleep && link.cut_requests == 0 && link.cut_replies == 0 && link.slow == 0;
}

void SimGateways::follow(Way& way) {
  const bool reached = !way.host.empty() && can_reach(way.host);
  if (!reached && way.open_since >= 0 && way.lost_at < 0) way.lost_at = world_.now;
  if (!reached && (way.host.empty() || (way.lost_at >= 0 && world_.now - way.lost_at > k_doubtful))) way.open_since = -1;
  if (reached) way.lost_at = -1;
  if (reached && way.open_since < 0) way.open_since = world_.now;
  const bool answered = reached && world_.truth->serves(std::stoi(way.host.substr(4)), way.job, way.epoch);
  if (!answered) way.good_since = -1;
  else if (way.good_since < 0) way.good_since = world_.now;
  if (answered) way.bad_since = -1;
  else if (way.bad_since < 0) way.bad_since = world_.now;
}

// False when the service is over.
bool SimGateways::look(const JobId& service, Service& mine) {
  registry::AllRecords* records = records_();
  if (records == nullptr) return true;
  const auto changes = records->changes(mine.process->revision);
  if (!changes || changes->revision == mine.process->revision) return true;
  const auto find = [](const HostName& name) {
    registry::Provider provider;
    provider.name = name;
    return Result<registry::Provider>(std::move(provider));
  };
  const Result<control::ServiceSeen> seen = control::service_seen(*records, find, service);
  if (!seen) return true;
  mine.process->revision = changes->revision;
  if (seen->over) return false;
  mine.process->rules->take(*seen);
  for (std::size_t slot = 0; slot < mine.process->ways.size() && slot < seen->replicas.size(); ++slot) {
    const auto& place = seen->replicas[slot].place;
    Way& way = mine.process->ways[slot];
    const Epoch epoch = place ? place->epoch : Epoch{};
    if (epoch == way.epoch) continue;
    way = {};
    if (place) way.epoch = epoch, way.host = place->provider.name.value, way.job = place->job;
  }
  return true;
}

void SimGateways::tick(const JobId& service, std::uint64_t number) {
  Service& mine = services_[service.value];
  if (!mine.process || mine.process->number != number) return;
  world_.after(k_tick, -1, [this, service, number] { tick(service, number); });
  if (world_.node(laptop_).asleep) return;
  Process& self = *mine.process;
  const Nanos passed = world_.now - std::exchange(self.ticked, world_.now);
  if (!look(service, mine)) {
    world_.say("gateway of ", service.value, " ends with it");
    return mine.process.reset();
  }
  const int load = this->load(service);
  const WallTime wall = world_.node(laptop_).wall(world_.now);
  const BootTime now = world_.node(laptop_).boot(world_.now);
  bool serves = false;
  for (std::size_t slot = 0; slot < self.ways.size(); ++slot) {
    Way& way = self.ways[slot];
    follow(way);
    const bool open = way.open_since >= 0 && world_.now - way.open_since >= k_enters && way.epoch != Epoch{};
    const bool gets = way.server == control::ServerState::ready && way.up;
    if (gets && load > 0) way.busy_until = world_.now + world_.options.request_takes;
    const bool idle = !gets && world_.now >= way.busy_until;
    const auto leave = mine.leave.find(static_cast<int>(slot) + 1);
    const bool dismissed = leave != mine.leave.end() && wall < leave->second;
    if (!dismissed) mine.leaves.erase(static_cast<int>(slot) + 1);
    way.server = self.rules->see(slot, {way.epoch, open, gets, idle, dismissed}, Duration{passed});
    if (!open || (way.bad_since >= 0 && world_.now - way.bad_since >= k_fall)) way.up = false, way.busy_until = 0;
    else if (way.good_since >= 0 && world_.now - way.good_since >= k_rise) way.up = true;
    serves = serves || (way.up && way.server == control::ServerState::ready);
  }
  self.rest += serves ? world_.options.request_rate * load * static_cast<double>(passed) / k_s : 0;
  self.requests += static_cast<std::uint64_t>(self.rest);
  self.rest -= static_cast<double>(static_cast<std::uint64_t>(self.rest));
  self.rules->see_requests(now, static_cast<std::uint64_t>(load), self.requests, serves);
  control::GatewayInfo info{static_cast<int>(number), 8000, "", "", {}, 0, false};
  self.rules->tell(info);
  if (!(mine.info == info) && !disk_full_) mine.info = std::move(info);
  world_.services->gateway_told(laptop_, service);
}

Result<void> SimGateways::let_leave(const JobId& service, int replica, WallTime now) {
  if (disk_full_) return make_error(Code::no_space, "the disk is full");
  Service& mine = services_[service.value];
  mine.leave[replica] = {now.ms + std::chrono::duration_cast<std::chrono::milliseconds>(control::k_leave).count()};
  mine.leaves.try_emplace(replica, world_.now);
  return {};
}

SimGateways::Way* SimGateways::way(const JobId& service, int replica) {
  Service& mine = services_[service.value];
  const auto slot = static_cast<std::size_t>(replica) - 1;
  return mine.process && slot < mine.process->ways.size() ? &mine.process->ways[slot] : nullptr;
}

bool SimGateways::is_drained(const JobId& service, int replica) {
  const Way* found = way(service, replica);
  return found != nullptr && found->server != control::ServerState::ready && world_.now >= found->busy_until;
}

bool SimGateways::answers(const JobId& service, int replica) {
  const Way* found = way(service, replica);
  return found != nullptr && found->up && found->server == control::ServerState::ready;
}

bool SimGateways::answered_for(const JobId& service, int replica, Nanos time) {
  const Way* found = way(service, replica);
  return found != nullptr && found->up && found->good_since >= 0 && world_.now - found->good_since > time;
}

bool SimGateways::is_busy(const JobId& service, int replica) {
  const Way* found = way(service, replica);
  return found != nullptr && found->up && world_.now < found->busy_until;
}

std::optional<Nanos> SimGateways::leaves_since(const JobId& service, int replica) {
  const Service& mine = services_[service.value];
  const auto found = mine.leaves.find(replica);
  return found == mine.leaves.end() ? std::nullopt : std::optional(found->second);
}

// Steps of some minutes; nobody asks in a third of them.
int SimGateways::load(const JobId& service) const {
  const Options& o = world_.options;
  const Nanos step = std::min(world_.now, o.faults_until) / o.load_step;
  Random random(o.seed * 131 + static_cast<std::uint64_t>(step) * 17 + static_cast<std::uint64_t>(world_.index_of(service)));
  return random.chance(0.33) ? 0 : static_cast<int>(random.between(1, o.load_max));
}

Nanos SimGateways::lives_since(const JobId& service) {
  const Service& mine = services_[service.value];
  return mine.process ? mine.process->began : -1;
}

bool SimGateways::any_lives() const {
  return std::ranges::any_of(services_, [](const auto& entry) { return entry.second.process.has_value(); });
}

}  // namespace gridctl::sim
