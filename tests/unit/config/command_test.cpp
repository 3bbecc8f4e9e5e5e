// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/job_file.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::command_test {
namespace {
job::Spec spec_of(std::vector<std::string> argv) {
  const auto job = spec_from_command(argv, ada_s_laptop());
  EXPECT_TRUE(job) << job.error().message;
  return job ? job->spec : job::Spec{};
}

TEST(Command, IsQuotedForTheShell) {
  EXPECT_EQ(spec_of({"python", "train.py", "--text", "it's; rm -rf $HOME"}).run,
            "python train.py --text 'it'\\''s; rm -rf $HOME'");
  EXPECT_EQ(spec_of({"true"}).run, "true");
  EXPECT_EQ(spec_of({"echo", ""}).run, "echo ''");
}

TEST(Command, OfOneWordWithSpacesIsShellText) { EXPECT_EQ(spec_of({"sleep 3; echo done"}).run, "sleep 3; echo done"); }

TEST(Command, NamesTheJobAfterWhatRuns) {
  EXPECT_EQ(spec_of({"python", "-u", "src/train_gpt.py"}).name, "train-gpt");
  EXPECT_EQ(spec_of({"/usr/bin/nvidia-smi"}).name, "nvidia-smi");
  EXPECT_EQ(spec_of({"sleep 3; echo"}).name, "sleep");
  EXPECT_EQ(spec_of({"bash", "-c", "true"}).name, "bash");
}

TEST(Command, TakesTheOptions) {
  Overrides options;
  options.gpu = "A100:2";
  options.envs = {"A=1"};
  options.secrets = {"HF_TOKEN"};
  const auto job = spec_from_command({"true"}, ada_s_laptop(options), ".");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.resources.gpus.at(0).count_min, 2);
  EXPECT_EQ(job->spec.envs.at("A"), "1");
  EXPECT_EQ(job->secrets.at("HF_TOKEN"), "hf_canary");
  EXPECT_EQ(job->spec.workdir, "/home/ada/job");
}

TEST(Command, MustBeGiven) {
  EXPECT_EQ(spec_from_command({}, ada_s_laptop()).error().code, Code::usage);
  EXPECT_EQ(spec_from_command({" "}, ada_s_laptop()).error().code, Code::usage);
  EXPECT_FALSE(spec_from_command({"true"}, ada_s_laptop(), "./nothing"));
}
}  // namespace
}  // namespace gridctl::config::command_test
