// SPDX-License-Identifier: Apache-2.0
// The simulated world: one thread, one queue of events in true time, nodes with clocks of their own, and links between
// laptops and hosts that lose, repeat, hold back and reorder what they carry.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "options.hpp"
#include "points.hpp"
#include "random.hpp"

namespace gridctl::control {
struct Controls;
class Concern;
using ConcernMaker = std::unique_ptr<Concern> (*)(const Controls&);
}  // namespace gridctl::control

namespace gridctl::sim {

class Host;
class Laptop;
class Truth;
class ImageHub;
class BagTruth;
class ServiceTruth;

// Thrown by checks; ends the run. `rule` is S1…S8, L1…L5 or R for a repetition that differs.
struct Violation : std::runtime_error {
  Violation(std::string which, const std::string& what) : std::runtime_error(which + ": " + what), rule(which) {}
  std::string rule;
};
// Thrown inside the code under test at a point where its process is killed.
struct Killed {};

using Work = std::function<void()>;

// A machine: clocks, sleep, power.
struct Node {
  bool up = true, asleep = false;
  bool stalled = false;  // its process waits for its disk
  std::uint64_t life = 1;  // what was meant for an earlier life is dropped
  int boots = 1, naps = 0;
  Nanos booted_at = 0, boot_base = 0, asleep_since = 0, slept = 0, woke_at = 0;
  std::int64_t wall_offset_ms = 0;
  double rate = 0;  // of its boot clock, relative error
  std::vector<std::pair<std::uint64_t, Work>> held;

  [[nodiscard]] BootTime boot(Nanos now) const {
    const Nanos passed = now - booted_at;
    return {boot_base + passed + static_cast<Nanos>(static_cast<double>(passed) * rate)};
  }
  // The first true time at which boot() is at least `time`.
  [[nodiscard]] Nanos when(BootTime time) const {
    const Nanos span = time.ns - boot_base;
    return booted_at + static_cast<Nanos>(static_cast<double>(span) / (1 + rate)) + 2;
  }
  [[nodiscard]] WallTime wall(Nanos now) const { return {1'800'000'000'000 + now / k_ms + wall_offset_ms}; }
  // How long it was awake since the world began.
  [[nodiscard]] Nanos awake(Nanos now) const { return now - slept - (asleep ? now - asleep_since : 0); }
};

struct Link {
  int cut_requests = 0, cut_replies = 0, slow = 0;  // how many faults say so
  // What TCP will deliver when the cut is mended, and to which life.
  std::vector<std::pair<std::uint64_t, Work>> held_requests, held_replies;
};

// Of an address of a host that has several.
enum class WayFault : std::uint8_t { cut, another_machine };

struct SimJob {
  JobId id;
  int laptop = 0;
  job::Spec spec;
  bool submitted = false;  // by its user, and acknowledged
  int start_problems = 0;  // since a start of it was known to have gone well
};

class World {
 public:
  explicit World(Options options, bool trace);
  ~World();

  // Until all is well or the patience is over. Throws Violation.
  void run();
  // A part of it, for tests of one thing: begin() once, then as long as is wanted.
  void begin();
  void run_until(Nanos end);

  void at(Nanos when, int node, Work work);
  void after(Nanos delay, int node, Work work) { at(now + delay, node, std::move(work)); }
  // From a laptop to a host: `work` runs there, if at all, maybe late, maybe twice.
  void send(int laptop, int host, Work work) { carry(laptop, host, true, node(host_node(host)).life, std::move(work)); }
  // Back, to the process that asked: `asker` is the life that its laptop had then.
  void answer(int laptop, int host, std::uint64_t asker, Work work) {
    carry(laptop, host, false, asker, std::move(work));
  }
  [[nodiscard]] bool kill_launch() { return rng.chance(healed ? 0 : options.kill_launch); }
  [[nodiscard]] bool sleep_launch() { return rng.chance(healed ? 0 : options.sleep_launch); }
  [[nodiscard]] bool kill_here() { return rng.chance(healed ? 0 : options.kill_point); }

  template <class... Parts>
  void say(const Parts&... parts) {
    if (tracing) note((text(parts) + ...));
  }

  [[nodiscard]] Node& node(int id) { return nodes[static_cast<std::size_t>(id)]; }
  [[nodiscard]] int host_node(int host) const { return options.laptops + host; }
  [[nodiscard]] Link& link(int laptop, int host) {
    return links[static_cast<std::size_t>(laptop * options.hosts + host)];
  }
  // Before an effect of this node for `subject`, a job or a host: what becomes of it.
  [[nodiscard]] Fate pass(int node, const std::string& subject, Point point);
  // The laptop's daemon waits for its disk for a while, and all others go on. Throws Killed when it is killed meanwhile.
  // From its loop, or from a fiber of its own.
  void stall(int laptop);
  void sleep(int id);
  void wake(int id);
  void mend(Link& link, int laptop, int host);
  void add_job(SimJob job);  // unless it is known
  [[nodiscard]] int index_of(const JobId& job) const;  // -1: nobody's
  void heard(int laptop, int host);                    // an answer of it
  void user_cancels(const JobId& job, Nanos later);

  const Options options;
  const bool tracing;
  Random rng;
  Points points;
  Nanos now = 0;
  bool healed = false;
  std::uint64_t events = 0;
  std::vector<Node> nodes;  // laptops, then hosts
  std::vector<Link> links;
  std::map<std::string, WayFault> ways;  // by their addresses; what is not in here works
  std::vector<SimJob> jobs;
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::unique_ptr<Laptop>> laptops;
  std::unique_ptr<Truth> truth;
  std::unique_ptr<BagTruth> bags;
  std::unique_ptr<ServiceTruth> services;
  std::unique_ptr<ImageHub> image_hub;
  std::vector<std::string> lines;  // of the trace
  std::span<const control::ConcernMaker> concerns;  // of the daemons; empty: those that ship

 private:
  struct Event {
    int node = -1;
    std::uint64_t life = 0;
    Work work;
  };
  struct Due {  // small, for the heap moves it about
    Nanos at;
    std::uint64_t order;
    std::uint32_t slot;  // of events_
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };
  static std::string text(const std::string& part) { return part; }
  static std::string text(const char* part) { return part; }
  template <class Number>
  static std::string text(Number part) {
    return std::to_string(part);
  }
  void note(std::string line);
  void carry(int laptop, int host, bool to_host, std::uint64_t life, Work work);
  void at(Nanos when, int node, std::uint64_t life, Work work);
  void release(Node& node, int id);  // what was held for it
  [[nodiscard]] Nanos travel_time(const Link& link);

  std::vector<Due> queue_;
  std::vector<Event> events_;
  std::vector<std::uint32_t> free_;  // slots
  std::uint64_t order_ = 0;
  std::map<std::string, int> indices_;  // of jobs
};

}  // namespace gridctl::sim
