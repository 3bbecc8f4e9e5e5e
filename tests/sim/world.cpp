// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <algorithm>
#include <utility>

#include "bag_truth.hpp"
#include "faults.hpp"
#include "host.hpp"
#include "image_registries.hpp"
#include "service_truth.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr std::size_t k_lines_max = 200'000;  // of one run's trace
}  // namespace

World::World(Options drawn, bool trace) : options(std::move(drawn)), tracing(trace), rng(options.seed ^ 0xA5A5A5A5u), points(options) {
  const int count = options.laptops + options.hosts;
  nodes.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Node& one = node(i);
    one.boot_base = rng.between(100, 1'000'000) * k_s;
    if (i >= options.laptops) one.rate = options.skew * (2 * rng.unit() - 1);
    one.wall_offset_ms = rng.between(-3'600'000, 3'600'000);
  }
  links.resize(static_cast<std::size_t>(options.laptops * options.hosts));
  truth = std::make_unique<Truth>(*this);
  bags = std::make_unique<BagTruth>(*this);
  services = std::make_unique<ServiceTruth>(*this);
  image_hub = std::make_unique<ImageHub>(*this);
  Random specs = rng.fork();
  for (int i = 0; i < options.jobs; ++i) {
    SimJob job;
    job.id = {"job" + std::to_string(i)};
    job.laptop = static_cast<int>(specs.below(static_cast<std::uint64_t>(options.laptops)));
    job.spec = draw_spec(options, i, specs);
    add_job(std::move(job));
  }
  for (int i = 0; i < options.hosts; ++i) hosts.push_back(std::make_unique<Host>(*this, i));
  for (int i = 0; i < options.laptops; ++i) laptops.push_back(std::make_unique<Laptop>(*this, i));
}

World::~World() = default;

void World::add_job(SimJob job) {
  if (indices_.emplace(job.id.value, static_cast<int>(jobs.size())).second) jobs.push_back(std::move(job));
}

int World::index_of(const JobId& job) const {
  const auto found = indices_.find(job.value);
  return found == indices_.end() ? -1 : found->second;
}

void World::heard(int laptop, int host) { truth->heard(laptop, host); }

void World::user_cancels(const JobId& job, Nanos later) {
  const int laptop = jobs[static_cast<std::size_t>(index_of(job))].laptop;
  after(later, laptop, [this, laptop, job] { laptops[static_cast<std::size_t>(laptop)]->user_cancels(job, true); });
}

void World::note(std::string line) {
  if (lines.size() >= k_lines_max) lines.erase(lines.begin(), lines.begin() + k_lines_max / 2);
  lines.push_back(std::to_string(now / k_ms) + " ms  " + std::move(line));
}

void World::at(Nanos when, int id, Work work) { at(when, id, id < 0 ? 0 : node(id).life, std::move(work)); }

void World::at(Nanos when, int id, std::uint64_t life, Work work) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(events_.size()));
    events_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  events_[slot] = {id, life, std::move(work)};
  queue_.push_back({std::max(when, now), order_++, slot});
  std::push_heap(queue_.begin(), queue_.end(), Later{});
}

Nanos World::travel_time(const Link& link) {
  Nanos delay = options.delay / 4 + static_cast<Nanos>(rng.below(static_cast<std::uint64_t>(options.delay) + 1));
  if (healed) return delay;
  if (link.slow > 0) delay += rng.between(k_s, 20 * k_s);
  if (rng.chance(options.long_delay)) delay += rng.between(k_s, options.long_delay_max);
  return delay;
}

void World::carry(int laptop, int host, bool to_host, std::uint64_t life, Work work) {
  Link& way = link(laptop, host);
  if (!healed && rng.chance(options.loss)) return;
  const int copies = !healed && rng.chance(options.duplicate) ? 2 : 1;
  const int target = to_host ? host_node(host) : laptop;
  for (int i = 0; i < copies; ++i) {
    const Nanos arrival = now + travel_time(way);
    if ((to_host ? way.cut_requests : way.cut_replies) == 0) {
      at(arrival, target, life, work);
    } else if (rng.chance(0.5)) {
      // Sent again and again until somebody listens, unless the connection was given up before.
      (to_host ? way.held_requests : way.held_replies).emplace_back(life, work);
    }
  }
}

void World::mend(Link& way, int laptop, int host) {
  const auto deliver = [&](std::vector<std::pair<std::uint64_t, Work>>& held, int target) {
    for (auto& [life, work] : held) at(now + rng.between(0, 2 * k_s), target, life, std::move(work));
    held.clear();
  };
  if (way.cut_requests == 0) deliver(way.held_requests, host_node(host));
  if (way.cut_replies == 0) deliver(way.held_replies, laptop);
}

void World::sleep(int id) {
  Node& one = node(id);
  if (!one.up || one.asleep) return;
  one.asleep = true;
  one.asleep_since = now;
}

void World::wake(int id) {
  Node& one = node(id);
  if (!one.asleep) return;
  one.asleep = false;
  one.slept += now - one.asleep_since;
  one.woke_at = now;
  ++one.naps;
  release(one, id);
}

void World::release(Node& one, int id) {
  for (auto& [life, work] : std::exchange(one.held, {}))
    if (life == one.life) at(now, id, std::move(work));
}

Fate World::pass(int id, const std::string& subject, Point point) {
  if (!points.is_active()) return Fate::well;
  const Fate fate = points.pass(now, id, subject, point);
  if (fate == Fate::well) return fate;
  if (id < options.laptops) laptops[static_cast<std::size_t>(id)]->disturbed();
  say("FATE of ", std::string(point_name(point)), " for ", subject, ": ", static_cast<int>(fate));
  return fate;
}

void World::stall(int id) {
  Node& one = node(id);
  if (one.stalled) return;
  one.stalled = true;
  run_until(now + points.delay());
  while (one.asleep && !queue_.empty()) run_until(now + k_s);
  one.stalled = false;
  laptops[static_cast<std::size_t>(id)]->stalled_at = now;
  release(one, id);
  if (laptops[static_cast<std::size_t>(id)]->is_doomed()) throw Killed{};
}

void World::run_until(Nanos end) {
  while (!queue_.empty() && queue_.front().at <= end) {
    std::pop_heap(queue_.begin(), queue_.end(), Later{});
    const Due due = queue_.back();
    queue_.pop_back();
    const Event event = std::move(events_[due.slot]);
    events_[due.slot].work = nullptr;
    free_.push_back(due.slot);
    now = due.at;
    if (event.node >= 0) {
      Node& one = node(event.node);
      if (event.life != one.life || !one.up) continue;
      if (one.asleep || one.stalled) {
        one.held.emplace_back(event.life, event.work);
        continue;
      }
    }
    if (++events > options.events_max)
      throw Violation("L4", "the world does not come to rest: something repeats itself");
    event.work();
  }
  now = std::max(now, end);
}

void World::begin() {
  schedule_faults(*this);
  if (options.mtbf > 0) schedule_failure(*this);
  for (auto& laptop : laptops) laptop->begin();
}

void World::run() {
  begin();
  run_until(options.faults_until);
  heal(*this);
  truth->healed();
  services->converge();
  // A healthy world must converge: checked in slices, so that a quick one ends early.
  const Nanos patience = options.patience > 0 ? options.patience : truth->patience();
  for (const Nanos end = now + patience; now < end && !truth->all_settled();) run_until(std::min(end, now + 10 * k_s));
  if (options.standby > 0) run_until(now + 15 * k_s);  // what lies ready is removed a moment after the end
  truth->final_check();
  services->final_check();
}

}  // namespace gridctl::sim
