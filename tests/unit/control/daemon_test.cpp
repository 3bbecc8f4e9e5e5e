// SPDX-License-Identifier: Apache-2.0
// The daemon as others see it: started, asked, stopped; and what it does for hosts beside following jobs.
#include "control/daemon/daemon.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "base/text.hpp"
#include "control/copies/freight.hpp"
#include "control/daemon/controller.hpp"
#include "control/daemon/gpu_rechecks.hpp"
#include "control/daemon/host_rescans.hpp"
#include "control/fleet/register_host.hpp"
#include "control/follow/job_files.hpp"
#include "control/measure/network_record.hpp"
#include "control/reach/ssh_network.hpp"
#include "control/reach/version.hpp"
#include "os/entries.hpp"
#include "os/loop_executor.hpp"
#include "os/process.hpp"
#include "registry/registry.hpp"
#include "ssh_hosts.hpp"
#include "support/results.hpp"

namespace gridctl::control::daemon_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// At most ten seconds.
bool until(const std::function<bool()>& done) {
  os::Clock& clock = os::system_clock();
  for (const BootTime end = clock.boot() + 60s; clock.boot() < end; os::pause_for(10ms))
    if (done()) return true;
  return false;
}

class Daemon : public ::testing::Test {
 protected:
  ~Daemon() override { (void)stop_daemon(state()); }
  [[nodiscard]] const os::Path& state() const { return hosts.paths.root; }
  [[nodiscard]] std::string log() const {
    auto text = os::read_file(hosts.paths.daemon_log());
    return std::move(text).value_or("");
  }
  test::SshHosts hosts;
};

TEST_F(Daemon, IsStartedOnceAndSaysWhoItIs) {
  const WallTime began = os::system_clock().wall();
  const auto started = ensure_daemon(state(), false);
  ASSERT_THAT(started, IsOk());
  EXPECT_TRUE(started->running);
  ASSERT_GT(started->pid, 0);
  EXPECT_NE(started->pid, os::process_id());
  EXPECT_TRUE(os::identify(started->pid)) << "it lives";
  EXPECT_EQ(started->host, os::host_name());
  EXPECT_EQ(started->version, k_version);
  EXPECT_GE(started->started_at, format_rfc3339(began));
  EXPECT_THAT(log(), HasSubstr("follows " + state().string()));
  EXPECT_EQ(ensure_daemon(state(), true)->pid, started->pid);
  EXPECT_EQ(daemon_status(state())->pid, started->pid);
}

TEST_F(Daemon, EndsWhenItIsAskedTo) {
  EXPECT_FALSE(stop_daemon(state())->running) << "there is none";
  const auto started = ensure_daemon(state(), false);
  ASSERT_THAT(started, IsOk());
  const auto stopped = stop_daemon(state());
  ASSERT_THAT(stopped, IsOk());
  EXPECT_FALSE(stopped->running);
  EXPECT_FALSE(daemon_status(state())->running);
  EXPECT_FALSE(os::exists(hosts.paths.daemon_info()));
  EXPECT_THAT(log(), HasSubstr("the daemon ends; jobs continue on their hosts"));
}

TEST_F(Daemon, EndsInOrderAtAnInterruptAndLivesThroughAHangup) {
  const auto started = ensure_daemon(state(), false);
  ASSERT_THAT(started, IsOk());
  ASSERT_EQ(::kill(started->pid, SIGHUP), 0);
  ASSERT_EQ(::kill(started->pid, SIGINT), 0);
  EXPECT_TRUE(until([&] { return !daemon_status(state())->running; }));
  EXPECT_FALSE(os::exists(hosts.paths.daemon_info())) << "it took its leave";
  EXPECT_THAT(log(), HasSubstr("daemon ends"));
}

TEST_F(Daemon, LeavesTheStateDirectoryToTheOneThatIsThere) {
  const auto started = ensure_daemon(state(), false);
  ASSERT_THAT(started, IsOk());
  const auto second = run_daemon(state(), false);
  ASSERT_THAT(second, FailsWith(Code::state_in_use));
  EXPECT_EQ(second.error().message, "another gridctl daemon (pid " + std::to_string(started->pid) + " on " +
                                        os::host_name() + ") follows the state directory " + state().string());
  EXPECT_EQ(second.error().hint, "gridctl daemon status");
  EXPECT_EQ(daemon_status(state())->pid, started->pid);
}

TEST_F(Daemon, ThatCannotStartIsToldOf) {
  ASSERT_THAT(os::write_file_atomically(hosts.dir / "file", "no directory"), IsOk());
  const auto started = ensure_daemon(hosts.dir / "file", false);
  ASSERT_FALSE(started);
  EXPECT_EQ(exit_code(started.error().code), exit_code(Code::internal)) << started.error().one_line();
  EXPECT_THAT(started.error().message, HasSubstr("did not start"));
}

TEST_F(Daemon, IsKnownByWhatItWroteOfItself) {
  ASSERT_THAT(registry::Registry::open(state()), IsOk());
  const auto lock = os::FileLock::acquire(hosts.paths.daemon_lock());
  ASSERT_THAT(lock, IsOk());
  const auto read = [&](const std::string& info) {
    EXPECT_THAT(os::write_file_atomically(hosts.paths.daemon_info(), info), IsOk());
    const DaemonStatus status = *daemon_status(state());
    EXPECT_TRUE(status.running) << info;
    return std::to_string(status.pid) + " " + status.host + " " + status.version + " " + status.started_at;
  };
  EXPECT_EQ(read(R"({"pid":7,"host":"ada","version":"1.2","started_at":"then"})"), "7 ada 1.2 then");
  EXPECT_EQ(read(R"({"pid":"7","host":8,"version":"1.2"})"), "0  1.2 ");
  EXPECT_EQ(read("[7]"), "0   ");
  EXPECT_EQ(read("no JSON"), "0   ");
  const auto refused = [&](const std::string& info) {
    (void)read(info);
    const auto second = run_daemon(state(), false);
    return second ? "" : second.error().message.substr(0, second.error().message.find(" follows"));
  };
  EXPECT_EQ(refused(R"({"host":"ada"})"), "another gridctl daemon (on ada)");
  EXPECT_EQ(refused("{}"), "another gridctl daemon");
}

TEST_F(Daemon, IsWaitedForWhileItHasNotSaidWhoItIs) {
  const auto lock = os::FileLock::acquire(hosts.paths.daemon_lock());
  ASSERT_THAT(lock, IsOk());
  std::thread says_so([&] {
    os::pause_for(50ms);
    EXPECT_THAT(os::write_file_atomically(hosts.paths.daemon_info(), R"({"pid":7})"), IsOk());
  });
  const auto found = ensure_daemon(state(), false);
  says_so.join();
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->pid, 7);
}

TEST_F(Daemon, TakesTheInventoryOfAHostThatWasStartedAnew) {
  registry::Registry registry = *registry::Registry::open(state());
  registry::Provider ada = hosts.add_pinned("ada");
  ada.inventory.edit().boot_id = "before";
  ada.inventory.edit().machine_id = "";
  ASSERT_THAT(registry.add_provider(ada), IsOk());
  ASSERT_THAT(ensure_daemon(state(), false), IsOk());
  const auto now = [&] { return registry.provider({"ada"}); };
  EXPECT_TRUE(until([&] { return now()->inventory->boot_id != "before" && now()->inventory->memory_bytes > 0; }));
  EXPECT_TRUE(until([&] { return now()->liveness == "answering" && now()->last_seen_at.has_value(); }));
  // Links are measured, too, and what moved and how long it took is written down.
  EXPECT_TRUE(until([&] { return networks_of(*registry.links())["ada"].up_bits_per_second.has_value(); })) << log();
}

// The rooms that the daemon puts together, in a loop of the test's own.
class HostCare : public Daemon {
 protected:
  HostCare() {
    ada = hosts.add_pinned("ada");
    auto seen = examine(hosts.net, ada, hosts.soon(), clock);
    EXPECT_THAT(seen, IsOk());
    ada = seen->provider;
    Gpu gpu;
    gpu.name = "Test GPU";
    gpu.uuid = "GPU-a";
    ada.inventory.edit().gpus = {gpu};
  }
  void begin() {
    EXPECT_THAT(registry.add_provider(ada), IsOk());
    EXPECT_THAT(jobs.start(), IsOk());
    EXPECT_TRUE(loop_until([&] { return jobs.fleet().find(ada.name)->is_up(); }));
  }
  bool loop_until(const std::function<bool()>& done) {
    const BootTime end = clock.boot() + 60s;
    bool met = false;
    const auto timer = loop.every(10ms, [&] {
      met = done();
      if (met || clock.boot() > end) loop.stop();
    });
    loop.run();
    return met;
  }
  void measured(sched::VerdictKind kind) {
    BenchReport report;
    report.at = {1};
    report.gpus.emplace_back();
    report.gpus[0].gpu = ada.inventory->gpus[0];
    report.gpus[0].verdict.kind = kind;
    EXPECT_THAT(save_bench_report(registry, ada.name, report, {}), IsOk());
  }
  [[nodiscard]] std::vector<std::string> events() {
    std::vector<std::string> kinds;
    const auto kept = registry.host_events(ada.name, 0);
    for (const registry::HostEvent& event : *kept) kinds.push_back(event.kind);
    return kinds;
  }

  os::Clock& clock = os::system_clock();
  registry::Provider ada;
  registry::Registry registry = *registry::Registry::open(state());
  os::Loop loop;
  LinkMeter meter;
  SshNetwork network{loop, clock, hosts.paths, hosts.controller};
  StoreFreight freight{network, clock, registry, meter};
  JobFiles folders{hosts.paths};
  os::LoopExecutor run{loop};
  Controller jobs{{clock, run, network, registry, freight, folders}, {Duration::zero()}};
};

class Rechecks : public HostCare {
 protected:
  GpuRechecks& rechecks(Duration every = 10h) {
    if (!rechecks_)
      rechecks_.emplace(
          run, clock, registry, jobs.fleet(), jobs.book(),
          [this](const FleetHost& host) {
            ++begun;
            return hosts.access(host.provider);
          },
          every);
    return *rechecks_;
  }
  bool done_after(WallTime at) { return load_bench_report(registry, ada.name)->value().at > at; }
  int begun = 0;

 private:
  std::optional<GpuRechecks> rechecks_;
};

TEST_F(Rechecks, ComeAtTimesDrawnAroundTheirMean) {
  measured(sched::VerdictKind::ok);
  begin();
  const BootTime now = clock.boot();
  rechecks().tick(now);
  rechecks().tick(now + 5h - 1ms);
  EXPECT_EQ(begun, 0);
  rechecks().tick(now + 15h);
  EXPECT_EQ(begun, 1);
  rechecks().tick(now + 150h);
  EXPECT_EQ(begun, 1) << "one is under way";
  EXPECT_TRUE(loop_until([&] { return done_after({1}); }));
  const auto report = *load_bench_report(registry, ada.name);
  EXPECT_EQ(report->verdict(), sched::VerdictKind::mismatch) << "no driver shows such a GPU here";
  EXPECT_THAT(events(), Contains("bench"));
  // It may prove itself eight times as soon.
  const BootTime later = clock.boot();
  rechecks().tick(later + Duration{10h} / 16 - 1min);
  EXPECT_EQ(begun, 1);
  rechecks().tick(later + Duration{15h} / 8 + 1min);
  EXPECT_EQ(begun, 2);
}

TEST_F(Rechecks, AreNotMadeOfWhatNobodyHasMeasured) {
  begin();
  rechecks().tick(clock.boot());
  rechecks().tick(clock.boot() + 16h);
  EXPECT_EQ(begun, 0);
}

TEST_F(Rechecks, AreNotMadeOfAHostWithoutGpus) {
  measured(sched::VerdictKind::ok);
  ada.inventory.edit().gpus.clear();
  begin();
  rechecks().tick(clock.boot());
  rechecks().tick(clock.boot() + 16h);
  EXPECT_EQ(begun, 0);
}

TEST_F(Rechecks, CanBeTurnedOff) {
  measured(sched::VerdictKind::ok);
  begin();
  rechecks(Duration::zero()).tick(clock.boot());
  rechecks().tick(clock.boot() + 160h);
  EXPECT_EQ(begun, 0);
}

TEST_F(Rechecks, AreTriedAgainSoonWhereTheyFailed) {
  measured(sched::VerdictKind::ok);
  begin();
  rechecks().tick(clock.boot());
  hosts.take_down("ada");
  rechecks().tick(clock.boot() + 16h);
  EXPECT_EQ(begun, 1);
  EXPECT_TRUE(loop_until([&] {
    rechecks().tick(clock.boot() + 3min + 1s);
    return begun == 2;
  })) << "after three minutes at the latest";
  EXPECT_EQ(load_bench_report(registry, ada.name)->value().at, WallTime{1}) << "the former report stays";
}

class Rescans : public HostCare {
 protected:
  Rescans() { ada.inventory.edit().gpus.clear(); }
  HostRescans& rescans() {
    if (!rescans_) rescans_.emplace(run, clock, registry, hosts.net, jobs.fleet());
    return *rescans_;
  }
  void connect(const std::string& boot) {
    wire::AgentHello hello;
    hello.boot_id = boot;
    rescans().connected(*jobs.fleet().find(ada.name), hello);
  }

 private:
  std::optional<HostRescans> rescans_;
};

TEST_F(Rescans, AreMadeAfterAStartOfTheHost) {
  const std::string boot = std::exchange(ada.inventory.edit().boot_id, "before");
  begin();
  connect(boot);
  EXPECT_TRUE(loop_until([&] { return registry.provider(ada.name)->inventory->boot_id == boot; }));
  EXPECT_EQ(jobs.fleet().find(ada.name)->provider.inventory->boot_id, boot) << "what we write is not waited for";
  EXPECT_THAT(events(), Contains("rebooted"));
}

TEST_F(Rescans, AreMadeWhenTheAgentHasLearnedMore) {
  ada.inventory.edit().version = 1;
  const std::string boot = ada.inventory->boot_id;
  begin();
  connect(boot);
  EXPECT_TRUE(loop_until([&] { return registry.provider(ada.name)->inventory->version == k_inventory_version; }));
  EXPECT_THAT(events(), Not(Contains("rebooted")));
}

TEST_F(Rescans, AreMadeOnceAtATimeAndNotWithoutAReason) {
  const std::string boot = ada.inventory->boot_id;
  ada.inventory.edit().kernel = "another";  // a look would correct it
  begin();
  connect(boot);
  hosts.take_down("ada");
  ada.inventory.edit().boot_id = "before";
  jobs.fleet().inventory_changed(ada.name, ada.inventory);
  connect(boot);  // in vain
  connect(boot);
  EXPECT_TRUE(loop_until([&] {
    hosts.bring_up("ada");
    connect(boot);  // again, once the first has failed
    return registry.provider(ada.name)->inventory->kernel != "another";
  }));
}

}  // namespace
}  // namespace gridctl::control::daemon_test
