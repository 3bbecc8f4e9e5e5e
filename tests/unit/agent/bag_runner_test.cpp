// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_runner.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/bag_files.hpp"
#include "agent/bag_output.hpp"
#include "os/clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::bag_runner_test {
namespace {

using std::chrono::milliseconds;
using wire::OrderKind;
using wire::TaskEnd;
using wire::TaskResult;

class BagRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"run", "ctl", "work"}) std::filesystem::create_directory(folder_ / name);
  }
  void TearDown() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  void begin(const std::string& command) {
    std::ofstream(folder_ / "run/bag") << wire::encode(spec_);
    std::ofstream(folder_ / "run/run.sh") << command << "\n";
    const InitPlan plan{folder_ / "run", folder_ / "ctl", folder_ / "work", {}, std::chrono::seconds{10}, {}};
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(run_bag(plan));
  }
  void order(wire::BagOrder one) {
    EXPECT_THAT(append_orders(folder_ / "ctl", orders_++, {std::move(one)}), gridctl::testing::IsOk());
  }
  void grant(std::uint64_t first, std::uint64_t count, std::vector<std::string> items = {}) {
    order({OrderKind::grant, first, count, std::move(items), 0});
  }
  void finish(int code = 0) { order({OrderKind::finish, 0, 0, {}, static_cast<std::uint8_t>(code)}); }
  int end() {
    const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{30};
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (os::system_clock().boot() > give_up) return ADD_FAILURE() << "it does not end", -1;
      os::pause_for(milliseconds{2});
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] std::vector<TaskResult> results() const { return read_results(folder_ / "run", 0, 100'000).results; }
  void await(std::size_t count) const {
    for (int i = 0; i < 5000 && results().size() < count; ++i) os::pause_for(milliseconds{2});
  }
  [[nodiscard]] std::string output(std::uint64_t offset, std::uint64_t bytes) const {
    const auto slice = read_output(folder_ / "run", 0, offset, static_cast<std::uint32_t>(bytes));
    return slice ? slice->bytes : "";
  }
  [[nodiscard]] std::string output_of(const TaskResult& result) const { return output(result.offset, result.bytes); }

  gridctl::testing::TempDir folder_;
  wire::BagSpec spec_;
  pid_t pid_ = -1;
  std::uint64_t orders_ = 0;
};

TEST_F(BagRunnerTest, RunsEachTaskOnceAndTellsHowItWent) {
  begin(
      "echo \"out $GRIDCTL_TASK_INDEX $GRIDCTL_TASK_ITEM $SLURM_ARRAY_TASK_ID $PWD\"; echo err >&2; exit "
      "$GRIDCTL_TASK_INDEX");
  grant(0, 2, {"a b", "c"});
  grant(7, 1);
  finish(4);
  EXPECT_EQ(end(), 4);
  const auto all = results();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].exit_code, 0);
  EXPECT_TRUE(all[0].succeeded());
  EXPECT_EQ(output_of(all[0]), "out 0 a b 0 " + (folder_ / "work").string() + "\nerr\n");
  EXPECT_EQ(all[1].exit_code, 1);
  EXPECT_EQ(all[1].order, 0u);
  EXPECT_EQ(all[2].index, 7u);
  EXPECT_EQ(all[2].order, 1u);
  EXPECT_EQ(output_of(all[2]), "out 7  7 " + (folder_ / "work").string() + "\nerr\n");
  EXPECT_GT(all[0].peak_kib, 0u);
  EXPECT_GT(all[0].began.ms, 1'600'000'000'000);
}

TEST_F(BagRunnerTest, TakesOrdersWhileItRunsAndSlotsWorkAtOnce) {
  spec_.slots = 4;
  begin("sleep 0.3");
  const BootTime began = os::system_clock().boot();
  grant(0, 4);
  await(4);
  EXPECT_LT(os::system_clock().boot() - began, milliseconds{1100});
  grant(4, 1);
  finish();
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(results().size(), 5u);
}

TEST_F(BagRunnerTest, EndsWhatATaskLeavesRunningAndWhatTakesTooLong) {
  spec_.timeout = milliseconds{300};
  spec_.render = true;
  begin("{}");
  grant(0, 3, {"(while :; do echo x >>left; sleep 0.01; done) & echo begun", "sleep 30 & wait", "kill -9 $$"});
  finish();
  await(1);
  const auto size = [&] {
    return std::filesystem::exists(folder_ / "work/left") ? std::filesystem::file_size(folder_ / "work/left") : 0;
  };
  os::pause_for(milliseconds{50});
  const auto before = size();
  os::pause_for(milliseconds{100});
  EXPECT_EQ(size(), before);
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(output_of(all[0]), "begun\n");
  EXPECT_EQ(all[1].end, TaskEnd::timeout);
  EXPECT_EQ(all[2].end, TaskEnd::ended);
  EXPECT_EQ(all[2].signal, SIGKILL);
}

TEST_F(BagRunnerTest, KeepsErrorsApartAndCutsWhatIsTooMuch) {
  spec_.split = true;
  spec_.output_bytes_max = 500'000;
  begin("head -c 600000 /dev/zero | tr '\\0' x; echo bad >&2");
  grant(0, 2);
  finish();
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 2u);
  for (const TaskResult& one : all) {
    EXPECT_EQ(one.bytes, 500'000u);
    EXPECT_EQ(one.dropped, 100'000u);
    EXPECT_EQ(output(one.offset + one.bytes, one.error_bytes), "bad\n");
  }
  EXPECT_EQ(output_of(all[1]), std::string(500'000, 'x'));
}

TEST_F(BagRunnerTest, KeepsTheFilesThatEachTaskLeavesBehindItsOutput) {
  spec_.outputs = {"out/*.txt"};
  std::filesystem::create_directory(folder_ / "work/out");
  std::ofstream(folder_ / "work/out/old.txt") << "was there before";
  begin("echo said; printf %s $GRIDCTL_TASK_INDEX > out/n$GRIDCTL_TASK_INDEX.txt; echo x > out/other");
  grant(5, 2);
  finish();
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 2u);
  for (const TaskResult& one : all) {
    const std::string number = std::to_string(one.index);
    EXPECT_EQ(output(one.offset + one.bytes, one.file_bytes), "10 644 1\nout/n" + number + ".txt" + number);
    EXPECT_EQ(output_of(one), "said\n");
  }
}

TEST_F(BagRunnerTest, GivesItemsOnStandardInputAndFoldersWhereTheyAreAskedFor) {
  spec_.stdin_from = "item";
  spec_.folder = true;
  begin("cat; cd $GRIDCTL_TASK_DIR; pwd; test $GRIDCTL_CKPT_DIR = $GRIDCTL_TASK_DIR");
  grant(3, 1, {"one\ntwo"});
  finish();
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(output_of(all[0]), "one\ntwo\n" + (folder_ / "work/tasks/3").string() + "\n");
  EXPECT_TRUE(all[0].succeeded());
}

TEST_F(BagRunnerTest, TellsOfTasksThatCannotBeStarted) {
  spec_.stdin_from = "in/{}.txt";
  begin("cat");
  std::filesystem::create_directory(folder_ / "work/in");
  std::ofstream(folder_ / "work/in/a.txt") << "text";
  grant(0, 2, {"a", "b"});
  finish();
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(output_of(all[0]), "text");
  EXPECT_EQ(all[1].end, TaskEnd::unstarted);
  EXPECT_NE(output_of(all[1]).find("in/b.txt"), std::string::npos);
}

TEST_F(BagRunnerTest, LetsTasksEndWhenItIsToStopAndTellsWhatWasNotBegun) {
  spec_.slots = 2;
  spec_.render = true;
  std::ofstream(folder_ / "ctl/stop") << Duration{milliseconds{1000}}.count() << "\n";
  begin("{}");
  grant(0, 2, {"sleep 0.3; echo done", "sleep 60"});
  grant(10, 90);
  for (int i = 0; i < 1000 && read_board(folder_ / "run").running.size() < 2; ++i) os::pause_for(milliseconds{2});
  const BootTime began = os::system_clock().boot();
  ::kill(pid_, SIGTERM);
  EXPECT_EQ(end(), 0);
  EXPECT_LT(os::system_clock().boot() - began, milliseconds{950});
  const auto all = results();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].end, TaskEnd::revoked);
  EXPECT_EQ(all[0].index, 10u);
  EXPECT_EQ(all[0].count, 90u);
  EXPECT_EQ(all[1].end, TaskEnd::ended);
  EXPECT_EQ(output_of(all[1]), "done\n");
  EXPECT_EQ(all[2].end, TaskEnd::stopped);
}

TEST_F(BagRunnerTest, DoesNotBeginWhatIsRevoked) {
  begin("sleep 0.2");
  grant(0, 50);
  for (int i = 0; i < 1000 && read_board(folder_ / "run").running.empty(); ++i) os::pause_for(milliseconds{2});
  order({OrderKind::revoke, 0, 50, {}, 0});
  finish();
  EXPECT_EQ(end(), 0);
  const auto all = results();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].end, TaskEnd::revoked);
  EXPECT_EQ(all[0].index, 1u);
  EXPECT_EQ(all[0].count, 49u);
  EXPECT_TRUE(all[1].succeeded());
}

class BagStreamTest : public BagRunnerTest {
 protected:
  // Answers each item with a line; the item "die" ends it, "exit" as if all were well, "hang" takes for ever.
  void begin_program(const std::string& more = "") {
    spec_.mode = wire::BagMode::stream;
    begin(more +
          "echo started >>starts; while read -r item; do case $item in die) kill -9 $$;; exit) exit 0;; hang) sleep "
          "60;; esac; "
          "echo \"got $item\"; done");
  }
  [[nodiscard]] std::size_t starts() const { return std::filesystem::file_size(folder_ / "work/starts") / 8; }
};

TEST_F(BagStreamTest, GivesItemsToAProgramThatStaysUp) {
  spec_.slots = 2;
  begin_program();
  std::vector<std::string> items;
  for (int i = 0; i < 500; ++i) items.push_back("item " + std::to_string(i));
  grant(100, 500, items);
  await(500);
  grant(5, 1, {"last"});
  finish();
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(starts(), 2u);
  auto all = results();
  ASSERT_EQ(all.size(), 501u);
  std::ranges::sort(all, {}, &TaskResult::index);
  EXPECT_EQ(output_of(all[0]), "got last\n");
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(output_of(all[i]), "got " + items[i - 1] + "\n");
}

TEST_F(BagStreamTest, FindsTheItemThatEndsItsProgramAmongThoseThatItHad) {
  spec_.timeout = milliseconds{400};
  begin_program();
  std::vector<std::string> items(40, "fine");
  items[7] = items[8] = "die";
  items[20] = "exit";
  items[25] = "hang";
  grant(0, 40, items);
  finish();
  EXPECT_EQ(end(), 0);
  auto all = results();
  ASSERT_EQ(all.size(), 40u);
  std::ranges::sort(all, {}, &TaskResult::index);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].index, i);
    EXPECT_EQ(all[i].succeeded(), items[i] == "fine") << i;
  }
  EXPECT_EQ(all[7].signal, SIGKILL);
  EXPECT_EQ(all[20].end, TaskEnd::garbled);
  EXPECT_EQ(all[25].end, TaskEnd::timeout);
}

TEST_F(BagStreamTest, EndsWhenItsProgramNeverAnswers) {
  spec_.mode = wire::BagMode::stream;
  spec_.max_restarts = 2;
  begin("echo started >>starts; exit 3");
  grant(0, 100);
  EXPECT_EQ(end(), 1);
  EXPECT_EQ(starts(), 3u);
  const auto all = results();
  std::uint64_t told = 0;
  for (const TaskResult& one : all) told += one.count;
  EXPECT_EQ(told, 100u);
}

TEST_F(BagStreamTest, TakesAnswersInAnyOrderByTheirIds) {
  spec_.mode = wire::BagMode::stream;
  spec_.json = true;
  spec_.window = 2;
  begin("while read -r one && read -r two; do echo \"$two\"; echo noise; echo \"$one\"; done");
  grant(10, 4, {"a \"b\"", "{\"x\": 1}", "[2]", ""});
  await(4);
  finish();
  EXPECT_EQ(end(), 0);
  auto all = results();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].index, 11u);
  std::ranges::sort(all, {}, &TaskResult::index);
  EXPECT_EQ(output_of(all[0]), "{\"id\":10,\"item\":\"a \\\"b\\\"\"}\n");
  EXPECT_EQ(output_of(all[1]), "{\"id\":11,\"item\":{\"x\": 1}}\n");
}

}  // namespace
}  // namespace gridctl::agent::bag_runner_test
