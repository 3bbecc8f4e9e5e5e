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
#include "wire/guest.hpp"

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
    begin.test = "gemm";
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

TEST(Benches, ActOnNoOtherProgram) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  {
    Bench bench(dir / "home", {"controller"}, os::system_clock());
    // The helper takes programs off their GPUs by their process ids.
    for (const auto& [test, backend] : {std::pair{"pause", "1"}, {"resume", "1"}, {"state", "1"}, {"list", "cuda"}, {"fill", "1"}}) {
      wire::BenchBegin begin;
      begin.test = test;
      begin.backend = backend;
      begin.index = 1;
      begin.deadline = 20s;
      const auto told = bench.handle("bench-begin", wire::encode(begin));
      EXPECT_THAT(told, FailsWith(Code::refused)) << test;
    }
  }
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

void lend(const TempDir& dir, std::optional<double> cpus) {
  wire::GuestTerms terms;
  terms.controller = {"controller"};
  terms.who = "alice@laptop";
  terms.cpus = cpus;
  store::testing::write(dir / "home/guests/controller", "id\n");
  store::testing::write(dir / "home/lend/id/terms.json", wire::encode(terms));
}

TEST(Benches, OnALentMachineLeaseTheirGpu) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  lend(dir, {});
  {
    Bench bench(dir / "home", {"controller"}, os::system_clock());
    wire::BenchBegin begin;
    begin.test = "fill";
    begin.backend = "opencl";
    begin.deadline = 20s;
    const auto told = bench.handle("bench-begin", wire::encode(begin));
    ASSERT_THAT(told, FailsWith(Code::refused));
    EXPECT_NE(told.error().message.find("has to name the GPU"), std::string::npos);
  }
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

TEST(Benches, TakeNoMoreProcessorsThanAreLentTogetherWithJobs) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  lend(dir, 1);
  {
    Ledger ledger(lease_directory(), Machine::real(), os::system_clock());
    Lease job = our_lease({"controller"}, {"job"}, Epoch{1});
    job.supervisor = os::identify(::getpid()).value();
    job.deadline = os::system_clock().boot() + 60s;
    job.cpus = 0.5;
    ASSERT_THAT(ledger.take(job, machine_capacity()), IsOk());
    Bench bench(dir / "home", {"controller"}, os::system_clock()), other(dir / "home", {"controller"}, os::system_clock());
    EXPECT_THAT(bench.handle("bench-host", wire::encode(wire::BenchHost{1ms})), FailsWith(Code::busy));
    ASSERT_THAT(ledger.release({"controller"}, {"job"}, Epoch{1}), IsOk());
    EXPECT_THAT(bench.handle("bench-host", wire::encode(wire::BenchHost{1ms})), IsOk());
    EXPECT_TRUE(ledger.valid()->empty()) << "they are free again";
    const auto alone = os::FileLock::try_acquire(dir / "home/bench.lock");
    ASSERT_TRUE(alone && *alone);
    EXPECT_THAT(other.handle("bench-host", wire::encode(wire::BenchHost{1ms})), FailsWith(Code::busy)) << "one at a time";
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
