// SPDX-License-Identifier: Apache-2.0
// Red team: another user of the host, against the folders, files and locks of an agent. The tests play two users where
// they may (as root), and name the rest as skipped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include "agent/ledger.hpp"
#include "agent/ledger_files.hpp"
#include "agent/secret_folders.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/frame.hpp"

namespace gridctl::agent::ledger_user_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

constexpr unsigned k_mallory = 61'234, k_eve = 61'235;

// A process of another user, which lives until this ends. 0: nobody.
class Child {
 public:
  Child(unsigned user, const std::function<int()>& does) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    if (::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(99);
    ::_exit(does());
  }
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), (void)wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(std::exchange(pid_, 0), &status, 0) <= 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] int pid() const { return pid_; }

 private:
  int pid_ = 0;
};

int as_user(unsigned user, const std::function<int()>& does) { return Child(user, does).wait(); }

class LocalUser : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::others_exec | std::filesystem::perms::owner_all);
    std::filesystem::create_directory(leases_);
    ASSERT_EQ(::chmod(leases_.c_str(), 01777), 0);
  }
  void need_root() const {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can play two users";
  }

  [[nodiscard]] Ledger ledger() const { return {leases_, Machine::real(), os::system_clock()}; }
  [[nodiscard]] Lease lease(const std::string& controller, const std::vector<std::string>& gpus, int pid) const {
    Lease lease;
    const Machine machine = Machine::real();
    lease.controller = {controller}, lease.job = {"job"}, lease.epoch = Epoch{1}, lease.uid = ::geteuid();
    lease.boot_id = machine.boot_id, lease.pid_namespace = machine.pid_namespace;
    lease.supervisor = os::identify(pid).value_or(os::ProcessId{});
    lease.deadline = os::system_clock().boot() + std::chrono::hours{3};
    lease.gpus = gpus;
    return lease;
  }
  // As one slot of a file, with a right checksum.
  [[nodiscard]] static std::string slot(const std::string& text) {
    const auto number = [](std::uint32_t value) {
      return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                         static_cast<char>(value)};
    };
    std::string slot = "GLS1" + number(static_cast<std::uint32_t>(text.size())) + number(wire::crc32(text)) + text;
    slot.resize(16 * 1024, '\0');
    return slot;
  }
  void put(const std::string& name, const std::string& content, unsigned owner) const {
    std::ofstream(leases_ / name, std::ios::binary) << content;
    ASSERT_EQ(::chown((leases_ / name).c_str(), owner, owner), 0);
  }
  [[nodiscard]] std::string own() const { return "gridctl-leases." + std::to_string(::geteuid()); }
  [[nodiscard]] Result<void> take(const std::string& gpu) const {
    return ledger().take(lease("ada", {gpu}, ::getpid()), {8, 1ull << 30});
  }

  TempDir folder_;
  const os::Path leases_ = folder_ / "leases";
};

// --- the folder ------------------------------------------------------------------------------------------------------

TEST_F(LocalUser, CannotLeadAnAgentElsewhereByALinkAsLeaseFolder) {
  std::filesystem::create_directory(folder_ / "victim");
  std::filesystem::create_directory_symlink(folder_ / "victim", folder_ / "planted");
  Ledger planted(folder_ / "planted", Machine::real(), os::system_clock());
  EXPECT_THAT(planted.take(lease("ada", {"GPU-1"}, ::getpid()), {}), FailsWith(Code::refused));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "victim"));
}

TEST_F(LocalUser, CannotLeadAnAgentElsewhereByALinkToNothing) {
  std::filesystem::create_symlink(folder_ / "victim", folder_ / "planted");
  Ledger planted(folder_ / "planted", Machine::real(), os::system_clock());
  EXPECT_FALSE(planted.take(lease("ada", {"GPU-1"}, ::getpid()), {}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "victim"));
}

TEST_F(LocalUser, CannotOfferAFolderWhereAnybodyRemovesFiles) {
  ASSERT_EQ(::chmod(leases_.c_str(), 0777), 0);  // without the sticky bit
  EXPECT_THAT(take("GPU-1"), FailsWith(Code::refused));
}

TEST_F(LocalUser, CannotOfferAFolderOfTheirOwn) {
  need_root();
  ASSERT_EQ(::chown(leases_.c_str(), k_mallory, k_mallory), 0);
  EXPECT_THAT(take("GPU-1"), FailsWith(Code::refused));
  EXPECT_TRUE(std::filesystem::is_empty(leases_));
}

TEST_F(LocalUser, CannotPutAFileWhereTheFolderIsToBe) {
  std::ofstream(folder_ / "file") << "x";
  Ledger planted(folder_ / "file", Machine::real(), os::system_clock());
  EXPECT_THAT(planted.take(lease("ada", {"GPU-1"}, ::getpid()), {}), FailsWith(Code::refused));
}

// --- our file --------------------------------------------------------------------------------------------------------

TEST_F(LocalUser, CannotHaveAFileOverwrittenThroughALinkInOurName) {
  std::ofstream(folder_ / "victim") << "precious";
  std::filesystem::create_symlink(folder_ / "victim", leases_ / own());
  std::filesystem::create_symlink(folder_ / "victim", leases_ / (own() + ".lock"));
  std::filesystem::create_symlink(folder_ / "victim", leases_ / (own() + ".1.lock"));
  EXPECT_THAT(take("GPU-1"), IsOk());
  EXPECT_EQ(os::read_file(folder_ / "victim").value_or(""), "precious");
  EXPECT_EQ(ledger().valid().value().size(), 1u);
}

TEST_F(LocalUser, CannotBlockAnAgentByTakingItsNames) {
  need_root();
  put(own(), "mine now", k_mallory);
  put(own() + ".1", "mine now", k_mallory);
  put(own() + ".2.lock", "", k_mallory);
  EXPECT_THAT(take("GPU-1"), IsOk());
  EXPECT_EQ(ledger().valid().value().size(), 1u);
}

TEST_F(LocalUser, CannotStopAnAgentByAPipeInItsName) {
  ASSERT_EQ(::mkfifo((leases_ / own()).c_str(), 0666), 0);
  ASSERT_EQ(::mkfifo((leases_ / (own() + ".lock")).c_str(), 0666), 0);
  ASSERT_EQ(::mkfifo((leases_ / "gridctl-leases.61234").c_str(), 0666), 0);
  EXPECT_THAT(take("GPU-1"), IsOk());
}

TEST_F(LocalUser, CannotLockTheLedger) {
  need_root();
  ASSERT_THAT(take("GPU-1"), IsOk());
  const std::string file = leases_ / own();
  const Child locker(k_mallory, [&] {
    const int fd = ::open(file.c_str(), O_RDONLY);
    if (fd < 0 || ::flock(fd, LOCK_EX) != 0) return 1;
    ::pause();
    return 0;
  });
  EXPECT_EQ(as_user(k_mallory, [&] { return ::open((file + ".lock").c_str(), O_RDONLY) < 0 ? 0 : 1; }), 0);
  const BootTime began = os::system_clock().boot();
  EXPECT_THAT(take("GPU-2"), IsOk());
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::seconds{8});  // a lock is waited for for ten
}

TEST_F(LocalUser, CannotEraseOrChangeALease) {
  need_root();
  ASSERT_THAT(take("GPU-1"), IsOk());
  const std::string file = leases_ / own();
  EXPECT_EQ(as_user(k_mallory,
                    [&] {
                      const bool wrote = ::open(file.c_str(), O_WRONLY) >= 0 || ::truncate(file.c_str(), 0) == 0;
                      const bool removed = ::unlink(file.c_str()) == 0;
                      const bool moved = ::rename(file.c_str(), (file + ".9").c_str()) == 0;
                      return wrote || removed || moved ? 1 : 0;
                    }),
            0);
  EXPECT_EQ(ledger().valid().value().size(), 1u);
}

// --- secrets ---------------------------------------------------------------------------------------------------------

TEST_F(LocalUser, CannotKeepSecretsFromAJobByTakingItsFolder) {
  const std::string usual = "gridctl-" + std::to_string(::geteuid());
  const os::Path first = folder_ / "shm", second = folder_ / "run";
  for (const os::Path& base : {first, second}) std::filesystem::create_directory(base);
  const auto taken = [&](const os::Path& base) {
    std::filesystem::create_directory(base / usual);
    ASSERT_EQ(::geteuid() == 0 ? ::chown((base / usual).c_str(), k_mallory, k_mallory) : ::chmod((base / usual).c_str(), 0755), 0);
  };
  taken(first);
  EXPECT_EQ(secrets_at("c.j.1", {first, second}).value(), second / usual / "c.j.1") << "the next one is free";
  taken(second);
  const os::Path folder = secrets_at("c.j.1", {first, second}).value();
  EXPECT_TRUE(folder.string().starts_with((first / usual).string() + ".")) << folder;
  EXPECT_NE(folder, secrets_at("c.j.1", {first, second}).value()) << "nobody knows the name before it is there";
  ASSERT_THAT(make_secret_folder(folder), IsOk());
  EXPECT_EQ(secrets_at("c.j.2", {first, second}).value().parent_path(), folder.parent_path()) << "one for all attempts";
  std::filesystem::create_directory(folder);
  EXPECT_EQ(secrets_at("c.j.1", {first, second}).value(), folder);
  EXPECT_THAT(make_secret_folder(first / usual / "c.j.1"), FailsWith(Code::busy));
  ASSERT_EQ(::chmod(folder.parent_path().c_str(), 0750), 0);
  EXPECT_NE(secrets_at("c.j.1", {first, second}).value(), folder) << "others could look into it";
}

// --- what is believed of theirs --------------------------------------------------------------------------------------

TEST_F(LocalUser, HoldsWhatTheirOwnProcessHolds) {
  need_root();
  const Child holder(k_mallory, [] { return ::pause(); });
  Lease theirs = lease("mallory", {"GPU-1"}, holder.pid());
  theirs.uid = k_mallory;
  put("gridctl-leases." + std::to_string(k_mallory), slot(to_text(theirs)), k_mallory);
  // The child is ours until it has become theirs.
  for (int i = 0; i < 1000 && ledger().valid().value().empty(); ++i) ::usleep(1000);
  EXPECT_THAT(take("GPU-1"), FailsWith(Code::busy));
}

TEST_F(LocalUser, CannotHoldAGpuByAProcessOfAnotherUser) {
  need_root();
  for (const int pid : {1, ::getpid()}) {
    Lease forged = lease("mallory", {"GPU-1"}, pid);
    forged.uid = k_mallory;
    put("gridctl-leases." + std::to_string(k_mallory), slot(to_text(forged)), k_mallory);
    EXPECT_THAT(take("GPU-1"), IsOk());
  }
}

TEST_F(LocalUser, CannotForgeALeaseOfAnotherUser) {
  need_root();
  const Lease forged = lease("ada", {"GPU-1"}, ::getpid());  // says that it is ours
  put("gridctl-leases." + std::to_string(k_mallory), slot(to_text(forged)), k_mallory);
  EXPECT_TRUE(ledger().valid().value().empty());
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, ::getpid()), {}), IsOk());
}

TEST_F(LocalUser, CannotWriteInTheNameOfAnotherUser) {
  need_root();
  const Child holder(k_mallory, [] { return ::pause(); });
  Lease forged = lease("mallory", {"GPU-1"}, holder.pid());
  forged.uid = k_eve;
  put("gridctl-leases." + std::to_string(k_eve), slot(to_text(forged)), k_mallory);
  EXPECT_TRUE(ledger().valid().value().empty());
}

TEST_F(LocalUser, CannotHideALeaseBehindATwin) {
  need_root();
  ASSERT_THAT(take("GPU-1"), IsOk());
  Lease twin = lease("ada", {}, ::getpid());
  twin.uid = k_mallory, twin.supervisor = {}, twin.launching = true;
  put("gridctl-leases." + std::to_string(k_mallory), slot(to_text(twin)), k_mallory);
  EXPECT_THAT(ledger().take(lease("bob", {"GPU-1"}, ::getpid()), {}), FailsWith(Code::busy));
}

TEST_F(LocalUser, CannotPoisonSumsWithNumbersThatAreNone) {
  need_root();
  const Child holder(k_mallory, [] { return ::pause(); });
  for (const double cpus : {std::nan(""), std::numeric_limits<double>::infinity(), -1e300, 1e300}) {
    Lease odd = lease("mallory", {}, holder.pid());
    odd.uid = k_mallory, odd.cpus = cpus, odd.memory_bytes = UINT64_MAX;
    EXPECT_FALSE(parse_lease(to_text(odd))) << cpus;
    put("gridctl-leases." + std::to_string(k_mallory), slot(to_text(odd)), k_mallory);
    Lease ours = lease("ada", {}, ::getpid());
    ours.cpus = 1, ours.memory_bytes = 1;
    EXPECT_THAT(ledger().take(ours, {8, 1ull << 30}), IsOk()) << cpus;
  }
}

TEST_F(LocalUser, CannotMakeAnAgentReadWithoutEnd) {
  need_root();
  const std::string name = "gridctl-leases." + std::to_string(k_mallory);
  put(name, "", k_mallory);
  ASSERT_EQ(::truncate((leases_ / name).c_str(), 1ll << 40), 0);
  const BootTime began = os::system_clock().boot();
  EXPECT_THAT(take("GPU-1"), IsOk());
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::minutes{1});
}

TEST_F(LocalUser, CannotCrashAnAgentWithGarbage) {
  need_root();
  std::string garbage;
  for (int i = 0; i < 64 * 1024; ++i) garbage.push_back(static_cast<char>(i * 2654435761u >> 13));
  for (const std::string& content :
       {garbage, slot(garbage.substr(0, 16'000)), slot(std::string(16'000, '=')), slot("gpu=\n" + garbage.substr(0, 99)),
        std::string("GLS1\xff\xff\xff\xff"), slot("")}) {
    put("gridctl-leases." + std::to_string(k_mallory), content, k_mallory);
    EXPECT_THAT(take("GPU-1"), IsOk());
  }
}

TEST_F(LocalUser, CannotGetAGpuThatAnotherGetsAtTheSameMoment) {
  need_root();
  // Two users claim one GPU at once, forty times. Never do both have it.
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& tried = *new (shared) std::atomic<int>{0};
  int both = 0, won = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string gpu = "GPU-" + std::to_string(round);
    const auto claim = [&] {
      const Lease mine = lease("c", {gpu}, ::getpid());
      const bool has_it = ledger().take(mine, {}).has_value();
      ++tried;
      // It is held until the other has tried.
      for (int i = 0; tried != 2 * round + 2 && i < 6000; ++i) ::usleep(10'000);
      return has_it ? 0 : 1;
    };
    Child mallory(k_mallory, claim), eve(k_eve, claim);
    const int first = mallory.wait(), second = eve.wait();
    if (first == 0 && second == 0) ++both;
    if (first == 0 || second == 0) ++won;
  }
  ::munmap(shared, sizeof(std::atomic<int>));
  EXPECT_EQ(both, 0);
  EXPECT_GE(won, 36);  // and nearly always one of them has
}

}  // namespace
}  // namespace gridctl::agent::ledger_user_test
