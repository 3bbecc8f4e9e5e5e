// SPDX-License-Identifier: Apache-2.0
#include "options_rich.hpp"

#include <algorithm>

#include "image_registries.hpp"

namespace gridctl::sim {

Nanos draw_duration(Random& random, const Options& options) {
  switch (random.below(4)) {
    case 0: return random.between(k_s / 10, 3 * k_s);
    case 1: return random.between(k_s, options.lost_after);
    case 2: return random.between(options.lost_after / 2, 2 * options.lost_after);
    default: return random.between(k_min, std::max(2 * k_min, 2 * options.lease));
  }
}

// The same in a quarter of the time: what a world spends most events on is waiting.
void condense(Random& random, Options& o) {
  const Nanos until = random.between(2 * k_min, 7 * k_min);
  const double by = static_cast<double>(until) / static_cast<double>(o.faults_until);
  o.faults_until = until;
  for (Fault& fault : o.faults) {
    fault.at = static_cast<Nanos>(static_cast<double>(fault.at) * by);
    fault.duration = std::min(fault.duration, until - fault.at) / 2 * 2 + fault.duration % 2;  // even ones cancel at once
  }
  o.lost_after = o.wait_mode ? o.lost_after : random.between(10, 30) * k_s;
  if (!o.wait_mode) o.lease = random.between(60, 240) * k_s;
  o.long_delay_max = 2 * std::max(o.lease, o.lost_after);
  o.tick = random.between(500, 1000) * k_ms;
  o.work = random.between(30, 240) * k_s;
  o.save_every = std::max<Nanos>(o.work / random.between(2, 12), 2 * k_s);
  o.start_time = random.between(100, 4000) * k_ms;
  o.transfer_time = random.between(50, 3000) * k_ms;
}

namespace {

void strike(Random& random, Options& o, FaultKind kind, double share, std::int64_t most) {
  if (!random.chance(share)) return;
  for (std::int64_t left = random.between(1, most); left > 0; --left) {
    Fault fault;
    fault.kind = kind;
    fault.at = random.between(0, o.faults_until);
    fault.duration = std::min(draw_duration(random, o), o.faults_until - fault.at);
    fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(o.hosts)));
    fault.laptop = static_cast<int>(random.below(static_cast<std::uint64_t>(o.laptops)));
    fault.job = static_cast<int>(random.below(static_cast<std::uint64_t>(o.jobs)));
    o.faults.push_back(fault);
  }
}

void resize(Options& o, int hosts, int jobs) {
  o.hosts = hosts;
  o.jobs = jobs;
  o.laptops = 1;
  o.liar = -1;
  o.deadly = false;
  o.lie_start = 0;
  o.ganged = 0;
  for (Fault& fault : o.faults) fault.host %= hosts, fault.job %= jobs, fault.laptop = 0;
}

void set_prices(Random& random, Options& o) {
  o.prices.clear();
  for (int i = 0; i < o.hosts; ++i) o.prices.push_back(1 + 19 * random.unit());
}

// What is used is counted by the laptop's clock.
void leave_clocks(Options& o) {
  std::erase_if(o.faults, [](const Fault& one) { return one.kind == FaultKind::laptop_clock_jump || one.kind == FaultKind::price; });
}

// Twins that wait for each other's hosts, or workers of bags, with budgets and times of their own.
void about_spending(Random& random, Options& o) {
  resize(o, static_cast<int>(random.between(2, 3)), static_cast<int>(random.between(1, 3)));
  set_prices(random, o);
  leave_clocks(o);
  o.limited = 1;
  o.replicated = 0.8;
  o.gpus_for_all = true;
  if (random.chance(0.3)) {
    o.bags = 1;
    o.tasks = 200;
    o.task_takes = std::max<Nanos>(o.work * o.hosts / 100, k_ms);
  }
  strike(random, o, FaultKind::laptop_kill, 0.6, 2);
  strike(random, o, FaultKind::cut_both, 0.6, 3);
}

// A host that says no to everything, and not enough others.
void about_refusals(Random& random, Options& o) {
  const int hosts = static_cast<int>(random.between(2, 3));
  resize(o, hosts, hosts + static_cast<int>(random.between(0, 2)));
  if (o.wait_mode) return;
  o.liar = 0;
  o.lie_start = 1;
  o.gpus_for_all = true;
  o.gpus_per_host = 1;
}

void about_standbys(Random& random, Options& o) {
  resize(o, static_cast<int>(random.between(3, 4)), static_cast<int>(random.between(1, 2)));
  o.standby = 1;
  o.replicated = o.limited = 0;
  o.transfer_time = random.between(4, 15) * k_s;
  for (Fault& fault : o.faults) fault.at /= 4, fault.duration = fault.duration / 8 * 2;
  o.faults_until /= 4;
  o.work = std::max(o.work, o.faults_until + random.between(20, 90) * k_s);
  o.save_every = random.between(5, 20) * k_s;
}

// Deadlines that are near, more jobs than room, and priorities.
void about_deadlines(Random& random, Options& o) {
  const int hosts = static_cast<int>(random.between(2, 3));
  resize(o, hosts, hosts + static_cast<int>(random.between(1, 3)));
  set_prices(random, o);
  leave_clocks(o);
  o.due = 2;  // and most of them are hard
  o.urgent = 0.7;
  o.gpus_for_all = true;
  o.gpus_per_host = 1;
  strike(random, o, FaultKind::drain, 0.5, 2);
  strike(random, o, FaultKind::host_power, 0.5, 2);
}

// What the members of a gang have saved last, when their program fails and the daemon dies over it.
void about_ends(Random& random, Options& o) {
  resize(o, static_cast<int>(random.between(3, 4)), 2);
  o.ganged = 0.7;
  o.elastic = random.chance(0.3) ? random.unit() : 0;
  o.gpus_for_all = true;
  o.half_saved = random.chance(0.6) ? 0.8 : 0;
  o.program_fails = 0.4;
  o.point_faults = 0.003 + 0.003 * random.unit();
  o.commit_faults = 40;
  strike(random, o, FaultKind::laptop_kill, 0.7, 4);
  strike(random, o, FaultKind::payload_kill, 0.7, 4);
}

// A disk that fails where something is to be made safe, of jobs that save seldom.
void about_commits(Random& random, Options& o) {
  resize(o, std::max(o.hosts, 2), std::max(o.jobs, 2));
  o.point_faults = 0.002 + 0.004 * random.unit();
  o.commit_faults = 60;
  o.save_every = std::max<Nanos>(o.work / 3, 15 * k_s);
  o.outputs = 0.5;
  o.secret = 0.5;
}

// Programs that stand still, on hosts that measure what they do; and what a host is asked before anybody ends them.
void about_hangs(Random& random, Options& o) {
  resize(o, static_cast<int>(random.between(2, 3)), static_cast<int>(random.between(1, 2)));
  o.words = random.chance(0.7) ? 1 : 0;
  o.chatter = random.between(2, 4) * k_s;
  o.hangs = 0.3 + 0.5 * random.unit();
  if (random.chance(0.5)) o.stalls = random.unit();
  o.hang_after = random.between(60, 120) * k_s;
  o.work = random.between(3, 6) * k_min;
  o.save_every = o.work / random.between(3, 10);
  o.half_saved = 0;
  o.late_hangs = o.jobs;
  o.faults_until *= 2;
  std::erase_if(o.faults, [&](const Fault&) { return random.chance(0.7); });
  o.point_faults = random.chance(0.5) ? 0 : o.point_faults;
  if (random.chance(0.3)) o.unmeasured = static_cast<int>(random.below(static_cast<std::uint64_t>(o.hosts)));
  if (random.chance(0.6)) o.insight_fails = random.chance(0.5) ? 1 : random.unit();
  o.tells_steps = random.chance(0.5);
  if (random.chance(0.4)) {
    o.ganged = 0.5;
    o.jobs = 2;
    o.gpus_for_all = true;
  }
  strike(random, o, FaultKind::laptop_sleep, 0.6, 3);
}

// Borrowed hosts run images by digest, which registries tell late, or differently each time.
void about_images(Random& random, Options& o) {
  resize(o, static_cast<int>(random.between(2, 4)), static_cast<int>(random.between(2, 5)));
  o.lent = random.chance(0.5) ? o.hosts : static_cast<int>(random.between(1, o.hosts));
  o.images = static_cast<int>(random.between(1, 3));
  o.image_tags = random.chance(0.3) ? 0.3 : 0;
  o.standby = 0;
  if (random.chance(0.4)) o.replicated = 0.6;
  if (random.chance(0.7)) {
    Fault first;
    first.kind = FaultKind::image_registry;
    first.duration = std::min(draw_duration(random, o), o.faults_until);
    first.host = static_cast<int>(random.below(ImageHub::k_registries));
    first.job = static_cast<int>(random.below(5));
    o.faults.push_back(first);
  }
  strike(random, o, FaultKind::image_registry, 0.8, 4);
  strike(random, o, FaultKind::tag_moves, 0.8, 5);
  strike(random, o, FaultKind::laptop_kill, 0.4, 3);
  strike(random, o, FaultKind::registry_error, 0.3, 2);
}

}  // namespace

void set_theme(Random& random, Options& o, std::size_t which) {
  constexpr std::array<void (*)(Random&, Options&), k_themes.size()> k_set{about_spending,  about_refusals, about_standbys,
                                                                         about_deadlines, about_ends,     about_commits,
                                                                         about_hangs,     about_images};
  k_set[which](random, o);
}

namespace {
constexpr std::uint8_t k_first_about = 16;  // drawings from here on
}

std::optional<Drawing> about(std::string_view theme) {
  const auto found = std::ranges::find(k_themes, theme);
  if (found == k_themes.end()) return std::nullopt;
  return static_cast<Drawing>(k_first_about + (found - k_themes.begin()));
}

std::optional<std::size_t> theme_of(Drawing drawing) {
  const auto number = static_cast<std::uint8_t>(drawing);
  return number < k_first_about ? std::nullopt : std::optional<std::size_t>{number - k_first_about};
}

// What many jobs have, and faults where much is under way.
void enrich(Random& random, Options& o) {
  const auto often = [&](double& what, double share, double most = 1) {
    if (what == 0 && random.chance(share)) what = most * random.unit();
  };
  if (random.chance(0.5)) o.words = 1;
  often(o.point_faults, 0.5, 0.006);
  o.commit_faults = 6;
  often(o.rich_faults, 0.5, 0.4);
  if (random.chance(0.2)) o.transfer_time = random.between(3, 10) * k_s;
  if (random.chance(0.25)) {  // more jobs than room
    o.gpus_for_all = true;
    o.gpus_per_host = 1;
    o.jobs = std::max(o.jobs, o.hosts + static_cast<int>(random.between(0, 2)));
  }
  often(o.half_saved, 0.5);
  often(o.program_fails, 0.2, 0.4);
  often(o.start_problem, 0.2, 0.3);
  often(o.kills_itself, 0.1, 0.5);
  often(o.outputs, 0.3);
  if (o.prices.empty() && random.chance(0.4))
    for (int i = 0; i < o.hosts; ++i) o.prices.push_back(random.chance(0.2) ? 0 : 20 * random.unit());
  if (o.ganged == 0) often(o.replicated, 0.25);
  often(o.limited, 0.35);
  often(o.due, 0.25);
  often(o.standby, 0.3);
  often(o.secret, 0.3);
  often(o.urgent, 0.2);
  strike(random, o, FaultKind::host_power, 0.4, 3);
  strike(random, o, FaultKind::cut_both, 0.4, 3);
  strike(random, o, FaultKind::laptop_kill, 0.3, 3);
  strike(random, o, FaultKind::payload_kill, 0.3, 4);
  strike(random, o, FaultKind::drain, 0.2, 2);
  strike(random, o, FaultKind::registry_error, 0.2, 2);
}

}  // namespace gridctl::sim
