// SPDX-License-Identifier: Apache-2.0
#include "os/loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "os/clock.hpp"
#include "os/files.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::loop_test {
namespace {

using std::chrono::milliseconds;

// Ends a test that would hang.
Loop::Timer watchdog(Loop& loop) {
  return loop.after(std::chrono::seconds{10}, [&loop] {
    ADD_FAILURE() << "the loop waited for ten seconds";
    loop.stop();
  });
}

TEST(Loop, TimersFireInOrderAndNeverEarly) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  std::vector<int> fired;
  const BootTime before = system_clock().boot();
  const Loop::Timer late = loop.after(milliseconds{20}, [&] {
    fired.push_back(2);
    EXPECT_GE(system_clock().boot() - before, milliseconds{19});  // the two clocks' readings are not simultaneous
    loop.stop();
  });
  const Loop::Timer early = loop.after(milliseconds{5}, [&] { fired.push_back(1); });
  loop.run();
  EXPECT_EQ(fired, (std::vector{1, 2}));
}

TEST(Loop, ADroppedTimerDoesNotFire) {
  Loop loop;
  Loop::Timer dropped = loop.after(milliseconds{1}, [] { ADD_FAILURE(); });
  dropped.reset();
  const Loop::Timer end = loop.after(milliseconds{10}, [&] { loop.stop(); });
  loop.run();
}

TEST(Loop, ATimerMayReplaceItselfInItsOwnCallback) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  Loop::Timer timer;
  const std::string captured = "still here after the timer was replaced";
  timer = loop.after(milliseconds{1}, [&loop, &timer, captured] {
    timer = loop.after(milliseconds{1}, [&loop] { loop.stop(); });
    EXPECT_EQ(captured, "still here after the timer was replaced");
  });
  loop.run();
}

TEST(Loop, APeriodicTimerRepeatsUntilDropped) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  int count = 0;
  Loop::Timer timer = loop.every(milliseconds{1}, [&] {
    if (++count == 3) timer.reset(), loop.stop();
  });
  loop.run();
  EXPECT_EQ(count, 3);
}

TEST(Loop, WatchesReadinessAndChangesInterest) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  auto [reader, writer] = make_pipe().value();
  std::string got;
  const Loop::Watch watch = loop.watch(reader.get(), {true, false}, [&, fd = reader.get()](Interest ready) {
    EXPECT_TRUE(ready.read);
    std::array<char, 16> buffer{};
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) return loop.stop();
    got.append(buffer.data(), static_cast<std::size_t>(count));
  });
  ASSERT_NE(watch, nullptr);
  loop.change(watch, {});
  ASSERT_TRUE(write_all(writer.get(), as_bytes("hello")));
  const Loop::Timer resume = loop.after(milliseconds{5}, [&, end = &writer] {
    EXPECT_EQ(got, "") << "a paused watch fired";
    loop.change(watch, {true, false});
    end->reset();
  });
  loop.run();
  EXPECT_EQ(got, "hello");
}

TEST(Loop, ReportsABrokenPipeAsReady) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  auto [reader, writer] = make_pipe().value();
  reader.reset();
  const Loop::Watch watch = loop.watch(writer.get(), {false, true}, [&](Interest ready) {
    EXPECT_TRUE(ready.write);
    loop.stop();
  });
  loop.run();
}

TEST(Loop, TheSameDescriptorCanBeWatchedAgain) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  auto [reader, writer] = make_pipe().value();
  ASSERT_TRUE(write_all(writer.get(), as_bytes("x")));
  Loop::Watch watch = loop.watch(reader.get(), {true, false}, [](Interest) { ADD_FAILURE(); });
  watch.reset();
  watch = loop.watch(reader.get(), {true, false}, [&](Interest) { loop.stop(); });
  ASSERT_NE(watch, nullptr);
  loop.run();
}

TEST(Loop, CannotWatchARegularFile) {
  const gridctl::testing::TempDir dir;
  const Fd fd = open_file(dir / "f", O_RDWR | O_CREAT).value();
  Loop loop;
  EXPECT_EQ(loop.watch(fd.get(), {true, false}, [](Interest) {}), nullptr);
}

TEST(Loop, RunsPostedWorkFromOtherThreadsInOrder) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&seen, i] { seen.push_back(i); });
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  poster.join();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Loop, DeliversSignals) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  const Loop::Watch watch = loop.on_signal(SIGUSR1, [&] { loop.stop(); });
  ::kill(::getpid(), SIGUSR1);
  loop.run();
}

TEST(Loop, HandlesMayOutliveTheLoopAndTheLoopItsHandles) {
  Loop::Timer timer;
  auto token = std::make_shared<int>(1);
  {
    Loop loop;
    timer = loop.after(milliseconds{1000}, [token] {});
    loop.post([token] {});
  }
  timer.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Loop, ADroppedWatchReleasesWhatItCaptured) {
  Loop loop;
  auto token = std::make_shared<int>(1);
  Loop::Timer timer = loop.after(milliseconds{1000}, [token] {});
  EXPECT_EQ(token.use_count(), 2);
  timer.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Pool, RunsEverythingAndPostsBack) {
  Loop loop;
  const Loop::Timer guard = watchdog(loop);
  Pool pool(3);
  int done = 0;
  for (int i = 0; i < 100; ++i)
    pool.submit([&] {
      loop.post([&] {
        if (++done == 100) loop.stop();
      });
    });
  loop.run();
  EXPECT_EQ(done, 100);
  EXPECT_EQ(pool.pending(), 0u);
}

TEST(Pool, WaitsForRunningWorkAndDropsTheRest) {
  std::atomic<bool> started{false}, ended{false};
  std::atomic<int> dropped_ran{0};
  {
    Pool pool(1);
    pool.submit([&] {
      started = true;
      started.notify_all();
      pause_for(milliseconds{20});
      ended = true;
    });
    for (int i = 0; i < 10; ++i) pool.submit([&] { ++dropped_ran; });
    started.wait(false);
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(dropped_ran, 0);
}

}  // namespace
}  // namespace gridctl::os::loop_test
