// SPDX-License-Identifier: Apache-2.0
// Batch scripts of Slurm, in the forms that its manual names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::sbatch_test {
namespace {
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Result<ParsedJob> read_script(const std::string& text) { return parse_job_file(text, "sweep.sbatch", ada_s_laptop()); }
std::string script_refusal(const std::string& options) {
  const auto job = read_script("#!/bin/bash\n" + options + "\ntrue\n");
  return job ? "accepted" : job.error().message;
}

TEST(Sbatch, MakesABagOfAnArray) {
  const auto job = read_script(R"(#!/bin/bash -l
#SBATCH --job-name=Lr_Sweep   # the sweep
#SBATCH -a 1-99:2%10 --cpus-per-task 4
#SBATCH --mem=16G --gres=gpu:a100:2
#SBATCH -t1-02:30:00
#SBATCH --output=logs/%A_%a.out
# A comment.

#SBATCH -p gpu --mail-type=END --hint=nomultithread
srun python train.py --seed $SLURM_ARRAY_TASK_ID
#SBATCH --array=5
)");
  ASSERT_TRUE(job) << job.error().message;
  const job::Spec& spec = job->spec;
  EXPECT_EQ(spec.name, "lr-sweep");
  EXPECT_EQ(spec.workload.tasks, 50);
  EXPECT_EQ(spec.tasks->array_first, 1);
  EXPECT_EQ(spec.tasks->array_step, 2);
  EXPECT_EQ(spec.tasks->max_parallel, 10);
  EXPECT_EQ(spec.tasks->timeout, std::chrono::minutes{26 * 60 + 30});
  EXPECT_EQ(spec.resources.cpus, 4);
  EXPECT_EQ(spec.resources.memory_bytes, 16ull << 30);
  EXPECT_EQ(spec.resources.gpus.at(0).count_min, 2);
  EXPECT_EQ(spec.envs.at("SLURM_ARRAY_TASK_MAX"), "99");
  EXPECT_THAT(spec.run, HasSubstr("srun() {"));
  EXPECT_THAT(spec.run, EndsWith("--seed $SLURM_ARRAY_TASK_ID\n#SBATCH --array=5\n"));
  const std::string warnings = join(job->warnings, "\n");
  for (const char* named : {":6:1: --output is ignored: gridctl keeps", "--partition is ignored", "--mail-type is ignored",
                            "--hint=nomultithread is ignored", ":11:1: this line is ignored, as sbatch does"})
    EXPECT_THAT(warnings, HasSubstr(named));
}

TEST(Sbatch, IsAJobWithoutAnArray) {
  const auto job = read_script("#!/usr/bin/env bash\n#SBATCH --time=90 --mem-per-cpu=512 -c2\n#SBATCH --nodes=1 -n 1 --export=ALL,MODE=fast\necho\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.name, "sweep");
  EXPECT_FALSE(job->spec.tasks);
  EXPECT_EQ(job->spec.max_duration, std::chrono::minutes{90});
  EXPECT_EQ(job->spec.resources.memory_bytes, 1ull << 30);
  EXPECT_EQ(job->spec.envs.at("MODE"), "fast");
  EXPECT_THAT(job->spec.run, Not(HasSubstr("srun")));
  EXPECT_THAT(join(job->warnings, "\n"), HasSubstr("--export=ALL is ignored"));
}

TEST(Sbatch, TakesTheSpellingsOfScriptsThatPeopleHave) {
  const auto job = read_script(R"(#! /bin/bash
# Example usage: sbatch sweep.sh

##SBATCH -A other
#SBATCH -N 1                        # number of nodes
#SBATCH -n 8                        # number of cores
#SBATCH --mem 8GB
#SBATCH -t 4-2:00                   # D-HH:MM
#SBATCH --array=[0-2]
#SBATCH --exclude=gnode13 --mail-user="me@example.org"  # <- update this
#SBATCH --gres=gpu:rtx_6000_ada:1
module load R
mpirun -n $SLURM_NTASKS ./svd
)");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.workload.tasks, 3);
  EXPECT_EQ(job->spec.resources.cpus, 8);
  EXPECT_EQ(job->spec.resources.memory_bytes, 8ull << 30);
  EXPECT_EQ(job->spec.tasks->timeout, std::chrono::hours{98});
  EXPECT_EQ(job->spec.resources.gpus.at(0).count_min, 1);
  EXPECT_THAT(job->spec.run, HasSubstr("SLURM_NTASKS=8"));
  EXPECT_THAT(job->spec.run, HasSubstr("|| module() {"));
  const std::string warnings = join(job->warnings, "\n");
  EXPECT_THAT(warnings, HasSubstr("sweep.sbatch:12:1: hosts may not have environment modules"));
  EXPECT_THAT(warnings, HasSubstr("--exclude is ignored"));
  const auto cpus = read_script("#!/bin/bash\n#SBATCH --tasks-per-node=2 -c 3 --mem-per-cpu=1G\ntrue\n");
  ASSERT_TRUE(cpus) << cpus.error().message;
  EXPECT_EQ(cpus->spec.resources.cpus, 6);
  EXPECT_EQ(cpus->spec.resources.memory_bytes, 6ull << 30);
}

TEST(Sbatch, RefusesByNameWhatCannotBeServed) {
  EXPECT_THAT(script_refusal("#SBATCH --dependency=afterok:7"), HasSubstr("sweep.sbatch:2:1: --dependency is not supported"));
  EXPECT_THAT(script_refusal("#SBATCH -N 2"), HasSubstr("--nodes of more than 1 is not supported in a script"));
  EXPECT_THAT(script_refusal("#SBATCH -n 4\nsrun ./x"), HasSubstr("--ntasks of more than 1 is not supported"));
  EXPECT_THAT(script_refusal("#SBATCH -c many"), HasSubstr("--cpus-per-task: expected a number, got 'many'"));
  EXPECT_THAT(script_refusal("#SBATCH -C a100"), HasSubstr("--constraint is not supported"));
  EXPECT_THAT(script_refusal("#SBATCH --array=5-1"), HasSubstr("expected indices such as 0-999"));
  EXPECT_THAT(script_refusal("#SBATCH --array"), HasSubstr("--array: expected a value"));
  EXPECT_THAT(script_refusal("#SBATCH --mem=much"), HasSubstr("--mem: expected a size such as 16G, got 'much'"));
  EXPECT_THAT(script_refusal("#SBATCH --time=1:2:3:4"), HasSubstr("--time: expected a time"));
  EXPECT_THAT(script_refusal("#SBATCH --gres=fpga:1"), HasSubstr("--gres: expected gpu:N"));
  const auto python = read_script("#!/usr/bin/env python3\n#SBATCH --array=0-9\nprint()\n");
  EXPECT_THAT(python.error().message, HasSubstr("only scripts for sh and bash"));
}

TEST(Sbatch, SurvivesAnyBytes) {
  for (const char* text : {"#!\n#SBATCH \n", "#!/bin/sh\n#SBATCH -", "#!/bin/sh\n#SBATCH --=x --\n", "#!/bin/sh\n#SBATCH -t -\n", "#! \n#SBATCH\t-a\n"})
    (void)read_script(text);
}

}  // namespace
}  // namespace gridctl::config::sbatch_test
