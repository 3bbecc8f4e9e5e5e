// SPDX-License-Identifier: Apache-2.0
// What requests do to the folders of a host: leases, attempts that are made and removed, what an earlier boot left.
#include "agent/host_folders.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/engine.hpp"
#include "agent/ledger.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "support/disk_calls.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::host_folders_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using wire::EndReason;

BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

// The ledger of this test alone: the host asks for its folder when it is made.
struct LeaseFolder {
  explicit LeaseFolder(const os::Path& path) { ::setenv("GRIDCTL_LEASE_DIR", path.c_str(), 1); }
  ~LeaseFolder() { ::unsetenv("GRIDCTL_LEASE_DIR"); }
};

class HostFoldersTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const LeaseFolder leases_{dir_ / "leases"};
  HostFolders host_{dir_ / "home", {"controller"}, os::system_clock()};
};

TEST_F(HostFoldersTest, EnterALeaseForWhatIsAskedForUntilTheSupervisorHasIt) {
  wire::StartRequest start;
  start.echo = os::system_clock().boot();
  start.lease = 90s;
  start.spec.job = {"job"};
  start.spec.epoch = Epoch{3};
  start.spec.stop_grace = 11s;
  start.spec.cpus = 0.5;
  start.spec.memory_bytes = 4096;
  start.spec.gpu_uuids = {"GPU-1"};
  ASSERT_THAT(host_.take_lease(start), IsOk());
  const Ledger ledger(dir_ / "leases", Machine::real(), os::system_clock());
  const auto held = ledger.find({"controller"}, {"job"}, Epoch{3}).value();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->supervisor, os::identify(::getpid()));
  EXPECT_EQ(held->deadline, start.echo + 90s);
  EXPECT_EQ(held->grace, Duration{11s});
  EXPECT_EQ(held->uid, ::geteuid());
  EXPECT_EQ(held->boot_id, os::boot_id());
  EXPECT_EQ(held->pid_namespace, Machine::real().pid_namespace);
  EXPECT_DOUBLE_EQ(held->cpus, 0.5);
  EXPECT_EQ(held->memory_bytes, 4096u);
  EXPECT_EQ(held->gpus, std::vector<std::string>{"GPU-1"});
  ASSERT_THAT(host_.release_lease({{"job"}, Epoch{3}}), IsOk());
  EXPECT_FALSE(ledger.find({"controller"}, {"job"}, Epoch{3}).value());
}

TEST_F(HostFoldersTest, CheckWhatIsToRunWithItsSecrets) {
  wire::StartRequest start;
  start.spec.job = {"job"};
  EXPECT_THAT(host_.check(start), FailsWith(Code::refused)) << "no command";
  start.spec.run = "true";
  EXPECT_THAT(host_.check(start), IsOk());
  start.spec.secret_names = {"TOKEN"};
  EXPECT_THAT(host_.check(start), FailsWith(Code::refused));
  start.secrets = {{"TOKEN", "x"}};
  EXPECT_THAT(host_.check(start), IsOk());
}

TEST_F(HostFoldersTest, MakeAnAttemptWithWhatItIsAllowed) {
  wire::StartRequest start;
  start.op = {"op-7"};
  start.echo = at(100);
  start.boot_id = "the-boot";
  start.lease = 50s;
  start.spec.job = {"job"};
  start.spec.epoch = Epoch{1};
  start.spec.run = "true";
  start.allowance = wire::Allowance{60s, "budget", 30s};
  const AttemptKey key{{"job"}, Epoch{1}};
  ASSERT_TRUE(os::make_directories(host_.folder({"job"}).path));
  ASSERT_THAT(host_.create(start), IsOk());
  EXPECT_EQ(host_.accepted_by(key), OpId{"op-7"});
  EXPECT_EQ(host_.deadline(key).value(), at(150).ns);
  EXPECT_EQ(host_.stop_grace(key).value(), Duration{30s});
  EXPECT_EQ(host_.stored(key).value()->boot_id, "the-boot");
  HostLimits expected;
  expected.run_for = 60s;
  expected.run_limit = "budget";
  expected.time_until = at(130);
  const os::Path limits = host_.attempt(key).limits_file();
  EXPECT_EQ(parse_limits(os::read_file(limits).value()), expected);
  const auto inode = [&] { return os::status_of(limits)->value().inode; };
  const std::uint64_t written = inode();
  expected.time_until = at(130) + 49ms;
  ASSERT_THAT(host_.set_limits(key, expected), IsOk());
  EXPECT_EQ(inode(), written) << "what a message takes on its way is no news";
  expected.time_until = at(131);
  ASSERT_THAT(host_.set_limits(key, expected), IsOk());
  EXPECT_EQ(parse_limits(os::read_file(limits).value()), expected);
}

TEST_F(HostFoldersTest, RemoveAllOfAnAttemptButTheFence) {
  const AttemptKey key{{"job"}, Epoch{1}};
  wire::StartRequest start;
  start.echo = os::system_clock().boot();
  start.lease = 50s;
  start.spec.job = key.job;
  start.spec.epoch = key.epoch;
  start.spec.run = "true";
  start.spec.engine = EngineKind::podman;
  ASSERT_TRUE(os::make_directories(host_.folder({"job"}).path));
  ASSERT_THAT(host_.set_fence(key.job, Epoch{1}), IsOk());
  ASSERT_THAT(host_.create(start), IsOk());
  ASSERT_THAT(host_.take_lease(start), IsOk());
  wire::AttemptStatus ended;
  ended.job = key.job;
  ended.epoch = key.epoch;
  ended.phase = wire::AttemptPhase::ended;
  ASSERT_THAT(write_status(host_.attempt(key), ended, os::system_clock(), true), IsOk());
  EXPECT_TRUE(host_.await_settled(key));
  ASSERT_TRUE(os::exists(dir_ / "home/jobs/controller/notify/job.1"));
  // Its container could not be removed at its end: that is tried again, and nothing goes before it has.
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (dir_.path().native() + ":" + path).c_str(), 1);
  const std::string asked = (dir_ / "asked").native();
  ASSERT_THAT(os::write_file_atomically(dir_ / "podman", "#!/bin/sh\necho \"$*\" > " + asked + "\necho busy >&2\nexit 1\n", 0700), IsOk());
  ASSERT_THAT(os::write_file_atomically(host_.attempt(key).path / "leftover", "busy"), IsOk());
  EXPECT_THAT(host_.remove(key), FailsWith(Code::engine));
  EXPECT_TRUE(host_.exists(key));
  EXPECT_THAT(os::read_file(dir_ / "asked").value_or(""), ::testing::HasSubstr(attempt_name(key.job, key.epoch, dir_ / "home")));
  ASSERT_THAT(os::write_file_atomically(dir_ / "podman", "#!/bin/sh\nexit 0\n", 0700), IsOk());
  EXPECT_THAT(host_.remove(key), IsOk());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(host_.exists(key));
  EXPECT_FALSE(os::exists(dir_ / "home/jobs/controller/notify/job.1"));
  EXPECT_EQ(os::list_directory(host_.folder(key.job).path).value(), (std::vector<std::string>{"fence"}));
  EXPECT_EQ(host_.fence(key.job).value(), Epoch{1});
  const Ledger ledger(dir_ / "leases", Machine::real(), os::system_clock());
  EXPECT_FALSE(ledger.find({"controller"}, key.job, key.epoch).value());
}

TEST_F(HostFoldersTest, AnAttemptWhoseSecretsCannotBeRemovedIsThereForANextTry) {
  const AttemptKey key{{"job"}, Epoch{1}};
  const auto secrets = host_.attempt(key).secrets();
  if (!secrets) GTEST_SKIP() << secrets.error().message;
  wire::StartRequest start;
  start.spec.job = key.job;
  start.spec.epoch = key.epoch;
  start.spec.run = "true";
  start.spec.secret_names = {"TOKEN"};
  start.secrets = {{"TOKEN", "canary"}};
  ASSERT_TRUE(os::make_directories(host_.folder(key.job).path));
  ASSERT_THAT(host_.create(start), IsOk());
  ASSERT_TRUE(os::exists(*secrets / "TOKEN"));
  Result<void> refused;
  {
    const testing::DiskWatcher fails(*secrets, [](const testing::DiskCall& call) {
      return call.kind == testing::DiskCall::Kind::remove ? EIO : 0;
    });
    refused = host_.remove(key);
  }
  const bool is_there = host_.exists(key);
  const Result<void> removed = host_.remove(key);
  const bool left = os::exists(*secrets);
  (void)os::remove_tree(*secrets);
  EXPECT_TRUE(is_there) << "nobody would come for them again";
  ASSERT_THAT(refused, FailsWith(Code::io));
  EXPECT_THAT(refused.error().one_line(), ::testing::HasSubstr(secrets->native()));
  EXPECT_THAT(removed, IsOk());
  EXPECT_FALSE(left || host_.exists(key));
}

TEST_F(HostFoldersTest, AnOrderToStopIsOnTheDiskWhenItIsTaken) {
  const AttemptKey key{{"job"}, Epoch{1}};
  ASSERT_TRUE(os::make_directories(host_.attempt(key).control()));
  const testing::DiskRecord disk(dir_.path());
  ASSERT_THAT(host_.order_stop(key, 5), IsOk());
  EXPECT_GT(disk.durable(host_.attempt(key).stop_file()), 0u) << disk.text();
}

TEST_F(HostFoldersTest, TellWhatAnAttemptOfAnEarlierBootHadSaved) {
  const AttemptKey key{{"job"}, Epoch{1}};
  wire::StartRequest start;
  start.boot_id = "earlier";
  start.spec.job = key.job;
  start.spec.epoch = key.epoch;
  start.spec.run = "true";
  ASSERT_TRUE(os::make_directories(host_.folder({"job"}).path));
  ASSERT_THAT(host_.create(start), IsOk());
  const Path snapshot = host_.attempt(key).snapshots() / "4";
  ASSERT_TRUE(os::make_directories(snapshot));
  const std::string info = "earlier 1 " + std::string(64, '0') + " 10 2 exit\n";
  ASSERT_THAT(os::write_file_atomically(snapshot / "info", info), IsOk());
  const auto status = host_.status(key).value();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->end, EndReason::host_rebooted);
  ASSERT_EQ(status->checkpoints.size(), 1u);
  EXPECT_EQ(status->checkpoints[0].number, 4u);
  EXPECT_EQ(status->checkpoints[0].bytes, 10u);
  EXPECT_FALSE(host_.status({{"job"}, Epoch{9}}).value());
}

TEST_F(HostFoldersTest, FinishCreationsThatWereCutShort) {
  const Path job = dir_ / "home/jobs/controller/job";
  ASSERT_TRUE(os::make_directories(job / ".new-3"));
  host_.finish_removals();
  EXPECT_FALSE(os::exists(job / ".new-3"));
}

}  // namespace
}  // namespace gridctl::agent::host_folders_test
