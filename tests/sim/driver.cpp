// SPDX-License-Identifier: Apache-2.0
// Which seeds to run, and what to say of those that fail.
#include "driver.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"
#include "os/clock.hpp"
#include "options_rich.hpp"
#include "os/log.hpp"
#include "pairs.hpp"
#include "truth.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

constexpr std::size_t k_last_lines = 50;

struct Outcome {
  std::optional<std::string> rule, what;
  std::uint64_t events = 0, restarts = 0, finished = 0;
  std::vector<std::string> lines;
  Points::Counts points{};
  std::map<std::string_view, std::uint64_t> judged;
};

Outcome run_one(const Options& options, bool trace) {
  Outcome outcome;
  World world(options, trace);
  try {
    world.run();
  } catch (const Violation& violation) {
    world.say("rule ", violation.rule, " is broken");
    outcome.rule = violation.rule;
    outcome.what = violation.what();
  }
  outcome.events = world.events;
  outcome.restarts = world.truth->restarts;
  outcome.finished = world.truth->finished;
  outcome.lines = std::move(world.lines);
  outcome.points = world.points.counts;
  outcome.judged = world.truth->rules_met;
  return outcome;
}

// Drops faults one by one while the same rule is still broken, as long as something can be dropped.
Options shrink(Options options, const std::string& rule) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = options.faults.size(); i-- > 0;) {
      Options fewer = options;
      fewer.faults.erase(fewer.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (run_one(fewer, false).rule == rule) options = std::move(fewer), smaller = true;
    }
    for (double Options::*chance :
         {&Options::loss, &Options::duplicate, &Options::long_delay, &Options::bad_bytes, &Options::kill_point,
          &Options::torn_transfer, &Options::skew, &Options::start_problem, &Options::program_fails,
          &Options::kill_launch, &Options::late_start, &Options::cancel_start, &Options::sleep_launch,
          &Options::lie_start, &Options::point_faults, &Options::server_crashes, &Options::server_hangs, &Options::gateway_fails,
          &Options::rich_faults, &Options::half_saved}) {
      if (options.*chance == 0) continue;
      Options fewer = options;
      fewer.*chance = 0;
      if (run_one(fewer, false).rule == rule) options = std::move(fewer), smaller = true;
    }
  }
  return options;
}

void explain(const Options& options, const Outcome& first) {
  const Options small = shrink(options, *first.rule);
  const Outcome again = run_one(small, true);
  std::printf("seed %llu breaks %s\n", static_cast<unsigned long long>(options.seed), first.what->c_str());
  std::printf("  %s, %s registry, %d hosts, %d laptops, %d jobs, lease %lld s, lost_after %lld s, tick %lld ms\n",
              options.wait_mode ? "wait for the lease" : "failover",
              options.registry == RegistryKind::sqlite ? "SQLite" : "memory", options.hosts, options.laptops,
              options.jobs, static_cast<long long>(options.lease / k_s),
              static_cast<long long>(options.lost_after / k_s), static_cast<long long>(options.tick / k_ms));
  std::printf(
      "  loss %.3f, repeated %.3f, very late %.4f, bad bytes %.3f, kill points %.4f, torn %.2f, skew %.4f, starts fail "
      "%.2f, program fails %.2f, liar %d%s\n",
      small.loss, small.duplicate, small.long_delay, small.bad_bytes, small.kill_point, small.torn_transfer, small.skew,
      small.start_problem, small.program_fails, small.liar, small.deadly ? " (deadly)" : "");
  std::printf("faults that are needed (%zu of %zu):\n", small.faults.size(), options.faults.size());
  for (const Fault& fault : small.faults) std::printf("  %s\n", to_text(fault).c_str());
  std::printf("last events:\n");
  const std::size_t from = again.lines.size() > k_last_lines ? again.lines.size() - k_last_lines : 0;
  for (std::size_t i = from; i < again.lines.size(); ++i) std::printf("  %s\n", again.lines[i].c_str());
  std::printf("  => %s\n", again.what ? again.what->c_str() : "(does not fail when traced)");
}

struct Pace {
  std::uint64_t events = 0;
  std::clock_t cpu = 0;
};

struct Plan {
  std::vector<std::pair<std::uint64_t, Drawing>> old_seeds;
  Drawing drawing = Drawing::fourth;
  std::uint64_t first = 1, count = 0;
  double seconds = 10;
  bool trace = false, quiet = false, fresh = false, keep_going = false, pairs = false, reach = false, bags = false, services = false;
  std::optional<RegistryKind> registry;
};

int usage() {
  std::fputs(
      "usage: gridctl_sim [--seed N | --from N | --fresh] [--count N] [--seconds S] [--seeds FILE] [--registry "
      "memory|sqlite]\n"
      "                   [--trace] [--quiet] [--keep-going] [--pairs] [--reach] [--bags] [--services] [--drawing 1|2|3|4]\n"
      "                   [--about spending|refusals|standbys|deadlines|ends|commits|hangs|images]\n\n"
      "Runs the seeds of FILE, then fresh ones from N on, until COUNT have run or S seconds have passed. Stops at the\n"
      "first that breaks a rule, unless it shall keep going: prints it with the faults that are needed and the last "
      "50\n"
      "events (--quiet: in one line). Status 1 then. --pairs: of each two effects that follow each other the second\n"
      "fails, is late or loses its answer, each once. --reach: how often each fault point and rule was reached.\n"
      "--bags, --services: only the seeds that have bags of tasks, or services. --drawing 1: seeds mean what they did\n"
      "before most worlds were short and crowded, 2: before some were about one thing, 3: before hangs and images were among those;\n"
      "a line of FILE says so of those that follow it. --about: all are about that one thing.\n",
      stderr);
  return 2;
}

std::optional<Plan> parse(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--trace") plan.trace = true;
    else if (word == "--quiet") plan.quiet = true;
    else if (word == "--fresh") plan.fresh = true;
    else if (word == "--keep-going") plan.keep_going = true;
    else if (word == "--pairs") plan.pairs = true;
    else if (word == "--reach") plan.reach = true;
    else if (word == "--bags") plan.bags = true;
    else if (word == "--services") plan.services = true;
    else if (!more) return std::nullopt;
    else if (word == "--seed") plan.first = std::stoull(argv[++i]), plan.count = 1;
    else if (word == "--from") plan.first = std::stoull(argv[++i]);
    else if (word == "--count") plan.count = std::stoull(argv[++i]);
    else if (word == "--seconds") plan.seconds = std::stod(argv[++i]);
    else if (word == "--about") {
      const std::optional<Drawing> chosen = about(argv[++i]);
      if (!chosen) return std::nullopt;
      plan.drawing = *chosen;
    } else if (word == "--drawing") plan.drawing = static_cast<Drawing>(std::stoi(argv[++i]));
    else if (word == "--registry")
      plan.registry = argv[++i] == std::string_view("sqlite") ? RegistryKind::sqlite : RegistryKind::memory;
    else if (word == "--seeds") {
      std::ifstream in(argv[++i]);
      Drawing drawing = Drawing::third;
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("drawing ")) drawing = static_cast<Drawing>(std::stoi(line.substr(8)));
        else if (line.starts_with("about ")) drawing = about(line.substr(6)).value();
        else if (!line.empty() && line[0] != '#') plan.old_seeds.emplace_back(std::stoull(line), drawing);
    } else return std::nullopt;
  }
  return plan;
}

void add(Points::Counts& to, const Points::Counts& more) {
  for (std::size_t i = 0; i < to.size(); ++i)
    for (std::size_t j = 0; j < to[i].size(); ++j) to[i][j] += more[i][j];
}

void print_reach(const Points::Counts& points, const std::map<std::string_view, std::uint64_t>& judged) {
  std::printf("%-26s", "");
  for (const std::string_view fate : testing::k_fate_names) std::printf(" %9s", std::string(fate).c_str());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto point = static_cast<Point>(i);
    std::printf("\n%-26s", std::string(point_name(point)).c_str());
    for (std::size_t j = 0; j < points[i].size(); ++j)
      if (is_possible(point, static_cast<Fate>(j))) std::printf(" %9llu", static_cast<unsigned long long>(points[i][j]));
      else std::printf(" %9s", "-");
  }
  std::fputs(judged.empty() ? "" : "\nrules", stdout);
  for (const auto& [rule, times] : judged) std::printf(", %s %llu", std::string(rule).c_str(), static_cast<unsigned long long>(times));
  std::printf("\n");
}

}  // namespace

int drive(int argc, char** argv) {
  const std::optional<Plan> plan = parse(argc, argv);
  if (!plan) return usage();
  os::Clock& clock = os::system_clock();
  const BootTime began = clock.boot();
  std::uint64_t seeds = 0, restarts = 0, finished = 0, broken = 0;
  std::array<Pace, 2> paces;  // by registry
  Points::Counts points{};
  std::map<std::string_view, std::uint64_t> judged;
  const auto run = [&](std::uint64_t seed, Drawing drawing) {
    Options options = draw(seed, drawing);
    if (plan->bags && options.bags == 0) return true;
    if (plan->services && options.services == 0) return true;
    if (plan->registry) options.registry = *plan->registry;
    const std::clock_t before = std::clock();
    const Outcome outcome = run_one(options, plan->trace);
    Pace& pace = paces[static_cast<std::size_t>(options.registry)];
    pace.cpu += std::clock() - before;
    pace.events += outcome.events;
    ++seeds;
    add(points, outcome.points);
    for (const auto& [rule, times] : outcome.judged) judged[rule] += times;
    restarts += outcome.restarts;
    finished += outcome.finished;
    if (plan->trace)
      for (const std::string& line : outcome.lines) std::printf("%s\n", line.c_str());
    if (!outcome.rule) return true;
    if (plan->quiet) std::printf("seed %llu breaks %s\n", static_cast<unsigned long long>(seed), outcome.what->c_str());
    else explain(options, outcome);
    std::fflush(stdout);
    ++broken;
    return plan->keep_going;
  };
  const auto report = [&] {
    for (const RegistryKind kind : {RegistryKind::memory, RegistryKind::sqlite}) {
      const Pace& pace = paces[static_cast<std::size_t>(kind)];
      if (pace.events == 0) continue;
      const double cpu = std::max(static_cast<double>(pace.cpu) / CLOCKS_PER_SEC, 1e-6);
      std::printf("%s registry: %llu events, %.3f M events/s of one core\n",
                  kind == RegistryKind::memory ? "in-memory" : "SQLite", static_cast<unsigned long long>(pace.events),
                  static_cast<double>(pace.events) / cpu / 1e6);
    }
    std::printf("%llu seeds, %llu broken, %llu jobs succeeded, %llu restarts, %.1f s\n",
                static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(broken),
                static_cast<unsigned long long>(finished), static_cast<unsigned long long>(restarts),
                seconds(clock.boot() - began));
    if (plan->reach) print_reach(points, judged);
  };
  if (plan->pairs) {
    const bool sound = try_pairs(points, plan->keep_going);
    if (plan->reach) print_reach(points, judged);
    return sound ? 0 : 1;
  }
  for (const auto& [seed, drawing] : plan->old_seeds)
    if (!run(seed, drawing)) return report(), 1;
  // Nobody has seen those of this second before.
  const std::uint64_t first = plan->fresh ? static_cast<std::uint64_t>(clock.wall().ms / 1000) * 100'000 : plan->first;
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first));
  const BootTime fresh_began = clock.boot();
  for (std::uint64_t seed = first; plan->count == 0 || seed < first + plan->count; ++seed) {
    if (plan->count == 0 && seconds(clock.boot() - fresh_began) > plan->seconds) break;
    if (!run(seed, plan->drawing)) return report(), 1;
  }
  report();
  return broken == 0 ? 0 : 1;
}

}  // namespace gridctl::sim
