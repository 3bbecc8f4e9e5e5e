// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "agent/attempt_dir.hpp"
#include "agent/bench.hpp"
#include "agent/ledger.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"
#include "wire/bench.hpp"

namespace gridctl::agent::bench_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

TEST(Benches, AnswerTheirFourOperations) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  for (const char* operation : {"bench-list", "bench-begin", "bench-seed", "bench-host"})
    EXPECT_TRUE(Bench::serves(operation));
  EXPECT_FALSE(Bench::serves("bench"));
  {
    Bench bench(dir / "home", {"controller"}, os::system_clock());
    const auto list = bench.handle("bench-list", "{}");
    ASSERT_THAT(list, IsOk());
    EXPECT_THAT(wire::parse_bench_devices(*list), IsOk());
    const auto host = bench.handle("bench-host", wire::encode(wire::BenchHost{1ms}));
    ASSERT_THAT(host, IsOk());
    EXPECT_TRUE(wire::parse_bench_stage(*host)->done);
    EXPECT_GT(wire::parse_bench_stage(*host)->number("cpu_gflops"), 0);
    EXPECT_THAT(bench.handle("bench-seed", wire::encode(wire::BenchSeed{7})), FailsWith(Code::refused));
    wire::BenchBegin begin;
    begin.test = "no-such-test";
    begin.backend = "cuda";
    begin.gpu = "GPU-1";
    begin.peer = "GPU-2";
    begin.deadline = 20s;
    EXPECT_FALSE(bench.handle("bench-begin", wire::encode(begin)));
    Ledger ledger(lease_directory(), Machine::real(), os::system_clock());
    EXPECT_TRUE(ledger.valid()->empty()) << "the GPUs are free again";
    Lease held;
    held.controller = {"c"};
    held.job = {"other"};
    held.epoch = Epoch{1};
    held.grace = 30s;
    held.gpus = {"GPU-2"};
    held.uid = ::geteuid();
    held.boot_id = Machine::real().boot_id;
    held.pid_namespace = Machine::real().pid_namespace;
    held.supervisor = os::identify(::getpid()).value();
    held.deadline = os::system_clock().boot() + 60s;
    ASSERT_THAT(ledger.take(held, machine_capacity()), IsOk());
    EXPECT_THAT(bench.handle("bench-begin", wire::encode(begin)), FailsWith(Code::busy));
    EXPECT_FALSE(bench.handle("bench-begin", "{}"));
  }
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

TEST(Benches, EndWhenTheOwnerWantsHisMachineAndSayWhy) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  {
    std::atomic<int> asked = 0;
    Bench bench(dir / "home", {"controller"}, os::system_clock(), [&]() -> Result<void> {
      if (++asked < 2) return {};
      return make_error(Code::refused, "the owner of this machine uses it");
    });
    ASSERT_THAT(os::make_directories(dir / "home"), IsOk());
    const auto began = std::chrono::steady_clock::now();
    const auto told = bench.handle("bench-host", wire::encode(wire::BenchHost{10s}));
    EXPECT_THAT(told, FailsWith(Code::refused));
    EXPECT_EQ(told.error().message, "the owner of this machine uses it");
    EXPECT_LT(std::chrono::steady_clock::now() - began, 8s) << "it would have taken half a minute";
  }
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

}  // namespace
}  // namespace gridctl::agent::bench_test
