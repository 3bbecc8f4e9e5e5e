// SPDX-License-Identifier: Apache-2.0
#include "job/exactness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

namespace gridctl::job::exactness_test {
namespace {

using ::testing::HasSubstr;

std::string format(const char* pattern, double a, double b) {
  char line[128];
  std::snprintf(line, sizeof line, pattern, a, b);
  return line;
}

// A training whose loss is a falling curve, and noise that each batch brings with it.
struct Training {
  std::uint64_t seed = 1;
  double start = 4, end = 2, noise = 0.05;
  int last_before = 150, restored_at = 100, until = 200, every = 1;
  const char* pattern = "iter %.0f: loss %.4f, time 20.13ms\n";

  [[nodiscard]] double batch(int number) const {
    std::mt19937_64 engine(seed * 1'000'003 + static_cast<std::uint64_t>(number));
    return std::normal_distribution<double>(0, noise)(engine);
  }
  [[nodiscard]] std::string lines(int begin, int until_step, const std::function<int(int)>& batch_of) const {
    std::string text;
    for (int step = begin; step < until_step; ++step)
      if (step % every == 0)
        text += format(pattern, step, end + (start - end) * std::exp(-step / 60.0) + batch(batch_of(step)));
    return text;
  }
  [[nodiscard]] ExactnessVerdict judge(const std::function<int(int)>& batch_after) const {
    StepNumbers first, after;
    first.read(lines(0, last_before, [](int step) { return step; }));
    after.read(lines(restored_at, until, batch_after));
    return judge_exactness(first, first, after);
  }
};

TEST(Exactness, ThreeKindsOfProgramsAreToldApart) {
  const Training training;
  const ExactnessVerdict exact = training.judge([](int step) { return step; });
  EXPECT_EQ(exact.verdict, Exactness::exact) << exact.why;
  EXPECT_EQ(exact.steps, 50u);
  EXPECT_EQ(exact.largest_difference, 0);
  EXPECT_EQ(exact.number, "loss");
  const ExactnessVerdict repeats = training.judge([](int step) { return step - 100; });
  EXPECT_EQ(repeats.verdict, Exactness::repeats) << repeats.why;
  const ExactnessVerdict other = training.judge([](int step) { return step + 1'000'000; });
  EXPECT_EQ(other.verdict, Exactness::other_data) << other.why;
  EXPECT_GT(other.largest_difference, 0.05);
  EXPECT_THAT(other.why, HasSubstr("at 50 steps"));
}

TEST(Exactness, SimulatedFailoversGetNoWrongVerdict) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    std::mt19937_64 engine(seed);
    const auto draw = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); };
    Training training;
    training.seed = seed;
    training.start = draw(1, 10);
    training.end = training.start * draw(0.2, 0.9);
    training.noise = training.start * std::pow(10, draw(-2.5, -1));
    training.restored_at = static_cast<int>(draw(30, 400));
    training.last_before = training.restored_at + static_cast<int>(draw(9, 120));
    training.until = training.restored_at + static_cast<int>(draw(9, 300));
    const int from = training.restored_at;
    const ExactnessVerdict exact = training.judge([](int step) { return step; });
    EXPECT_EQ(exact.verdict, Exactness::exact) << seed << ": " << exact.why;
    const ExactnessVerdict other = training.judge([](int step) { return step + 1'000'000; });
    EXPECT_EQ(other.verdict, Exactness::other_data) << seed << ": " << other.why;
    const ExactnessVerdict again = training.judge([from](int step) { return step - from; });
    EXPECT_TRUE(again.verdict == Exactness::repeats || again.verdict == Exactness::other_data) << seed << again.why;
    found += again.verdict == Exactness::repeats ? 1 : 0;
  }
  EXPECT_GT(found, 150);  // the others had too few steps
}

TEST(Exactness, FewStepsAndNumbersThatTellNothingGiveNoVerdict) {
  Training few;
  few.last_before = few.restored_at + 7;
  EXPECT_EQ(few.judge([](int step) { return step; }).verdict, Exactness::cannot_tell);
  Training coarse;
  coarse.pattern = "step %.0f loss %.0f\n";
  EXPECT_EQ(coarse.judge([](int step) { return step + 1000; }).verdict, Exactness::cannot_tell);
  Training mute;
  mute.pattern = "working on %.0f, %.4f\n";
  EXPECT_THAT(mute.judge([](int step) { return step; }).why, HasSubstr("no step"));
  Training speed;
  speed.pattern = "step %.0f step_time %.4f\n";
  EXPECT_EQ(speed.judge([](int step) { return step; }).verdict, Exactness::cannot_tell);
}

TEST(Exactness, AMeanOfFewerStepsAtFirstAndRoundingOfParallelSumsAreNoDifference) {
  const Training training;
  StepNumbers first, after;
  first.read(training.lines(0, 150, [](int step) { return step; }));
  after.read("iter 100: loss 9.1234\n" + training.lines(101, 150, [](int step) { return step; }));
  EXPECT_EQ(judge_exactness(first, first, after).verdict, Exactness::exact);
  StepNumbers rounded;
  for (const auto& [step, value] : first.series().at("iter loss"))
    if (step.step >= 100) rounded.add("iter loss", step, {value.number + 0.0003, value.unit});
  EXPECT_EQ(judge_exactness(first, first, rounded).verdict, Exactness::exact);
}

TEST(Exactness, StepsOfEpochsThatRepeatTheirOrderAreNoRepetitionOfTheRestore) {
  const Training training;
  StepNumbers first, after;
  first.read(training.lines(0, 150, [](int step) { return step % 50; }));
  after.read(training.lines(100, 200, [](int step) { return (step % 50) + (step > 110 ? 7 : 0); }));
  EXPECT_EQ(judge_exactness(first, first, after).verdict, Exactness::other_data);
}

struct Line {
  const char *text, *name;
  double epoch, step, number;
};
class LinesOfPrograms : public ::testing::TestWithParam<Line> {};
TEST_P(LinesOfPrograms, AreRead) {
  StepNumbers numbers;
  numbers.read(std::string(GetParam().text) + "\n");
  const auto series = numbers.series().find(GetParam().name);
  ASSERT_NE(series, numbers.series().end());
  const auto value = series->second.find({GetParam().epoch, GetParam().step});
  ASSERT_NE(value, series->second.end());
  EXPECT_DOUBLE_EQ(value->second.number, GetParam().number);
}
INSTANTIATE_TEST_SUITE_P(
    Programs, LinesOfPrograms,
    ::testing::Values(Line{"iter 40: loss 3.0213, time 132.12ms, mfu 2.10%", "iter loss", 0, 40, 3.0213},
                      Line{"step 250: train loss 1.9713, val loss 2.0110", "step train loss", 0, 250, 1.9713},
                      Line{"{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.02}", "epoch loss", 0.02, 0, 0.6931},
                      Line{"{'loss': '0.6931', 'epoch': '0.02'}", "epoch loss", 0.02, 0, 0.6931},
                      Line{"Epoch 1:  50%|#####     | 32/64 [00:01<00:01, 24.35it/s, v_num=0, train_loss=0.521]",
                           "progress train_loss", 1, 32, 0.521},
                      Line{"\x1b[1m32/100\x1b[0m \x1b[32m----\x1b[0m 0s 5ms/step - accuracy: 0.9 - loss: 0.25", "progress loss", 0, 32, 0.25},
                      Line{"2026-11-26 18:00:01,123 - INFO - global_step=12 loss=-1.5e-3", "step loss", 0, 12, -1.5e-3},
                      Line{"Epoch [3][20/100] step: 7 loss: tensor(0.25, device='cuda:0')", "step loss", 3, 7, 0.25}));

}  // namespace
}  // namespace gridctl::job::exactness_test
