// SPDX-License-Identifier: Apache-2.0
// One life of a job on virtual hosts, followed by the supervisor's own decisions: job::step and job::pending say what
// happens, job::Silence when a host is lost, sched::place where the job goes, sched::checkpoint_interval how often it
// saves. What stands here is their shell in virtual time, and what it leaves out changes nothing:
//   * heartbeats of hosts that answer are not simulated, only the ticks of the silent;
//   * of an attempt's checkpoints the newest safe one is committed, when the attempt ends: the state that follows is
//     the same (tested);
//   * placing is a pure function: the same question is answered from memory;
//   * while nothing can be placed, the scheduler is asked again when a host appears, in the rhythm of its retries.
// A failure takes the host with all that is on it, and it is known by a new boot when it comes back. Moves, health,
// links and other jobs are not simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forecast/model.hpp"
#include "sched/place.hpp"

namespace gridctl::forecast {

// Seconds; start + work + stalled + lost + recovery + collecting = time.
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
  int attempts = 0;
};

// What is the same in all lives of one choice.
class Scheduler {
 public:
  Scheduler(const Grid& grid, const Choice& choice);
  struct Answer {
    std::optional<job::Member> member;
    std::size_t host = 0;
    std::string reason;
    bool could_ever_fit = false;
  };
  // sched::place with these hosts answering; the same question is asked once.
  [[nodiscard]] const Answer& place(const std::vector<bool>& seen, const std::vector<job::Avoided>& avoided);

  const Grid& grid;
  const Choice& choice;

 private:
  std::vector<sched::HostFacts> facts_;
  std::map<std::pair<std::vector<bool>, std::vector<std::string>>, Answer> known_;
};

// The life with this number: the same hosts fail at the same times whatever the choice. `go_on` is asked now and then
// (empty: always); when it says no, the life ends unfinished.
[[nodiscard]] Outcome live(Scheduler& scheduler, std::uint64_t seed, std::uint64_t number,
                           const std::function<bool()>& go_on = {});

}  // namespace gridctl::forecast
