// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "agent/bag_command.hpp"
#include "agent/bag_output.hpp"
#include "agent/bag_queue.hpp"
#include "agent/bag_shell.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::bag_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using wire::OrderKind;
using wire::TaskEnd;

wire::BagOrder granted(std::uint64_t first, std::uint64_t count, std::vector<std::string> items = {}) {
  return {OrderKind::grant, first, count, std::move(items), 0};
}

std::vector<std::uint64_t> rest_of(BagQueue& queue) {
  std::vector<std::uint64_t> indices;
  while (const auto task = queue.next()) indices.push_back(task->index);
  return indices;
}

TEST(BagQueue, GivesTasksInTheOrderOfTheirGrantsWithTheirItems) {
  BagQueue queue;
  EXPECT_TRUE(queue.take(granted(5, 2, {"a", "b"})).empty());
  EXPECT_TRUE(queue.take(granted(0, 1)).empty());
  EXPECT_EQ(queue.size(), 3u);
  const auto first = queue.next(), second = queue.next(), third = queue.next();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->index, 5u);
  EXPECT_EQ(second->item, "b");
  EXPECT_EQ(third->item, std::nullopt);
  EXPECT_EQ(third->order, 1u);
  EXPECT_FALSE(queue.next());
}

TEST(BagQueue, TakesBackWhatIsRevokedAndKeepsTheItemsOfTheRest) {
  BagQueue queue;
  (void)queue.take(granted(10, 5, {"a", "b", "c", "d", "e"}));
  (void)queue.take(granted(100, 10));
  const auto back = queue.take({OrderKind::revoke, 11, 3, {}, 0});
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].index, 11u);
  EXPECT_EQ(back[0].count, 3u);
  EXPECT_EQ(back[0].order, 0u);
  EXPECT_EQ(back[0].end, TaskEnd::revoked);
  EXPECT_EQ(queue.next()->item, "a");
  EXPECT_EQ(queue.next()->item, "e");
  EXPECT_EQ(queue.size(), 10u);
  EXPECT_TRUE(queue.take({OrderKind::revoke, 11, 3, {}, 0}).empty());
  EXPECT_EQ(queue.take_back().size(), 1u);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(BagQueue, RunsAnIndexAgainThatIsGrantedAgain) {
  BagQueue queue;
  for (const wire::BagOrder& order : {granted(3, 2), wire::BagOrder{OrderKind::revoke, 0, 9, {}, 0}, granted(4, 1)})
    (void)queue.take(order);
  EXPECT_EQ(rest_of(queue), std::vector<std::uint64_t>{4});
}

TEST(BagQueue, GivesBackWhatIsGrantedBehindTheFinish) {
  BagQueue queue;
  (void)queue.take({OrderKind::finish, 0, 0, {}, 7});
  EXPECT_EQ(queue.take(granted(3, 2)).size(), 1u);
  EXPECT_TRUE(queue.finished());
  EXPECT_EQ(queue.exit_code(), 7);
}

std::vector<std::string> words_of(const std::string& command, const std::string& item, wire::BagSpec spec = {}) {
  spec.render = true;
  BagCommand rendered(command, spec, "/usr/bin:/bin", "/run.sh");
  std::vector<std::string> words = rendered.words({16, 0, item}, 3);
  words.erase(words.begin());
  return words;
}
using Words = std::vector<std::string>;

TEST(BagCommand, PutsTheItemInPlaceOfTheWordsOfParallel) {
  EXPECT_EQ(words_of("cat {} {.} {/} {//} {/.} {#} {%}", "in/a b.tar.gz"),
            (Words{"cat", "in/a b.tar.gz", "in/a b.tar", "a b.tar.gz", "in", "a b.tar", "17", "3"}));
  EXPECT_EQ(words_of("cat {/.}x {//}", "plain"), (Words{"cat", "plainx", "."}));
  EXPECT_EQ(words_of("cat {.}", "v1.2/file."), (Words{"cat", "v1.2/file."}));
  wire::BagSpec columns;
  columns.items = wire::BagItems::columns;
  const std::string shell = words_of("cat {2} {1.} {3}; true",
                                     "a.b\x1f"
                                     "c d",
                                     columns)[2];
  EXPECT_EQ(shell, "cat c\\ d a ; true");
  EXPECT_EQ(words_of("cat {}",
                     "a.b\x1f"
                     "c d",
                     columns)[2],
            "cat a.b c\\ d");
}

TEST(BagCommand, NeedsAShellOnlyWhereOneWouldDoSomething) {
  EXPECT_EQ(words_of("true", ""), Words{"true"});
  EXPECT_EQ(words_of("cat -n --x=y ./a", ""), (Words{"cat", "-n", "--x=y", "./a"}));
  for (const char* command : {"echo a", "cd /", "A=1 cat", "cat $HOME", "cat *", "cat 'a'", "cat a; cat b", "cat ~",
                              "{} a", "cat {a,b}", "no-such-program-here a", "cat a\ncat b", "exit 3", "cat a > b"})
    EXPECT_GT(words_of(command, "x")[0].find("sh"), 0u) << command;
}

TEST(BagCommand, TakesBashOnlyWhereItMakesADifference) {
  for (const char* plain : {"echo a; true", "cat in.txt > out.txt 2>&1", "echo $GRIDCTL_TASK_INDEX >> /tmp/x", "exit 3",
                            "if [ -e /tmp/x ]; then sleep 5; else sleep 0.5; fi", "python a.py --n ${SLURM_ARRAY_TASK_ID} | tee b",
                            "cat a\ncat b"})
    EXPECT_TRUE(is_plain_shell(plain)) << plain;
  for (const char* bash : {"[[ a == b ]]", "echo -e a", "echo 'a\\tb'", "echo $HOME", "echo {1..3}", "x+=1", "cat <(ls)", "ls &> x",
                           "source a.sh", ". a.sh", "a=(1 2)", "echo $RANDOM", "echo ${GRIDCTL_TASK_INDEX%0}", "f() { ls; }",
                           "cat <<< x", "set -o pipefail", "! ls", "echo ~", "for ((i=0;i<3;i++)); do ls; done", "ls >& x"})
    EXPECT_FALSE(is_plain_shell(bash)) << bash;
}

TEST(BagCommand, QuotesForTheShell) {
  EXPECT_EQ(job::parallel_quote("a b'c\"$x\n(ä)"), "a\\ b\\'c\\\"\\$x'\n'\\(\\\xc3\\\xa4\\)");
  EXPECT_EQ(job::parallel_quote(""), "''");
  EXPECT_EQ(words_of("echo {} # {x}", "a;b")[2], "echo a\\;b # {x}");
}

TEST(BagCommand, TakesWholeCommandLinesAsItems) { EXPECT_EQ(words_of("{}", "echo a b | wc")[2], "echo a b | wc"); }

TEST(BagVariables, AreTheTasksOwnAndThoseOfItsItem) {
  wire::BagSpec spec;
  spec.array_first = 5;
  spec.array_step = 10;
  spec.items = wire::BagItems::variables;
  const auto variables = bag_variables({2, 0, "lr=1e-4\nSLURM_ARRAY_TASK_ID=9"}, spec, 1, "/w/tasks/2");
  ASSERT_THAT(variables, IsOk());
  const auto has = [&](const std::string& one) { return std::ranges::count(*variables, one) == 1; };
  EXPECT_TRUE(has("GRIDCTL_TASK_INDEX=2") && has("lr=1e-4") && has("SLURM_ARRAY_TASK_ID=9") &&
              has("GRIDCTL_CKPT_DIR=/w/tasks/2"));
  EXPECT_FALSE(has("SLURM_ARRAY_TASK_ID=25"));
  for (const char* bad : {"a b=c", "no assignment", "=x", "1a=b"})
    EXPECT_THAT(bag_variables({2, 0, bad}, spec, 1, ""), FailsWith(Code::refused)) << bad;
}

class BagFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::uint64_t append(std::uint64_t from, std::vector<wire::BagOrder> orders) const {
    auto count = append_orders(folder_.path(), from, orders);
    EXPECT_THAT(count, IsOk());
    return count ? *count : 0;
  }
  gridctl::testing::TempDir folder_;
};

TEST_F(BagFiles, TakeEachOrderOnceHoweverOftenItIsSent) {
  EXPECT_EQ(append(0, {granted(0, 1), granted(1, 1)}), 2u);
  EXPECT_EQ(append(0, {granted(0, 1), granted(1, 1)}), 2u);
  EXPECT_EQ(append(1, {granted(1, 1), granted(2, 1)}), 3u);
  EXPECT_THAT(append_orders(folder_.path(), 4, {granted(9, 1)}), FailsWith(Code::refused));
  OrderReader reader(folder_.path());
  const auto orders = reader.read();
  ASSERT_EQ(orders.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(orders[i].first, i);
  EXPECT_TRUE(reader.read().empty());
  EXPECT_EQ(append(3, {granted(3, 1)}), 4u);
  EXPECT_EQ(reader.read().size(), 1u);
}

// Whoever wrote died in the middle: at every length.
TEST_F(BagFiles, GoOnBehindOrdersThatWereTorn) {
  EXPECT_EQ(append(0, {granted(0, 1, {"first"})}), 1u);
  const auto whole = std::filesystem::file_size(folder_ / "orders");
  EXPECT_EQ(append(1, {granted(1, 1, {"second"})}), 2u);
  const auto both = std::filesystem::file_size(folder_ / "orders");
  for (auto length = whole; length < both; ++length) {
    std::filesystem::resize_file(folder_ / "orders", length);
    OrderReader reader(folder_.path());
    EXPECT_EQ(reader.read().size(), 1u);
    EXPECT_EQ(append(1, {granted(1, 1, {"second"})}), 2u) << length;
    EXPECT_EQ(reader.read().size(), 1u);
    EXPECT_EQ(std::filesystem::file_size(folder_ / "orders"), both);
  }
}

TEST_F(BagFiles, GiveResultsByNumberAndNoneThatIsDamaged) {
  auto writer = ResultWriter::open(folder_.path());
  ASSERT_THAT(writer, IsOk());
  ASSERT_TRUE(writer->reserve(100));
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_TRUE(writer->append({i, 1, 7, TaskEnd::oom, 1, 2, {3}, 4, 5, i * 10, 6, 8, 9}));
  BagResults read = read_results(folder_.path(), 90, 5);
  EXPECT_EQ(read.end, 100u);
  ASSERT_EQ(read.results.size(), 5u);
  EXPECT_EQ(read.results[4], (wire::TaskResult{94, 1, 7, TaskEnd::oom, 1, 2, {3}, 4, 5, 940, 6, 8, 9}));
  std::fstream file(folder_ / "tasks", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(72 * 50 + 8) << 'x';
  file.close();
  read = read_results(folder_.path(), 0, 4096);
  EXPECT_EQ(read.results.size(), 50u);
  EXPECT_EQ(read.end, 50u);
}

TEST_F(BagFiles, TellWhatRunsNow) {
  auto board = Board::make(folder_.path(), 3);
  ASSERT_THAT(board, IsOk());
  board->tell({5, 6, 7});
  board->set(0, 0);
  board->set(2, 12);
  board->set(0, std::nullopt);
  const BoardView view = read_board(folder_.path());
  EXPECT_EQ(view.head.orders, 5u);
  EXPECT_EQ(view.head.output_end, 7u);
  EXPECT_EQ(view.running, std::vector<std::uint64_t>{12});
}

TEST_F(BagFiles, KeepOutputInPiecesUntilTheControllerHasIt) {
  constexpr std::uint64_t k_total = 3 * k_output_piece_bytes;
  OutputWriter writer(folder_.path(), k_total);
  const auto add = [&](std::size_t bytes, char fill) {
    TaskOutput output;
    output.add(std::string(bytes, fill), 1ull << 30, folder_.path());
    return writer.append(output);
  };
  EXPECT_TRUE(add(100, 'a'));
  EXPECT_TRUE(add(k_output_piece_bytes * 2, 'b'));  // through a file of its own, over pieces
  EXPECT_TRUE(add(10, 'c'));
  EXPECT_FALSE(add(k_output_piece_bytes, 'd'));
  EXPECT_EQ(writer.end(), k_output_piece_bytes * 2 + 110);
  std::string all;
  while (all.size() < writer.end()) {
    const auto slice = read_output(folder_.path(), 0, all.size(), 1 << 20);
    ASSERT_THAT(slice, IsOk());
    ASSERT_FALSE(slice->bytes.empty());
    all += slice->bytes;
  }
  EXPECT_EQ(all, std::string(100, 'a') + std::string(k_output_piece_bytes * 2, 'b') + std::string(10, 'c'));
  EXPECT_EQ(drop_output(folder_.path(), folder_.path(), k_output_piece_bytes + 5), k_output_piece_bytes);
  EXPECT_EQ(drop_output(folder_.path(), folder_.path(), 0), k_output_piece_bytes);
  EXPECT_EQ(read_output(folder_.path(), k_output_piece_bytes, 0, 100)->offset, k_output_piece_bytes);
  EXPECT_TRUE(add(100, 'd'));
}

TEST_F(BagFiles, CountWhatIsBeyondTheLimitOfATask) {
  TaskOutput output;
  for (int i = 0; i < 10; ++i) output.add(std::string(100'000, 'x'), 450'000, folder_.path());
  EXPECT_EQ(output.size(), 450'000u);
  EXPECT_EQ(output.dropped(), 550'000u);
}

}  // namespace
}  // namespace gridctl::agent::bag_test
