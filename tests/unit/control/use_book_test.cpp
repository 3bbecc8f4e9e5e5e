// SPDX-License-Identifier: Apache-2.0
#include "control/follow/use_book.hpp"

#include "followed_jobs.hpp"

namespace gridctl::control::use_book_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UseBookTest : public testing::FollowedJobs {
 protected:
  UseBookTest() {
    add("ada");
    tick();
    use.emplace(clock, fleet(), book);
    submit("job");
    place("job", "ada", 0);
  }
  void tells(std::optional<Use> told, std::uint64_t epoch_more = 0) {
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = {job("job").state().epoch.value + epoch_more};
    status.phase = wire::AttemptPhase::running;
    status.use = std::move(told);
    wire::PollReply reply;
    reply.attempts = {status};
    reply.load1 = 2.5;
    reply.held = {{{{"job"}, {1}, {"GPU-1", "GPU-2"}, 1, 0}, {{}, {}, {"GPU-3"}, 1, 0}}};
    use->polled(host("ada"), reply);
  }
  std::optional<UseBook> use;
};

TEST_F(UseBookTest, KeepsWhatAHostToldAndTheLastMinutes) {
  for (int i = 0; i < 40; ++i) {
    clock.pass(10s);
    tells(Use{2'000, i / 40.0, 1 << 20, {}});
    tells(std::nullopt);  // between two measurements
  }
  const registry::UseNow now = use->now();
  ASSERT_THAT(now.jobs, SizeIs(1));
  const registry::MemberUse& member = now.jobs[0].members.at(0);
  EXPECT_EQ(member.at.ms, clock.wall().ms - 2'000);
  EXPECT_EQ(member.host.value, "ada");
  EXPECT_THAT(member.history, SizeIs(registry::k_use_history));
  EXPECT_EQ(member.history.back(), 98);
  ASSERT_THAT(now.hosts, SizeIs(1));
  EXPECT_EQ(now.hosts[0].gpus_held, 3);
  EXPECT_EQ(now.hosts[0].load1, 2.5);
}

TEST_F(UseBookTest, BelievesNoMoreGpusThanTheJobWasGiven) {
  tells(Use{0, 1, 0, {{50, {}, {}, {}}}});
  EXPECT_THAT(use->now().jobs.at(0).members.at(0).use.gpus, IsEmpty());
}

TEST_F(UseBookTest, ForgetsAnAttemptThatIsOver) {
  tells(Use{0, 1, 0, {}}, 1);
  EXPECT_THAT(use->now().jobs, IsEmpty()) << "of another attempt";
  tells(Use{0, 1, 0, {}});
  ASSERT_THAT(use->now().jobs, SizeIs(1));
  const std::uint64_t before = use->version();
  end("job", {job::EndKind::exited, 0, 0, "", 0});
  EXPECT_THAT(use->now().jobs, IsEmpty());
  EXPECT_GT(use->version(), before);
}

}  // namespace
}  // namespace gridctl::control::use_book_test
