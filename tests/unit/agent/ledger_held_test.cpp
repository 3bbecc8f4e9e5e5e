// SPDX-License-Identifier: Apache-2.0
#include "agent/ledger.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <limits>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::ledger_held_test {
namespace {

using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

Lease lease(const std::string& controller, const std::string& job, std::vector<std::string> gpus) {
  Lease lease;
  lease.controller = {controller};
  lease.job = {job};
  lease.epoch = Epoch{3};
  lease.boot_id = "boot";
  lease.supervisor = {10, 1};
  lease.deadline = {std::int64_t{1} << 56};
  lease.cpus = 2;
  lease.memory_bytes = 64;
  lease.gpus = std::move(gpus);
  return lease;
}

TEST(Held, NamesOnlyTheAttemptsOfWhoAsks) {
  const auto shares = shares_of({lease("ada", "j1", {"GPU-1"}), lease("bob", "j2", {"GPU-2"})}, {"ada"});
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->at(0), (wire::HeldShare{{"j1"}, {3}, {"GPU-1"}, 2, 64}));
  EXPECT_EQ(shares->at(1), (wire::HeldShare{{}, {}, {"GPU-2"}, 2, 64}));
}

TEST(Held, LetsNoUserOfTheHostBreakAReply) {
  Lease odd = lease("ada", "../up", {std::string(5000, 'x'), "GPU-1"});
  odd.cpus = std::numeric_limits<double>::infinity();
  const auto shares = shares_of({odd}, {"ada"});
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->at(0), (wire::HeldShare{{}, {}, {"GPU-1"}, 0, 64}));
  EXPECT_FALSE(shares_of(std::vector<Lease>(1000, odd), {"ada"}));
}

TEST(Held, TellsTheLeasesWhileAnotherProcessChangesTheLedger) {
  TempDir folder;
  Ledger ledger(folder / "leases", {"boot", 0, [](const os::ProcessId&) { return true; }}, os::system_clock());
  ASSERT_THAT(ledger.take(lease("ada", "j1", {}), {}), IsOk());
  const std::string lock = folder / ("leases/gridctl-leases." + std::to_string(::geteuid()) + ".lock");
  const os::Fd other(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const BootTime began = os::system_clock().boot();
  EXPECT_EQ(held_shares(ledger, {"ada"}).value().size(), 1u);
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::seconds{8});  // a lock is waited for for ten
}

}  // namespace
}  // namespace gridctl::agent::ledger_held_test
