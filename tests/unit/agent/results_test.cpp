// SPDX-License-Identifier: Apache-2.0
#include "agent/results.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "os/entries.hpp"
#include "store/tree.hpp"
#include "support/permissions.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::results_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using store::testing::slurp, store::testing::write;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An attempt whose program has run: what lies in its working directory from before is not its own.
class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest() {
    write(attempt_.work() / "train.py", "import torch\n");
    std::filesystem::create_directories(attempt_.run(1));
    wait_for_another_time();
    write(attempt_.run(1) / "once", "");
    spec_.job = {"j"};
    spec_.epoch = {1};
    spec_.checkpoint_path = "out";
    spec_.keep_work = std::chrono::hours{1};
    EXPECT_THAT(os::write_file_atomically(attempt_.spec_file(), wire::encode(spec_)), IsOk());
  }
  // File systems tell times by the kernel's tick.
  void wait_for_another_time() const {
    write(dir_ / "probe", "");
    const auto was = (*os::status_of(dir_ / "probe"))->ctime_ns;
    while ((*os::status_of(dir_ / "probe"))->ctime_ns == was) write(dir_ / "probe", "x");
  }
  wire::ResultsReply gather(std::vector<std::string> patterns, bool tree = false) {
    const auto place = find_workplace(attempt_);
    EXPECT_THAT(place, IsOk());
    auto reply = gather_results(*place, {{"j"}, {1}, std::move(patterns), tree});
    EXPECT_THAT(reply, IsOk());
    return reply ? *std::move(reply) : wire::ResultsReply{};
  }

  store::testing::Folder dir_;
  const AttemptDir attempt_{dir_ / "jobs/c/j/1"};
  wire::AttemptSpec spec_;
};

TEST_F(ResultsTest, AreWhatTheProgramWroteOutsideItsCheckpoint) {
  write(attempt_.work() / "out/ckpt.pt", "state");
  write(attempt_.work() / "outline.txt", "no checkpoint, in spite of its name");
  write(attempt_.work() / "plots/a.svg", "x");
  const wire::ResultsReply left = gather({});
  EXPECT_THAT(left.names, ElementsAre("outline.txt", "plots/a.svg"));
  EXPECT_EQ(left.files, 2u);
  EXPECT_FALSE(left.root);
}

TEST_F(ResultsTest, AreNothingWhenItWroteNothing) { EXPECT_EQ(gather({}).files, 0u); }

TEST_F(ResultsTest, HoldAFileOfBeforeThatTheProgramChanged) {
  write(attempt_.work() / "train.py", "import jax\n");
  EXPECT_THAT(gather({}).names, ElementsAre("train.py"));
}

TEST_F(ResultsTest, AreThoseThatThePatternsName) {
  for (const char* name : {"result.txt", "sub/result.txt", "logs/a.csv", "logs/b.txt", "models/deep/m.bin", "x/logs/c.csv"})
    write(attempt_.work() / name, name);
  EXPECT_THAT(gather({"result.txt", "logs/*.csv", "models/"}).names,
              ElementsAre("logs/a.csv", "models/deep/m.bin", "result.txt"));
  EXPECT_THAT(gather({"**/*.csv"}).names, ElementsAre("logs/a.csv", "x/logs/c.csv"));
  const wire::ResultsReply made = gather({"models/"}, true);
  ASSERT_TRUE(made.root);
  const std::string manifest = slurp(find_workplace(attempt_)->manifest);
  const auto tree = store::parse_manifest(as_bytes(manifest));
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(tree->entries.size(), 3u) << "two folders and a file";
}

TEST_F(ResultsTest, LeaveOutLinksThatLeadOut) {
  write(attempt_.work() / "a", "x");
  std::filesystem::create_symlink("/etc/passwd", attempt_.work() / "b");
  const wire::ResultsReply made = gather({}, true);
  EXPECT_THAT(made.names, ElementsAre("a"));
  EXPECT_EQ(made.notes.size(), 1u);
}

// As a program leaves `cache` with mode 0: it is no output, and what is one comes.
TEST_F(ResultsTest, ComeAroundWhatCannotBeRead) {
  const gridctl::testing::ObeysModes obeys;
  write(attempt_.work() / "result.txt", "42");
  write(attempt_.work() / "cache/y", "x");
  write(attempt_.work() / "logs/closed.csv", "x");
  std::filesystem::permissions(attempt_.work() / "cache", std::filesystem::perms::none);
  std::filesystem::permissions(attempt_.work() / "logs/closed.csv", std::filesystem::perms::none);
  const wire::ResultsReply named = gather({"result.txt"}, true), all = gather({}, true);
  EXPECT_THAT(named.names, ElementsAre("result.txt"));
  EXPECT_THAT(named.notes, IsEmpty()) << "nothing in there can be wanted";
  EXPECT_THAT(all.names, ElementsAre("result.txt"));
  EXPECT_THAT(all.notes, ::testing::UnorderedElementsAre(::testing::StartsWith("cache: "), ::testing::StartsWith("logs/closed.csv: ")));
  std::filesystem::permissions(attempt_.work() / "cache", std::filesystem::perms::owner_all);
}

TEST_F(ResultsTest, WithHolesAreReadAtOnce) {
  for (const char* name : {"d/a", "d/b"}) {
    write(attempt_.work() / name, "x");
    std::filesystem::resize_file(attempt_.work() / name, 400ull << 30);
  }
  const wire::ResultsReply made = gather({"d"}, true);
  EXPECT_EQ(made.bytes, 800ull << 30);
  EXPECT_TRUE(made.root);
}

TEST_F(ResultsTest, EndWhenNobodyWantsThemAnyMore) {
  write(attempt_.work() / "a", "x");
  const auto place = find_workplace(attempt_);
  const auto gone = [](std::uint64_t) -> Result<void> { return make_error(Code::cancelled, "gone"); };
  EXPECT_THAT(gather_results(*place, {{"j"}, {1}, {}, true}, gone), FailsWith(Code::cancelled));
}

TEST_F(ResultsTest, HaveLinksThatWorkElsewhere) {
  write(attempt_.work() / "sub/a", "x");
  std::filesystem::create_symlink(attempt_.work() / "sub/a", attempt_.work() / "link");
  EXPECT_THAT(gather({}, true).names, ElementsAre("link", "sub/a"));
}

TEST_F(ResultsTest, AreKeptWhenTheyCouldNotBeFetched) {
  spec_.keep_work = {};
  ASSERT_THAT(os::write_file_atomically(attempt_.spec_file(), wire::encode(spec_)), IsOk());
  write(attempt_.work() / "answer.txt", "42");
  KeptWork kept(attempt_.agent_home());
  ASSERT_THAT(kept.take(attempt_), IsOk());
  EXPECT_FALSE(*kept.find({"c"}, {"j"}, {1}));
  ASSERT_THAT(kept.take(attempt_, std::chrono::hours{1}), IsOk());
  EXPECT_TRUE(*kept.find({"c"}, {"j"}, {1}));
}

TEST_F(ResultsTest, OutliveTheAttemptForAsLongAsItsSpecificationSays) {
  write(attempt_.work() / "answer.txt", "42");
  KeptWork kept(attempt_.agent_home());
  ASSERT_THAT(kept.take(attempt_), IsOk());
  std::filesystem::remove_all(attempt_.path);
  EXPECT_THAT(gather({}).names, ElementsAre("answer.txt")) << "and not what was there before";
  const WallTime now = os::system_clock().wall();
  kept.sweep(now);
  EXPECT_THAT(find_workplace(attempt_), IsOk());
  kept.sweep({now.ms + 3'700'000});
  EXPECT_THAT(find_workplace(attempt_), FailsWith(Code::not_found));
}

TEST_F(ResultsTest, OfTheNewestAttemptAloneAreKept) {
  write(attempt_.work() / "answer.txt", "42");
  KeptWork kept(attempt_.agent_home());
  ASSERT_THAT(kept.take(attempt_), IsOk());
  const AttemptDir next{dir_ / "jobs/c/j/2"};
  std::filesystem::rename(attempt_.path, next.path);
  write(next.work() / "answer.txt", "43");
  ASSERT_THAT(kept.take(next), IsOk());
  EXPECT_TRUE(*kept.find({"c"}, {"j"}, {2}));
  EXPECT_FALSE(*kept.find({"c"}, {"j"}, {1}));
}

TEST_F(ResultsTest, ArePatternsFromTheTopWhetherOrNotTheySaySo) {
  for (const char* name : {"a.txt", "sub/a.txt", "out/a.txt", "outer.txt"}) write(attempt_.work() / name, name);
  EXPECT_THAT(gather({"/a.txt"}).names, ElementsAre("a.txt"));
  EXPECT_THAT(gather({"*"}).names, ElementsAre("a.txt", "outer.txt", "sub/a.txt", "train.py"))
      << "what lies in the checkpoint's directory is no result";
  EXPECT_THAT(gather({"none"}).names, IsEmpty());
  EXPECT_FALSE(gather({"none"}, true).root);
  EXPECT_EQ(gather({"a.txt"}).bytes, 5u);
  EXPECT_EQ(gather({"a.txt"}, true).bytes, 5u);
}

TEST_F(ResultsTest, AreCountedBeyondTheNamesThatFit) {
  for (std::size_t i = 0; i < wire::k_result_names_max + 2; ++i) write(attempt_.work() / ("f" + std::to_string(i)), "x");
  const wire::ResultsReply left = gather({});
  EXPECT_EQ(left.files, wire::k_result_names_max + 2);
  EXPECT_EQ(left.names.size(), wire::k_result_names_max);
}

TEST_F(ResultsTest, OfAProgramThatNeverBeganAreNowhere) {
  std::filesystem::remove(attempt_.run(1) / "once");
  EXPECT_THAT(find_workplace(attempt_), FailsWith(Code::not_found));
  EXPECT_FALSE(*workplace_of(attempt_, spec_));
  std::filesystem::remove_all(attempt_.runs());
  EXPECT_FALSE(*workplace_of(attempt_, spec_));
}

TEST_F(ResultsTest, AreKeptOnlyWhereThatIsWanted) {
  write(attempt_.work() / "answer.txt", "42");
  spec_.keep_work = {};
  ASSERT_THAT(os::write_file_atomically(attempt_.spec_file(), wire::encode(spec_)), IsOk());
  ASSERT_THAT(KeptWork(attempt_.agent_home()).take(attempt_), IsOk());
  EXPECT_FALSE(os::exists(attempt_.agent_home() / "kept"));
}

TEST_F(ResultsTest, OfOtherJobsStayWhenANewerAttemptIsKept) {
  const os::Path all = attempt_.agent_home() / "kept";
  for (const char* name : {"c.j.0", "c.jj.1", "d.j.1"}) write(all / name / "work/x", "x");
  write(attempt_.work() / "answer.txt", "42");
  ASSERT_THAT(KeptWork(attempt_.agent_home()).take(attempt_), IsOk());
  EXPECT_EQ(*os::list_directory(all), (std::vector<std::string>{"c.j.1", "c.jj.1", "d.j.1"}));
}

TEST_F(ResultsTest, ThatAPowerCutLeftHalfKeptGoAfterAnHour) {
  const os::Path all = attempt_.agent_home() / "kept";
  write(all / "c.a.1/work/x", "x");
  write(all / "c.b.1/about", "nonsense\n");
  write(all / "c.c.1/about", "1 x\n\n");
  write(all / "c.d.1/about", "1\n\n");
  KeptWork kept(attempt_.agent_home());
  const WallTime now = os::system_clock().wall();
  kept.sweep({now.ms + 3'500'000});
  EXPECT_EQ(os::list_directory(all)->size(), 4u) << "one may be in the making";
  EXPECT_FALSE(*kept.find({"c"}, {"a"}, {1}));
  kept.sweep({now.ms + 3'700'000});
  EXPECT_THAT(*os::list_directory(all), IsEmpty());
}

TEST_F(ResultsTest, AreNotKeptWhenThereAreNone) {
  KeptWork kept(attempt_.agent_home());
  ASSERT_THAT(kept.take(attempt_), IsOk());
  EXPECT_FALSE(*kept.find({"c"}, {"j"}, {1}));
  EXPECT_TRUE(os::exists(attempt_.work()));
}

}  // namespace
}  // namespace gridctl::agent::results_test
