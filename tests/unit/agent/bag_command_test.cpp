// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "agent/bag_command.hpp"
#include "support/results.hpp"

namespace gridctl::agent::bag_command_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

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

}  // namespace
}  // namespace gridctl::agent::bag_command_test
