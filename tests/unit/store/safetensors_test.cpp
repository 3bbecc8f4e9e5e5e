// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "store/formats.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::safetensors_test {
namespace {

using namespace testing;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;

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

}  // namespace
}  // namespace gridctl::store::safetensors_test
