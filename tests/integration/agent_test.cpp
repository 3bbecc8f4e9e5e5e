// SPDX-License-Identifier: Apache-2.0
// The agent through its protocol, with every engine that this machine has.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "agent/attempt_dir.hpp"
#include "agent/checkpoints.hpp"
#include "agent/engine.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "integration/agent_client.hpp"
#include "integration/engine_here.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"
#include "store/chunk_store.hpp"
#include "store/scan.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"
#include "transfer/stream.hpp"

namespace gridctl::testing::agent_test {
namespace {

using agent::AttemptDir;
using wire::AttemptPhase;
using wire::AttemptStatus;
using wire::EndReason;

bool running(const AttemptStatus& status) { return status.phase == AttemptPhase::running; }
bool ended(const AttemptStatus& status) { return status.phase == AttemptPhase::ended; }

class AgentTest : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    const EngineHere& engine = engine_here(GetParam());
    if (!engine.problem.empty()) GTEST_SKIP() << engine.problem;
    host_.home = folder_ / "home";
    host_.leases = folder_ / "leases";
    host_.environment = engine.environment;
    host_.environment["PATH"] = (folder_ / "bin").string() + ":" + os::environment("PATH").value_or("/usr/bin:/bin");
    connect();
  }
  void TearDown() override {
    // Whatever a failed test left running.
    for (const auto& spec : started_) {
      if (!agent_) connect();
      (void)agent_->stop(spec, {});
      (void)agent_->await_end(spec);
      EXPECT_THAT(agent_->clean(spec), IsOk());
    }
    agent_.reset();
  }

  void connect() { agent_ = std::make_unique<AgentClient>(host_, controller_); }
  [[nodiscard]] wire::AttemptSpec spec(const std::string& run, std::uint64_t epoch = 1) const {
    wire::AttemptSpec spec;
    spec.job = {"job" + id_};
    spec.epoch = Epoch{epoch};
    spec.engine = GetParam();
    if (GetParam() != EngineKind::process) spec.image = "gridctl-test:1";
    spec.run = run;
    spec.checkpoints = false;
    spec.stop_grace = std::chrono::seconds{10};
    return spec;
  }
  void start(const wire::AttemptSpec& spec, Duration lease = std::chrono::hours{1},
             const std::map<std::string, std::string>& secrets = {}) {
    started_.push_back(spec);
    ASSERT_THAT(agent_->start(spec, lease, secrets), IsOk());
  }
  [[nodiscard]] AttemptStatus run_to_end(const wire::AttemptSpec& spec) {
    start(spec);
    return agent_->await_end(spec);
  }
  [[nodiscard]] AttemptDir folder_of(const wire::AttemptSpec& spec) const {
    return {host_.home / "jobs" / controller_.value / spec.job.value / std::to_string(spec.epoch.value)};
  }
  [[nodiscard]] std::optional<os::ProcessId> supervisor(const wire::AttemptSpec& spec) const {
    return agent::lock_holder(folder_of(spec).supervisor_lock());
  }
  [[nodiscard]] std::optional<os::ProcessId> init(const wire::AttemptSpec& spec) const {
    return agent::lock_holder(folder_of(spec).run(1) / "lock");
  }
  static void kill_and_wait(const os::ProcessId& process) {
    const auto pidfd = os::open_pidfd(process);
    ::kill(process.pid, SIGKILL);
    if (!pidfd) return;
    pollfd waiting{pidfd->get(), POLLIN, 0};
    ::poll(&waiting, 1, 10'000);
  }
  // Puts a tree of these files into the host's cache.
  [[nodiscard]] Digest put_tree(const std::map<std::string, std::string>& files) {
    const TempDir source;
    for (const auto& [name, content] : files) {
      std::filesystem::create_directories((source / name).parent_path());
      std::ofstream(source / name) << content;
    }
    auto cache = store::ChunkStore::open(host_.home / "cache");
    store::ScanOptions options;
    options.on_chunk = [&](const Digest& digest, ByteView bytes) { return cache->put(digest, bytes); };
    const auto scanned = store::scan(source.path(), options);
    const Bytes manifest = store::to_manifest(scanned->tree);
    EXPECT_THAT(cache->put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache->seal(), IsOk());
    return store::root_of(manifest);
  }

  TempDir folder_;
  AgentHost host_;
  std::string id_ = os::random_id(10);
  ControllerId controller_{os::random_id(26)};
  std::unique_ptr<AgentClient> agent_;
  std::vector<wire::AttemptSpec> started_;
};

class ContainerTest : public AgentTest {};

TEST_P(AgentTest, RunsACommandAndKeepsItsOutput) {
  auto job = spec("echo hello; echo trouble >&2; echo \"$GREETING\"");
  job.envs["GREETING"] = "good morning";
  const auto status = run_to_end(job);
  EXPECT_EQ(status.end, EndReason::exited) << status.detail;
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(agent_->log(job), "hello\ntrouble\ngood morning\n");
}

TEST_P(AgentTest, TellsExitCodesOfRunAndSetup) {
  EXPECT_EQ(run_to_end(spec("exit 7")).exit_code, 7);
  auto failing = spec("echo never", 2);
  failing.setup = "echo preparing; exit 3";
  const auto status = run_to_end(failing);
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_EQ(status.detail, "setup failed");
  EXPECT_EQ(agent_->log(failing), "preparing\n");
}

TEST_P(AgentTest, TellsTheSignalThatKilledTheProgram) {
  const auto status = run_to_end(spec("kill -SEGV $$"));
  EXPECT_EQ(status.end, EndReason::signalled);
  EXPECT_EQ(status.signal, SIGSEGV);
}

TEST_P(AgentTest, TellsWhyItCouldNotStart) {
  auto job = spec("true");
  job.workdir = Digest{};
  const auto status = run_to_end(job);
  EXPECT_EQ(status.end, EndReason::start_failed);
  EXPECT_NE(status.detail.find("working directory"), std::string::npos) << status.detail;
}

TEST_P(AgentTest, GivesAStoppedProgramItsGrace) {
  const auto job = spec("trap 'echo saving; exit 0' TERM; echo ready; while :; do sleep 0.1; done");
  start(job);
  agent_->await(job, [](const AttemptStatus& status) { return status.log_bytes > 0 && running(status); });
  ASSERT_THAT(agent_->stop(job, std::chrono::seconds{20}), IsOk());
  const auto status = agent_->await_end(job);
  EXPECT_EQ(status.end, EndReason::stopped);
  EXPECT_EQ(status.exit_code, 0);
  const std::string log = agent_->log(job);  // bash says "Terminated" in between
  EXPECT_TRUE(log.starts_with("ready\n") && log.ends_with("saving\n")) << log;
}

TEST_P(AgentTest, KillsWhatIgnoresTerm) {
  const auto job = spec("trap '' TERM; setsid sleep 1000 & sleep 1000");
  start(job);
  agent_->await(job, running);
  ASSERT_THAT(agent_->stop(job, std::chrono::milliseconds{200}), IsOk());
  EXPECT_EQ(agent_->await_end(job).end, EndReason::stopped);
  EXPECT_TRUE(agent::marked_processes(job.job.value).empty());
}

TEST_P(AgentTest, LeavesNoDaemonBehind) {
  auto job = spec("(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &) ; sleep 0.2; exit 4");
  job.envs["MARK"] = "daemon-of-" + id_;
  const auto status = run_to_end(job);
  EXPECT_EQ(status.exit_code, 4);
  EXPECT_TRUE(agent::marked_processes("daemon-of-" + id_).empty());
}

TEST_P(AgentTest, StopsAnAttemptThatNobodyRenews) {
  auto job = spec("sleep 1000");
  start(job, std::chrono::seconds{2});
  EXPECT_EQ(agent_->await_end(job).end, EndReason::lease_expired);
}

TEST_P(AgentTest, GoesOnWhenRenewed) {
  auto job = spec("sleep 1000");
  start(job, std::chrono::seconds{8});  // an engine may take some of them to start it
  ASSERT_THAT(agent_->poll(job, std::chrono::hours{1}), IsOk());
  const auto status = agent_->await(job, ended, std::chrono::seconds{10});
  EXPECT_NE(status.phase, AttemptPhase::ended);
}

TEST_P(AgentTest, AnswersARepeatedStartWithAlready) {
  const auto job = spec("sleep 1000");
  start(job);
  const auto again = agent_->start(job);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->already);
  EXPECT_THAT(agent_->start(job, std::chrono::hours{1}, {}, "another"), FailsWith(Code::refused));
}

TEST_P(AgentTest, RefusesForGoodWhatItOnceRefused) {
  // Stop before start.
  ASSERT_THAT(agent_->stop(spec("true", 3), {}), IsOk());
  EXPECT_THAT(agent_->start(spec("true", 3)), FailsWith(Code::refused));
  EXPECT_THAT(agent_->start(spec("true", 2)), FailsWith(Code::refused));
  // "Not here" is a promise.
  const auto polled = agent_->poll(spec("true", 5));
  ASSERT_THAT(polled, IsOk());
  ASSERT_EQ(polled->attempts.size(), 1u);
  EXPECT_EQ(polled->attempts[0].phase, AttemptPhase::absent);
  EXPECT_EQ(polled->attempts[0].max_epoch.value, 5u);
  EXPECT_THAT(agent_->start(spec("true", 5)), FailsWith(Code::refused));
  // A lease that is over before it began.
  EXPECT_THAT(agent_->start(spec("true", 6), Duration{1}), FailsWith(Code::refused));
  EXPECT_THAT(agent_->start(spec("true", 6)), FailsWith(Code::refused));
}

TEST_P(AgentTest, AdoptsAJobWhoseSupervisorWasKilled) {
  const auto job = spec("i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done");
  start(job);
  agent_->await(job, [](const AttemptStatus& status) { return status.log_bytes > 20; });
  const auto before = init(job);
  ASSERT_TRUE(before.has_value());
  for (int round = 0; round < 3; ++round) {
    const auto old = supervisor(job);
    ASSERT_TRUE(old.has_value());
    kill_and_wait(*old);
    const auto bytes = agent_->await(job, running).log_bytes;
    agent_->await(job, [&](const AttemptStatus& status) { return status.log_bytes > bytes + 20; });
  }
  EXPECT_EQ(init(job), before);
  ASSERT_THAT(agent_->stop(job, {}), IsOk());
  EXPECT_EQ(agent_->await_end(job).end, EndReason::stopped);
  int expected = 0;
  for (const std::string& line : split_lines(agent_->log(job))) {
    if (!line.starts_with("line ")) continue;
    EXPECT_EQ(line, "line " + std::to_string(++expected));
  }
  EXPECT_GT(expected, 3);
}

TEST_P(AgentTest, KeepsTheOutputOfAJobThatEndedWhileNothingWatched) {
  const auto job = spec("echo started; while [ ! -e done ]; do sleep 0.05; done; echo finished");
  start(job);
  agent_->await(job, [](const AttemptStatus& status) { return status.log_bytes > 0; });
  agent_->kill();
  kill_and_wait(*supervisor(job));
  std::ofstream(folder_of(job).work() / "done") << "1";
  const auto pidfd = os::open_pidfd(*init(job));
  if (pidfd) {
    pollfd waiting{pidfd->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 30'000), 1);
  }
  connect();
  EXPECT_EQ(agent_->await_end(job).exit_code, 0);
  EXPECT_EQ(agent_->log(job), "started\nfinished\n");
}

TEST_P(AgentTest, DoesNotNoticeAHundredKilledAgents) {
  const auto job = spec("echo started; while [ ! -e done ]; do sleep 0.05; done; echo finished");
  start(job);
  agent_->await(job, running);
  const auto before = init(job);
  const auto watching = supervisor(job);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT(agent_->poll(job), IsOk());
    agent_->kill();
    connect();
  }
  EXPECT_EQ(init(job), before);
  EXPECT_EQ(supervisor(job), watching);
  std::ofstream(folder_of(job).work() / "done") << "1";
  EXPECT_EQ(agent_->await_end(job).exit_code, 0);
  EXPECT_EQ(agent_->log(job), "started\nfinished\n");
}

TEST_P(AgentTest, TellsThatAKilledJobVanished) {
  const auto job = spec("sleep 1000");
  start(job);
  agent_->await(job, running);
  kill_and_wait(*init(job));
  EXPECT_EQ(agent_->await_end(job).end, EndReason::vanished);
  EXPECT_TRUE(agent::marked_processes(job.job.value).empty());
}

TEST_P(AgentTest, FindsWhatIsLeftWhenSupervisorAndInitWereKilled) {
  const auto job = spec("(setsid sleep 1000 &); sleep 1000");
  start(job);
  agent_->await(job, running);
  const auto payload = *init(job);
  agent_->kill();
  kill_and_wait(*supervisor(job));
  kill_and_wait(payload);
  connect();
  EXPECT_EQ(agent_->await_end(job).end, EndReason::vanished);
  EXPECT_TRUE(agent::marked_processes(folder_of(job).path.string()).empty());
}

TEST_P(ContainerTest, TellsThatARemovedContainerVanished) {
  const auto job = spec("sleep 1000");
  start(job);
  agent_->await(job, running);
  os::RunOptions options;
  options.environment_extra = host_.environment;
  std::vector<std::string> remove{std::string(engine_name(GetParam())), "rm", "-f"};
  // Podman would ask the program to end first, and init would then tell of that; docker kills at once.
  if (GetParam() == EngineKind::podman) remove.insert(remove.end(), {"-t", "0"});
  remove.push_back(agent::attempt_name(job.job, job.epoch, host_.home));
  const auto removed = os::run(remove, options);
  ASSERT_THAT(removed, IsOk());
  ASSERT_TRUE(removed->status.success()) << removed->err;
  EXPECT_EQ(agent_->await_end(job).end, EndReason::vanished);
}

TEST_P(AgentTest, TellsAtOnceThatTheHostWasRestarted) {
  const auto job = spec("sleep 1000");
  start(job);
  agent_->await(job, running);
  const AttemptDir folder = folder_of(job);
  agent_->kill();
  kill_and_wait(*supervisor(job));
  kill_and_wait(*init(job));
  // As if all this had been written in an earlier boot.
  auto status = os::read_file(folder.status_file());
  ASSERT_THAT(status, IsOk());
  ASSERT_THAT(os::write_file_atomically(folder.status_file(), "another-boot" + status->substr(status->find(' '))),
              IsOk());
  connect();
  const auto polled = agent_->poll(job);
  ASSERT_THAT(polled, IsOk());
  EXPECT_EQ(polled->attempts.at(0).end, EndReason::host_rebooted);
  EXPECT_EQ(agent_->await_end(job).end, EndReason::host_rebooted);
}

TEST_P(AgentTest, DoesNotHoldAgainstTheJobWhatAPowerCutTook) {
  const auto job = spec("true");
  start(job);
  agent_->await_end(job);
  agent_->kill();
  // It ended the moment before: init's record came to the disk, our own files came back empty.
  const AttemptDir folder = folder_of(job);
  // On a busy machine a second supervisor may have been started, because the first one kept its lock waiting. None may
  // write any more; one that has the lock only later finds what we leave.
  std::optional<os::FileLock> only_we = os::FileLock::acquire(folder.supervisor_lock()).value();
  ASSERT_TRUE(os::exists(folder.run(1) / "exit"));
  for (const os::Path& lost : {folder.spec_file(), folder.boot_file(), folder.status_file(), folder.op_file()})
    ASSERT_THAT(os::write_file_atomically(lost, ""), IsOk());
  only_we.reset();
  connect();
  EXPECT_EQ(agent_->await_end(job).end, EndReason::host_rebooted);
}

// Its GPUs would be given to another while it lives.
TEST_P(AgentTest, LetsNothingLiveThatItCannotFollow) {
  const auto job = spec("(setsid sleep 1000 &); sleep 1000");
  start(job);
  agent_->await(job, running);
  const os::ProcessId payload = *init(job);
  agent_->kill();
  kill_and_wait(*supervisor(job));
  ASSERT_THAT(os::write_file_atomically(folder_of(job).spec_file(), "a bad sector"), IsOk());
  ASSERT_TRUE(os::is_alive(payload));
  connect();
  EXPECT_EQ(agent_->await_end(job).end, EndReason::start_failed);
  EXPECT_FALSE(os::is_alive(payload));
  EXPECT_TRUE(agent::marked_processes(folder_of(job).path.string()).empty());
}

TEST_P(AgentTest, FillsWorkdirMountsAndExactlyTheRestoredCheckpoint) {
  auto job = spec(
      "cat code.txt data/part.txt; ls out; cat out/model; echo \"from=$GRIDCTL_RESUME_FROM dir=$GRIDCTL_CKPT_DIR\"");
  job.workdir = put_tree({{"code.txt", "code\n"}, {"out/old", "stale\n"}});
  job.mounts.push_back({put_tree({{"part.txt", "part\n"}}), "data"});
  job.restore = put_tree({{"model", "weights\n"}});
  job.restore_name = "job@4";
  job.checkpoint_path = "out";
  const auto status = run_to_end(job);
  EXPECT_EQ(status.exit_code, 0) << status.detail;
  const std::string log = agent_->log(job);
  EXPECT_TRUE(log.starts_with("code\npart\nmodel\nweights\nfrom=job@4 dir=")) << log;
}

// A plain process gets links, and those at existing folders only.
TEST_P(ContainerTest, MountsAtAbsolutePaths) {
  auto job = spec("cat /data/a /etc/special");
  job.mounts.push_back({put_tree({{"a", "a\n"}}), "/data"});
  job.mounts.push_back({put_tree({{"special", "one file\n"}}), "/etc/special"});
  EXPECT_EQ(run_to_end(job).exit_code, 0);
  EXPECT_EQ(agent_->log(job), "a\none file\n");
}

TEST_P(AgentTest, TakesACheckpointWhenTheJobSaysSo) {
  auto job = spec("cd $GRIDCTL_CKPT_DIR; echo 1 >model; touch .commit; sleep 1000");
  job.checkpoints = true;
  start(job);
  const auto status = agent_->await(job, [](const AttemptStatus& s) { return !s.checkpoints.empty(); });
  ASSERT_EQ(status.checkpoints.size(), 1u);
  EXPECT_EQ(status.checkpoints[0].how, "commit-marker");
  EXPECT_EQ(status.checkpoints[0].number, 1u);
  // The controller can fetch it, over a connection of its own.
  AgentClient bulk(host_, controller_, {"bulk"});
  auto local = store::ChunkStore::open(folder_ / "laptop");
  ASSERT_THAT(local, IsOk());
  const auto pulled = transfer::pull_checkpoint(bulk.link(), {job.job, job.epoch, 1}, status.checkpoints[0].root, 0,
                                                *local, os::system_clock());
  ASSERT_THAT(pulled, IsOk());
  EXPECT_NE(pulled->tree.find("model"), nullptr);
}

// A cut link looks like this for minutes: the host must not wait for the end of the connection to keep what it has.
TEST_P(AgentTest, KeepsWhatWasPutWhenTheControllerFallsSilent) {
  const std::string content = "half of a long upload";
  const Digest digest = crypto::sha256(as_bytes(content));
  AgentClient silent(host_, controller_, {"bulk"});
  transfer::Conversation with{silent.link(), os::system_clock()};
  ASSERT_THAT(with.send(wire::FrameKind::request, 50,
                        wire::encode(wire::PutRequest{digest, static_cast<std::uint32_t>(content.size())})),
              IsOk());
  ASSERT_THAT(with.send_data(50, as_bytes(content)), IsOk());
  ASSERT_THAT(with.reply(50), IsOk());
  AgentClient other(host_, controller_, {"bulk"});
  const BootTime deadline = os::system_clock().boot() + std::chrono::seconds{20};
  std::size_t missing = 1;
  while (missing > 0 && os::system_clock().boot() < deadline) {
    const auto reply = other.call(wire::encode(wire::HaveRequest{{digest}}));
    ASSERT_THAT(reply, IsOk());
    missing = wire::parse_have_reply(*reply)->missing.size();
  }
  EXPECT_EQ(missing, 0u);
}

// Whoever says nothing of codecs is an old controller.
TEST_P(AgentTest, EncodesOnlyForControllersThatDecode) {
  auto job = spec("cd $GRIDCTL_CKPT_DIR; head -c 1000000 /dev/zero >model; touch .commit; sleep 1000");
  job.checkpoints = true;
  start(job);
  const auto status = agent_->await(job, [](const AttemptStatus& s) { return !s.checkpoints.empty(); });
  ASSERT_EQ(status.checkpoints.size(), 1u);
  const auto moved = [&](const char* name, std::vector<std::string> features) -> std::uint64_t {
    AgentClient bulk(host_, controller_, std::move(features));
    auto local = store::ChunkStore::open(folder_ / name);
    const auto pulled = transfer::pull_checkpoint(bulk.link(), {job.job, job.epoch, 1}, status.checkpoints[0].root, 0,
                                                  *local, os::system_clock());
    EXPECT_THAT(pulled, IsOk());
    return pulled ? pulled->stats.bytes_moved : 0;
  };
  EXPECT_GE(moved("old", {"bulk"}), 1'000'000u);
  EXPECT_LT(moved("new", {"bulk", "codec-1", "codec-2"}), 10'000u);
}

TEST_P(AgentTest, TakesACheckpointWhenNothingChangesAnyMore) {
  auto job = spec("echo 1 >$GRIDCTL_CKPT_DIR/state; sleep 1000");
  job.checkpoints = true;
  start(job);
  const auto status = agent_->await(job, [](const AttemptStatus& s) { return !s.checkpoints.empty(); });
  ASSERT_EQ(status.checkpoints.size(), 1u);
  EXPECT_EQ(status.checkpoints[0].how, "quiet");
  EXPECT_TRUE(status.checkpoints[0].provisional);
}

TEST_P(AgentTest, TakesALastCheckpointOfAProgramThatEndedWell) {
  auto job = spec("echo 1 >$GRIDCTL_CKPT_DIR/model");
  job.checkpoints = true;
  const auto status = run_to_end(job);
  ASSERT_EQ(status.checkpoints.size(), 1u);
  EXPECT_EQ(status.checkpoints[0].how, "exit");
}

TEST_P(AgentTest, KeepsWhatAFailedProgramLeftInAFormatThatNobodyKnows) {
  auto job = spec("echo 1 >$GRIDCTL_CKPT_DIR/model; exit 1");
  job.checkpoints = true;
  const auto status = run_to_end(job);
  ASSERT_EQ(status.checkpoints.size(), 1u);
  EXPECT_TRUE(status.checkpoints[0].as_left);
  EXPECT_TRUE(status.checkpoints[0].provisional);
}

TEST_P(AgentTest, KeepsTheNewestSnapshotsAndThoseNotReleased) {
  auto job = spec(
      "cd $GRIDCTL_CKPT_DIR; i=0; while [ $i -lt 4 ]; do i=$((i+1)); echo $i >model; touch .commit; "
      "while [ ! -e ../seen$i ] && [ ! -e /gridctl/run/seen$i ]; do sleep 0.02; done; done; sleep 1000");
  job.checkpoints = true;
  start(job);
  const auto marks = GetParam() == EngineKind::process ? folder_of(job).path : folder_of(job).run(1);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const auto status = agent_->await(
        job, [&](const AttemptStatus& s) { return !s.checkpoints.empty() && s.checkpoints.back().number == i; });
    ASSERT_EQ(status.checkpoints.size(), i);
    std::ofstream(marks / ("seen" + std::to_string(i))) << "1";
  }
  ASSERT_THAT(agent_->poll(job, std::chrono::hours{1}, 3), IsOk());
  // The supervisor hears of it through its folder; the next status shows it.
  EXPECT_THAT(agent_->stop(job, {}), IsOk());
  const auto status = agent_->await_end(job);
  ASSERT_EQ(status.checkpoints.size(), 2u);
  EXPECT_EQ(status.checkpoints[0].number, 3u);
}

TEST_P(AgentTest, ShowsSecretsToNobodyButTheJob) {
  const std::string secret = "canary-" + os::random_id(20);
  auto job = spec("[ \"$TOKEN\" = \"$(cat $SECRETS/TOKEN)\" ] && echo same; echo ${#TOKEN}; sleep 1000");
  job.secret_names = {"TOKEN"};
  const AttemptDir folder = folder_of(job);
  job.envs["SECRETS"] = GetParam() == EngineKind::process ? folder.secrets()->string() : "/run/secrets";
  start(job, std::chrono::hours{1}, {{"TOKEN", secret}});
  agent_->await(job, [](const AttemptStatus& s) { return s.log_bytes >= 8; });
  EXPECT_EQ(agent_->log(job), "same\n" + std::to_string(secret.size()) + "\n");
  const auto found = os::run({"grep", "-rl", "--devices=skip", secret, host_.home.string(), host_.leases.string()});
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->out, "");
  std::ofstream(folder_ / "needle") << secret;  // not among the arguments of those who look for it
  const auto arguments = os::run(
      {"sh", "-c",
       "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c -F -f " + (folder_ / "needle").string() + " || true"});
  ASSERT_THAT(arguments, IsOk());
  EXPECT_EQ(trim(arguments->out), "0");
  if (GetParam() != EngineKind::process) {
    os::RunOptions options;
    options.environment_extra = host_.environment;
    const auto inspected =
        os::run({std::string(engine_name(GetParam())), "inspect", agent::attempt_name(job.job, job.epoch, host_.home)}, options);
    ASSERT_THAT(inspected, IsOk());
    EXPECT_EQ(inspected->out.find(secret), std::string::npos);
  }
  ASSERT_THAT(agent_->stop(job, {}), IsOk());
  (void)agent_->await_end(job);
  EXPECT_FALSE(os::exists(*folder.secrets()));
}

TEST_P(AgentTest, NamesTheMemoryLimitAsTheCause) {
  auto job = spec("head -c 400000000 /dev/zero | tail -c 400000000 >/dev/null");
  job.memory_bytes = 64u << 20;
  const auto status = run_to_end(job);
  if (GetParam() == EngineKind::process && status.end == EndReason::exited && status.exit_code == 0)
    GTEST_SKIP() << "control groups of our own are not allowed here";
  EXPECT_EQ(status.end, EndReason::oom) << status.detail << " code " << status.exit_code;
  EXPECT_NE(status.detail.find("64 MiB"), std::string::npos) << status.detail;
}

TEST_P(AgentTest, BoundsTheLogOfATalkativeJob) {
  auto job = spec("yes 0123456789012345678901234567890123456789 | head -c 100000000; echo; sleep 0.2; echo the end");
  job.log_ring_bytes = 1u << 20;
  const auto status = run_to_end(job);
  EXPECT_EQ(status.exit_code, 0);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(job).log())) bytes += entry.file_size();
  EXPECT_LE(bytes, 1u << 20);
  EXPECT_NE(agent_->log(job).find("the end"), std::string::npos);
}

TEST_P(AgentTest, RefusesMoreThanTheMachineHas) {
  auto job = spec("sleep 1000");
  job.cpus = 0.5;
  start(job);
  auto greedy = spec("true", 1);
  greedy.job.value += "b";
  greedy.cpus = 60000;
  EXPECT_EQ(agent_->start(greedy).error().code, Code::busy);
}

TEST_P(AgentTest, CleanLeavesNothing) {
  auto job = spec("echo x >$GRIDCTL_CKPT_DIR/model");
  job.checkpoints = true;
  ASSERT_THAT(agent_->start(job), IsOk());
  (void)agent_->await_end(job);
  ASSERT_THAT(agent_->clean(job), IsOk());
  ASSERT_THAT(agent_->clean(job), IsOk());
  EXPECT_FALSE(os::exists(folder_of(job).path));
  const auto left = os::list_directory(folder_of(job).path.parent_path());
  ASSERT_THAT(left, IsOk());
  EXPECT_EQ(*left, (std::vector<std::string>{"fence", "lock"}));
  EXPECT_THAT(agent_->start(job), FailsWith(Code::refused));
  if (GetParam() == EngineKind::process) return;
  os::RunOptions options;
  options.environment_extra = host_.environment;
  const auto listed = os::run(
      {std::string(engine_name(GetParam())), "ps", "-aq", "--filter", "label=gridctl.job=" + job.job.value}, options);
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(trim(listed->out), "");
}

// The last part of a test's name is its engine: agent_suite chooses by it.
constexpr auto k_engine_of = [](const auto& test) { return std::string(engine_name(test.param)); };
INSTANTIATE_TEST_SUITE_P(Engines, AgentTest,
                         ::testing::Values(EngineKind::process, EngineKind::podman, EngineKind::docker), k_engine_of);
INSTANTIATE_TEST_SUITE_P(Engines, ContainerTest, ::testing::Values(EngineKind::podman, EngineKind::docker),
                         k_engine_of);

}  // namespace
}  // namespace gridctl::testing::agent_test
