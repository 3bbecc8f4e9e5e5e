// SPDX-License-Identifier: Apache-2.0
#include "agent/health.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::health_test {
namespace {

using wire::ProcessOwner;

Lease lease_of(int supervisor, int payload, std::vector<std::string> gpus) {
  Lease lease;
  lease.supervisor = {supervisor, 1};
  lease.payload = {payload, 1};
  lease.gpus = std::move(gpus);
  return lease;
}

TEST(Owners, AProcessBelongsToTheAttemptItDescendsFrom) {
  const std::vector<Lease> leases{lease_of(100, 200, {"GPU-1"})};
  EXPECT_EQ(owner_of({{300, 200, 1}, true}, "GPU-1", leases), ProcessOwner::leased);
  EXPECT_EQ(owner_of({{300, 100}, false}, "GPU-1", leases), ProcessOwner::leased);
  EXPECT_EQ(owner_of({{300, 200}, true}, "GPU-2", leases), ProcessOwner::foreign) << "it holds another GPU";
  EXPECT_EQ(owner_of({{300, 50}, true}, "GPU-1", leases), ProcessOwner::leftover) << "a job's, and no lease covers it";
  EXPECT_EQ(owner_of({{300, 50}, false}, "GPU-1", leases), ProcessOwner::foreign);
}

TEST(Owners, AJobsProcessIsKnownByItsEnvironment) {
  const auto facts_with = [](const std::string& name) {
    os::SpawnOptions options;
    options.environment = {{"PATH", "/usr/bin:/bin"}, {name, "j"}};
    const int pid = os::spawn({"sleep", "77"}, options).value();
    const ProcessFacts facts = facts_of_process(pid);
    ::kill(pid, SIGKILL);
    (void)os::wait(pid);
    EXPECT_EQ(facts.ancestry.size() > 1 ? facts.ancestry[1] : 0, ::getpid());
    return facts.marked;
  };
  EXPECT_TRUE(facts_with("GRIDCTL_JOB_ID"));
  EXPECT_FALSE(facts_with("GRIDCTL_JOB"));
  EXPECT_TRUE(facts_of_process(1).ancestry.empty()) << "everything descends from that";
}

TEST(Owners, ALeaseWithoutProcessesOwnsNothing) {
  EXPECT_EQ(owner_of({{300, 1}, false}, "GPU-1", {lease_of(0, 0, {"GPU-1"})}), ProcessOwner::foreign);
}

TEST(Owners, TheAncestryOfALiveProcessIsRead) {
  const ProcessFacts facts = facts_of_process(::getpid());
  EXPECT_EQ(facts.ancestry[0], ::getpid());
  ASSERT_GE(facts.ancestry.size(), 2u);
  EXPECT_EQ(facts.ancestry[1], ::getppid());
  EXPECT_LE(facts_of_process(999'999'999).ancestry.size(), 1u);
}

class HealthKeeper : public ::testing::Test {
 protected:
  gridctl::testing::TempDir home_;
  os::Clock& clock_ = os::system_clock();
};

TEST_F(HealthKeeper, AReportIsMadeOnceAndSharedUntilItIsTooOld) {
  Health first(home_.path(), clock_), second(home_.path(), clock_);
  wire::HealthRequest request;
  request.max_age = std::chrono::minutes{5};
  request.wait = std::chrono::seconds{30};
  const wire::HealthReply made = first.answer(request);
  ASSERT_TRUE(made.report);
  EXPECT_FALSE(made.under_way);
  EXPECT_EQ(made.report->boot_id, os::boot_id());
  const wire::HealthReply shared = second.answer(request);
  ASSERT_TRUE(shared.report);
  EXPECT_EQ(shared.report->taken_at, made.report->taken_at);
  request.known = made.report->taken_at;
  EXPECT_FALSE(second.answer(request).report) << "what is known is not sent again";
}

TEST_F(HealthKeeper, AReportHoldsOnlyForWhatItWasTakenFor) {
  const gridctl::testing::TempDir leases;
  ::setenv("GRIDCTL_LEASE_DIR", leases.path().c_str(), 1);
  Health health(home_.path(), clock_);
  wire::HealthRequest request;
  request.max_age = std::chrono::minutes{5};
  request.wait = std::chrono::seconds{30};
  const auto taken = [&] {
    const wire::HealthReply reply = health.answer(request);
    EXPECT_FALSE(reply.under_way);
    return reply.report ? reply.report->taken_at : BootTime{};
  };
  const BootTime first = taken();
  EXPECT_EQ(taken(), first);
  // Of another boot nothing holds.
  const os::Path file = home_ / "health/report";
  std::string text = os::read_file(file).value();
  const auto at = text.find(os::boot_id());
  ASSERT_NE(at, std::string::npos);
  text.replace(at, os::boot_id().size(), std::string(os::boot_id().size(), '0'));
  ASSERT_TRUE(os::write_file_atomically(file, text));
  const BootTime second = taken();
  EXPECT_GT(second, first);
  for (const char* damaged : {"-\n{}", "- 1"}) {
    ASSERT_TRUE(os::write_file_atomically(file, damaged));
    EXPECT_GT(taken(), second) << damaged;
  }
  // Other leases: GPUs are in other hands.
  const BootTime third = taken();
  Lease lease = lease_of(::getpid(), 0, {"GPU-1"});
  lease.supervisor = os::identify(::getpid()).value();
  lease.controller = {"c"};
  lease.job = {"j"};
  lease.epoch = Epoch{1};
  lease.uid = ::geteuid();
  lease.boot_id = Machine::real().boot_id;
  lease.pid_namespace = Machine::real().pid_namespace;
  lease.deadline = clock_.boot() + std::chrono::hours{1};
  lease.cpus = 0.5;
  ASSERT_TRUE(Ledger(leases.path(), Machine::real(), clock_).take(lease, machine_capacity()));
  const wire::HealthReply leased = health.answer(request);
  ASSERT_TRUE(leased.report);
  EXPECT_GT(leased.report->taken_at, third);
  EXPECT_DOUBLE_EQ(leased.report->leased_cpus, 0.5);
  EXPECT_EQ(taken(), leased.report->taken_at);
  request.max_age = Duration{-1};
  request.wait = {};
  EXPECT_TRUE(health.answer(request).under_way) << "nothing is so young";
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

TEST_F(HealthKeeper, WhatIsInstalledIsLookedAtOnlyForWhoAsks) {
  Health health(home_.path(), clock_);
  wire::HealthRequest request;
  request.max_age = std::chrono::minutes{5};
  request.wait = std::chrono::seconds{60};
  const auto head = [&] {
    const std::string text = os::read_file(home_ / "health/report").value_or("");
    return text.substr(0, text.find('\n'));
  };
  ASSERT_TRUE(health.answer(request).report);
  EXPECT_EQ(head().find("packages"), std::string::npos) << head();
  request.packages = true;
  const wire::HealthReply all = health.answer(request);
  ASSERT_TRUE(all.report);
  EXPECT_FALSE(all.under_way);
  EXPECT_TRUE(head().ends_with(" packages")) << head();
  const wire::HealthReply again = health.answer(request);
  ASSERT_TRUE(again.report);
  EXPECT_GT(again.report->taken_at, all.report->taken_at) << "who asks checks the host, just now";
}

TEST_F(HealthKeeper, WhoDoesNotWaitIsAnsweredAtOnce) {
  Health health(home_.path(), clock_);
  const BootTime began = clock_.boot();
  const wire::HealthReply reply = health.answer({});
  EXPECT_LT(clock_.boot() - began, std::chrono::seconds{5});
  EXPECT_TRUE(reply.under_way);
  wire::HealthRequest request;
  request.max_age = std::chrono::minutes{5};
  request.wait = std::chrono::seconds{30};
  EXPECT_TRUE(health.answer(request).report) << "the look that was begun";
}

}  // namespace
}  // namespace gridctl::agent::health_test
