// SPDX-License-Identifier: Apache-2.0
// The state machine against the closed form: a job whose hosts fail exponentially, driven through job::step and
// job::pending, takes the mean time that Daly's complete model predicts,
//   T = M e^(R/M) (e^((tau+C)/M) - 1) Ts/tau        (failures strike during checkpoints and restarts too).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "job/state.hpp"
#include "random.hpp"
#include "sched/interval.hpp"

namespace gridctl::sim {
namespace {

struct Case {
  std::string name;
  double mtbf = 0, cost = 0, restart = 0, work = 0, interval = 0, expected = 0;
};

std::vector<Case> read_cases() {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/ckpt_reference.csv");
  std::vector<Case> cases;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto fields = split(line, ',');
    if (fields.size() < 12) continue;
    const auto number = [&](std::size_t i) { return std::stod(std::string(fields[i])); };
    cases.push_back({std::string(fields[0]), number(1), number(2), number(3), number(4), number(8), number(11)});
  }
  return cases;
}

double closed_form(const Case& c) {
  return c.mtbf * std::exp(c.restart / c.mtbf) * std::expm1((c.interval + c.cost) / c.mtbf) * c.work / c.interval;
}

// One life of a job. Every restart takes `restart`, of which the machine's own pause before it asks the scheduler is a
// part; a checkpoint is safe when its cost is paid. Work, not wall time, is what a checkpoint keeps.
class Life {
 public:
  Life(const Case& c, std::uint64_t seed) : case_(c), random_(seed) {
    job::Spec spec;
    spec.name = "life";
    state_ = job::submitted({"life"}, spec, {0}).state;
    next_failure_ = random_.exponential(c.mtbf);
  }

  double run() {
    start(true);
    while (!std::holds_alternative<job::Done>(state_.phase)) {
      const double left = case_.work - saved_;
      const double piece = std::min(case_.interval, left);
      if (!survives(piece + case_.cost)) continue;
      saved_ += piece;
      apply(job::CheckpointCommitted{state_.epoch, {state_.head.value + 1}, "", ++host_number_});
      if (saved_ < case_.work - 1e-6) continue;
      apply(job::AttemptEnded{state_.epoch, {job::EndKind::exited, 0, 0, ""}});
      apply(job::Collected{state_.epoch, ""});
    }
    return now_;
  }

 private:
  void apply(job::Happening what) {
    state_ = job::step(state_, {WallTime{static_cast<std::int64_t>(now_ * 1000)}, std::move(what)}).state;
  }

  // Goes on for so long; false when a failure came first. Then the job runs again, from its newest checkpoint.
  bool survives(double time) {
    if (next_failure_ > time) {
      next_failure_ -= time;
      now_ += time;
      return true;
    }
    now_ += next_failure_;
    next_failure_ = random_.exponential(case_.mtbf);
    apply(job::AttemptEnded{state_.epoch, {job::EndKind::host_rebooted, -1, 0, ""}});
    apply(job::Collected{state_.epoch, ""});
    settle();
    start(false);
    return false;
  }

  void start(bool first) {
    for (;;) {
      const auto effects = job::pending(state_);
      const auto* place = std::get_if<job::Place>(&effects.front());
      ASSERT_NE(place, nullptr);
      const double time = first ? 0 : case_.restart;
      apply(job::Placed{{job::Member{0, {"host"}, EngineKind::process, {}, 1, 0, 0}}, "the only one"});
      const auto due = job::pending(state_);
      ASSERT_TRUE(std::holds_alternative<job::Launch>(due.front()));
      EXPECT_EQ(std::get<job::Launch>(due.front()).restore, state_.head);
      if (next_failure_ > time) {
        next_failure_ -= time;
        now_ += time;
        apply(job::PayloadStarted{state_.epoch});
        return;
      }
      now_ += next_failure_;
      next_failure_ = random_.exponential(case_.mtbf);
      apply(job::AttemptEnded{state_.epoch, {job::EndKind::host_rebooted, -1, 0, ""}});
      apply(job::Collected{state_.epoch, ""});
      settle();
    }
  }

  void settle() {
    for (const job::LooseEnd& end : std::vector<job::LooseEnd>(state_.loose_ends))
      apply(job::Settled{end.host, end.epoch});
  }

  const Case& case_;
  Random random_;
  job::State state_;
  double now_ = 0, saved_ = 0, next_failure_ = 0;
  std::uint64_t host_number_ = 0;
};

TEST(ClosedForm, IsWhatTheReferenceTableSays) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GE(cases.size(), 10u);
  for (const Case& c : cases) {
    EXPECT_NEAR(closed_form(c) / c.expected, 1, 1e-4) << c.name;
    EXPECT_NEAR(sched::optimal_interval(c.cost, c.mtbf) / c.interval, 1, 1e-4) << c.name;
  }
}

TEST(ClosedForm, IsMetByTheStateMachineWithinTwoPercent) {
  for (const Case& c : read_cases()) {
    // A run of length T sees about T/M failures, so its spread is some 1/sqrt(T/M): enough runs for a third of 2 %.
    const double failures = c.expected / c.mtbf;
    const int runs = std::clamp(static_cast<int>(25'000 / failures), 20, 2'000);
    double sum = 0;
    for (int i = 0; i < runs; ++i) sum += Life(c, static_cast<std::uint64_t>(i) + 1).run();
    const double mean = sum / runs;
    std::printf("%s: M %.0f s, C %.0f s, R %.0f s, tau %.1f s: %.0f s in %d runs, expected %.0f s, %+.2f %%\n",
                c.name.c_str(), c.mtbf, c.cost, c.restart, c.interval, mean, runs, c.expected,
                100 * (mean / c.expected - 1));
    EXPECT_NEAR(mean / c.expected, 1, 0.02) << c.name;
  }
}

}  // namespace
}  // namespace gridctl::sim
