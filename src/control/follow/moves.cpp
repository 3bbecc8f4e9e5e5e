// SPDX-License-Identifier: Apache-2.0
#include "control/follow/moves.hpp"

namespace gridctl::control {

namespace {

constexpr const char* k_why = "drained";

std::string summary_of(const MoveFacts& facts) {
  return facts.gang ? sched::summary(*facts.gang, facts.wish) : sched::summary(facts.decision);
}

std::string goes_to(const MoveFacts& facts) {
  if (!facts.gang) return facts.decision.placement->host.value;
  return sched::describe(*facts.gang->plan);
}

}  // namespace

bool may_move(const job::State& state, bool drained) {
  if (std::holds_alternative<job::Launching>(state.phase)) return drained;
  const auto* running = std::get_if<job::Running>(&state.phase);
  return running != nullptr && (drained || running->move || state.reason == job::k_move_blocked);
}

std::optional<job::Event> judge_move(const job::State& state, const MoveFacts& facts, WallTime now) {
  const job::Attempt* attempt = state.attempt();
  if (attempt == nullptr || !may_move(state, !facts.drained.value.empty())) return std::nullopt;
  const Epoch epoch = attempt->epoch;
  const auto* running = std::get_if<job::Running>(&state.phase);
  const bool possible = facts.possible();
  const bool drained = !facts.drained.value.empty();
  if (!drained && !(running->move && facts.wished)) return job::MoveWithdrawn{epoch};
  if (!facts.answers) return std::nullopt;
  const auto leave = [&](std::uint64_t after, Duration patience) {
    return job::MoveRequested{epoch, k_why, after, patience, {}, 0, facts.drained, facts.by_tasks};
  };
  if (running == nullptr) return possible ? std::optional<job::Event>{leave(0, {})} : std::nullopt;
  if (!possible && !(running->move && facts.to_anywhere && !drained)) {
    const std::string summary = summary_of(facts);
    const bool told = state.reason == job::k_move_blocked && state.reason_text.ends_with(summary);
    return told ? std::nullopt : std::optional<job::Event>{job::MoveBlocked{epoch, summary}};
  }
  if (!running->move) return leave(facts.newest_there, facts.patience);
  if (facts.by_tasks && facts.tasks_ended) return job::MoveDue{epoch, "the tasks that it ran have ended"};
  // Unless the host has to be emptied, a job moves only with all its work saved: lost work would be missing at the end.
  // Tasks of a bag that are stopped are run again by others.
  const bool may_lose = drained || (facts.by_tasks && facts.patience > Duration::zero());
  const bool impatient = may_lose && now - running->move->since >= facts.patience;
  if (impatient && facts.by_tasks)
    return job::MoveDue{epoch, "the time for its tasks is over: those that still run go back to the bag, and that is no failure"};
  if (running->move->saved || impatient) return job::MoveDue{epoch};
  return std::nullopt;
}

std::vector<std::string> explain_move(const job::State& state, const MoveFacts& facts) {
  const job::Attempt* attempt = state.attempt();
  std::vector<std::string> lines;
  if (attempt == nullptr) return lines;
  const auto* running = std::get_if<job::Running>(&state.phase);
  const std::string why = running != nullptr && running->move ? running->move->why : k_why;
  const std::string host = running != nullptr && running->move && !running->move->host.value.empty()
                               ? running->move->host.value
                               : attempt->lead().host.value;
  lines.push_back((why == k_why ? host + " is being emptied" : job::leaving_in_words({host}, why)) + ": " +
                  (facts.by_tasks && (facts.possible() || facts.to_anywhere)
                       ? "this worker gets no more tasks, leaves when those that it runs have ended, and then " +
                                            (facts.possible() ? "goes to " + goes_to(facts) : "waits for a host")
                   : facts.possible() ? "the job moves to " + goes_to(facts) + " when its next checkpoint is safe"
                                      : "the job stays until another host can run it"));
  for (std::string& line : facts.gang ? sched::explain(*facts.gang, facts.wish) : sched::explain(facts.decision))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace gridctl::control
