// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "store/formats.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::zip_test {
namespace {

using namespace testing;
using gridctl::testing::IsOk;
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

}  // namespace
}  // namespace gridctl::store::zip_test
