// SPDX-License-Identifier: Apache-2.0
// Enumerated: of every two effects that follow each other in worlds without faults of their own, the second one fails,
// comes late, or loses its answer, each once; and effects that only then come to be made, in the same way.
#include "pairs.hpp"

#include <cstdio>
#include <map>
#include <vector>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

constexpr Fate k_struck[] = {Fate::fails, Fate::late, Fate::lost};
const char* fate_name(Fate fate) { return testing::k_fate_names[static_cast<std::size_t>(fate)].data(); }

struct Base {
  const char* name;
  Options options;
};

Options usual(std::uint64_t seed) {
  Options o = quiet_options();
  o.seed = seed;
  o.hosts = 3;
  o.jobs = 1;
  o.work = 4 * k_min;
  o.words = o.outputs = 1;
  o.secret = 1;
  o.faults_until = 6 * k_min;
  return o;
}

Fault fault(FaultKind kind, Nanos at, Nanos duration = k_min, int host = 0) {
  Fault one;
  one.kind = kind, one.at = at, one.duration = duration, one.host = host;
  return one;
}

// Lives of jobs that differ in what is done for them.
std::vector<Base> bases() {
  std::vector<Base> all;
  all.push_back({"alone", usual(1)});
  Options o = usual(2);
  o.faults = {fault(FaultKind::host_power, 2 * k_min), fault(FaultKind::host_power, 2 * k_min, k_min, 1)};
  all.push_back({"power", o});
  o = usual(3);
  o.faults = {fault(FaultKind::cut_both, 90 * k_s, 3 * k_min), fault(FaultKind::cut_both, 100 * k_s, 3 * k_min, 1)};
  all.push_back({"cut", o});
  o = usual(4);
  o.faults = {fault(FaultKind::drain, 90 * k_s, 3 * k_min), fault(FaultKind::drain, 90 * k_s, 3 * k_min, 1)};
  o.standby = 1;
  all.push_back({"drained", o});
  o = usual(5);
  o.faults = {fault(FaultKind::cancel, 2 * k_min), fault(FaultKind::resume, 4 * k_min)};
  all.push_back({"cancelled", o});
  o = usual(6);
  o.replicated = 1;
  o.prices = {5, 6, 7};
  o.limited = 1;
  all.push_back({"twins", o});
  o = usual(7);
  o.ganged = 1;
  o.jobs = 2;
  o.hosts = 4;
  o.gpus_for_all = true;
  all.push_back({"gangs", o});
  o.seed = 8;
  o.elastic = 1;
  o.faults = {fault(FaultKind::host_power, 2 * k_min, 2 * k_min, 1), fault(FaultKind::payload_kill, 3 * k_min)};
  all.push_back({"gangs that lose members", o});
  o = usual(9);
  o.jobs = 4;
  o.hosts = 2;
  o.gpus_for_all = true;
  o.urgent = 1;
  o.owned = 1;
  o.prices = {5, 6};
  o.faults = {fault(FaultKind::month_budget, 2 * k_min)};
  o.faults.front().usd = 0.3;
  all.push_back({"a crowd", o});
  o = usual(11);
  o.replicated = 1;
  o.prices = {5, 6, 7};
  o.faults = {fault(FaultKind::host_power, 2 * k_min, 20 * k_min)};
  all.push_back({"a twin is first", o});
  o = usual(10);
  o.faults = {fault(FaultKind::laptop_kill, 70 * k_s, 5 * k_s), fault(FaultKind::laptop_kill, 200 * k_s, 5 * k_s)};
  all.push_back({"killed daemons", o});
  o = usual(12);
  o.bags = 1;
  o.tasks = 60;
  o.task_takes = 6 * k_s;
  o.last_step = true;
  o.faults = {fault(FaultKind::host_power, 60 * k_s, 30 * k_s), fault(FaultKind::laptop_kill, 80 * k_s, 5 * k_s)};
  all.push_back({"a bag", o});
  o = usual(13);
  o.lent = o.hosts;
  o.images = 1;
  o.jobs = 2;
  o.faults = {fault(FaultKind::image_registry, 0), fault(FaultKind::tag_moves, 90 * k_s), fault(FaultKind::laptop_kill, 70 * k_s, 5 * k_s)};
  all.push_back({"images", o});
  return all;
}

std::optional<std::string> run(const Options& options, const std::vector<Points::Planned>& planned, Points& seen) {
  World world(options, false);
  world.points.track();
  world.points.planned = planned;
  std::optional<std::string> broken;
  try {
    world.run();
  } catch (const Violation& violation) {
    broken = violation.what();
  }
  seen.pairs = world.points.pairs;
  for (std::size_t i = 0; i < seen.counts.size(); ++i)
    for (std::size_t j = 0; j < seen.counts[i].size(); ++j) seen.counts[i][j] += world.points.counts[i][j];
  return broken;
}

std::string in_words(const std::vector<Points::Planned>& planned) {
  std::string text;
  for (const Points::Planned& one : planned)
    text += (text.empty() ? "" : "; then ") + to_text(one.pair) + ", which " + fate_name(one.fate);
  return text;
}

// Pairs that were met, each with the faults that lead to it: at most one.
using Ways = std::map<Pair, std::vector<Points::Planned>>;

struct Tried {
  std::size_t worlds = 0, broken = 0;
  Points seen{Options{}};
};

// Each fate of the second of each pair. What that leads to for the first time is added to `further`.
bool try_all(const Base& base, const Ways& ways, Ways& further, std::set<Pair>& known, Tried& tried, bool keep_going) {
  for (const auto& [pair, way] : ways)
    for (const Fate fate : k_struck) {
      if (!is_possible(pair.second, fate)) continue;
      std::vector<Points::Planned> planned = way;
      planned.push_back({pair, fate});
      ++tried.worlds;
      const auto what = run(base.options, planned, tried.seen);
      for (const Pair& next : tried.seen.pairs)
        if (known.insert(next).second) further[next] = planned;
      if (!what) continue;
      ++tried.broken;
      std::printf("%s: %s, breaks %s\n", base.name, in_words(planned).c_str(), what->c_str());
      if (!keep_going) return false;
    }
  return true;
}

}  // namespace

bool try_pairs(Points::Counts& counts, bool keep_going) {
  std::set<Pair> known;
  Tried tried;
  for (const Base& base : bases()) {
    if (const auto what = run(base.options, {}, tried.seen)) {
      std::printf("%s breaks %s\n", base.name, what->c_str());
      return false;
    }
    Ways ways, further, rest;
    for (const Pair& pair : tried.seen.pairs)
      if (known.insert(pair).second) ways[pair] = {};
    if (!try_all(base, ways, further, known, tried, keep_going)) return false;
    // Only effects that no world without a fault has: mending what has failed.
    std::erase_if(further, [&](const auto& one) {
      const auto& fates = tried.seen.counts[static_cast<std::size_t>(one.first.second)];
      if (fates[static_cast<std::size_t>(Fate::fails)] == 0) return false;
      known.erase(one.first);  // a world without a fault may have it
      return true;
    });
    if (!try_all(base, further, rest, known, tried, keep_going)) return false;
  }
  counts = tried.seen.counts;
  std::printf("%zu pairs, %zu worlds, %zu broken\n", known.size(), tried.worlds, tried.broken);
  bool reached = true;
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (const Fate fate : k_struck) {
      const auto point = static_cast<Point>(i);
      if (!is_possible(point, fate) || counts[i][static_cast<std::size_t>(fate)] > 0) continue;
      reached = false;
      std::printf("never reached: %s, which %s\n", std::string(point_name(point)).c_str(), fate_name(fate));
    }
  return tried.broken == 0 && reached;
}

}  // namespace gridctl::sim
