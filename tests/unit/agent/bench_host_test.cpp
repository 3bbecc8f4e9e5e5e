// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include "agent/bench_host.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::bench_host_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::TempDir;

const std::atomic<bool> never = false;

TEST(HostMeasures, EndAtOnceWhenTheyAreToldTo) {
  const TempDir dir;
  std::atomic<bool> ended = false;
  std::thread teller([&ended] {
    std::this_thread::sleep_for(100ms);
    ended = true;
  });
  const auto began = std::chrono::steady_clock::now();
  (void)bench_host(dir.path(), 60s, {}, ended, os::system_clock());
  teller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
}

TEST(HostMeasures, TakeNoMoreDiskThanTheyMay) {
  const TempDir dir;
  const auto found = bench_host(dir.path(), 1ms, {1, 0}, never, os::system_clock());
  EXPECT_FALSE(found.contains("disk_write_mbs"));
}

TEST(HostMeasures, AreAllThereAndLeaveNothing) {
  const TempDir dir;
  const auto found = bench_host(dir.path(), 2ms, {}, never, os::system_clock());
  for (const char* name : {"cpu_gflops", "cpu_all_gflops", "memory_copy_gbs", "disk_write_mbs", "disk_sync_ms"}) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_GT(found.at(name), 0) << name;
    EXPECT_TRUE(std::isfinite(found.at(name))) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  const auto nowhere = bench_host(dir / "none", 1ms, {}, never, os::system_clock());
  EXPECT_EQ(nowhere.size(), 3u) << "what cannot be measured is left out";
}

}  // namespace
}  // namespace gridctl::agent::bench_host_test
