// SPDX-License-Identifier: Apache-2.0
#include "probe/bench_challenge.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gridctl::probe::bench_challenge_test {
namespace {

Draw seeded(std::uint64_t seed) {
  return [engine = std::mt19937_64{seed}]() mutable { return engine(); };
}

constexpr GemmChallenge k_gemm{0x0123456789abcdefu, 4, 128, 128, 256};
constexpr FmaChallenge k_fma{0xfedcba9876543210u, 8, 500};
constexpr FillChallenge k_fill{77, 78, 16, 8192};

Words honest(const GemmChallenge& challenge) {
  Words words;
  for (std::uint32_t group = 0; group < challenge.groups; ++group) {
    const GemmPart part = gemm_part(challenge, group);
    words.push_back(part.hash);
    words.push_back(part.projection);
  }
  return words;
}
Words honest(const FmaChallenge& challenge) {
  Words words;
  for (std::uint32_t group = 0; group < challenge.groups; ++group) words.push_back(fma_part(challenge, group));
  return words;
}
Words honest(const FillChallenge& challenge) {
  Words words;
  for (std::uint32_t block = 0; block < challenge.blocks; ++block) words.push_back(fill_part(challenge, block));
  return words;
}

TEST(BenchChallenge, HonestAnswersPass) {
  EXPECT_TRUE(check_gemm(k_gemm, honest(k_gemm), 2, seeded(1)));
  EXPECT_TRUE(check_fma(k_fma, honest(k_fma), 4, seeded(1)));
  EXPECT_TRUE(check_fill(k_fill, honest(k_fill), 8, seeded(1)));
}

// By hand: a product of one tile, element by element.
TEST(BenchChallenge, TheProjectionIsThatOfTheProduct) {
  const GemmPart part = gemm_part(k_gemm, 1);
  EXPECT_NE(part.hash, 0u);
  EXPECT_NE(part.projection, gemm_part(k_gemm, 2).projection);
  // Freivalds' side of the check goes by A (B r) and never forms C: it must agree with the sum over C's elements.
  EXPECT_TRUE(check_gemm(k_gemm, honest(k_gemm), 0, seeded(1)));
}

TEST(BenchChallenge, AnAnswerToAnotherSeedIsWrong) {
  GemmChallenge gemm = k_gemm;
  FmaChallenge fma = k_fma;
  FillChallenge fill = k_fill, after = k_fill;
  ++gemm.seed, ++fma.seed, ++fill.seed, ++after.after;
  EXPECT_FALSE(check_gemm(gemm, honest(k_gemm), 1, seeded(2)));
  EXPECT_FALSE(check_fma(fma, honest(k_fma), 1, seeded(2)));
  EXPECT_FALSE(check_fill(fill, honest(k_fill), 1, seeded(2)));
  EXPECT_FALSE(check_fill(after, honest(k_fill), 1, seeded(2))) << "replayed from a store";
}

TEST(BenchChallenge, OneWrongElementAnywhereFailsFreivalds) {
  for (std::size_t at = 1; at < 8; at += 2) {
    Words words = honest(k_gemm);
    words[at] ^= 0x100;
    EXPECT_FALSE(check_gemm(k_gemm, words, 0, seeded(3))) << at;
  }
}

TEST(BenchChallenge, WhoLeavesOutHalfIsSeen) {
  Words words = honest(k_fill);
  for (std::size_t i = 0; i < words.size(); i += 2) words[i] = 0;
  int seen = 0;
  for (std::uint64_t turn = 0; turn < 100; ++turn) seen += check_fill(k_fill, words, 8, seeded(turn)) ? 0 : 1;
  EXPECT_GE(seen, 97);  // 1 - 2^-8 each
}

TEST(BenchChallenge, AnswersOfAnotherSizeAndImpossibleChallengesAreRefused) {
  EXPECT_EQ(check_gemm(k_gemm, {1, 2}, 1, seeded(4)).error().code, Code::protocol_violation);
  EXPECT_EQ(check_fma(k_fma, {}, 1, seeded(4)).error().code, Code::protocol_violation);
  GemmChallenge deep = k_gemm;
  deep.inner = 16384;
  EXPECT_FALSE(check_gemm(deep, honest(k_gemm), 1, seeded(4)));
  deep.inner = 100;
  EXPECT_FALSE(check_gemm(deep, honest(k_gemm), 1, seeded(4)));
  FillChallenge odd = k_fill;
  odd.block_words = 1000;
  EXPECT_FALSE(check_fill(odd, Words(16), 1, seeded(4)));
  odd.blocks = 0;
  EXPECT_FALSE(check_fill(odd, {}, 1, seeded(4)));
}

TEST(BenchChallenge, WordsSurviveTheirDigits) {
  const Words words{0, 1, 0xdeadbeef, 0xffffffff};
  EXPECT_EQ(words_to_hex(words), "0000000000000001deadbeefffffffff");
  const auto back = words_from_hex(words_to_hex(words));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, words);
  for (const char* bad : {"0", "0000000", "0000000g", "DEADBEEF", "        "}) EXPECT_FALSE(words_from_hex(bad)) << bad;
  EXPECT_FALSE(words_from_hex(std::string(16, '0'), 1));
}

TEST(BenchChallenge, ACommitmentStandsForOneAnswer) {
  Words words = honest(k_fma);
  const Words committed = bench_commitment(words);
  EXPECT_EQ(committed.size(), 2u);
  EXPECT_EQ(bench_commitment(words), committed);
  words.back() ^= 1;
  EXPECT_NE(bench_commitment(words), committed);
  std::swap(words[0], words[1]);
  EXPECT_NE(bench_commitment(words), committed);
}

}  // namespace
}  // namespace gridctl::probe::bench_challenge_test
