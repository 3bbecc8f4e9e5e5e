// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/fleet.hpp"

#include <algorithm>
#include <utility>

#include "control/reach/ways.hpp"
#include "os/log.hpp"
#include "registry/change_provider.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_seen_pause = std::chrono::seconds{30};       // last_seen is written no more often
constexpr Duration k_idle_lost_after = std::chrono::seconds{60};  // for judging hosts without jobs
constexpr std::int64_t k_end_jitter_ms = 10'000;
constexpr Duration k_witness_delay = std::chrono::seconds{1};     // of an answer on a slow link, beyond the heartbeat

// Returns true if something held earlier is no longer held.
bool is_less(const std::vector<wire::HeldShare>& now, const std::vector<wire::HeldShare>& before) {
  return std::any_of(before.begin(), before.end(), [&](const wire::HeldShare& share) {
    return std::find(now.begin(), now.end(), share) == now.end();
  });
}

bool has_same_ways(const registry::Provider& a, const registry::Provider& b) {
  return std::ranges::equal(a.ways(), b.ways(), [](const registry::Way& x, const registry::Way& y) {
    return x.address == y.address && x.identities == y.identities && x.jump == y.jump;
  });
}

// Its last answer is recent enough to prove that our own network works.
bool is_witness(const FleetHost& host, BootTime now) {
  const std::optional<BootTime> last = host.monitor->last_answer();
  return last && now - *last <= host.monitor->heartbeat() + k_witness_delay;
}

}  // namespace

Fleet::Fleet(const World& world, Duration health_every)
    : world_(world), health_every_(health_every), reliability_(world_.records, world_.clock) {}

FleetHost* Fleet::get(const std::string& name) {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : found->second.get();
}

const FleetHost* Fleet::find(const HostName& name) const {
  const auto found = hosts_.find(name.value);
  return found == hosts_.end() ? nullptr : found->second.get();
}

std::optional<HostReach> Fleet::reach(const HostName& name) const {
  const FleetHost* host = find(name);
  if (host == nullptr) return std::nullopt;
  return HostReach{host->provider, host->life, host->chunks};
}

HostMonitor::Listener Fleet::listener_for(const std::string& name) {
  HostMonitor::Listener listener;
  listener.polled = [this, name](const wire::PollReply& reply) {
    if (FleetHost* host = get(name)) on_poll(*host, reply);
  };
  listener.logged = [this, name](const wire::LogRequest& asked, std::uint64_t offset, const std::string& bytes) {
    if (const FleetHost* host = get(name)) tell([&](FleetListener& one) { one.logged(*host, asked, offset, bytes); });
  };
  listener.connected = [this, name](const wire::AgentHello& hello) {
    os::log(os::LogLevel::info, name + ": connected");
    FleetHost* host = get(name);
    if (host == nullptr) return;
    host->let_us_in = true;
    note_way(*host);
    if (hello.peer_key) pin(*host, to_hex(*hello.peer_key));
    tell([&](FleetListener& one) { one.connected(*host, hello); });
  };
  listener.failed = [this, name](const Error& error) {
    os::log(os::LogLevel::info, name + ": " + error.one_line());
    FleetHost* host = get(name);
    if (host == nullptr || error.code != Code::auth_refused || !std::exchange(host->let_us_in, false)) return;
    tell([&](FleetListener& one) { one.login_refused(*host, error); });
  };
  listener.told_health = [this, name](const wire::HealthReply& reply, Duration took) {
    if (FleetHost* host = get(name)) on_health(*host, reply, took);
  };
  listener.pinged = [this, name](Duration round_trip) {
    if (const FleetHost* host = get(name)) tell([&](FleetListener& one) { one.pinged(*host, round_trip); });
  };
  return listener;
}

bool Fleet::refresh() {
  Result<std::vector<registry::Provider>> all = world_.records.providers();
  if (!all) {
    report(all.error(), "while listing providers");
    return false;
  }
  std::set<std::string> present;
  for (registry::Provider& provider : *all) {
    present.insert(provider.name.value);
    HostPtr& host = hosts_[provider.name.value];
    const bool same = host != nullptr && has_same_ways(host->provider, provider);
    if (host == nullptr) host = std::make_unique<FleetHost>();
    if (host->provider.until != provider.until) capacity_freed();
    host->provider = std::move(provider);
    if (same) {
      host->monitor->expect(host->provider.peer_key, host->provider.inventory);
      continue;
    }
    host->monitor = std::make_shared<HostMonitor>(world_.run, world_.net, world_.clock, host->provider,
                                                  listener_for(host->provider.name.value));
  }
  std::erase_if(hosts_, [&](const auto& entry) { return !present.contains(entry.first); });
  reliability_.keep_only(present);
  return true;
}

void Fleet::tick(BootTime now) {
  save_news();
  judge_silence(now);
  sweep_health(now);
}

void Fleet::set_use(std::map<std::string, HostUse> use, Duration heartbeat) {
  for (auto& [name, host] : hosts_) {
    host->use = std::move(use[name]);
    host->monitor->set_wants(host->use.wants, heartbeat);
  }
}

void Fleet::poll_now(const HostName& name) {
  if (const FleetHost* host = get(name.value)) host->monitor->poll_now();
}

bool Fleet::request_log(const HostName& name, const wire::LogRequest& request) {
  const FleetHost* host = get(name.value);
  return host != nullptr && host->monitor->request_log(request);
}

void Fleet::refused_for_room(const HostName& name, BootTime until) {
  FleetHost* host = get(name.value);
  if (host == nullptr) return;
  host->busy_until = until;
  host->monitor->poll_now();  // it will tell what is held there
  host->health.next = {};     // and, if it is a stranger's, on which GPU
}

void Fleet::inventory_changed(const HostName& name, const Inventory& inventory) {
  if (FleetHost* host = get(name.value)) host->provider.inventory = inventory;
}

// During a tick, many hosts may have reported: one transaction saves all, because each costs a synced file.
void Fleet::save_news() {
  std::vector<FleetHost*> seen, judged;
  for (auto& [name, host] : hosts_) {
    if (host->seen_unsaved) seen.push_back(host.get());
    if (host->health.unsaved) judged.push_back(host.get());
  }
  if (seen.empty() && judged.empty()) return;
  std::vector<WallTime> saved_at;
  for (const FleetHost* host : judged) saved_at.push_back(host->health.saved_at);
  const Result<void> saved = world_.records.together([&]() -> Result<void> {
    for (const FleetHost* host : seen)
      TRY(world_.records.set_liveness(host->provider.name, "answering", *host->seen_unsaved));
    for (FleetHost* host : judged) TRY(save_health_of(*host));
    return {};
  });
  if (!saved) {  // none of it: all is written with the next
    for (std::size_t i = 0; i < judged.size(); ++i) judged[i]->health.saved_at = saved_at[i];
    return report(saved.error(), "while noting what hosts say");
  }
  for (FleetHost* host : seen) host->seen_unsaved.reset();
  for (FleetHost* host : judged) host->health.unsaved.reset();
}

void Fleet::on_poll(FleetHost& host, const wire::PollReply& reply) {
  const BootTime now = world_.clock.boot();
  if (now - host.seen_saved > k_seen_pause) {
    host.seen_saved = now;
    host.seen_unsaved = world_.clock.wall();
  }
  note_capacity(host, reply);
  note_end(host, reply);
  reliability_.answered(host.provider, reply.boot_id, host.ends_at());
  tell([&](FleetListener& one) { one.polled(host, reply); });
}

// Pins the identity of a host that was registered before agents had any.
void Fleet::pin(FleetHost& host, const std::string& key) {
  if (!host.provider.peer_key.empty()) return;
  const auto edit = [&](registry::Provider& row) -> Result<void> {
    if (row.peer_key.empty()) row.peer_key = key;
    return {};
  };
  const Result<registry::Provider> pinned = registry::change_provider(world_.records, host.provider.name, edit);
  if (!pinned) return report(pinned.error(), "while pinning the identity of " + host.provider.name.value);
  host.provider.peer_key = pinned->peer_key;
  host.monitor->expect(pinned->peer_key, host.provider.inventory);
}

// For `provider show`.
void Fleet::note_way(FleetHost& host) {
  const std::string way = host.monitor->way();
  if (host.provider.more_ways.empty() || way.empty() || way == host.way) return;
  host.way = way;
  report(
      world_.records.save_host_report({host.provider.name, k_way_report, world_.clock.wall(), to_json(UsedWay{way})}),
      "while noting by which way a host is reached");
}

// Its word is as exact as its answer is quick: an instant that hardly differs is the one that is known.
void Fleet::note_end(FleetHost& host, const wire::PollReply& reply) {
  std::optional<WallTime> ends;
  if (reply.ends_in) ends = world_.clock.wall() + *reply.ends_in;
  const bool same = ends && host.told_end && std::abs(ends->ms - host.told_end->ms) < k_end_jitter_ms;
  if (same || ends == host.told_end) return;
  host.told_end = ends;
  capacity_freed();  // who waits is asked again: it may be there for longer
}

// Notes the leases there; asks for waiting jobs when a resource was released.
void Fleet::note_capacity(FleetHost& host, const wire::PollReply& reply) {
  host.boot_id = reply.boot_id;
  if (std::exchange(host.missed, false)) capacity_freed();
  if (!reply.held) return;
  host.busy_until = {};
  if (host.held && is_less(*reply.held, *host.held)) capacity_freed();
  host.held = reply.held;
}

void Fleet::judge_silence(BootTime now) {
  for (auto& [name, host] : hosts_) host->monitor->heard(host->life->last());
  const auto witnesses =
      std::count_if(hosts_.begin(), hosts_.end(), [&](const auto& entry) { return is_witness(*entry.second, now); });
  for (auto& [name, host] : hosts_) host->monitor->tick(now, witnesses > (is_witness(*host, now) ? 1 : 0));
  for (auto& [name, host] : hosts_) {
    const job::FailureDetector& silence = host->monitor->silence();
    const job::Liveness liveness = silence.judge(host->use.patience.value_or(k_idle_lost_after));
    if (liveness == host->liveness) continue;
    host->liveness = liveness;
    if (liveness == job::Liveness::lost) reliability_.lost(host->provider, silence.counted());
    const std::string word(job::liveness_name(liveness));
    report(world_.records.set_liveness(host->provider.name, word, std::nullopt), "while recording a host's state");
    tell([&](FleetListener& one) { one.liveness_changed(*host); });
  }
  reliability_.tick(now);
}

bool Fleet::same_provider(const FleetHost& a, const FleetHost& b) const {
  return &a == &b || is_same_provider(a.machine(), b.machine());
}

bool Fleet::is_drained(const FleetHost& host) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    return entry.second->provider.drained && same_provider(*entry.second, host);
  });
}

bool Fleet::all_tried() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& entry) {
    const FleetHost& host = *entry.second;  // what is free there is known from its first answer on
    return host.is_up() ? !host.boot_id.empty() : host.monitor->was_tried();
  });
}

std::vector<HostNow> Fleet::now(Duration lost_after) const {
  std::vector<HostNow> all;
  for (const auto& [name, host] : hosts_) {
    HostNow one;
    one.provider = &host->provider;
    one.boot_id = host->boot_id;
    one.held = host->held ? &*host->held : nullptr;
    one.full = world_.clock.boot() < host->busy_until;
    // Uses the job's own judgement: the host that it has just left must not get it again. A host whose answer is merely
    // late (a busy one) is not a suspect yet.
    one.until = host->ends_at();
    one.reachable = host->is_up() && host->monitor->silence().judge(lost_after) <= job::Liveness::suspect;
    host->missed = host->missed || !one.reachable;
    all.push_back(one);
  }
  return all;
}

void Fleet::judge(std::vector<sched::HostFacts>& facts) const {
  for (sched::HostFacts& one : facts) {
    apply_standing(one, hosts_.at(one.name.value)->health.standing, world_.clock.wall());
    reliability_.apply(one);
  }
}

}  // namespace gridctl::control
