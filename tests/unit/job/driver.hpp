// SPDX-License-Identifier: Apache-2.0
// Drives one job's state machine and keeps what a shell would keep.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "job/state.hpp"

namespace gridctl::job {

class Driver {
 public:
  explicit Driver(Spec spec = {}) { take(submitted({"job1"}, spec, at())); }

  void happen(Event what) { take(step(state, {at(), std::move(what)})); }
  void advance(std::int64_t ms) { now_ms += ms; }
  void place(const std::string& host) {
    happen(Placed{{Member{0, {host}, EngineKind::podman, {}, 1, 0, 0.5}}, "cheapest"});
  }
  void run_on(const std::string& host) {
    place(host);
    happen(LaunchAccepted{state.epoch});
    happen(PayloadStarted{state.epoch});
  }
  void end(End how) {
    happen(AttemptEnded{state.epoch, std::move(how)});
    if (std::holds_alternative<Collecting>(state.phase)) happen(Collected{state.epoch, ""});
  }
  void exit_with(int code) { end({EndKind::exited, code, 0, ""}); }
  void lose() { happen(HostLost{state.epoch, std::chrono::seconds{60}}); }
  std::vector<std::string> due() const {
    std::vector<std::string> names;
    for (const Effect& effect : pending(state)) names.push_back(effect_name(effect));
    return names;
  }
  bool recorded(const std::string& kind) const {
    for (const Record& record : records)
      if (record.kind == kind) return true;
    return false;
  }
  WallTime at() const { return {now_ms}; }

  State state;
  std::vector<Record> records;
  std::vector<AttemptRow> rows;
  std::vector<Effect> effects;  // of the last step
  std::int64_t now_ms = 1'000'000;

 private:
  void take(Step step) {
    state = std::move(step.state);
    effects = std::move(step.effects);
    records.insert(records.end(), step.records.begin(), step.records.end());
    rows.insert(rows.end(), step.attempts.begin(), step.attempts.end());
  }
};

constexpr Duration k_patience = std::chrono::minutes{10};

// Drives a job through a move.
class Moving : public Driver {
 public:
  using Driver::Driver;
  void request(std::uint64_t after = 0) { happen(MoveRequested{state.epoch, "drained", after, k_patience}); }
  void due() { happen(MoveDue{state.epoch}); }
  void save(std::uint64_t number) { happen(CheckpointCommitted{state.epoch, {state.head.value + 1}, "", number}); }
  void stopped() { end({EndKind::stopped, -1, 0, ""}); }
  const std::optional<Move>& move() const { return std::get<Running>(state.phase).move; }
  std::vector<std::string> effects_due() const { return Driver::due(); }
};

}  // namespace gridctl::job
