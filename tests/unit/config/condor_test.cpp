// SPDX-License-Identifier: Apache-2.0
// Submit files of HTCondor, in the forms that its manual names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::condor_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ParsedJob> read(const std::string& text) { return parse_job_file(text, "analysis.sub", ada_s_laptop()); }
std::string condor_refusal(const std::string& text) {
  const auto job = read(text);
  return job ? "accepted" : job.error().message;
}
std::vector<std::string> items_of(const ParsedJob& job) {
  std::vector<std::string> items = split(job.items, '\0');
  if (!items.empty()) items.pop_back();
  return items;
}

TEST(Condor, QueuesANumberOfTasks) {
  const auto job = read(R"(# analysis
universe = vanilla
Executable = analyse.sh
base = run-$(Cluster)
arguments = --seed $(Process) --name $(base).$(ProcId) plain
environment = "MODE=fast NAME='two words'"
request_cpus = 2
request_memory = 2048
request_disk = 4 GB
request_gpus = 2
output = out.$(Process)
max_retries = 3
transfer_output_files = result.csv, plots/
+ProjectName = "x"
queue 150
)");
  ASSERT_TRUE(job) << job.error().message;
  const job::Spec& spec = job->spec;
  EXPECT_EQ(spec.name, "analysis");
  EXPECT_EQ(spec.workload.tasks, 150);
  EXPECT_EQ(spec.run, "./analyse.sh --seed \"${GRIDCTL_TASK_INDEX}\" --name \"run-${GRIDCTL_JOB_ID}.${GRIDCTL_TASK_INDEX}\" plain");
  EXPECT_EQ(spec.tasks->retries, 3);
  EXPECT_THAT(spec.tasks->outputs, ElementsAre("result.csv", "plots/"));
  EXPECT_EQ(spec.envs.at("NAME"), "two words");
  EXPECT_EQ(spec.resources.cpus, 2);
  EXPECT_EQ(spec.resources.memory_bytes, 2ull << 30);
  EXPECT_EQ(spec.resources.gpus.at(0).count_min, 2);
  const std::string warnings = join(job->warnings, "\n");
  EXPECT_THAT(warnings, HasSubstr("output is ignored: gridctl keeps the output"));
  EXPECT_THAT(warnings, HasSubstr("+projectname is ignored"));
  EXPECT_EQ(warnings.find("base"), std::string::npos);
}

TEST(Condor, QueuesItems) {
  const auto list = read("executable = /bin/echo\narguments = \"$(file) it''s 'a b' $(Step)/$(ItemIndex)\"\nqueue 2 file in (one.dat, two.dat)\n");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->spec.workload.tasks, 4);
  EXPECT_THAT(items_of(*list), ElementsAre("CONDOR_ITEM=one.dat\nCONDOR_STEP=0", "CONDOR_ITEM=one.dat\nCONDOR_STEP=1",
                                           "CONDOR_ITEM=two.dat\nCONDOR_STEP=0", "CONDOR_ITEM=two.dat\nCONDOR_STEP=1"));
  EXPECT_THAT(list->spec.run, HasSubstr("condor_file=$CONDOR_ITEM\n/bin/echo \"${condor_file}\""));
  EXPECT_THAT(list->spec.run, HasSubstr("'a b' \"$((GRIDCTL_TASK_INDEX%2))/$((GRIDCTL_TASK_INDEX/2))\""));

  const auto rows = read("executable = fit\narguments = $(name) $(rest:none)\nqueue name, rest from (\n  a 1, 2\n  b 3\n)\n");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(items_of(*rows), ElementsAre("CONDOR_ITEM=a 1, 2", "CONDOR_ITEM=b 3"));
  EXPECT_THAT(rows->spec.run, HasSubstr("IFS=' ,\t' read -r condor_name condor_rest <<END_OF_ITEM\n$CONDOR_ITEM\nEND_OF_ITEM\n"));
}

TEST(Condor, NamesWhatHasNoCounterpart) {
  EXPECT_THAT(condor_refusal("executable = a\nrequirements = Arch == \"X86_64\"\nqueue\n"), HasSubstr("analysis.sub:2:1: requirements is not supported"));
  EXPECT_THAT(condor_refusal("executable = a\nqueue 2\nqueue 3\n"), HasSubstr("a second 'queue'"));
  EXPECT_THAT(condor_refusal("executable = a\nuniverse = grid\nqueue\n"), HasSubstr("only vanilla, docker and container"));
  EXPECT_THAT(condor_refusal("executable = a\nqueue 0\n"), HasSubstr("at least 1"));
  EXPECT_THAT(condor_refusal("executable = a\nqueue x in (a b\n"), HasSubstr("expected ')'"));
  EXPECT_THAT(condor_refusal("executable = a\nqueue x from list.txt |\n"), HasSubstr("expected one file"));
  EXPECT_THAT(condor_refusal("executable = a\nnonsense\nqueue\n"), HasSubstr("expected NAME = VALUE"));
  EXPECT_EQ(condor_refusal("executable = /bin/true\nqueue\n"), "accepted");
}

}  // namespace
}  // namespace gridctl::config::condor_test
