// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt_dir.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "os/entries.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent {
namespace {

using testing::IsOk;

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
  testing::TempDir home_;
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
}  // namespace gridctl::agent
