// SPDX-License-Identifier: Apache-2.0
// Red team: one host may do what it likes to its own work: work with others is not delayed by it.
#include "os/host_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "os/loop_executor.hpp"

namespace gridctl::os::host_pool_test {
namespace {

constexpr auto k_patience = std::chrono::seconds{20};
constexpr unsigned k_per_host = 2;

// Work that lasts until it is let go, as with a host that drips.
class Stuck {
 public:
  void let_go() { gate_.set_value(); }
  std::function<void()> work() {
    return [this] { running_ += 1, opened_.wait(), running_ -= 1; };
  }
  [[nodiscard]] int running() const { return running_; }

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::atomic<int> running_{0};
};

bool is_served(HostPool& pool, const std::string& host) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> served = done->get_future();
  pool.submit(host, [done] { done->set_value(); });
  return served.wait_for(k_patience) == std::future_status::ready;
}

TEST(HostPool, CannotKeepOtherHostsFromBeingServed) {
  Stuck stuck;
  HostPool pool(8, k_per_host);
  for (int i = 0; i < 100; ++i) pool.submit("evil", stuck.work());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_served(pool, "good" + std::to_string(i % 3)));
  while (stuck.running() < static_cast<int>(k_per_host)) std::this_thread::yield();  // a loaded machine begins late
  EXPECT_EQ(stuck.running(), static_cast<int>(k_per_host));
  EXPECT_EQ(pool.pending(), 100 - k_per_host);
  stuck.let_go();
}

TEST(HostPool, DoesAllThatHostsHaveToDo) {
  std::atomic<int> done{0};
  {
    HostPool pool(4, k_per_host);
    for (int i = 0; i < 500; ++i) pool.submit("host" + std::to_string(i % 7), [&] { done += 1; });
    while (pool.pending() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(done, 500);
}

TEST(HostPool, DropsWhatHasNotBegunWhenItEnds) {
  Stuck stuck;
  std::atomic<int> done{0};
  std::thread later;
  {
    HostPool pool(4, k_per_host);
    for (unsigned i = 0; i < k_per_host; ++i) pool.submit("evil", stuck.work());
    while (stuck.running() < static_cast<int>(k_per_host)) std::this_thread::yield();
    pool.submit("evil", [&] { done += 1; });
    later = std::thread([&] { std::this_thread::yield(), stuck.let_go(); });
  }
  later.join();
  EXPECT_EQ(stuck.running(), 0);
}

TEST(HostPool, HasNoMoreThreadsThanItMay) {
  std::atomic<int> running{0}, most{0};
  {
    HostPool pool(3, k_per_host);
    for (int i = 0; i < 300; ++i)
      pool.submit("host" + std::to_string(i), [&] {
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
        std::this_thread::yield();
        --running;
      });
    while (pool.pending() > 0) std::this_thread::yield();
  }
  EXPECT_LE(most, 3);
}

TEST(HostPool, GivesEachHostItsTurn) {
  Stuck stuck;
  std::mutex mutex;
  std::string order;
  {
    HostPool pool(1, k_per_host);
    pool.submit("first", stuck.work());
    while (stuck.running() == 0) std::this_thread::yield();
    for (const char* host : {"a", "a", "a", "b", "b", "c"})
      pool.submit(host, [&order, &mutex, host] {
        const std::lock_guard lock(mutex);
        order += host;
      });
    stuck.let_go();
    while (pool.pending() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(order, "abcaba") << "who was served longest ago goes first";
}

TEST(LoopExecutor, OneLaneOfAHostDoesNotHoldUpItsOthers) {
  using Kind = Lane::Kind;
  for (const Kind held : {Kind::login, Kind::urgent, Kind::bulk}) {
    Stuck stuck;
    Loop loop;
    LoopExecutor executor(loop);
    for (unsigned i = 0; i < k_per_host; ++i) executor.run({held, "host"}, stuck.work());
    for (const Kind other : {Kind::login, Kind::urgent, Kind::bulk}) {
      if (other == held) continue;
      auto done = std::make_shared<std::promise<void>>();
      std::future<void> served = done->get_future();
      executor.run({other, "host"}, [done] { done->set_value(); });
      EXPECT_EQ(served.wait_for(k_patience), std::future_status::ready)
          << static_cast<int>(held) << " " << static_cast<int>(other);
    }
    stuck.let_go();
  }
}

}  // namespace
}  // namespace gridctl::os::host_pool_test
