// SPDX-License-Identifier: Apache-2.0
// Workers of bags through the agent's protocol, with every engine that this machine has.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>

#include "agent/attempt_dir.hpp"
#include "agent/bag_output.hpp"
#include "agent/process_tree.hpp"
#include "integration/agent_client.hpp"
#include "integration/engine_here.hpp"
#include "os/random.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/bag.hpp"

namespace gridctl::testing::bag_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::EndReason;
using wire::OrderKind;
using wire::TaskEnd;

class Bag : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    const EngineHere& engine = engine_here(GetParam());
    if (!engine.problem.empty()) GTEST_SKIP() << engine.problem;
    host_.home = folder_ / "home";
    host_.leases = folder_ / "leases";
    host_.environment = engine.environment;
    connect();
    worker_.job = {"job" + os::random_id(10)};
    worker_.epoch = Epoch{1};
    worker_.engine = GetParam();
    if (GetParam() != EngineKind::process) worker_.image = "gridctl-test:1";
    worker_.checkpoints = false;
    worker_.stop_grace = seconds{10};
    worker_.bag.emplace();
  }
  void TearDown() override {
    if (!started_) return;
    if (!agent_) connect();
    (void)agent_->stop(worker_, {});
    (void)agent_->await_end(worker_);
    EXPECT_THAT(agent_->clean(worker_), IsOk());
    agent_.reset();
  }
  void connect() { agent_ = std::make_unique<AgentClient>(host_, controller_); }
  void start(const std::string& run) {
    worker_.run = run;
    started_ = true;
    ASSERT_THAT(agent_->start(worker_), IsOk());
  }
  // Sends these behind all before, and takes what has come.
  Result<wire::BagTold> ask(const std::vector<wire::BagOrder>& orders, Duration wait) {
    wire::BagAsk ask{worker_.job, worker_.epoch, ordered_, orders, results_.size()};
    TRY_ASSIGN(const std::string payload, agent_->call(wire::encode(wire::BagRequest{{ask}, wait})));
    TRY_ASSIGN(const wire::BagReply reply, wire::parse_bag_reply(payload));
    if (reply.workers.size() != 1) return make_error(Code::protocol_violation, "another number of workers");
    if (reply.workers[0].error) return *reply.workers[0].error;
    if (reply.workers[0].results_from != results_.size()) return make_error(Code::protocol_violation, "other results");
    ordered_ += orders.size();
    for (const wire::TaskResult& one : reply.workers[0].results) results_.push_back(one);
    return reply.workers[0];
  }
  void await(std::size_t count) {
    for (const BootTime give_up = now() + seconds{60}; results_.size() < count && now() < give_up;)
      (void)ask({}, seconds{1});
  }
  [[nodiscard]] std::string output_of(const wire::TaskResult& result) {
    const auto head =
        agent_->call(wire::encode_bag_output({worker_.job, worker_.epoch, result.offset, std::max(1u, result.bytes)}));
    if (!head) return head.error().one_line();
    std::string text;
    for (;;) {
      const auto frame = agent_->link().receive(now() + seconds{10});
      if (!frame || frame->kind == wire::FrameKind::end) return text;
      if (frame->kind == wire::FrameKind::data) text += frame->payload;
    }
  }
  [[nodiscard]] static BootTime now() { return os::system_clock().boot(); }
  [[nodiscard]] agent::AttemptDir folder() const {
    return {host_.home / "jobs" / controller_.value / worker_.job.value / "1"};
  }
  // How often each index came.
  [[nodiscard]] std::map<std::uint64_t, int> counts() const {
    std::map<std::uint64_t, int> counts;
    for (const wire::TaskResult& one : results_) ++counts[one.index];
    return counts;
  }
  static wire::BagOrder grant(std::uint64_t first, std::uint64_t count, std::vector<std::string> items = {}) {
    return {OrderKind::grant, first, count, std::move(items), 0};
  }
  static wire::BagOrder finish(int code = 0) { return {OrderKind::finish, 0, 0, {}, static_cast<std::uint8_t>(code)}; }

  TempDir folder_;
  AgentHost host_;
  ControllerId controller_{os::random_id(26)};
  std::unique_ptr<AgentClient> agent_;
  wire::AttemptSpec worker_;
  bool started_ = false;
  std::uint64_t ordered_ = 0;
  std::vector<wire::TaskResult> results_;
};

TEST_P(Bag, RunsWhatItIsGrantedAndEndsWhenItIsToldTo) {
  worker_.setup = "echo ready >marker";
  worker_.bag->slots = 2;
  worker_.bag->folder = true;
  start("cat marker; echo \"$GRIDCTL_TASK_ITEM\"; touch $GRIDCTL_TASK_DIR/made; exit $GRIDCTL_TASK_INDEX");
  ASSERT_THAT(ask({grant(0, 3, {"a", "b c", "d"})}, {}), IsOk());  // before it is up
  await(3);
  ASSERT_THAT(ask({grant(5, 1), finish(9)}, {}), IsOk());
  await(4);
  const auto status = agent_->await_end(worker_);
  EXPECT_EQ(status.end, EndReason::exited) << status.detail;
  EXPECT_EQ(status.exit_code, 9);
  ASSERT_EQ(results_.size(), 4u);
  std::ranges::sort(results_, {}, &wire::TaskResult::index);
  for (const wire::TaskResult& one : results_) EXPECT_EQ(one.exit_code, one.index);
  EXPECT_EQ(output_of(results_[1]), "ready\nb c\n");
  EXPECT_TRUE(os::exists(folder().work() / "tasks/5/made"));
  const auto told = ask({}, seconds{5});
  ASSERT_THAT(told, IsOk());
  EXPECT_TRUE(told->over);
  EXPECT_EQ(told->results_end, 4u);
}

TEST_P(Bag, TellsOfATaskThatTheMemoryLimitKilled) {
  if (GetParam() == EngineKind::process) GTEST_SKIP() << "its memory need not be limited here";
  worker_.memory_bytes = 64 << 20;
  worker_.bag->render = true;
  start("{}");
  ASSERT_THAT(ask({grant(0, 3, {"true", "dd if=/dev/zero of=/dev/null bs=300M count=1", "true"}), finish()}, {}),
              IsOk());
  await(3);
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_TRUE(results_[0].succeeded());
  EXPECT_EQ(results_[1].end, TaskEnd::oom);
  EXPECT_TRUE(results_[2].succeeded());
}

TEST_P(Bag, LetsWhatRunsEndWhenItIsStopped) {
  worker_.bag->render = true;
  worker_.bag->slots = 2;
  start("{}");
  ASSERT_THAT(ask({grant(0, 2, {"sleep 2; echo done", "sleep 600"}), grant(2, 1000)}, {}), IsOk());
  for (const BootTime give_up = now() + seconds{30}; now() < give_up;)
    if (const auto told = ask({}, {}); told && told->running.size() == 2) break;
  ASSERT_THAT(agent_->stop(worker_, seconds{6}), IsOk());
  EXPECT_EQ(agent_->await_end(worker_).end, EndReason::stopped);
  await(3);
  std::ranges::sort(results_, {}, &wire::TaskResult::index);
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_TRUE(results_[0].succeeded());
  EXPECT_EQ(output_of(results_[0]), "done\n");
  EXPECT_EQ(results_[1].end, TaskEnd::stopped);
  EXPECT_EQ(results_[2].end, TaskEnd::revoked);
  EXPECT_EQ(results_[2].count, 1000u);
}

// Agents and supervisors die all the time, requests are repeated: each task runs once, and is told once.
TEST_P(Bag, GoesOnWhenAgentAndSupervisorAreKilled) {
  constexpr std::uint64_t k_tasks = 2000, k_grant = 10;
  const int kills = GetParam() == EngineKind::process ? 100 : 20;
  worker_.bag->slots = 2;
  start("echo x >>count.$GRIDCTL_TASK_INDEX; echo $GRIDCTL_TASK_INDEX");
  std::uint64_t granted = 0;
  int killed = 0;
  for (const BootTime give_up = now() + seconds{240}; results_.size() < k_tasks && now() < give_up;) {
    std::vector<wire::BagOrder> orders;
    if (granted < k_tasks && granted < results_.size() + 2 * k_grant) orders = {grant(granted, k_grant)};
    const auto told = ask(orders, milliseconds{50});
    const std::uint64_t due =
        (static_cast<std::uint64_t>(killed) + 1) * k_tasks / static_cast<std::uint64_t>(kills + 2);
    if (told && !orders.empty()) granted += k_grant;
    if (told && (results_.size() < due || killed == kills)) continue;
    if (told) {
      if (killed++ % 5 == 0)
        if (const auto supervisor = agent::lock_holder(folder().supervisor_lock())) ::kill(supervisor->pid, SIGKILL);
      // The request goes out, and its answer never comes: it is sent again by the next one.
      const wire::BagAsk lost{worker_.job, worker_.epoch, ordered_, {grant(granted, k_grant)}, results_.size()};
      const wire::Frame frame{wire::FrameKind::request, 1u << 20, wire::encode(wire::BagRequest{{lost}, {}})};
      if (granted < k_tasks) (void)agent_->link().send(frame, now() + seconds{1});
      agent_->kill();
    }
    connect();
  }
  EXPECT_EQ(killed, kills);
  EXPECT_EQ(results_.size(), k_tasks);
  EXPECT_EQ(counts().size(), k_tasks);
  for (std::uint64_t index = 0; index < k_tasks; ++index) {
    const auto text = os::read_file(folder().work() / ("count." + std::to_string(index)));
    EXPECT_TRUE(text && *text == "x\n") << index;
  }
  ASSERT_THAT(ask({finish()}, {}), IsOk());
  EXPECT_EQ(agent_->await_end(worker_).end, EndReason::exited);
}

// The runner itself is killed: what ran then is told, and what was recorded stays.
TEST_P(Bag, NamesTheTasksThatEndedWithTheirWorker) {
  worker_.bag->render = true;
  start("{}");
  std::vector<std::string> items(20, "true");
  items[10] = "kill -9 $PPID; sleep 600";
  ASSERT_THAT(ask({grant(100, 20, items)}, {}), IsOk());
  const auto status = agent_->await_end(worker_);
  EXPECT_NE(status.end, EndReason::none);
  await(10);
  const auto told = ask({}, {});
  ASSERT_THAT(told, IsOk());
  EXPECT_TRUE(told->over);
  EXPECT_EQ(results_.size(), 10u);
  EXPECT_EQ(told->running, std::vector<std::uint64_t>{110});
}

constexpr auto k_engine_of = [](const auto& each) { return std::string(engine_name(each.param)); };
INSTANTIATE_TEST_SUITE_P(Engines, Bag, ::testing::Values(EngineKind::process, EngineKind::podman, EngineKind::docker),
                         k_engine_of);

}  // namespace
}  // namespace gridctl::testing::bag_test
