// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "store/cut.hpp"
#include "store/formats.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::cut_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Layout, CutsEveryFourMebibytesWithoutAFormat) {
  EXPECT_THAT(cut_file(0, {}), SizeIs(0));
  EXPECT_THAT(cut_file(k_chunk_max, {}), ElementsAre(k_chunk_max));
  EXPECT_THAT(cut_file(k_chunk_max + 1ull, {}), ElementsAre(k_chunk_max, 1u));
}

TEST(Layout, BeginsAnewAtLargeTensorsOnlyAndAddsUpForAnyExtents) {
  const std::uint64_t mib = 1u << 20;
  EXPECT_THAT(cut_file(10 * mib, {{100, 200}, {1000, 1000 + 5 * mib}, {1000 + 5 * mib, 10 * mib}}),
              ElementsAre(1000u, k_chunk_max, mib, k_chunk_max, 1048576u - 1000u));
  for (const auto& odd : std::vector<std::vector<Extent>>{{{5 * mib, 2 * mib}},
                                                          {{0, 99 * mib}},
                                                          {{2 * mib, 6 * mib}, {3 * mib, 7 * mib}},
                                                          {{UINT64_MAX - 5, UINT64_MAX}}}) {
    const auto lengths = cut_file(10 * mib, odd);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}), 10 * mib);
  }
}

TEST(Layout, KeepsTheChunksOfATensorThatMoved) {
  Folder dir;
  const std::string frozen = noise(3'000'000, 1);
  for (const auto& [name, one, two] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"m.safetensors", safetensors({{"head", noise(400, 2)}, {"frozen", frozen}}),
            safetensors({{"head_of_another_name", noise(8000, 3)}, {"frozen", frozen}})},
           {"m.pt", torch_zip({{"a/data.pkl", noise(100, 2)}, {"a/data/0", frozen}}),
            torch_zip({{"a/data.pkl", noise(7777, 3)}, {"a/data/0", frozen}})}}) {
    write(dir / "one" / name, one);
    write(dir / "two" / name, two);
    const auto first = scan(dir / "one", {})->tree, second = scan(dir / "two", {})->tree;
    std::vector<std::uint32_t> shared;
    for (const Chunk& chunk : second.find(name)->chunks) {
      for (const Chunk& before : first.find(name)->chunks) {
        if (chunk == before) shared.push_back(chunk.size);
      }
    }
    EXPECT_THAT(shared, ElementsAre(3'000'000u)) << name;
  }
}

}  // namespace
}  // namespace gridctl::store::cut_test
