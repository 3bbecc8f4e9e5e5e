// SPDX-License-Identifier: Apache-2.0
// One job for GPUs of any vendor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/place.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::sched::place_variants_test {
namespace {
using ::testing::HasSubstr;

job::Spec for_any_vendor() {
  job::Spec spec;
  spec.name = "any";
  spec.run = "true";
  spec.variants = {{"cuda", "torch:cuda", false, "", "a", ""},
                   {"rocm", "torch:rocm", false, "", "b", ""},
                   {"cpu", "torch:cpu", false, "", "c", ""}};
  return spec;
}
HostFacts with_gpu(const std::string& name, Vendor vendor, const std::string& model, double price,
                   std::uint64_t mib = 24576) {
  return AHost(name).with_gpus(1, model, mib, vendor).at(price);
}

TEST(VariantsPlacing, TakesTheCheapestEndOfAnyVendorAndTheProcessorLast) {
  const HostFacts nvidia = with_gpu("nv", Vendor::nvidia, "NVIDIA GeForce RTX 4090", 0.4),
                  amd = with_gpu("am", Vendor::amd, "AMD Instinct MI300X", 0.4, 196608), bare = AHost("bare").at(0);
  const Decision decision = place(for_any_vendor(), {bare, nvidia, amd}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "am") << "the faster one for the same money";
  EXPECT_THAT(decision.placement->reason, HasSubstr("variant rocm"));
  EXPECT_EQ(decision.placement->gpu_uuids, std::vector<std::string>{"am-gpu0"});
  ASSERT_EQ(decision.runners_up.size(), 2u);
  EXPECT_THAT(decision.runners_up[0].reason, HasSubstr("variant cuda"));
  EXPECT_THAT(decision.runners_up[1].reason, HasSubstr("a later choice in your order of GPUs"));
  EXPECT_THAT(decision.runners_up[1].reason, HasSubstr("variant cpu"));
}

TEST(VariantsPlacing, NeedsAVariantForTheVendor) {
  job::Spec spec = for_any_vendor();
  spec.variants.pop_back();
  const Decision decision = place(spec, {with_gpu("in", Vendor::intel, "Intel Data Center GPU Max 1100", 0)}, {});
  EXPECT_FALSE(decision.placement);
  EXPECT_EQ(decision.rejections.at(0).code, "gpu");
  EXPECT_FALSE(decision.could_ever_fit);
}

TEST(VariantsPlacing, AnswersWithTheReasonThatWaitingMayCure) {
  job::Spec spec = for_any_vendor();
  spec.variants.pop_back();
  HostFacts host = with_gpu("nv", Vendor::nvidia, "NVIDIA GeForce RTX 4090", 0.4);
  host.busy_gpus = {"nv-gpu0"};
  const Decision decision = place(spec, {host}, {});
  EXPECT_EQ(decision.rejections.at(0).code, "busy");
  EXPECT_TRUE(decision.could_ever_fit);
}

TEST(VariantsPlacing, AsksTheEngineOfTheVariantOnly) {
  job::Spec spec = for_any_vendor();
  spec.variants[0].image.clear();  // a plain process where there are NVIDIA's
  HostFacts host = with_gpu("nv", Vendor::nvidia, "NVIDIA GeForce RTX 4090", 0.4);
  std::erase_if(host.inventory.edit().engines, [](const Engine& engine) { return engine.kind != EngineKind::process; });
  const Decision decision = place(spec, {host}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->engine, EngineKind::process);
}

}  // namespace
}  // namespace gridctl::sched::place_variants_test
