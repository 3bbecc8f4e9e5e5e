// SPDX-License-Identifier: Apache-2.0
// The real per-attempt supervisor with engines that are scripts: what it asks of them, and what it makes of their words.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "agent/ledger.hpp"
#include "agent/log_ring.hpp"
#include "agent/supervise.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::supervise_engine_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using wire::AttemptPhase;
using wire::EndReason;

// Notes how it is called, then does what stands in on-VERB. `start` there runs init as a container of it would, with
// the folders that are mounted into it.
constexpr const char* k_engine = R"(
echo "$(basename "$0") $*" >> calls
verb=$1
case $1 in image|container) verb=$1-$2 ;; esac
start() {
  agent= run= control= work=
  while [ $# -gt 0 ] && [ "$1" != init ]; do
    if [ "$1" = --mount ]; then
      from=${2#type=bind,source=}; to=${from#*,target=}; from=${from%%,target=*}
      case ${to%,readonly} in
        /gridctl/agent) agent=$from ;; /gridctl/run) run=$from ;; /gridctl/ctl) control=$from ;; /work) work=$from ;;
      esac
    fi
    shift
  done
  setsid "$agent" init "$run" "$control" "$work" - "$6" < /dev/null > /dev/null 2>&1 &
}
if [ -e "on-$verb" ]; then . "./on-$verb"
elif [ "$verb" = run ]; then start "$@"
fi
)";

class SuperviseEngine : public ::testing::Test {
 protected:
  SuperviseEngine() : path_(std::getenv("PATH")) {
    ::setenv("GRIDCTL_AGENT_HOME", (dir_ / "home").c_str(), 1);
    ::setenv("GRIDCTL_LEASE_DIR", (dir_ / "leases").c_str(), 1);
    ::setenv("PATH", (bin_.native() + ":" + path_).c_str(), 1);
    EXPECT_THAT(os::make_directories(bin_), IsOk());
    EXPECT_THAT(os::make_directories(attempt_.path.parent_path()), IsOk());
    for (const char* name : {"docker", "podman"})
      EXPECT_THAT(os::write_file_atomically(bin_ / name, "#!/bin/sh\ncd " + bin_.native() + k_engine, 0700), IsOk());
    spec_.job = {"job"};
    spec_.epoch = Epoch{1};
    spec_.engine = EngineKind::podman;
    spec_.image = "img:1";
    spec_.run = "echo hello; exit 3";
    spec_.checkpoints = false;
    spec_.stop_grace = 10s;
  }
  ~SuperviseEngine() override {
    if (supervisor_ > 0) {
      (void)os::write_file_atomically(attempt_.stop_file(), "0\n");
      (void)ends();
    }
    for (const char* name : {"GRIDCTL_AGENT_HOME", "GRIDCTL_LEASE_DIR"}) ::unsetenv(name);
    ::setenv("PATH", path_.c_str(), 1);
  }

  void on(const std::string& verb, const std::string& script) const {
    ASSERT_THAT(os::write_file_atomically(bin_ / ("on-" + verb), script + "\n", 0600), IsOk());
  }
  [[nodiscard]] std::vector<std::string> calls() const {
    return split_lines(os::read_file(bin_ / "calls").value_or(""));
  }
  [[nodiscard]] std::string call_with(const std::string& words) const {
    for (const std::string& line : calls())
      if (line.find(words) != std::string::npos) return line + " ";
    return "not called";
  }
  // The attempt's folder as an accepted start leaves it.
  void accept(const std::map<std::string, std::string>& secrets = {}) {
    NewAttempt content;
    content.op = {"op"};
    content.boot_id = Machine::real().boot_id;
    content.deadline = clock_.boot() + 10min;
    content.spec = spec_;
    content.secrets = secrets;
    ASSERT_THAT(create_attempt(attempt_, content), IsOk());
  }
  [[nodiscard]] int begin() const {
    const auto pid =
        os::spawn({GRIDCTL_BINARY_DIR "/bin/gridctl-agent.stripped", "supervise", attempt_.path.native()}, {});
    EXPECT_THAT(pid, IsOk());
    return pid ? *pid : -1;
  }
  void supervise() { supervisor_ = begin(); }
  [[nodiscard]] wire::AttemptStatus status() const {
    const auto found = read_status(attempt_, clock_);
    return found && *found ? **found : wire::AttemptStatus{};
  }
  template <class Holds>
  [[nodiscard]] bool comes(Holds holds) const {
    for (const BootTime give_up = clock_.boot() + 60s; clock_.boot() < give_up; os::pause_for(5ms))
      if (holds()) return true;
    ADD_FAILURE() << log();
    return false;
  }
  [[nodiscard]] bool comes_to(AttemptPhase phase, const std::string& doing = "") const {
    return comes([&] { return status().phase == phase && status().doing == doing; });
  }
  // How it has ended, when its supervisor is gone.
  wire::AttemptStatus ends() {
    const int pid = std::exchange(supervisor_, -1);
    if (pid <= 0) return status();
    const bool over = comes([&] {
      const auto ended = os::try_wait(pid);
      return ended && *ended;
    });
    if (!over) {
      ::kill(pid, SIGKILL);
      (void)os::wait(pid);
    }
    return status();
  }
  [[nodiscard]] std::string log() const { return os::read_file(attempt_.path / "supervisor.log").value_or("no log"); }
  [[nodiscard]] std::string output() const { return read_log(attempt_.log(), 0, 100'000)->bytes; }
  [[nodiscard]] std::optional<Lease> lease() const {
    return Ledger(dir_ / "leases", Machine::real(), clock_).find({"controller"}, {"job"}, Epoch{1}).value();
  }
  [[nodiscard]] std::string name() const { return attempt_name({"job"}, Epoch{1}, attempt_.agent_home()); }

  std::string path_;
  os::Clock& clock_ = os::system_clock();
  gridctl::testing::TempDir dir_;
  const os::Path bin_ = dir_ / "bin";
  AttemptDir attempt_{dir_.path() / "home/jobs/controller/job/1"};
  wire::AttemptSpec spec_;
  int supervisor_ = -1;
};

TEST_F(SuperviseEngine, AContainerIsStartedFollowedAndRemoved) {
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.phase, AttemptPhase::ended);
  EXPECT_EQ(ended.end, EndReason::exited) << ended.detail;
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(output(), "hello\n");
  EXPECT_EQ(ended.log_bytes, 6u);
  EXPECT_GE(ended.started_ms_ago, 0);
  EXPECT_GE(ended.running_ms_ago, 0);
  EXPECT_FALSE(lease());
  EXPECT_TRUE(os::exists(dir_ / "home/jobs/controller/notify/job.1")) << "who is connected is told";
  const std::vector<std::string> made = calls();
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0], "podman image inspect --format {{.Id}} img:1");
  EXPECT_THAT(made[1], StartsWith("podman run --detach --name " + name() + " "));
  EXPECT_EQ(made[2], "podman rm --force --volumes --time 0 --ignore " + name());
  const std::string run = made[1] + " ";
  const std::string at = attempt_.path.native();
  for (const std::string& mount :
       {at + "/run/1,target=/gridctl/run", at + "/ctl,target=/gridctl/ctl,readonly",
        at + "/home,target=/gridctl/home", at + "/work,target=/work", at + "/ckpt,target=/ckpt"})
    EXPECT_THAT(run, HasSubstr(" type=bind,source=" + mount + " "));
  EXPECT_THAT(run, HasSubstr("gridctl-agent.stripped,target=/gridctl/agent,readonly "));
  EXPECT_THAT(run, Not(HasSubstr("/run/secrets")));
  EXPECT_THAT(run, HasSubstr(" --label gridctl.controller=controller "));
  EXPECT_THAT(run, HasSubstr(" img:1 init /gridctl/run /gridctl/ctl /work - 10000000000 "));
}

TEST_F(SuperviseEngine, SecretsAreMountedAndGoneAtItsEnd) {
  spec_.secret_names = {"TOKEN"};
  const auto secrets = attempt_.secrets();
  if (!secrets) GTEST_SKIP() << secrets.error().message;
  accept({{"TOKEN", "canary"}});
  ASSERT_TRUE(os::exists(*secrets));
  supervise();
  EXPECT_EQ(ends().end, EndReason::exited);
  EXPECT_THAT(call_with("podman run"), HasSubstr(" type=bind,source=" + secrets->native() + ",target=/run/secrets,readonly "));
  EXPECT_THAT(call_with("podman run"), HasSubstr(" init /gridctl/run /gridctl/ctl /work /run/secrets "));
  EXPECT_FALSE(os::exists(*secrets));
}

TEST_F(SuperviseEngine, AnImageThatCannotBePulledIsNoFaultOfTheHost) {
  on("image-inspect", "echo 'no such image' >&2; exit 1");
  on("pull", "echo 'access denied' >&2; exit 1");
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::image_failed);
  EXPECT_THAT(ended.detail, HasSubstr("podman could not pull the image img:1: access denied"));
  EXPECT_EQ(ended.started_ms_ago, -1);
  EXPECT_EQ(call_with("podman run"), "not called");
  EXPECT_FALSE(lease());
}

TEST_F(SuperviseEngine, AStopWhileTheImageIsPulledDoesNotWaitForIt) {
  on("image-inspect", "echo 'no such image' >&2; exit 1");
  on("pull", ": > pulling; i=0; while [ $i -lt 400 ] && [ ! -e enough ]; do sleep 0.05; i=$((i+1)); done; exit 1");
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::starting, "image"));
  ASSERT_TRUE(comes([&] { return os::exists(bin_ / "pulling"); }));
  ASSERT_TRUE(lease());
  EXPECT_EQ(lease()->payload.pid, 0);
  ASSERT_THAT(os::write_file_atomically(attempt_.stop_file(), "0\n"), IsOk());
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.phase, AttemptPhase::ended);
  EXPECT_EQ(ended.end, EndReason::stopped);
  EXPECT_EQ(ended.doing, "");
  EXPECT_GE(ended.ended_ms_ago, 0);
  EXPECT_FALSE(lease());
  std::ofstream(bin_ / "enough") << "";
}

TEST_F(SuperviseEngine, WhatTheEngineCannotStartIsToldInItsWords) {
  on("run", "echo 'no such runtime' >&2; exit 125");
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::start_failed);
  EXPECT_THAT(ended.detail, HasSubstr("podman could not start the container " + name() + ": no such runtime"));
  EXPECT_EQ(ended.started_ms_ago, -1);
  EXPECT_TRUE(os::exists(attempt_.run(1) / "once")) << "an init that comes late must not begin";
  EXPECT_THAT(calls().back(), StartsWith("podman rm "));
}

TEST_F(SuperviseEngine, WhatTheEngineStartedInSpiteOfItsWordsIsFollowed) {
  on("run", "start \"$@\"; while [ ! -e \"$run/once\" ]; do sleep 0.01; done; echo 'broken pipe' >&2; exit 125");
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::exited);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(output(), "hello\n");
}

TEST_F(SuperviseEngine, WhatTheEngineSaysItStartedAndIsGoneIsNotWaitedFor) {
  on("run", "exit 0");
  on("container-inspect", "echo false");
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::start_failed);
  EXPECT_THAT(ended.detail, HasSubstr("its first process ended before it began"));
  EXPECT_TRUE(os::exists(attempt_.run(1) / "once"));
}

TEST_F(SuperviseEngine, WhatTheEngineTakesItsTimeForIsWaitedFor) {
  on("run", "(while [ ! -e go ]; do sleep 0.01; done; start \"$@\") > /dev/null 2>&1 &");
  on("container-inspect", ": > asked; echo true");
  accept();
  supervise();
  ASSERT_TRUE(comes([&] { return os::exists(bin_ / "asked"); })) << "the engine is asked whether it is gone";
  EXPECT_EQ(status().phase, AttemptPhase::starting);
  ASSERT_TRUE(lease());
  EXPECT_TRUE(lease()->launching) << "nobody may take its GPUs while this is in doubt";
  std::ofstream(bin_ / "go") << "";
  EXPECT_EQ(ends().exit_code, 3);
}

TEST_F(SuperviseEngine, ALaunchInDoubtIsRemovedBeforeTheNext) {
  accept();
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());  // its supervisor died before init began
  supervise();
  EXPECT_EQ(ends().exit_code, 3);
  EXPECT_TRUE(os::exists(attempt_.run(1) / "once"));
  EXPECT_TRUE(os::exists(attempt_.run(2) / "exit"));
  ASSERT_GE(calls().size(), 3u);
  EXPECT_THAT(calls()[0], StartsWith("podman rm "));
  EXPECT_THAT(calls()[2], StartsWith("podman run "));
}

TEST_F(SuperviseEngine, WhatEndedWithNobodyWatchingIsNotRunAgain) {
  accept();
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());
  std::ofstream(attempt_.run(1) / "once") << "1 1\n";
  std::ofstream(attempt_.run(1) / "rest") << "its last words\n";
  std::ofstream(attempt_.run(1) / "exit") << to_text(ExitRecord{"run", 6, 0, 0, 0, false, false, {}});
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::exited);
  EXPECT_EQ(ended.exit_code, 6);
  EXPECT_EQ(output(), "its last words\n");
  EXPECT_EQ(call_with("podman run"), "not called");
  EXPECT_THAT(calls(), ElementsAre(StartsWith("podman rm ")));
}

TEST_F(SuperviseEngine, AStopThatCameBeforeItBeganIsKept) {
  accept();
  ASSERT_THAT(os::write_file_atomically(attempt_.stop_file(), "0\n"), IsOk());
  supervise();
  EXPECT_EQ(ends().end, EndReason::stopped);
  EXPECT_EQ(call_with("podman run"), "not called");
}

TEST_F(SuperviseEngine, AContainerThatCannotBeRemovedIsNotedForWhoCleansUp) {
  on("rm", "echo 'device or resource busy' >&2; exit 1");
  accept();
  supervise();
  EXPECT_EQ(ends().end, EndReason::exited);
  EXPECT_THAT(os::read_file(attempt_.path / "leftover").value_or("none"), HasSubstr("device or resource busy"));
  EXPECT_THAT(log(), HasSubstr("device or resource busy"));
}

TEST_F(SuperviseEngine, WithoutItsSpecificationBothEnginesForgetIt) {
  accept();
  ASSERT_THAT(os::write_file_atomically(attempt_.spec_file(), "a bad sector"), IsOk());
  ASSERT_THAT(os::make_directories(attempt_.run(1)), IsOk());
  supervise();
  EXPECT_EQ(ends().end, EndReason::start_failed);
  EXPECT_THAT(calls(), Contains("podman rm --force --volumes --time 0 --ignore " + name()));
  EXPECT_THAT(calls(), Contains("docker rm --force --volumes " + name()));
}

TEST_F(SuperviseEngine, WhatNeverHadALaunchNeedsNoEngine) {
  accept();
  ASSERT_THAT(os::write_file_atomically(attempt_.spec_file(), "a bad sector"), IsOk());
  supervise();
  EXPECT_EQ(ends().end, EndReason::start_failed);
  EXPECT_TRUE(calls().empty());
}

TEST_F(SuperviseEngine, AStopEndsAContainerByTerm) {
  spec_.run = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
  accept();
  supervise();
  ASSERT_TRUE(comes([&] { return output() == "ready\n"; }));
  ASSERT_THAT(os::write_file_atomically(attempt_.stop_file(), "20000000000\n"), IsOk());
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::stopped);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(output(), HasSubstr("saved\n"));
}

// --- plain processes ----------------------------------------------------------------------------------------------------

class SuperviseProcess : public SuperviseEngine {
 protected:
  SuperviseProcess() {
    spec_.engine = EngineKind::process;
    spec_.image.clear();
    spec_.run = "echo ready; while [ ! -e done ]; do sleep 0.02; done; exit 4";
  }
  void finish() const { std::ofstream(attempt_.work() / "done") << ""; }
};

TEST_F(SuperviseProcess, ItsLeaseSaysWhoHoldsWhatAndUntilWhen) {
  spec_.cpus = 0.25;
  spec_.memory_bytes = 256u << 20;
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  const auto held = lease();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->supervisor, os::identify(supervisor_));
  EXPECT_TRUE(os::is_alive(held->payload));
  EXPECT_NE(held->payload, held->supervisor);
  EXPECT_FALSE(held->launching);
  EXPECT_EQ(held->uid, ::geteuid());
  EXPECT_EQ(held->boot_id, Machine::real().boot_id);
  EXPECT_EQ(held->pid_namespace, Machine::real().pid_namespace);
  EXPECT_EQ(held->deadline.ns, read_number(attempt_.deadline_file())->value());
  EXPECT_EQ(held->grace, Duration{10s});
  EXPECT_DOUBLE_EQ(held->cpus, 0.25);
  EXPECT_EQ(held->memory_bytes, 256u << 20);
  const BootTime later = clock_.boot() + 2h;
  ASSERT_THAT(os::write_file_atomically(attempt_.deadline_file(), std::to_string(later.ns) + "\n"), IsOk());
  EXPECT_TRUE(comes([&] { return lease()->deadline == later; })) << "a renewal is entered in the ledger";
  EXPECT_EQ(status().phase, AttemptPhase::running);
  finish();
  EXPECT_EQ(ends().exit_code, 4);
  EXPECT_FALSE(lease());
}

TEST_F(SuperviseProcess, TellsThatItSetsUpAndThenThatItRuns) {
  spec_.setup = "while [ ! -e go ]; do sleep 0.02; done";
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::starting, "setup"));
  EXPECT_GE(status().started_ms_ago, 0);
  EXPECT_EQ(status().running_ms_ago, -1);
  std::ofstream(attempt_.work() / "go") << "";
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  EXPECT_GE(status().running_ms_ago, 0);
  EXPECT_GE(status().started_ms_ago, status().running_ms_ago);
  finish();
  EXPECT_EQ(ends().exit_code, 4);
}

TEST_F(SuperviseProcess, WithoutASetupOnlyItsStartIsToldOf) {
  accept();
  supervise();
  std::set<std::string> told;
  ASSERT_TRUE(comes([&] {
    const wire::AttemptStatus now = status();
    if (!now.doing.empty()) told.insert(now.doing);
    return now.phase == AttemptPhase::running;
  }));
  EXPECT_THAT(told, Not(Contains("setup")));
  finish();
  EXPECT_EQ(ends().exit_code, 4);
}

TEST_F(SuperviseProcess, IsFollowedByOneSupervisorThatNoSignalEnds) {
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  EXPECT_EQ(os::wait(begin())->code, 0) << "another one goes at once";
  ASSERT_GT(supervisor_, 0);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT}) ::kill(supervisor_, signal);
  EXPECT_EQ(status().phase, AttemptPhase::running);
  finish();
  EXPECT_EQ(ends().exit_code, 4);
}

TEST_F(SuperviseProcess, IsSparedWhereMemoryRunsOutAndItsJobIsNot) {
  spec_.run = "cat /proc/self/oom_score_adj; " + spec_.run;
  accept();
  supervise();
  ASSERT_TRUE(comes([&] { return output() == "200\nready\n"; }));
  const std::string score = "/proc/" + std::to_string(supervisor_) + "/oom_score_adj";
  const auto may = os::run({"sh", "-c", "echo -500 > /proc/self/oom_score_adj"});
  EXPECT_EQ(trim(os::read_file(score).value_or("")), may && may->status.success() ? "-500" : "0");
  finish();
  EXPECT_EQ(ends().exit_code, 4);
}

TEST_F(SuperviseProcess, AGpuThatIsNotHereCannotBeUsed) {
  spec_.gpu_uuids = {"GPU-none"};
  accept();
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::start_failed);
  EXPECT_THAT(ended.detail, HasSubstr("gpu GPU-none is not on this host (any more)"));
  EXPECT_FALSE(lease());
}

TEST_F(SuperviseProcess, SeesTheGpuThatItHasLeasedAndNoOther) {
  std::filesystem::copy_file(GRIDCTL_SOURCE_DIR "/tests/support/nvidia-smi", bin_ / "nvidia-smi");
  const std::string gpu = "GPU-11111111-2222-3333-4444-555555555555";
  spec_.gpu_uuids = {gpu};
  spec_.run = "echo $CUDA_VISIBLE_DEVICES; " + spec_.run;
  accept();
  supervise();
  ASSERT_TRUE(comes([&] { return output() == gpu + "\nready\n"; }));
  EXPECT_EQ(lease()->gpus, std::vector<std::string>{gpu});
  finish();
  EXPECT_EQ(ends().exit_code, 4);
}

TEST_F(SuperviseProcess, WhatItMayNotHaveTwiceIsNotTaken) {
  spec_.cpus = 0.5;
  accept();
  Lease all;
  all.controller = {"other"};
  all.job = {"other"};
  all.epoch = Epoch{1};
  all.uid = ::geteuid();
  all.boot_id = Machine::real().boot_id;
  all.pid_namespace = Machine::real().pid_namespace;
  all.supervisor = os::identify(::getpid()).value();
  all.deadline = clock_.boot() + 1h;
  all.cpus = machine_capacity().cpus;
  ASSERT_THAT(Ledger(dir_ / "leases", Machine::real(), clock_).take(all, machine_capacity()), IsOk());
  supervise();
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::start_failed);
  EXPECT_THAT(ended.detail, HasSubstr("not enough CPUs are free on this host"));
  EXPECT_FALSE(os::exists(attempt_.run(1)));
}

TEST_F(SuperviseProcess, TheLinksThatItNeededGoWithIt) {
  spec_.checkpoint_path = (dir_ / "elsewhere").native();
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  EXPECT_EQ(std::filesystem::read_symlink(dir_ / "elsewhere"), attempt_.checkpoints());
  finish();
  EXPECT_EQ(ends().exit_code, 4);
  EXPECT_FALSE(os::exists(dir_ / "elsewhere"));
}

TEST_F(SuperviseProcess, LetsGoOfTheSnapshotsThatTheControllerHas) {
  spec_.checkpoints = true;
  accept();
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  const auto numbers = [&] {
    std::vector<std::uint64_t> found;
    for (const auto& one : status().checkpoints) found.push_back(one.number);
    return found;
  };
  for (std::uint64_t save = 1; save <= 4; ++save) {
    std::ofstream(attempt_.checkpoints() / "model") << "step " << save;
    std::ofstream(attempt_.checkpoints() / ".commit") << "";
    ASSERT_TRUE(comes([&] { return !numbers().empty() && numbers().back() == save; }));
  }
  EXPECT_THAT(numbers(), ElementsAre(1, 2, 3, 4)) << "it has none of them yet";
  ASSERT_THAT(os::write_file_atomically(attempt_.kept_file(), "4\n"), IsOk());
  finish();
  EXPECT_EQ(ends().exit_code, 4);
  EXPECT_THAT(numbers(), ElementsAre(3, 4)) << "the newest two stay";
}

TEST_F(SuperviseProcess, SaysWhatItMaySpendAndEndsWithThat) {
  NewAttempt content;
  content.op = {"op"};
  content.boot_id = Machine::real().boot_id;
  content.deadline = clock_.boot() + 10min;
  content.spec = spec_;
  content.limits.run_for = 1h;
  content.limits.run_limit = "budget";
  ASSERT_THAT(create_attempt(attempt_, content), IsOk());
  supervise();
  ASSERT_TRUE(comes_to(AttemptPhase::running));
  EXPECT_GT(status().allowed_ms, 3'500'000);
  EXPECT_LE(status().allowed_ms, 3'600'000);
  HostLimits used_up;
  used_up.run_until = clock_.boot();
  used_up.run_limit = "max_duration";
  ASSERT_THAT(os::write_file_atomically(attempt_.limits_file(), to_text(used_up)), IsOk());
  const wire::AttemptStatus ended = ends();
  EXPECT_EQ(ended.end, EndReason::limit);
  EXPECT_EQ(ended.detail, "max_duration");
}

TEST_F(SuperviseProcess, AStopWithoutGraceKills) {
  spec_.run = "trap 'echo heard' TERM; echo ready; while :; do sleep 0.02; done";
  accept();
  supervise();
  ASSERT_TRUE(comes([&] { return output() == "ready\n"; }));
  ASSERT_THAT(os::write_file_atomically(attempt_.stop_file(), "0\n"), IsOk());
  EXPECT_EQ(ends().end, EndReason::stopped);
  EXPECT_THAT(output(), Not(HasSubstr("heard")));
}

}  // namespace
}  // namespace gridctl::agent::supervise_engine_test
