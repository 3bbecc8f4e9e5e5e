// SPDX-License-Identifier: Apache-2.0
#include "agent/health.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temp_dir.hpp"

namespace gridctl::agent {
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
}  // namespace gridctl::agent
