// SPDX-License-Identifier: Apache-2.0
// The real per-attempt supervisor as a process of its own, with the process engine.
#include "agent/supervise.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/disk_calls.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::supervise_test {
namespace {

// A user namespace without inotify instances: what a user meets who has used up his 128.
constexpr const char* k_without_inotify = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";

class Supervise : public ::testing::Test {
 protected:
  Supervise() {
    ::setenv("GRIDCTL_AGENT_HOME", (dir_ / "home").c_str(), 1);
    ::setenv("GRIDCTL_LEASE_DIR", (dir_ / "leases").c_str(), 1);
  }
  ~Supervise() override {
    ::unsetenv("GRIDCTL_AGENT_HOME");
    ::unsetenv("GRIDCTL_LEASE_DIR");
  }
  void accept(const std::string& run, std::map<std::string, std::string> secrets = {}) {
    ASSERT_TRUE(os::make_directories(attempt_.path.parent_path()));
    NewAttempt content;
    content.op = {"op"};
    content.boot_id = Machine::real().boot_id;
    content.deadline = clock_.boot() + std::chrono::minutes{10};
    content.spec.job = {"job"};
    content.spec.epoch = Epoch{1};
    content.spec.run = run;
    content.secrets = std::move(secrets);
    ASSERT_TRUE(create_attempt(attempt_, content));
  }
  [[nodiscard]] std::optional<wire::AttemptPhase> phase() const {
    const auto status = read_status(attempt_, clock_);
    if (!status || !*status) return std::nullopt;
    return (*status)->phase;
  }
  [[nodiscard]] std::string log() const { return os::read_file(attempt_.path / "supervisor.log").value_or("no log"); }
  [[nodiscard]] bool comes_to(wire::AttemptPhase wanted) const {
    for (const BootTime deadline = clock_.boot() + std::chrono::seconds{60}; clock_.boot() < deadline;) {
      if (phase() == wanted) return true;
      os::pause_for(std::chrono::milliseconds{20});
    }
    return false;
  }

  os::Clock& clock_ = os::system_clock();
  gridctl::testing::TempDir dir_;
  AttemptDir attempt_{dir_ / "home" / "jobs" / "controller" / "job" / "1"};
};

TEST_F(Supervise, HearsOfAStopThoughNoInotifyInstanceIsLeft) {
  const std::vector<std::string> bare{"unshare", "--user", "--map-root-user", "sh", "-c", k_without_inotify, "sh"};
  std::vector<std::string> probe = bare;
  probe.emplace_back("true");
  const auto may = os::run(probe);
  if (!may || !may->status.success()) GTEST_SKIP() << "no user namespace of our own may be made here";

  accept("sleep 600");
  std::vector<std::string> command = bare;
  for (const char* word : {GRIDCTL_BINARY_DIR "/bin/gridctl-agent.stripped", "supervise"}) command.emplace_back(word);
  command.push_back(attempt_.path.native());
  const auto pid = os::spawn(command, {});
  ASSERT_TRUE(pid);
  ASSERT_TRUE(comes_to(wire::AttemptPhase::running)) << log();
  ASSERT_TRUE(os::write_file_atomically(attempt_.stop_file(), "0\n"));
  EXPECT_TRUE(comes_to(wire::AttemptPhase::ended)) << log();
  EXPECT_TRUE(os::wait(*pid));
}

// A process of the job has outlived its init and the supervisor before this one; what it computes on is not free yet.
TEST_F(Supervise, GivesTheLeaseBackWhenNoProcessIsLeft) {
  accept("true");
  const os::Path run = attempt_.run(1), leases = dir_ / "leases";
  ASSERT_TRUE(os::make_directories(run));
  ASSERT_TRUE(os::write_file_atomically(run / "once", ""));
  ASSERT_TRUE(os::write_file_atomically(run / "exit", to_text(ExitRecord{})));
  Ledger ledger(leases, Machine::real(), clock_);
  Lease lease = our_lease({"controller"}, {"job"}, Epoch{1});
  lease.supervisor = *os::identify(::getpid());
  lease.deadline = clock_.boot() + std::chrono::minutes{10};
  ASSERT_TRUE(ledger.take(lease, machine_capacity()));
  os::SpawnOptions options;
  options.new_session = true;
  options.environment = std::map<std::string, std::string>{{"PATH", "/usr/bin:/bin"}, {"GRIDCTL_METRICS", (run / "metrics").string()}};
  const auto left = os::spawn({"sleep", "600"}, options);
  ASSERT_TRUE(left);
  const auto process = os::identify(*left);
  ASSERT_TRUE(process);

  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    bool given_back = false, early = false;
    const testing::DiskWatcher watcher(leases, [&](const testing::DiskCall& call) {
      given_back = given_back || call.kind == testing::DiskCall::Kind::rename;
      early = early || os::is_alive(*process);
      return 0;
    });
    const int status = run_supervisor(attempt_.path, clock_);
    ::_exit(status != 0 ? 1 : !given_back ? 2 : early ? 3 : 0);
  }
  if (!comes_to(wire::AttemptPhase::ended)) ::kill(supervisor, SIGKILL);
  const auto ended = os::wait(supervisor);
  ::kill(*left, SIGKILL);  // where it was not
  ASSERT_TRUE(os::wait(*left));
  ASSERT_THAT(ended, gridctl::testing::IsOk());
  EXPECT_EQ(ended->code, 0) << (ended->code == 3 ? "others may have its GPUs while it lives" : log());
  EXPECT_EQ(phase(), wire::AttemptPhase::ended) << log();
  EXPECT_FALSE(ledger.find({"controller"}, {"job"}, Epoch{1}).value());
}

// Ends an attempt that has secrets, on a disk that refuses to remove them so many times.
struct SecretsAtTheEnd : Supervise {
  std::optional<wire::AttemptStatus> end_with_refusals(int refusals) {
    if (!attempt_.secrets()) return std::nullopt;
    accept("true", {{"TOKEN", "canary"}});
    path = *attempt_.secrets();
    const os::Path run = attempt_.run(1);
    EXPECT_TRUE(os::exists(path / "TOKEN"));
    ExitRecord well;
    well.phase = "run", well.code = 0;
    EXPECT_TRUE(os::make_directories(run) && os::write_file_atomically(run / "once", "") &&
                os::write_file_atomically(run / "exit", to_text(well)));
    const pid_t supervisor = ::fork();
    if (supervisor == 0) {
      int refused = 0;
      const testing::DiskWatcher fails(path, [&](const testing::DiskCall& call) {
        return call.kind == testing::DiskCall::Kind::remove && refused++ < refusals ? EIO : 0;
      });
      ::_exit(run_supervisor(attempt_.path, clock_));
    }
    if (!comes_to(wire::AttemptPhase::ended)) ::kill(supervisor, SIGKILL);
    (void)os::wait(supervisor);
    const auto status = read_status(attempt_, clock_);
    return status ? *status : std::nullopt;
  }
  ~SecretsAtTheEnd() override { (void)os::remove_tree(path); }
  os::Path path;
};

TEST_F(SecretsAtTheEnd, AreRemovedAtAnotherTry) {
  const auto status = end_with_refusals(1);
  if (path.empty()) GTEST_SKIP() << "no folder for secrets here";
  ASSERT_TRUE(status) << log();
  EXPECT_FALSE(os::exists(path)) << log();
  EXPECT_EQ(status->detail, "");
}

TEST_F(SecretsAtTheEnd, ThatStayAreTold) {
  const auto status = end_with_refusals(1'000'000);
  if (path.empty()) GTEST_SKIP() << "no folder for secrets here";
  ASSERT_TRUE(status) << log();
  EXPECT_TRUE(os::exists(path));
  EXPECT_EQ(status->end, wire::EndReason::exited);
  EXPECT_NE(status->detail.find("its secrets are still on this host"), std::string::npos) << status->detail;
  EXPECT_NE(status->detail.find(path.native()), std::string::npos) << status->detail;
}

}  // namespace
}  // namespace gridctl::agent::supervise_test
