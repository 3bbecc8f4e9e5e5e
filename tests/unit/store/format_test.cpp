// SPDX-License-Identifier: Apache-2.0
#include "store/formats.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "store/gc.hpp"
#include "store/cut.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::format_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string model_zip(bool zip64 = false) {
  return torch_zip({{"archive/data.pkl", noise(300, 1)},
                    {"archive/data/0", noise(1024, 2)},
                    {"archive/data/1", noise(64, 3)},
                    {"archive/version", "3\n"}},
                   zip64);
}

TEST(Zip, AcceptsWhatTorchWritesAndNoShorterPartOfIt) {
  for (const bool zip64 : {false, true}) {
    const std::string whole = model_zip(zip64);
    const auto entries = zip_entries(whole.size(), reader_over(whole));
    ASSERT_THAT(entries, IsOk());
    ASSERT_THAT(*entries, SizeIs(4));
    EXPECT_EQ((*entries)[1].name, "archive/data/0");
    EXPECT_EQ(whole.substr((*entries)[1].at.begin, 1024), noise(1024, 2));
    EXPECT_EQ((*entries)[1].at.begin % 64, 0u);
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(zip_entries(size, reader_over(whole.substr(0, size)))) << size << " of " << whole.size();
    EXPECT_FALSE(zip_entries(whole.size() + 1, reader_over(whole + "x")));
  }
}

TEST(Zip, RefusesAnOldArchiveWhoseHeadWasOverwritten) {
  std::string whole = model_zip();
  whole.replace(0, 200, 200, 'x');
  EXPECT_FALSE(zip_entries(whole.size(), reader_over(whole)));
}

TEST(Zip, SurvivesAnyChangedByteAndAnyBytesAtAll) {
  const std::string whole = model_zip(true);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i > 400 && i + 700 < whole.size()) continue;  // inside the tensors
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0xff);
    static_cast<void>(zip_entries(bad.size(), reader_over(bad)));
  }
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    const std::string bytes = noise(seed * 3, seed) + "PK\x05\x06" + noise(18, seed);
    EXPECT_FALSE(zip_entries(bytes.size(), reader_over(bytes)));
  }
}

TEST(Safetensors, AcceptsAFileOfExactLengthOnly) {
  const std::string whole = safetensors({{"a", noise(4096, 1)}, {"b", noise(400, 2)}});
  const auto tensors = safetensors_tensors(whole.size(), reader_over(whole));
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_THAT(extents_of(*tensors),
              ElementsAre(Extent{whole.size() - 4496, whole.size() - 400}, Extent{whole.size() - 400, whole.size()}));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(safetensors_tensors(size, reader_over(whole.substr(0, size)))) << size;
  EXPECT_FALSE(safetensors_tensors(whole.size() + 1, reader_over(whole + "x")));
}

TEST(Safetensors, RefusesHeadersThatDoNotFit) {
  const auto file = [](const std::string& header, std::size_t data) {
    std::string out;
    little(out, header.size(), 8);
    return out + header + std::string(data, 'x');
  };
  const auto fits = [&](const std::string& header, std::size_t data) {
    const std::string bytes = file(header, data);
    return safetensors_tensors(bytes.size(), reader_over(bytes)).has_value();
  };
  EXPECT_TRUE(fits(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  EXPECT_TRUE(fits(R"({"a\"}":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )", 4));
  EXPECT_TRUE(fits(R"({"a":{"dtype":"NEW","shape":[9],"data_offsets":[0,4]}})", 4));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[1,4294967296,4294967296,4294967296],"data_offsets":[0,0]}})", 0));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})", 4));
  EXPECT_FALSE(fits(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}x)", 4));
  EXPECT_FALSE(fits(R"({"a":[[[[[[[[)", 4));
  EXPECT_FALSE(fits("", 4));
}

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

TEST(GcPolicy, DecidesByAgeAndLiveShare) {
  const GcPolicy policy;
  const WallTime now{1'000'000'000'000};
  const WallTime old{now.ms - 25 * 3'600'000}, young{now.ms - 23 * 3'600'000}, future{now.ms + 1000};
  EXPECT_EQ(decide({"p", 100, 0, old}, now, policy).fate, PackFate::remove);
  EXPECT_EQ(decide({"p", 100, 0, young}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 0, future}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 49, old}, now, policy).fate, PackFate::rewrite);
  EXPECT_EQ(decide({"p", 100, 50, old}, now, policy).fate, PackFate::keep);
  EXPECT_EQ(decide({"p", 100, 100, old}, now, policy).fate, PackFate::keep);
}

}  // namespace
}  // namespace gridctl::store::format_test
