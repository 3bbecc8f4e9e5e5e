// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ledger.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::ledger_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

class HandClock : public os::Clock {
 public:
  BootTime now{1'000'000'000};
  [[nodiscard]] BootTime boot() const override { return now; }
  [[nodiscard]] WallTime wall() const override { return {0}; }
};

class LedgerTest : public ::testing::Test {
 protected:
  [[nodiscard]] Machine machine(const std::string& boot = "boot-1") {
    return {boot, 7, [this](const os::ProcessId& process) { return living_.contains(process.pid); }};
  }
  [[nodiscard]] Ledger ledger(const std::string& boot = "boot-1") {
    return {folder_ / "leases", machine(boot), clock_};
  }
  [[nodiscard]] Lease lease(const std::string& controller, std::vector<std::string> gpus, int supervisor) {
    Lease lease;
    lease.controller = {controller};
    lease.job = {"job"};
    lease.epoch = Epoch{1};
    lease.boot_id = "boot-1";
    lease.pid_namespace = 7;
    lease.supervisor = {supervisor, 1};
    lease.deadline = clock_.now + std::chrono::hours{3};
    lease.grace = std::chrono::seconds{30};
    lease.gpus = std::move(gpus);
    return lease;
  }

  [[nodiscard]] std::string own_file() const {
    return folder_ / ("leases/gridctl-leases." + std::to_string(::geteuid()));
  }

  TempDir folder_;
  HandClock clock_;
  std::set<int> living_{10, 11};
};

using namespace std::chrono_literals;
using ::testing::HasSubstr;
BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

Lease lease(const std::string& job, double cpus = 0, std::uint64_t memory = 0, std::vector<std::string> gpus = {}) {
  Lease lease;
  lease.controller = {"c"};
  lease.job = {job};
  lease.epoch = Epoch{1};
  lease.uid = 5;
  lease.boot_id = "boot";
  lease.pid_namespace = 7;
  lease.supervisor = {10, 1};
  lease.deadline = at(100);
  lease.grace = 30s;
  lease.cpus = cpus;
  lease.memory_bytes = memory;
  lease.gpus = std::move(gpus);
  return lease;
}

const Machine k_machine{"boot", 7, [](const os::ProcessId& process) { return process.pid == 10; }};

TEST_F(LedgerTest, RefusesASecondHolderOfOneGpu) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1", "GPU-2"}, 10), {}), IsOk());
  const auto refused = ledger().take(lease("bob", {"GPU-2"}, 11), {});
  ASSERT_THAT(refused, FailsWith(Code::busy));
  EXPECT_NE(refused.error().message.find("3h"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("ada"), std::string::npos);
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-3"}, 11), {}), IsOk());
}

TEST_F(LedgerTest, GivesAGpuOnAfterRelease) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  ASSERT_THAT(ledger().release({"ada"}, {"job"}, Epoch{1}), IsOk());
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), IsOk());
}

TEST_F(LedgerTest, RefusesMoreCpusAndMemoryThanThereAre) {
  auto first = lease("ada", {}, 10), second = lease("bob", {}, 11);
  first.cpus = 1.5, second.cpus = 1.0;
  EXPECT_THAT(ledger().take(first, {2, 100}), IsOk());
  EXPECT_THAT(ledger().take(second, {2, 100}), FailsWith(Code::busy));
  second.cpus = 0.5, second.memory_bytes = 101;
  EXPECT_THAT(ledger().take(second, {2, 100}), FailsWith(Code::busy));
  second.memory_bytes = 100;
  EXPECT_THAT(ledger().take(second, {2, 100}), IsOk());
}

TEST_F(LedgerTest, HoldsAsLongAsSupervisorOrPayloadLives) {
  auto held = lease("ada", {"GPU-1"}, 10);
  held.payload = {11, 1};
  ASSERT_THAT(ledger().take(held, {}), IsOk());
  living_ = {11};
  clock_.now = held.deadline + std::chrono::hours{1};
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 12), {}), FailsWith(Code::busy));
  living_ = {};
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 12), {}), IsOk());
}

TEST_F(LedgerTest, HoldsALaunchInDoubtUntilItsLeaseIsOver) {
  auto held = lease("ada", {"GPU-1"}, 99);
  held.launching = true;
  ASSERT_THAT(ledger().take(held, {}), IsOk());
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), FailsWith(Code::busy));
  clock_.now = held.deadline + held.grace + std::chrono::seconds{61};
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), IsOk());
}

TEST_F(LedgerTest, ForgetsAnotherBoot) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  auto later = lease("bob", {"GPU-1"}, 11);
  later.boot_id = "boot-2";
  EXPECT_THAT(ledger("boot-2").take(later, {}), IsOk());
}

TEST_F(LedgerTest, DoesNotJudgePidsOfAnotherNamespace) {
  auto held = lease("ada", {"GPU-1"}, 99);
  held.pid_namespace = 8;
  ASSERT_THAT(ledger().take(held, {}), IsOk());
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), FailsWith(Code::busy));
}

TEST_F(LedgerTest, ReplacesTheEntryOfTheSameAttempt) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  auto renewed = lease("ada", {"GPU-1"}, 11);
  renewed.deadline = clock_.now + std::chrono::hours{9};
  ASSERT_THAT(ledger().take(renewed, {}), IsOk());
  const auto valid = ledger().valid();
  ASSERT_THAT(valid, IsOk());
  ASSERT_EQ(valid->size(), 1u);
  EXPECT_EQ(valid->front().deadline, renewed.deadline);
}

TEST_F(LedgerTest, HandsOverNothingThatItsSupervisorHasEnteredOrReleased) {
  const Lease promised = lease("ada", {"GPU-1"}, 10);
  Lease handed = lease("ada", {"GPU-1"}, 11);
  const auto holder = [&] { return ledger().find({"ada"}, {"job"}, Epoch{1}).value(); };
  ASSERT_THAT(ledger().take(promised, {}), IsOk());
  ASSERT_THAT(ledger().hand_over(handed, {10, 1}), IsOk());
  EXPECT_EQ(holder()->supervisor.pid, 11);
  // It was quick: its entry names its program.
  Lease running = handed;
  running.payload = {12, 1};
  ASSERT_THAT(ledger().take(running, {}), IsOk());
  ASSERT_THAT(ledger().hand_over(handed, {10, 1}), IsOk());
  EXPECT_EQ(holder()->payload.pid, 12);
  // It is through already.
  ASSERT_THAT(ledger().release({"ada"}, {"job"}, Epoch{1}), IsOk());
  ASSERT_THAT(ledger().hand_over(handed, {10, 1}), IsOk());
  EXPECT_FALSE(holder());
}

TEST_F(LedgerTest, SkipsADamagedSlot) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  {
    std::fstream file(own_file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.put('~');
  }
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), IsOk());
}

TEST_F(LedgerTest, IsReadableToAllUsersAndWritableToOne) {
  const mode_t before = ::umask(077);
  const auto taken = ledger().take(lease("ada", {"GPU-1"}, 10), {});
  ::umask(before);
  ASSERT_THAT(taken, IsOk());
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / "leases").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  ASSERT_EQ(::stat(own_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
  ASSERT_EQ(::stat((own_file() + ".lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(LedgerTest, ForgetsWhatIsVoidWhenItWrites) {
  for (int i = 0; i < 300; ++i) {
    auto one = lease("ada" + std::to_string(i), {}, 99);  // nobody lives
    ASSERT_THAT(ledger().take(one, {}), IsOk());
  }
  EXPECT_LE(std::filesystem::file_size(own_file()), 2u * 16 * 1024);
}

TEST(RealMachine, KnowsWhoLivesAndWhoseTheyAre) {
  const Capacity capacity = machine_capacity();
  EXPECT_GE(capacity.cpus, 1);
  EXPECT_GT(capacity.memory_bytes, 64u << 20);
  const Machine machine = Machine::real();
  EXPECT_EQ(machine.boot_id, os::boot_id());
  EXPECT_GT(machine.pid_namespace, 0u);
  const os::ProcessId self = os::identify(::getpid()).value();
  EXPECT_TRUE(machine.alive(self));
  EXPECT_FALSE(machine.alive({self.pid, self.start_ticks + 1}));
  EXPECT_FALSE(machine.alive({0, 0}));
  EXPECT_FALSE(machine.alive({-1, 0}));
  EXPECT_TRUE(machine.owned(self, ::geteuid()));
}

TEST_F(LedgerTest, FindsWhatIsEnteredWhetherOrNotItHolds) {
  EXPECT_FALSE(ledger().find({"ada"}, {"job"}, Epoch{1}).value());
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  living_ = {};
  const auto found = ledger().find({"ada"}, {"job"}, Epoch{1}).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpus, std::vector<std::string>{"GPU-1"});
  EXPECT_TRUE(ledger().valid()->empty()) << "nobody holds it any more";
  EXPECT_FALSE(ledger().find({"ada"}, {"job"}, Epoch{2}).value());
  EXPECT_FALSE(ledger().find({"ada"}, {"other"}, Epoch{1}).value());
  EXPECT_FALSE(ledger().find({"bob"}, {"job"}, Epoch{1}).value());
  EXPECT_THAT(ledger().release({"bob"}, {"job"}, Epoch{1}), IsOk()) << "what is not there is released already";
  EXPECT_TRUE(ledger().find({"ada"}, {"job"}, Epoch{1}).value());
}

TEST_F(LedgerTest, AClaimThatIsRefusedChangesNothing) {
  ASSERT_THAT(ledger().take(lease("ada", {"GPU-1"}, 10), {}), IsOk());
  const auto before = std::filesystem::file_size(own_file());
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, 11), {}), FailsWith(Code::busy));
  EXPECT_EQ(std::filesystem::file_size(own_file()), before);
  EXPECT_FALSE(ledger().find({"bob"}, {"job"}, Epoch{1}).value());
}

TEST(LeaseText, ComesBackAsItWas) {
  Lease lease;
  lease.controller = {"c"}, lease.job = {"j"}, lease.epoch = Epoch{7}, lease.uid = 1000, lease.boot_id = "b";
  lease.supervisor = {12, 34}, lease.payload = {56, 78}, lease.launching = true, lease.deadline = BootTime{99};
  lease.cpus = 2.5, lease.memory_bytes = 1u << 30, lease.gpus = {"GPU-1", "GPU-2"};
  const auto back = parse_lease(to_text(lease));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_text(*back), to_text(lease));
}

TEST(Leases, FitUpToWhatTheMachineHas) {
  Capacity capacity;
  capacity.cpus = 4;
  capacity.memory_bytes = 1000;
  const std::vector<std::optional<Lease>> held{lease("a", 3, 600)};
  const auto plan = [&](const Lease& wanted) { return plan_take(held, wanted, capacity, k_machine, at(50)); };
  EXPECT_THAT(plan(lease("b", 1, 400)), IsOk());
  EXPECT_THAT(plan(lease("b", 1.01)), FailsWith(Code::busy));
  EXPECT_THAT(plan(lease("b", 0, 401)), FailsWith(Code::busy));
  EXPECT_THAT(plan(lease("b", 1.01)).error().message,
              HasSubstr("not enough CPUs are free on this host; some is free at the latest in 50s"));
  EXPECT_THAT(plan(lease("a", 4, 1000)), IsOk()) << "its own share is replaced";
  capacity = {};
  EXPECT_THAT(plan(lease("b", 1000, 100'000)), IsOk()) << "what the machine has is not known";
}

TEST(Leases, TakeTheFirstFreeSlotAndReplaceTheirOwn) {
  Lease dead = lease("dead");
  dead.supervisor = {99, 1};
  Lease twin = lease("b");
  twin.uid = 6;
  const std::vector<std::optional<Lease>> held{lease("a"), dead, std::nullopt, lease("b"), twin};
  const auto planned = plan_take(held, lease("b"), {}, k_machine, at(50));
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(planned->slot, 1u);
  EXPECT_EQ(planned->replaces, std::vector<std::size_t>{3}) << "another user's twin replaces nothing";
  EXPECT_EQ(plan_take({lease("a")}, lease("b"), {}, k_machine, at(50))->slot, 1u);
  const auto leased = plan_take({lease("a", 0, 0, {"G1", "G2"})}, lease("b", 0, 0, {"G2"}), {}, k_machine, at(100));
  ASSERT_THAT(leased, FailsWith(Code::busy));
  EXPECT_EQ(leased.error().message, "gpu G2 is leased; it is free when its holder has ended");
}

TEST(Leases, AreVoidWhenNobodyCanHoldThem) {
  EXPECT_FALSE(is_void(lease("a"), k_machine, at(10'000))) << "its supervisor lives";
  Lease other = lease("a");
  other.boot_id = "before";
  EXPECT_TRUE(is_void(other, k_machine, at(1)));
  other = lease("a");
  other.supervisor = {99, 1};
  EXPECT_TRUE(is_void(other, k_machine, at(1)));
  other.payload = {10, 1};
  EXPECT_FALSE(is_void(other, k_machine, at(1)));
  other.payload = {};
  other.launching = true;
  EXPECT_FALSE(is_void(other, k_machine, at(190)));
  EXPECT_TRUE(is_void(other, k_machine, {190'000'000'001})) << "deadline, grace and a minute are over";
  other = lease("a");
  other.pid_namespace = 8;
  EXPECT_FALSE(is_void(other, k_machine, at(190)));
  EXPECT_TRUE(is_void(other, k_machine, {190'000'000'001}));
}

TEST(Leases, OfOthersAreNumbersWithinTheirLimits) {
  const std::string good = to_text(lease("a", 1.5, 7, {"G"}));
  ASSERT_TRUE(parse_lease(good));
  EXPECT_EQ(parse_lease(good)->gpus, std::vector<std::string>{"G"});
  const auto with = [&](const std::string& was, const std::string& becomes) {
    std::string text = good;
    EXPECT_NE(text.find(was), std::string::npos) << was;
    return parse_lease(text.replace(text.find(was), was.size(), becomes)).has_value();
  };
  for (const auto& [was, becomes] : {std::pair{"cpus=1.500", "cpus=1000000"},
                                     {"memory=7", "memory=1125899906842624"},
                                     {"grace=30000000000", "grace=1000000000000000000"},
                                     {"deadline=100000000000", "deadline=0"},
                                     {"launching=0", "launching=1"}})
    EXPECT_TRUE(with(was, becomes)) << becomes;
  for (const auto& [was, becomes] : {std::pair{"cpus=1.500", "cpus=1000000.1"},
                                     {"cpus=1.500", "cpus=-1"},
                                     {"cpus=1.500", "cpus=nan"},
                                     {"cpus=1.500", "cpus=x"},
                                     {"memory=7", "memory=1125899906842625"},
                                     {"grace=30000000000", "grace=1000000000000000001"},
                                     {"grace=30000000000", "grace=-1"},
                                     {"deadline=100000000000", "deadline=-1"},
                                     {"deadline=100000000000", "deadline=1000000000000000001"},
                                     {"controller=c", "controller="},
                                     {"job=a", "job="},
                                     {"boot=boot", "boot="},
                                     {"epoch=1", "epoch=x"},
                                     {"uid=5", "uid=-5"},
                                     {"pidns=7", "pidns=7x"},
                                     {"supervisor=10 1", "supervisor=10"},
                                     {"payload=0 0", "payload=0 x"},
                                     {"cpus=1.500\n", "cpus\n"}})
    EXPECT_FALSE(with(was, becomes)) << becomes;
}

TEST(Leases, AreBelievedOfTheirOwnersProcessesOnly) {
  Machine machine = k_machine;
  EXPECT_TRUE(is_believed(lease("a"), 5, machine));
  EXPECT_FALSE(is_believed(lease("a"), 6, machine));
  machine.owned = [](const os::ProcessId& process, unsigned) { return process.pid != 10; };
  EXPECT_FALSE(is_believed(lease("a"), 5, machine)) << "it lives and is another's";
  Lease dead = lease("a");
  dead.supervisor = {99, 1};
  EXPECT_TRUE(is_believed(dead, 5, machine));
  dead.payload = {10, 1};
  EXPECT_FALSE(is_believed(dead, 5, machine));
}

}  // namespace
}  // namespace gridctl::agent::ledger_test
