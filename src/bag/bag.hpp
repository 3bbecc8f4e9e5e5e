// SPDX-License-Identifier: Apache-2.0
// Holds a bag of tasks as its journal describes it. Decisions give records; a record counts when it is durable, and is
// applied at that time or earlier, in the order of the journal. The commit rule: a result commits only while its
// worker's epoch is open, and a task that is done is never done again: later results for it are counted and reported.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bag/journal.hpp"

namespace gridctl::bag {

struct Progress {
  std::uint64_t tasks = 0, done = 0, failed = 0;
  std::uint64_t held = 0;   // given to workers, not yet known
  std::uint64_t runs = 0;   // results of tasks that were begun
  std::uint64_t twice = 0;  // of these, of tasks that were done already
  std::uint64_t late = 0;   // results of workers that were given up; they count for nothing
  std::uint64_t late_differ = 0;  // of these, those that ended otherwise than what counts
  std::uint64_t retries = 0;      // failures that were followed by another try
  [[nodiscard]] bool over() const { return done + failed == tasks; }
};

// Describes a task that has failed so far.
struct Trouble {
  std::uint64_t tries = 0;
  std::uint64_t ran_out = 0;  // of these, those that ended for want of memory or disk, and are tried again with more
  std::uint64_t level = 0;    // of the workers that may have it
  std::set<std::string> hosts;
  wire::TaskResult last;
  std::string last_host;
  bool died = false;  // its worker died while it ran: `last` is empty
};

struct Holder {
  std::string host;
  std::uint64_t attempt = 0;
  std::uint64_t level = 0;  // as Joined has it
  bool open = true;
  Ranges held;  // given to it, no result yet
  std::uint64_t orders_from = 0;        // number of the first of:
  std::vector<wire::BagOrder> orders;   // without items
  std::uint64_t results = 0;            // how many of its results are applied
  std::uint64_t done = 0, failed = 0;   // of these
  int unstarted = 0;                    // in a row: its host cannot start tasks
  std::uint64_t failed_here_only = 0;   // tasks that failed here and succeeded elsewhere, beyond those that have succeeded here since
  [[nodiscard]] bool is_shunned() const;  // its host is the trouble: it is given nothing more
  [[nodiscard]] std::uint64_t next_order() const { return orders_from + orders.size(); }
};

// Holds the observed speed of a worker.
struct Pace {
  double task_s = 0;  // of one task; 0: not known
  int slots = 1;
  std::uint64_t seen = 0;  // results that it was learned from
  // share.cpp: learns from results that came together.
  void take(const std::vector<wire::TaskResult>& results);
};

class Bag {
 public:
  void apply(const Record& record);

  [[nodiscard]] Progress progress() const;
  [[nodiscard]] bool is_done(Index index) const { return index < phases_.size() && phases_[index] == Phase::done; }
  [[nodiscard]] bool has_failed(Index index) const { return index < phases_.size() && phases_[index] == Phase::failed; }
  // Counts the tasks that no worker holds and that a worker of this level may get.
  [[nodiscard]] std::uint64_t waiting(std::uint64_t level = UINT64_MAX) const;
  // Returns the tasks that no worker holds and that ran out of the resources of workers below a level, by that level.
  [[nodiscard]] const std::map<std::uint64_t, Ranges>& hungry() const { return hungry_; }
  [[nodiscard]] const std::map<Worker, Holder>& workers() const { return workers_; }
  [[nodiscard]] const Holder* find(const Worker& worker) const;
  [[nodiscard]] const std::map<Index, Trouble>& troubles() const { return troubles_; }
  [[nodiscard]] Ranges failed() const;

  // share.cpp: returns the tasks that the worker needs now to avoid waiting; nullopt: none.
  [[nodiscard]] std::optional<Ordered> share(const Worker& worker, const Pace& pace) const;
  // Returns the order by which a worker that is to leave gives back what it holds and does not run; nullopt: nothing, or
  // it will soon have done all of that.
  [[nodiscard]] std::optional<Ordered> recall(const Worker& worker, const std::vector<Index>& running, const Pace& pace) const;
  // Returns true if an orderly stop has ended runs of this task so often that its next run must not be stopped.
  [[nodiscard]] bool is_spared(Index index) const;
  // Describes, if nothing waits and `idle` has nothing to do, the tasks to take from another worker and give to it. A
  // task that already runs on a slow worker is not taken, but run twice.
  struct Steal {
    std::optional<Ordered> revoke;
    Ordered grant;
  };
  [[nodiscard]] std::optional<Steal> steal(const Worker& idle, const std::map<Worker, Pace>& paces) const;

 private:
  enum class Phase : std::uint8_t { open, done, failed };

  void take(const Ordered& record);
  void take(const Told& record);
  [[nodiscard]] static bool was_ordered(const Holder& holder, const wire::TaskResult& result);
  void take(Holder& holder, const wire::TaskResult& result);
  std::uint64_t take_run(Holder& holder, const std::vector<wire::TaskResult>& results, std::uint64_t at);
  void take_late(const wire::TaskResult& result);
  void take(const Closed& record);
  void take(const Rebased& record);
  void take(const Capped& record);
  void take(const Resumed& record);
  void succeeded(Index index, Holder& holder);
  void failed(Index index, Holder& holder, const wire::TaskResult& result, bool died);
  void give_back(Range range);  // what nobody holds waits again
  void no_longer_waits(Range range);
  void give_up(Index index, Holder* holder);
  [[nodiscard]] bool is_held(Index index) const;
  [[nodiscard]] Ranges undone(const Ranges& held, std::uint64_t level) const;
  [[nodiscard]] bool is_held_twice(Index index) const;
  [[nodiscard]] bool fits_elsewhere(const Trouble& trouble) const;
  [[nodiscard]] bool is_passed_over(const Holder& holder) const;
  [[nodiscard]] bool may_wait_for_another_host(const Trouble& trouble) const;
  [[nodiscard]] std::uint64_t open_workers() const;
  [[nodiscard]] std::uint64_t held_twice() const;

  std::uint64_t retries_ = 1;
  bool raises_ = false;
  std::optional<std::uint64_t> cap_;  // as Capped has it
  std::vector<Phase> phases_;
  Ranges waiting_;          // nobody holds them, and they have not failed
  std::set<Index> again_;   // nobody holds them, and they have failed
  std::map<std::uint64_t, Ranges> hungry_;  // nobody holds them, and they need a worker of this level; never empty ranges
  std::map<Worker, Holder> workers_;
  std::map<Index, Trouble> troubles_;
  std::map<Index, std::uint64_t> stops_;  // of tasks that have no end yet: orderly stops that ended their runs
  Progress counts_;
};

// Describes the end in words: "3 of 200 tasks failed: 17, 20-30".
[[nodiscard]] std::string end_in_words(const Bag& bag);

}  // namespace gridctl::bag
