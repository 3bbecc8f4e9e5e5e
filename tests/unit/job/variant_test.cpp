// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "job/spec.hpp"
#include "job/variant.hpp"

namespace gridctl::job::variant_test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

TEST(Variant, IsThatOfTheGpusThatWereLeased) {
  EXPECT_EQ(vendor_of_variant("cuda"), Vendor::nvidia);
  EXPECT_EQ(vendor_of_variant("rocm"), Vendor::amd);
  EXPECT_EQ(vendor_of_variant("xpu"), Vendor::intel);
  EXPECT_FALSE(vendor_of_variant("cpu"));
  Spec spec;
  spec.variants.resize(2);
  spec.variants[0].kind = "rocm";
  spec.variants[1].kind = "cpu";
  EXPECT_EQ(variant_for(spec, Vendor::amd), &spec.variants[0]);
  EXPECT_EQ(variant_for(spec, std::nullopt), &spec.variants[1]);
  EXPECT_EQ(variant_for(spec, Vendor::nvidia), nullptr);
}

TEST(Variant, WithAnyGpuAsksForOneOfItsVendor) {
  Spec spec;
  Variant cuda;
  cuda.kind = "cuda";
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 2, 2}};
  ASSERT_EQ(gpus_wanted(spec, cuda).size(), 1u) << "none beside what is asked for";
  EXPECT_EQ(gpus_wanted(spec, cuda)[0].vendor, Vendor::nvidia);
  spec.resources.gpus = {{Vendor::amd, {}, std::nullopt, std::nullopt, 2, 2}};
  EXPECT_THAT(gpus_wanted(spec, cuda), IsEmpty());
}

}  // namespace
}  // namespace gridctl::job::variant_test
