// SPDX-License-Identifier: Apache-2.0
// Enumerated: of every two effects that follow each other in worlds without faults of their own, the second one fails,
// comes late, or loses its answer, each once.
#include "pairs.hpp"

#include <cstdio>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

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
  o = usual(10);
  o.faults = {fault(FaultKind::laptop_kill, 70 * k_s, 5 * k_s), fault(FaultKind::laptop_kill, 200 * k_s, 5 * k_s)};
  all.push_back({"killed daemons", o});
  return all;
}

std::optional<std::string> run(const Options& options, const std::optional<Points::Planned>& planned, Points& seen) {
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

}  // namespace

bool try_pairs(Points::Counts& counts, bool keep_going) {
  std::set<Pair> done;
  std::size_t tried = 0, broken = 0;
  Points seen{Options{}};
  for (const Base& base : bases()) {
    if (const auto what = run(base.options, {}, seen)) {
      std::printf("%s breaks %s\n", base.name, what->c_str());
      return false;
    }
    for (const Pair& pair : std::set<Pair>(seen.pairs)) {
      if (!done.insert(pair).second) continue;
      for (const Fate fate : {Fate::fails, Fate::late, Fate::lost}) {
        if (!is_possible(pair.second, fate)) continue;
        ++tried;
        const auto what = run(base.options, Points::Planned{pair, fate}, seen);
        if (!what) continue;
        ++broken;
        std::printf("%s: %s, which %s, breaks %s\n", base.name, to_text(pair).c_str(),
                    std::string(testing::k_fate_names[static_cast<std::size_t>(fate)]).c_str(), what->c_str());
        if (!keep_going) return false;
      }
    }
  }
  counts = seen.counts;
  std::printf("%zu pairs, %zu worlds, %zu broken\n", done.size(), tried, broken);
  return broken == 0;
}

}  // namespace gridctl::sim
