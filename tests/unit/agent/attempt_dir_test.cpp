// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt_dir.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "os/entries.hpp"
#include "os/process.hpp"
#include "support/disk_calls.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::attempt_dir_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

class AttemptDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    wire::AttemptSpec spec;
    spec.job = {"j"};
    spec.epoch = Epoch{2};
    spec.run = "true";
    ASSERT_THAT(os::make_directories(attempt_.path.parent_path()), IsOk());
    ASSERT_THAT(create_attempt(attempt_, {{"op"}, os::boot_id(), BootTime{5}, spec}), IsOk());
  }
  gridctl::testing::TempDir home_;
  AttemptDir attempt_{home_ / "jobs/c/j/2"};
};

TEST_F(AttemptDirTest, KnowsItselfByItsPath) {
  EXPECT_EQ(attempt_.epoch().value, 2u);
  EXPECT_EQ(attempt_.job().value, "j");
  EXPECT_EQ(attempt_.controller().value, "c");
  EXPECT_EQ(attempt_.agent_home(), home_.path());
  EXPECT_EQ(read_spec(attempt_)->run, "true");
  EXPECT_EQ(read_number(attempt_.deadline_file())->value(), 5);
}

TEST_F(AttemptDirTest, WhatAKilledCreationLeftGoesWithItsSecrets) {
  const auto secrets = attempt_.secrets();
  if (!secrets) GTEST_SKIP() << secrets.error().message;
  const JobDir job{{"c"}, {"j"}, attempt_.path.parent_path()};
  EXPECT_FALSE(has_drafts(job));
  ASSERT_THAT(os::rename_path(attempt_.path, job.path / ".new-2"), IsOk());  // killed before it got its name
  ASSERT_THAT(os::make_directories(*secrets), IsOk());
  ASSERT_THAT(os::write_file_atomically(*secrets / "TOKEN", "canary"), IsOk());
  EXPECT_TRUE(has_drafts(job));
  remove_drafts(job);
  EXPECT_FALSE(has_drafts(job));
  EXPECT_FALSE(os::exists(*secrets));
}

TEST_F(AttemptDirTest, ADraftBesideItsAttemptDoesNotCostTheSecrets) {
  const auto secrets = attempt_.secrets();
  if (!secrets) GTEST_SKIP() << secrets.error().message;
  ASSERT_THAT(os::make_directories(*secrets), IsOk());
  ASSERT_THAT(os::make_directories(attempt_.path.parent_path() / ".new-2"), IsOk());
  remove_drafts({{"c"}, {"j"}, attempt_.path.parent_path()});
  EXPECT_TRUE(os::exists(*secrets));
  ASSERT_THAT(os::remove_tree(*secrets), IsOk());
}

TEST_F(AttemptDirTest, AnEndIsOnTheDiskBeforeItIsTold) {
  wire::AttemptStatus status;
  status.job = {"j"};
  status.epoch = Epoch{2};
  status.phase = wire::AttemptPhase::ended;
  const testing::DiskRecord disk(home_.path());
  ASSERT_THAT(write_status(attempt_, status, os::system_clock(), true), IsOk());
  const std::size_t told = disk.named(home_ / "jobs/c/notify/j.2"), kept = disk.durable(attempt_.status_file());
  EXPECT_GT(kept, 0u) << "a power cut takes it\n" << disk.text();
  EXPECT_GT(told, kept) << disk.text();
}

TEST_F(AttemptDirTest, AnAcceptedStartIsOnTheDisk) {
  const AttemptDir next{home_ / "jobs/c/j/3"};
  wire::AttemptSpec spec;
  spec.job = {"j"};
  spec.epoch = Epoch{3};
  const testing::DiskRecord disk(home_.path());
  ASSERT_THAT(create_attempt(next, {{"op"}, os::boot_id(), BootTime{5}, spec}), IsOk());
  EXPECT_TRUE(disk.is_kept(next.path)) << disk.text();
}

TEST_F(AttemptDirTest, IsStartingBeforeItsFirstStatus) {
  const auto status = read_status(attempt_, os::system_clock());
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ((*status)->phase, wire::AttemptPhase::starting);
}

TEST_F(AttemptDirTest, IsOverWhenAPowerCutTookWhatWasNeverSynced) {
  for (const os::Path& emptied : {attempt_.status_file(), attempt_.boot_file()}) {
    ASSERT_THAT(os::write_file_atomically(emptied, ""), IsOk());
    const auto status = read_status(attempt_, os::system_clock());
    ASSERT_THAT(status, IsOk()) << "one damaged attempt must not make the host unable to answer";
    if (emptied == attempt_.boot_file()) {
      EXPECT_EQ((*status)->end, wire::EndReason::host_rebooted);
    }
  }
  ASSERT_THAT(os::remove_file(attempt_.boot_file()), IsOk());
  EXPECT_EQ((*read_status(attempt_, os::system_clock()))->end, wire::EndReason::host_rebooted);
}

TEST_F(AttemptDirTest, EndsByARestartOfTheHost) {
  wire::AttemptStatus running;
  running.job = {"j"};
  running.epoch = Epoch{2};
  running.phase = wire::AttemptPhase::running;
  ASSERT_THAT(write_status(attempt_, running, os::system_clock(), true), IsOk());
  EXPECT_TRUE(os::exists(home_ / "jobs/c/notify/j.2"));
  auto text = os::read_file(attempt_.status_file());
  ASSERT_THAT(os::write_file_atomically(attempt_.status_file(), "other" + text->substr(text->find(' '))), IsOk());
  EXPECT_EQ((*read_status(attempt_, os::system_clock()))->end, wire::EndReason::host_rebooted);
  EXPECT_EQ((*read_status(attempt_, os::system_clock()))->phase, wire::AttemptPhase::ended);
  EXPECT_FALSE((*read_stored_status(attempt_, os::system_clock()))->ended());
  // What the program did before the power went is still true, and its last checkpoint is still to be taken.
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());
  std::ofstream(attempt_.run(1) / "exit") << to_text({"run", 0, 0, 0, 0, false, false});
  EXPECT_EQ((*read_status(attempt_, os::system_clock()))->end, wire::EndReason::exited);
  EXPECT_EQ((*read_status(attempt_, os::system_clock()))->phase, wire::AttemptPhase::stopping);
}

TEST_F(AttemptDirTest, FollowsNoLinkThatTheJobMade) {
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());
  std::filesystem::create_symlink("/etc/hostname", attempt_.run(1) / "exit");
  EXPECT_FALSE(read_hostile(attempt_.run(1), "exit").has_value());
  ::mkfifo((attempt_.run(1) / "phase").c_str(), 0600);
  EXPECT_FALSE(read_hostile(attempt_.run(1), "phase").has_value());
}

TEST_F(AttemptDirTest, KnowsTheAgeOfWhatItsStatusTells) {
  wire::AttemptStatus running;
  running.job = {"j"};
  running.epoch = Epoch{2};
  running.phase = wire::AttemptPhase::running;
  running.started_ms_ago = 10;
  ASSERT_THAT(write_status(attempt_, running, os::system_clock(), false), IsOk());
  EXPECT_FALSE(os::exists(home_ / "jobs/c/notify")) << "nobody is to be told";
  const std::string text = os::read_file(attempt_.status_file()).value();
  const auto stamped = [&](const std::string& boot, std::int64_t boot_ns, std::int64_t wall_ms) {
    EXPECT_THAT(os::write_file_atomically(attempt_.status_file(), boot + " " + std::to_string(boot_ns) + " " +
                                                                      std::to_string(wall_ms) + text.substr(text.find('\n'))),
                IsOk());
    return (*read_stored_status(attempt_, os::system_clock()))->status.started_ms_ago;
  };
  const std::int64_t boot = os::system_clock().boot().ns, wall = os::system_clock().wall().ms;
  EXPECT_NEAR(static_cast<double>(stamped(os::boot_id(), boot - 5'000'000'000, wall)), 5010, 1000) << "by the boot clock";
  EXPECT_NEAR(static_cast<double>(stamped("earlier", boot, wall - 70'000)), 70'010, 1000) << "by the clock on the wall";
  EXPECT_EQ(stamped("earlier", boot, wall + 70'000), 10) << "a clock that was set back makes nothing younger";
  for (const char* odd : {"", "one two\n{}", "one 2 3 4\n{}", "one 2 3"}) {
    ASSERT_THAT(os::write_file_atomically(attempt_.status_file(), odd), IsOk());
    EXPECT_EQ((*read_stored_status(attempt_, os::system_clock()))->status.phase, wire::AttemptPhase::starting) << odd;
  }
}

TEST_F(AttemptDirTest, ListsItsEpochsInTheirOrder) {
  const JobDir job{{"c"}, {"j"}, attempt_.path.parent_path()};
  for (const char* name : {"10", "9", "x", "3a", ".old-4"}) ASSERT_THAT(os::make_directories(job.path / name), IsOk());
  EXPECT_EQ(*job.epochs(), (std::vector<Epoch>{Epoch{2}, Epoch{9}, Epoch{10}}));
  EXPECT_TRUE((JobDir{{"c"}, {"none"}, home_ / "none"}).epochs()->empty());
  EXPECT_EQ(newest_launch(attempt_), 0u);
  for (const char* name : {"9", "10", "x", "11x"}) ASSERT_THAT(os::make_directories(attempt_.runs() / name), IsOk());
  EXPECT_EQ(newest_launch(attempt_), 10u);
}

TEST_F(AttemptDirTest, ReadsNumbersAndNothingElse) {
  const os::Path file = home_ / "number";
  EXPECT_FALSE(read_number(file)->has_value()) << "there is none";
  for (const auto& [text, number] : std::vector<std::pair<std::string, std::int64_t>>{
           {"0\n", 0}, {" 7 ", 7}, {"9223372036854775807", INT64_MAX}}) {
    ASSERT_THAT(os::write_file_atomically(file, text), IsOk());
    EXPECT_EQ(read_number(file)->value(), number);
  }
  for (const char* text : {"", "-1", "7x", "9223372036854775808", "0x1"}) {
    ASSERT_THAT(os::write_file_atomically(file, text), IsOk());
    EXPECT_FALSE(read_number(file)) << text;
  }
}

TEST_F(AttemptDirTest, ReadsNoMoreThanFourKibibytesOfTheJobsFiles) {
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());
  EXPECT_FALSE(read_hostile(attempt_.run(1), "phase"));
  std::ofstream(attempt_.run(1) / "phase") << std::string(5000, 'x');
  EXPECT_EQ(read_hostile(attempt_.run(1), "phase")->size(), 4096u);
  EXPECT_EQ(open_hostile(attempt_.run(1), "phase")->size, 5000u);
  std::filesystem::create_directory_symlink(attempt_.run(1), attempt_.run(2));
  EXPECT_FALSE(read_hostile(attempt_.run(2), "phase")) << "the folder itself is a link";
}

TEST_F(AttemptDirTest, OfANewOneThatCannotBeMadeNothingStays) {
  wire::AttemptSpec spec;
  spec.job = {"j"};
  spec.epoch = Epoch{3};
  const AttemptDir next{home_ / "jobs/c/j/3"};
  ASSERT_THAT(os::make_directories(next.path / "in-its-place"), IsOk());
  EXPECT_FALSE(create_attempt(next, {{"op"}, "b", BootTime{5}, spec}));
  EXPECT_FALSE(has_drafts({{"c"}, {"j"}, next.path.parent_path()}));
  ASSERT_THAT(os::remove_tree(next.path), IsOk());
  HostLimits limits;
  limits.run_limit = "budget";
  limits.run_until = BootTime{7};
  const auto where = next.secrets();
  if (!where) GTEST_SKIP() << where.error().message;
  ASSERT_THAT(create_attempt(next, {{"the-op"}, "b", BootTime{5}, spec, limits, {{"TOKEN", "canary"}}}), IsOk());
  EXPECT_EQ(os::read_file(next.op_file()).value(), "the-op\n");
  EXPECT_EQ(os::read_file(next.boot_file()).value(), "b\n");
  EXPECT_EQ(parse_limits(os::read_file(next.limits_file()).value()), limits);
  EXPECT_TRUE(os::exists(next.log()));
  EXPECT_EQ(os::read_file(*where / "TOKEN").value_or(""), "canary");
  EXPECT_EQ((*os::status_of(*where))->mode, 0700u);
  EXPECT_EQ((*os::status_of(*where / "TOKEN"))->mode, 0600u);
  ASSERT_THAT(os::remove_tree(*where), IsOk());
}

TEST(JobFolders, AreNotThoseOfAnythingElse) {
  // The owner of a lent machine ends the jobs that he sees: there must be none that its list leaves out.
  EXPECT_THAT(JobDir::at("/home", {"c"}, {"notify"}), FailsWith(Code::refused));
  EXPECT_THAT(JobDir::at("/home", {"c"}, {"notify1"}), IsOk());
  EXPECT_THAT(JobDir::at("/home", {"c"}, {"../c"}), FailsWith(Code::refused));
}

TEST(Components, AreShortAndPlain) {
  for (const std::string& good : {std::string("a"), std::string("0-9z"), std::string(64, 'x'), std::string("a-")})
    EXPECT_THAT(check_component("the id", good), IsOk()) << good;
  for (const std::string& bad : {std::string(), std::string(65, 'x'), std::string("-a"), std::string("A"), std::string("a.b"),
                                 std::string("a/b"), std::string("a`"), std::string("a{"), std::string("a:")})
    EXPECT_THAT(check_component("the id", bad), gridctl::testing::FailsWith(Code::refused)) << bad;
  EXPECT_EQ(check_component("the id", "\x1b[2J").error().message, "the id is not a valid id: '^[[2J'");
}

TEST(Homes, AreTheUsualOnesUnlessOthersAreNamed) {
  ::unsetenv("GRIDCTL_AGENT_HOME");
  ::unsetenv("GRIDCTL_LEASE_DIR");
  EXPECT_EQ(agent_home(), os::home_directory() / ".gridctl");
  EXPECT_EQ(lease_directory(), "/var/tmp");
  ::setenv("GRIDCTL_AGENT_HOME", "", 1);
  ::setenv("GRIDCTL_LEASE_DIR", "", 1);
  EXPECT_EQ(agent_home(), os::home_directory() / ".gridctl");
  EXPECT_EQ(lease_directory(), "/var/tmp");
  ::setenv("GRIDCTL_AGENT_HOME", "/a", 1);
  ::setenv("GRIDCTL_LEASE_DIR", "/b", 1);
  EXPECT_EQ(agent_home(), "/a");
  EXPECT_EQ(lease_directory(), "/b");
  ::unsetenv("GRIDCTL_AGENT_HOME");
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

TEST(ExitRecord, IsBelievedWithinItsBounds) {
  const auto parsed = [](const std::string& text) { return parse_exit_record(text + "lease=0\n"); };
  for (const char* good : {"code=-1\n", "code=0\n", "code=255\n", "signal=0\n", "signal=64\n"}) EXPECT_TRUE(parsed(good)) << good;
  for (const char* bad : {"code=-2\n", "code=256\n", "signal=-1\n", "signal=65\n", "no assignment\n"}) EXPECT_FALSE(parsed(bad)) << bad;
  const auto all = parse_exit_record("phase=setup\ncode=x\nsignal=9\noom_kills=2\nmemory_peak=77\nterm=1\nfirst=rank\x1b" +
                                     std::string(40, '7') + "\nlease=1\n");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->phase, "setup");
  EXPECT_EQ(all->code, -1);
  EXPECT_EQ(all->signal, 9);
  EXPECT_EQ(all->oom_kills, 2u);
  EXPECT_EQ(all->memory_peak, 77u);
  EXPECT_TRUE(all->term_received);
  EXPECT_TRUE(all->lease_passed);
  EXPECT_EQ(all->first, "rank^[" + std::string(27, '7'));
  EXPECT_EQ(parsed("phase=anything\nterm=0\n")->phase, "run");
  EXPECT_FALSE(parsed("term=yes\n")->term_received);
}

TEST(ExitRecord, ComesBackAsItWas) {
  const auto back = parse_exit_record(to_text({"setup", 3, 0, 1, 99, true, false}));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->phase, "setup");
  EXPECT_EQ(back->code, 3);
  EXPECT_TRUE(back->term_received);
  EXPECT_FALSE(parse_exit_record("phase=run\ncode=0\n").has_value());  // cut off
  EXPECT_FALSE(parse_exit_record("code=999\nlease=0\n").has_value());
}

TEST(ExitRecord, NamesTheMemoryLimitOnlyWhenTheJobDiedOfIt) {
  wire::AttemptStatus status;
  apply_exit({"run", 137, 0, 1, 60u << 20, false, false}, 64u << 20, status);
  EXPECT_EQ(status.end, wire::EndReason::oom);
  EXPECT_EQ(status.detail, "out of memory: used 60 MiB of 64 MiB");
  wire::AttemptStatus survived;
  apply_exit({"run", 0, 0, 1, 0, false, false}, 0, survived);
  EXPECT_EQ(survived.end, wire::EndReason::exited);
}

}  // namespace
}  // namespace gridctl::agent::attempt_dir_test
