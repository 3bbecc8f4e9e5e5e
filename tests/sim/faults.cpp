// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <algorithm>

#include "host.hpp"
#include "image_registries.hpp"
#include "job/state.hpp"
#include "truth.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

constexpr Nanos k_reboot = k_s;
constexpr const char* k_owners[] = {"", "ada", "bob"};
constexpr double k_plenty = 1e9;  // USD

void change_links(World& world, const Fault& fault, int by) {
  for (int host = 0; host < world.options.hosts; ++host) {
    if (fault.kind != FaultKind::cut_all && host != fault.host) continue;
    Link& link = world.link(fault.laptop, host);
    if (fault.kind != FaultKind::cut_replies && fault.kind != FaultKind::slow) link.cut_requests += by;
    if (fault.kind != FaultKind::cut_requests && fault.kind != FaultKind::slow) link.cut_replies += by;
    if (fault.kind == FaultKind::slow) link.slow += by;
    if (by < 0) world.mend(link, fault.laptop, host);
  }
}

const JobId& job_of(const World& world, const Fault& fault) {
  return world.jobs[static_cast<std::size_t>(fault.job)].id;
}

ImageHub::Trouble trouble_of(const Fault& fault) {
  constexpr int k_kinds = 5;
  return static_cast<ImageHub::Trouble>((fault.job + fault.at / k_ms) % k_kinds);
}

void begin(World& world, const Fault& fault) {
  Host& host = *world.hosts[static_cast<std::size_t>(fault.host)];
  Laptop& laptop = *world.laptops[static_cast<std::size_t>(fault.laptop)];
  switch (fault.kind) {
    case FaultKind::cut_both:
    case FaultKind::cut_requests:
    case FaultKind::cut_replies:
    case FaultKind::cut_all:
    case FaultKind::slow: return change_links(world, fault, 1);
    case FaultKind::host_power: return host.lose_power();
    case FaultKind::host_sleep: return world.sleep(world.host_node(fault.host));
    case FaultKind::host_disk_full: host.disk_full = true; return;
    case FaultKind::host_clock_jump:
      world.node(world.host_node(fault.host)).wall_offset_ms += fault.duration / k_ms * (fault.job % 2 == 0 ? 1 : -1);
      return;
    case FaultKind::agent_kill: return host.kill_agents();
    case FaultKind::supervisor_kill: return host.kill_supervisor(fault.job);
    case FaultKind::payload_kill: return host.kill_payload(fault.job);
    case FaultKind::laptop_kill: return laptop.die(false);
    case FaultKind::laptop_power: return laptop.die(true);
    case FaultKind::laptop_sleep: return world.sleep(fault.laptop);
    case FaultKind::laptop_disk_full: laptop.disk_full = true; return;
    case FaultKind::laptop_clock_jump:
      world.node(fault.laptop).wall_offset_ms += fault.duration / k_ms * (fault.job % 2 == 0 ? 1 : -1);
      return;
    case FaultKind::registry_error: laptop.registry_trouble = true; return;
    case FaultKind::cancel: return laptop.user_cancels(job_of(world, fault), fault.duration % 2 == 0);
    case FaultKind::resume: return laptop.user_resumes(job_of(world, fault));
    case FaultKind::drain: return laptop.user_drains(fault.host, true, Duration{fault.duration / 4});
    case FaultKind::price: return laptop.user_prices(fault.host, fault.usd);
    case FaultKind::gateway_kill: return laptop.gateways().die();
    case FaultKind::service_apply: return laptop.user_applies(job_of(world, fault));
    case FaultKind::image_registry: return world.image_hub->begin(fault.host % ImageHub::k_registries, trouble_of(fault));
    case FaultKind::tag_moves:
      if (world.options.images > 0) world.image_hub->move_tag(fault.job % world.options.images);
      return;
    case FaultKind::month_budget: return laptop.user_budgets(k_owners[static_cast<std::size_t>(fault.job % 3)], fault.usd);
  }
}

void end(World& world, const Fault& fault) {
  Host& host = *world.hosts[static_cast<std::size_t>(fault.host)];
  Laptop& laptop = *world.laptops[static_cast<std::size_t>(fault.laptop)];
  switch (fault.kind) {
    case FaultKind::cut_both:
    case FaultKind::cut_requests:
    case FaultKind::cut_replies:
    case FaultKind::cut_all:
    case FaultKind::slow: return change_links(world, fault, -1);
    case FaultKind::host_power: return host.power_up();
    case FaultKind::host_sleep: return world.wake(world.host_node(fault.host));
    case FaultKind::host_disk_full: host.disk_full = false; return;
    case FaultKind::laptop_kill:
    case FaultKind::laptop_power: return laptop.begin();
    case FaultKind::laptop_sleep: return world.wake(fault.laptop);
    case FaultKind::laptop_disk_full: laptop.disk_full = false; return;
    case FaultKind::registry_error: laptop.registry_trouble = false; return;
    case FaultKind::drain: return laptop.user_drains(fault.host, false, {});
    case FaultKind::image_registry: return world.image_hub->end(fault.host % ImageHub::k_registries, trouble_of(fault));
    default: return;
  }
}

}  // namespace

void schedule(World& world, const Fault& fault) {
  world.at(fault.at, -1, [&world, fault] {
    if (world.healed) return;
    world.say("FAULT ", to_text(fault));
    world.points.stir(world.now);
    begin(world, fault);
  });
  world.at(fault.at + fault.duration, -1, [&world, fault] {
    if (world.healed) return;
    world.say("end of fault ", fault_name(fault.kind));
    world.points.stir(world.now);
    end(world, fault);
  });
}

void strike_rich(World& world, int laptop, const job::Attempt& attempt) {
  constexpr FaultKind k_kinds[] = {FaultKind::cut_both,    FaultKind::cut_replies,      FaultKind::slow,
                                   FaultKind::host_power,  FaultKind::host_disk_full,   FaultKind::agent_kill,
                                   FaultKind::supervisor_kill, FaultKind::laptop_kill,  FaultKind::laptop_power,
                                   FaultKind::laptop_disk_full, FaultKind::registry_error};
  Random& random = world.points.random();
  if (world.healed || !random.chance(world.options.rich_faults)) return;
  Fault fault;
  fault.kind = k_kinds[random.below(std::size(k_kinds))];
  fault.at = world.now + random.between(0, 3 * k_s);
  fault.duration = random.between(k_s / 2, random.chance(0.7) ? 10 * k_s : 2 * world.options.lost_after);
  fault.laptop = laptop;
  fault.host = std::stoi(attempt.members[random.below(attempt.members.size())].host.value.substr(4));
  schedule(world, fault);
}

void schedule_faults(World& world) {
  for (const Fault& fault : world.options.faults) schedule(world, fault);
}

void schedule_failure(World& world) {
  const auto wait = static_cast<Nanos>(world.rng.exponential(static_cast<double>(world.options.mtbf)));
  world.after(wait, -1, [&world] {
    const int which = world.truth->host_of(0);
    Host& host = *world.hosts[static_cast<std::size_t>(std::max(which, 0))];
    host.lose_power();
    world.after(k_reboot, -1, [&host] { host.power_up(); });
    schedule_failure(world);
  });
}

void heal(World& world) {
  world.say("HEAL: every fault ends");
  world.healed = true;
  world.points.heal();
  world.image_hub->heal();
  for (int l = 0; l < world.options.laptops; ++l)
    for (int h = 0; h < world.options.hosts; ++h) {
      Link& link = world.link(l, h);
      link.cut_requests = link.cut_replies = link.slow = 0;
      world.mend(link, l, h);
    }
  for (int h = 0; h < world.options.hosts; ++h) {
    Host& host = *world.hosts[static_cast<std::size_t>(h)];
    world.wake(world.host_node(h));
    host.disk_full = false;
    host.power_up();
  }
  for (int l = 0; l < world.options.laptops; ++l) {
    Laptop& laptop = *world.laptops[static_cast<std::size_t>(l)];
    world.wake(l);
    laptop.disk_full = laptop.registry_trouble = false;
    laptop.begin();
    // Until the daemon is there again and its database open.
    world.after(5 * k_s, l, [&laptop, hosts = world.options.hosts] {
      for (int h = 0; h < hosts; ++h) laptop.user_drains(h, false, {});
      for (const char* owner : k_owners) laptop.user_budgets(owner, k_plenty);
    });
  }
}

}  // namespace gridctl::sim
