// SPDX-License-Identifier: Apache-2.0
#include "wire/bench.hpp"

#include <gtest/gtest.h>

#include "wire/frame.hpp"

namespace gridctl::wire::bench_test {
namespace {

BenchStage sample_stage() {
  BenchStage stage;
  stage.numbers = {{"seconds", 0.25}, {"groups", 128}};
  stage.texts = {{"name", "AMD \"Instinct\"\n"}, {"empty", ""}};
  stage.words = {{"answer", std::string(1024, 'a')}};
  return stage;
}

TEST(BenchMessages, SurviveTheirJson) {
  const auto stage = parse_bench_stage(encode(sample_stage()));
  ASSERT_TRUE(stage) << stage.error().one_line();
  EXPECT_EQ(stage->numbers, sample_stage().numbers);
  EXPECT_EQ(stage->texts, sample_stage().texts);
  EXPECT_EQ(stage->words, sample_stage().words);
  EXPECT_FALSE(stage->done);
  EXPECT_EQ(stage->number("groups"), 128);
  EXPECT_EQ(stage->number("nothing"), 0);

  const BenchBegin begin{"gemm", "cuda", 3, "GPU-x", {{"target_ms", 400}}, std::chrono::seconds{30}, "GPU-y"};
  const auto back = parse_bench_begin(encode(begin));
  ASSERT_TRUE(back) << back.error().one_line();
  EXPECT_EQ(back->test, "gemm");
  EXPECT_EQ(back->index, 3u);
  EXPECT_EQ(back->gpu, "GPU-x");
  EXPECT_EQ(back->peer, "GPU-y");
  EXPECT_EQ(back->parameters, begin.parameters);
  EXPECT_EQ(back->deadline, begin.deadline);

  EXPECT_EQ(parse_bench_seed(encode(BenchSeed{~std::uint64_t{0}}))->seed, ~std::uint64_t{0});
  EXPECT_EQ(parse_bench_host(encode(BenchHost{std::chrono::seconds{2}}))->part, std::chrono::seconds{2});
  const auto devices = parse_bench_devices(encode(BenchDevices{{sample_stage()}, {{"cuda", "none"}}}));
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->devices.size(), 1u);
  EXPECT_EQ(devices->problems.at("cuda"), "none");
}

TEST(BenchMessages, RefuseWhatNoHostNeeds) {
  BenchStage large = sample_stage();
  large.words["answer"] = std::string(k_bench_words_max + 8, '0');
  EXPECT_FALSE(parse_bench_stage(encode(large)));
  large = sample_stage();
  large.texts["name"] = std::string(k_bench_text_max + 1, 'x');
  EXPECT_FALSE(parse_bench_stage(encode(large)));
  large = sample_stage();
  for (int i = 0; i < 300; ++i) large.numbers["n" + std::to_string(i)] = i;
  EXPECT_FALSE(parse_bench_stage(encode(large)));
  for (const char* bad : {"", "{}", R"({"done":1,"numbers":[],"texts":[],"words":[]})",
                          R"({"done":true,"numbers":[{"name":"x","value":-1}],"texts":[],"words":[]})",
                          R"({"done":true,"numbers":{"x":1},"texts":[],"words":[]})"})
    EXPECT_FALSE(parse_bench_stage(bad)) << bad;
  // A test's name becomes an argument of a program.
  BenchBegin odd{"../gemm", "cuda", 0, "", {}, std::chrono::seconds{1}};
  EXPECT_FALSE(parse_bench_begin(encode(odd)));
  odd = {"gemm", "--help", 0, "", {}, std::chrono::seconds{1}};
  EXPECT_FALSE(parse_bench_begin(encode(odd)));
  EXPECT_LE(parse_bench_begin(encode(BenchBegin{"gemm", "cuda", 0, "", {}, std::chrono::hours{100}}))->deadline,
            k_bench_stage_max);
}

TEST(BenchMessages, TheLargestAnswerFitsIntoAFrame) {
  BenchStage stage;
  stage.words = {{"answer", std::string(std::size_t{65536} * 8, 'f')}};
  for (int i = 0; i < 200; ++i) stage.numbers["number" + std::to_string(i)] = 1e300 / 3;
  EXPECT_LE(encode(stage).size(), k_frame_max);
  EXPECT_TRUE(parse_bench_stage(encode(stage)));
}

}  // namespace
}  // namespace gridctl::wire::bench_test
