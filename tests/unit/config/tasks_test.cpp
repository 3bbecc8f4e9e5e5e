// SPDX-License-Identifier: Apache-2.0
#include "config/tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "job/last_step.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::tasks_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TasksKey : public ::testing::Test {
 protected:
  TasksKey() {
    char name[] = "/tmp/gridctl-tasks.XXXXXX";
    folder = ::mkdtemp(name);
  }
  ~TasksKey() override { std::filesystem::remove_all(folder); }
  void file(const std::string& name, const std::string& text) { std::ofstream(folder + "/" + name) << text; }
  Result<ParsedJob> read(const std::string& text) {
    Context context = ada_s_laptop();
    context.base_directory = folder;
    return parse_job_file("run: x\n" + text, "job.yaml", context);
  }
  std::string refusal(const std::string& text) {
    const auto job = read(text);
    return job ? "accepted" : job.error().message;
  }
  static std::vector<std::string> items_of(const ParsedJob& job) {
    std::vector<std::string> items = split(job.items, '\0');
    if (!items.empty()) items.pop_back();
    return items;
  }
  std::string folder;
};

TEST_F(TasksKey, CountsTasks) {
  const auto job = read("tasks: 5000\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.workload.tasks, 5000);
  EXPECT_EQ(job->spec.tasks, job::Tasks{});
  const auto more = read("tasks: {count: 7, retries: 3, timeout: 5m, max_parallel: 2, max_fails: 0, stdin: item, folder: true}\n");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->spec.workload.tasks, 7);
  EXPECT_EQ(more->spec.tasks->retries, 3);
  EXPECT_EQ(more->spec.tasks->timeout, std::chrono::minutes{5});
  EXPECT_EQ(more->spec.tasks->max_parallel, 2);
  EXPECT_EQ(more->spec.tasks->max_fails, 0);
}

TEST_F(TasksKey, TakesItemsFromAFileOrAPattern) {
  file("items.txt", "one\n\ntwo words\r\nthree\n");
  const auto job = read("tasks: {from: items.txt}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.tasks->items, job::ItemForm::text);
  EXPECT_EQ(job->spec.workload.tasks, 3);
  EXPECT_EQ(items_of(*job).front(), "one");
  const auto chunks = read("tasks: {from: items.txt, chunk: 2}\n");
  ASSERT_TRUE(chunks) << chunks.error().message;
  EXPECT_EQ(chunks->spec.workload.tasks, 2);
  EXPECT_EQ(items_of(*chunks).back(), "three");
  std::filesystem::create_directory(folder + "/shots");
  for (const char* name : {"b.png", "a.png", "c.txt", ".hidden.png"}) file(std::string("shots/") + name, "");
  const auto found = read("tasks: {from: 'shots/*.png'}\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(items_of(*found), ElementsAre("shots/a.png", "shots/b.png"));
}

// A host refuses a request with such an item, and would be asked for ever.
TEST_F(TasksKey, RefusesItemsThatAHostWouldRefuse) {
  for (const char* bad : {"\xff", "\xed\xa0\x80", "\xe0\x80\xaf", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xc3", "\xe2\x82"}) {
    file("items.txt", std::string("good\n") + bad + "\n");
    EXPECT_THAT(refusal("tasks: {from: items.txt}\n"), HasSubstr("not UTF-8 text")) << bad;
  }
  file("items.txt", std::string("a\0b\n", 4));
  EXPECT_THAT(refusal("tasks: {from: items.txt}\n"), HasSubstr("NUL"));
  EXPECT_THAT(refusal("tasks: {matrix: {lr: [\"1\\x002\", 3]}}\n"), HasSubstr("NUL"));
  file("items.txt", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf\n");
  EXPECT_EQ(refusal("tasks: {from: items.txt}\n"), "accepted");
  file("items.txt", std::string(4u << 20, 'x') + "\n");
  EXPECT_THAT(refusal("tasks: {from: items.txt}\n"), HasSubstr("longer than 64 KiB"));
}

TEST_F(TasksKey, MakesAMatrix) {
  const auto job = read("tasks: {matrix: {lr: [1e-4, 3e-4], seed: 0..2}}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.tasks->items, job::ItemForm::variables);
  EXPECT_THAT(items_of(*job), ElementsAre("lr=1e-4\nseed=0", "lr=1e-4\nseed=1", "lr=1e-4\nseed=2", "lr=3e-4\nseed=0",
                                          "lr=3e-4\nseed=1", "lr=3e-4\nseed=2"));
}

TEST_F(TasksKey, KeepsTheProgramOfAStreamUp) {
  file("items.txt", "one\ntwo\n");
  EXPECT_EQ(read("tasks: {from: items.txt, mode: stream}\n")->spec.tasks->stream_window, job::k_stream_window);
  EXPECT_EQ(read("tasks: {from: items.txt, mode: tasks}\n")->spec.tasks->stream_window, 0);
  const auto job = read("tasks: {from: items.txt, mode: stream, window: 4, json: true}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.tasks->stream_window, 4);
  EXPECT_TRUE(job->spec.tasks->stream_json);
  EXPECT_THAT(refusal("tasks: {from: items.txt, window: 4}\n"), HasSubstr("requires mode: stream"));
  EXPECT_THAT(refusal("tasks: {from: items.txt, mode: stream, chunk: 2}\n"), HasSubstr("cannot be combined with mode: stream"));
  EXPECT_THAT(refusal("tasks: {from: items.txt, mode: steam}\n"), HasSubstr("expected tasks or stream"));
}

TEST_F(TasksKey, TakesOutputsAsThoseOfEachTask) {
  const auto job = read("tasks: 2\noutputs: [out/*.png, log.txt]\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->spec.tasks->outputs, ElementsAre("out/*.png", "log.txt"));
  EXPECT_TRUE(job->spec.outputs.empty());
  EXPECT_THAT(refusal("tasks: 2\noutputs: [{from: a, sync: 1m}]\n"), HasSubstr("omit sync and when"));
}

TEST_F(TasksKey, TakesALastStep) {
  const auto job = read("tasks: 2\nfinally: cat out/*\noutputs: [out/]\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.tasks->finally_run, "cat out/*");
}

TEST_F(TasksKey, TakesAnArrayAsSbatchDoes) {
  const auto job = read("tasks: {array: '1-9:2%3', retries: 2}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.workload.tasks, 5);
  EXPECT_EQ(job->spec.tasks->array_first, 1);
  EXPECT_EQ(job->spec.tasks->max_parallel, 3);
  EXPECT_EQ(job->spec.tasks->retries, 2);
  EXPECT_THAT(refusal("tasks: {array: 5-1}\n"), HasSubstr("key 'tasks.array': expected indices"));
  EXPECT_THAT(refusal("tasks: {array: 0-3, count: 4}\n"), HasSubstr("expected one of count, from, matrix and array"));
}

TEST_F(TasksKey, TakesFactorsOfWhatATaskIsTriedAgainWith) {
  const auto job = read("tasks: {count: 2, retry: {memory: x2, disk: 1.5x}}\nresources: {memory: 1, disk: 2}\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.tasks->raise.memory, 2);
  EXPECT_EQ(job->spec.tasks->raise.disk, 1.5);
  const job::Spec twice = job::at_level(job->spec, 2);
  EXPECT_EQ(twice.resources.memory_bytes, 4ull << 30);
  EXPECT_EQ(job::at_level(twice, 1).resources.disk_bytes, 3ull << 30);
  EXPECT_EQ(job::at_level(twice, 0).resources, job->spec.resources);
  EXPECT_THAT(refusal("tasks: {count: 2, retry: {memory: x2}}\n"), HasSubstr("requires resources.memory"));
  EXPECT_THAT(refusal("tasks: {count: 2, retry: {disk: x2}}\nresources: {memory: 1}\n"), HasSubstr("requires resources.disk"));
  for (const char* wrong : {"x1", "x17", "twice", "-2", "[2]"})
    EXPECT_THAT(refusal("tasks: {count: 2, retry: {memory: " + std::string(wrong) + "}}\nresources: {memory: 1}\n"), HasSubstr("a factor from x1.1 to x16")) << wrong;
}

TEST_F(TasksKey, TellsTheJobsOfSkyPilotTheirRank) {
  const auto job = read("num_jobs: 3\nfinally: merge\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.workload.tasks, 3);
  EXPECT_EQ(job->spec.envs.at("SKYPILOT_NUM_JOBS"), "3");
  EXPECT_EQ(split(job->items, '\0').at(2), "SKYPILOT_JOB_RANK=2");
  EXPECT_THAT(refusal("num_jobs: 2\ntasks: 2\n"), HasSubstr("means the same as 'tasks'"));
  EXPECT_THAT(refusal("num_jobs: 0\n"), HasSubstr("'num_jobs'"));
}

TEST_F(TasksKey, SaysWhatIsWrong) {
  file("empty.txt", "\n\n");
  EXPECT_THAT(refusal("tasks: 0\n"), HasSubstr("expected a whole number from 1 to 10000000"));
  EXPECT_THAT(refusal("tasks: {retries: 1}\n"), HasSubstr("expected one of count, from, matrix and array"));
  EXPECT_THAT(refusal("tasks: {count: 1, from: x}\n"), HasSubstr("expected one of count, from, matrix and array"));
  EXPECT_THAT(refusal("tasks: {from: nowhere.txt}\n"), HasSubstr("key 'tasks.from'"));
  EXPECT_THAT(refusal("tasks: {from: 'nothing/*.png'}\n"), HasSubstr("no file matches"));
  EXPECT_THAT(refusal("tasks: {from: empty.txt}\n"), HasSubstr("has no items"));
  EXPECT_THAT(refusal("tasks: {matrix: {seed: 9..0}}\n"), HasSubstr("a range such as 0..9"));
  EXPECT_THAT(refusal("tasks: {matrix: {bad-name: [1]}}\n"), HasSubstr("bad-name"));
  EXPECT_THAT(refusal("tasks: {count: 2, chunk: 2}\n"), HasSubstr("requires from"));
  EXPECT_THAT(refusal("tasks: 2\nfinally: \"\"\n"), HasSubstr("'finally'"));
  EXPECT_THAT(refusal("tasks: 2\nfinally: {run: a}\n"), HasSubstr("'finally'"));
  EXPECT_THAT(refusal("finally: echo\n"), HasSubstr("requires tasks"));
}

TEST(Array, IsReadAsSlurmReadsIt) {
  EXPECT_THAT(parse_array("0-3")->numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parse_array("1-9:4,20%7")->numbers, ElementsAre(1, 5, 9, 20));
  EXPECT_EQ(parse_array("1-9:4,20%7")->at_once, 7);
  for (const char* wrong : {"", "x", "3-1", "1-9:0", "1,,2", "0-3%0", "-1", "1-99999999"}) EXPECT_FALSE(parse_array(wrong)) << wrong;
  ParsedJob steps;
  ASSERT_TRUE(set_array(*parse_array("3-9:3"), steps));
  EXPECT_EQ(steps.spec.tasks->items, job::ItemForm::none);
  EXPECT_EQ(steps.spec.tasks->array_first, 3);
  EXPECT_EQ(steps.spec.tasks->array_step, 3);
  ParsedJob list;
  ASSERT_TRUE(set_array(*parse_array("1,3,7"), list));
  EXPECT_EQ(list.spec.tasks->items, job::ItemForm::variables);
  EXPECT_EQ(list.items, std::string("SLURM_ARRAY_TASK_ID=1\0SLURM_ARRAY_TASK_ID=3\0SLURM_ARRAY_TASK_ID=7\0", 66));
}

}  // namespace
}  // namespace gridctl::config::tasks_test
