// SPDX-License-Identifier: Apache-2.0
#include "agent/log_ring.hpp"

#include <gtest/gtest.h>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_ring = 64 * 1024;

TEST(LogRing, GoesOnWhereAnotherStopped) {
  const testing::TempDir folder;
  {
    auto ring = LogRing::open(folder.path(), k_ring);
    ring->append("one\n", BootTime{1});
  }
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append("two\n", BootTime{2});
  EXPECT_EQ(ring->end(), 8u);
  EXPECT_EQ(read_log(folder.path(), 0, 100)->bytes, "one\ntwo\n");
  EXPECT_EQ(read_log(folder.path(), 5, 2)->bytes, "wo");
}

TEST(LogRing, ForgetsTheOldestAndTellsWhereItBegins) {
  const testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  const std::string line(1023, 'x');
  for (std::int64_t i = 1; i <= 200; ++i) ring->append(line + "\n", BootTime{i * 1'000'000'000});
  EXPECT_EQ(ring->end(), 200u * 1024);
  const auto slice = read_log(folder.path(), 0, 1u << 20);
  EXPECT_GT(slice->offset, 100u * 1024);
  EXPECT_EQ(slice->offset + slice->bytes.size(), slice->end_offset);
  EXPECT_LE(slice->bytes.size(), k_ring);
}

TEST(LogRing, CountsWhatComesTooFast) {
  const testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append(std::string(k_ring, 'a'), BootTime{1});
  ring->append(std::string(1000, 'b'), BootTime{1});
  ring->finish();
  const auto slice = read_log(folder.path(), 0, 1u << 20);
  EXPECT_NE(slice->bytes.find("[gridctl: 1000 bytes of output dropped]"), std::string::npos);
  EXPECT_EQ(slice->bytes.find('b' + std::string("bb")), std::string::npos);
}

TEST(LogRing, AnswersAnOffsetBehindTheEndWithNothing) {
  const testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append("abc", BootTime{1});
  const auto slice = read_log(folder.path(), 99, 10);
  EXPECT_EQ(slice->offset, 3u);
  EXPECT_TRUE(slice->bytes.empty());
}

}  // namespace
}  // namespace gridctl::agent
