// SPDX-License-Identifier: Apache-2.0
// Simulates one life of a job on virtual hosts, followed by the supervisor's own decisions: job::step and job::pending
// define the state, job::Silence the loss of a host, sched::place the host of the job, sched::checkpoint_interval the
// interval of its checkpoints. This file is their shell in virtual time. It omits only things that change nothing:
//   * heartbeats of hosts that answer are not simulated, only the ticks of the silent ones;
//   * of an attempt's checkpoints, only the newest safe one is committed, when the attempt ends: the resulting state is
//     the same (tested);
//   * placing is a pure function: the same question is answered from memory;
//   * while nothing can be placed, the scheduler is asked again when a host appears, in the rhythm of its retries;
//   * sched::judge_deadline and sched::judge_cheaper are asked when their answers can have changed, not by the clock.
// A failure takes the host with everything on it, and a new boot shows it when the host comes back. Drained hosts,
// health, links and other jobs are not simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forecast/model.hpp"
#include "sched/deadline.hpp"
#include "sched/gang.hpp"
#include "sched/place.hpp"

namespace gridctl::forecast {

// Holds times in seconds; start + work + stalled + lost + recovery + collecting = time.
struct Outcome {
  bool finished = false;  // succeeded before the horizon; else only counts are told
  double time = 0;
  double start = 0;       // until it ran for the first time
  double work = 0;        // computed and kept
  double stalled = 0;     // by checkpoints that were kept
  double lost = 0;        // computed, or stalled, and thrown away
  double recovery = 0;    // from failures until it ran again: detection, waiting for a host, start, restore
  double collecting = 0;  // its result, after it ended
  double cost = 0;        // USD: while the program ran, or its result was fetched, and the host was there
  int failures = 0;       // that struck an attempt
  int moves = 0;          // for the deadline, or to what is cheaper
  int attempts = 0;
};

// Holds the part that is equal in all lives of one choice.
class Scheduler {
 public:
  Scheduler(const Grid& grid, const Choice& choice);
  struct Answer {
    std::vector<job::Member> members;  // by rank; none: it is not placed
    std::vector<std::size_t> hosts;    // of them
    std::string reason;
    bool could_ever_fit = false;
  };
  // Holds the knowledge at one moment.
  struct Now {
    std::vector<bool> seen;           // which hosts answer
    std::vector<double> rates;        // failures per hour, when they are learned meanwhile; else empty
    double work = 0;                  // seconds at speed 1 that are not saved
    bool resumes = false;             // something is
    std::optional<double> time_left;  // until its deadline
    double failures_max = 0;          // job::State
  };
  // Calls sched::place, or place_gang, once for each different question. Without a deadline, the work counts in 32nds
  // of the total.
  [[nodiscard]] const Answer& place(const Now& now, const std::vector<job::Avoided>& avoided);
  [[nodiscard]] sched::JobKnowledge known(const Now& now) const;
  // Decides where the job would go if it left that host.
  [[nodiscard]] sched::Decision decide(const Now& now, const sched::JobKnowledge& known,
                                       const std::vector<job::Avoided>& avoided,
                                       std::optional<std::size_t> leaving = {});
  [[nodiscard]] sched::GangDecision decide_gang(const Now& now, const std::vector<job::Avoided>& avoided);
  [[nodiscard]] bool is_gang() const { return choice.spec.num_nodes > 1; }
  // Describes the run on its present host, with the amount of work that remains there.
  [[nodiscard]] sched::CurrentRun going_on(const sched::JobKnowledge& known, double work, const job::Member& on,
                                           std::size_t host) const;

  const Grid& grid;
  const Choice& choice;

 private:
  void tell(const Now& now);
  void take(Answer& answer, sched::Placement placement) const;
  std::vector<sched::HostFacts> facts_;
  std::map<HostName, double> speeds_;
  struct Question {
    std::vector<bool> seen;
    std::vector<std::string> avoided;
    int work = 0;
    bool resumes = false;
    auto operator<=>(const Question&) const = default;
  };
  std::map<Question, Answer> known_;
  Answer asked_;  // a question that is not asked again
};

// Simulates the life with this number: the same hosts fail at the same times for every choice. `go_on` is asked now and
// then (empty: always); if it returns false, the life ends unfinished.
[[nodiscard]] Outcome live(Scheduler& scheduler, std::uint64_t seed, std::uint64_t number,
                           const std::function<bool()>& go_on = {});

}  // namespace gridctl::forecast
