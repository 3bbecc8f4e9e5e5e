// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/job_file.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::variants_test {
namespace {
using job::Variant;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<job::Spec> read_spec(const std::string& text) {
  const auto job = parse_job_file(text, "job.yaml", ada_s_laptop());
  if (!job) return job.error();
  return job->spec;
}
std::string refused(const std::string& text) {
  const auto spec = read_spec(text);
  return spec ? "accepted" : spec.error().message;
}

TEST(Variants, SayWhatIsDifferentAndInheritTheRest) {
  const auto spec = read_spec(R"(image: base:1
setup: pip install x
run: python train.py
resume_run: python train.py --resume
variants:
  cpu: {run: python train.py --cpu}
  cuda: {image: pytorch:cuda}
  rocm: {image: ./image.tar, run: python amd.py, resume_run: python amd.py --resume}
  xpu: {image: none}
)");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(
      spec->variants,
      ElementsAre(
          Variant{"cuda", "pytorch:cuda", false, "pip install x", "python train.py", "python train.py --resume"},
          Variant{"rocm", "/home/ada/job/image.tar", true, "pip install x", "python amd.py", "python amd.py --resume"},
          Variant{"xpu", "", false, "pip install x", "python train.py", "python train.py --resume"},
          Variant{"cpu", "base:1", false, "pip install x", "python train.py --cpu", ""}));
  EXPECT_EQ(job::parse_spec(job::to_json(*spec)).value(), *spec);
}

TEST(Variants, NeedNoCommandOfTheJobWhenEachHasItsOwn) {
  const auto spec = read_spec("variants: {cuda: {run: a}, rocm: {run: b}}\n");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->run, "a");
  EXPECT_EQ(spec->resources.gpus.size(), 1u) << "all are for GPUs: any one GPU is wanted";
  EXPECT_TRUE(read_spec("variants: {cuda: {run: a}, cpu: {run: b}}\n")->resources.gpus.empty());
  EXPECT_THAT(refused("variants: {cuda: {run: a}, rocm: {image: x:1}}\n"),
              HasSubstr("job.yaml:1:28: key 'variants.rocm.run': missing"));
}

TEST(Variants, AreRefusedWithTheirPlace) {
  EXPECT_THAT(refused("run: x\nvariants: [cuda]\n"), HasSubstr("job.yaml:2:11: key 'variants': expected a mapping"));
  EXPECT_THAT(refused("run: x\nvariants: {rcom: {run: y}}\n"), HasSubstr("did you mean 'rocm'?"));
  EXPECT_THAT(refused("run: x\nvariants: {cuda: {imgae: y}}\n"), HasSubstr("did you mean 'image'?"));
  EXPECT_THAT(refused("run: x\nvariants: {cuda: {image: ./none.tar}}\n"), HasSubstr("no such image archive"));
  EXPECT_THAT(refused("run: x\nresources: {accelerators: 'nvidia:A100'}\nvariants: {cuda: {}, rocm: {}}\n"),
              HasSubstr("job.yaml:3:22: key 'variants.rocm': can never run"));
}

TEST(Variants, FollowTheOptions) {
  Context context = ada_s_laptop();
  context.overrides.gpu = "none";
  const std::string text = "run: x\nvariants: {cuda: {}, cpu: {run: y}}\n";
  const auto job = parse_job_file(text, "job.yaml", context);
  ASSERT_TRUE(job);
  ASSERT_EQ(job->spec.variants.size(), 1u);
  EXPECT_EQ(job->spec.variants[0].kind, "cpu");
  context.overrides.image = "other:1";
  EXPECT_THAT(parse_job_file(text, "job.yaml", context).error().message, HasSubstr("--image"));
}

}  // namespace
}  // namespace gridctl::config::variants_test
