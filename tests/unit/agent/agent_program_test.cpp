// SPDX-License-Identifier: Apache-2.0
// The real agent over its protocol, with plain processes: what each of its processes does for an attempt.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/attempt_dir.hpp"
#include "agent/ledger.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "integration/agent_client.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"
#include "store/chunk_store.hpp"
#include "store/scan.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/health.hpp"
#include "wire/insight.hpp"
#include "wire/results.hpp"

namespace gridctl::testing::agent_program_test {
namespace {

using agent::AttemptDir;
using ::testing::HasSubstr;
using wire::AttemptPhase, wire::AttemptStatus, wire::EndReason;

constexpr Duration k_lease = std::chrono::seconds{90};  // what a failed test leaves ends by itself

bool running(const AttemptStatus& status) { return status.phase == AttemptPhase::running; }
bool speaks(const AttemptStatus& status) { return running(status) && status.log_bytes > 0; }

class AgentProgram : public ::testing::Test {
 protected:
  AgentProgram() {
    host_.home = folder_ / "home";
    host_.leases = folder_ / "leases";
    host_.command = {std::string(GRIDCTL_BINARY_DIR) + "/bin/gridctl-agent.stripped"};
    connect();
  }
  void TearDown() override {
    for (const auto& spec : started_) (void)agent_->stop(spec, {}), (void)agent_->await_end(spec);
    agent_.reset();
  }

  void connect() { agent_ = std::make_unique<AgentClient>(host_, controller_); }
  wire::AttemptSpec spec(const std::string& name, const std::string& run, std::uint64_t epoch = 1) const {
    wire::AttemptSpec spec;
    spec.job = {name + id_};
    spec.epoch = Epoch{epoch};
    spec.run = run;
    spec.checkpoints = false;
    spec.stop_grace = std::chrono::seconds{10};
    return spec;
  }
  wire::AttemptSpec start(wire::AttemptSpec spec, Duration lease = k_lease,
                          const std::map<std::string, std::string>& secrets = {}) {
    started_.push_back(spec);
    EXPECT_THAT(agent_->start(spec, lease, secrets), IsOk());
    return spec;
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
  [[nodiscard]] bool is_leased(const wire::AttemptSpec& spec) const {
    agent::Ledger ledger(host_.leases, agent::Machine::real(), os::system_clock());
    return ledger.find(controller_, spec.job, spec.epoch).value().has_value();
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
    const Bytes manifest = store::to_manifest(store::scan(source.path(), options)->tree);
    EXPECT_THAT(cache->put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache->seal(), IsOk());
    return store::root_of(manifest);
  }

  TempDir folder_;
  AgentHost host_;
  std::string id_ = os::random_id(8);
  ControllerId controller_{os::random_id(26)};
  std::unique_ptr<AgentClient> agent_;
  std::vector<wire::AttemptSpec> started_;
};

TEST_F(AgentProgram, TellsHowEachAttemptEnded) {
  auto good = spec("good", "echo hello; echo trouble >&2; echo \"$GREETING\"");
  good.envs["GREETING"] = "good morning";
  auto setup = spec("setup", "echo never");
  setup.setup = "echo preparing; exit 3";
  auto daemon = spec("daemon", "(setsid sh -c 'sleep 80 & sleep 80' >/dev/null 2>&1 &); sleep 0.1; exit 4");
  daemon.envs["MARK"] = "daemon-of-" + id_;
  auto unstartable = spec("unstartable", "true");
  unstartable.workdir = Digest{};
  for (const auto* one : {&good, &setup, &daemon, &unstartable}) start(*one);
  const auto killed = start(spec("killed", "kill -SEGV $$"));
  const auto expired = start(spec("expired", "sleep 80"), std::chrono::milliseconds{1500});

  const AttemptStatus well = agent_->await_end(good);
  EXPECT_EQ(well.end, EndReason::exited) << well.detail;
  EXPECT_EQ(well.exit_code, 0);
  EXPECT_EQ(well.detail, "");
  EXPECT_EQ(well.doing, "");
  EXPECT_EQ(well.allowed_ms, -1);
  EXPECT_EQ(well.log_bytes, 27u);
  EXPECT_EQ(agent_->log(good), "hello\ntrouble\ngood morning\n");
  for (const std::int64_t age : {well.started_ms_ago, well.running_ms_ago, well.ended_ms_ago}) {
    EXPECT_GE(age, 0);
    EXPECT_LT(age, 60'000);
  }
  EXPECT_FALSE(is_leased(good));

  const AttemptStatus unready = agent_->await_end(setup);
  EXPECT_EQ(unready.exit_code, 3);
  EXPECT_EQ(unready.detail, "setup failed");
  EXPECT_EQ(unready.running_ms_ago, -1) << "its program never ran";
  EXPECT_EQ(agent_->log(setup), "preparing\n");

  EXPECT_EQ(agent_->await_end(daemon).exit_code, 4);
  EXPECT_TRUE(agent::marked_processes("daemon-of-" + id_).empty());
  const AttemptStatus never = agent_->await_end(unstartable);
  EXPECT_EQ(never.end, EndReason::start_failed);
  EXPECT_THAT(never.detail, HasSubstr("working directory"));
  EXPECT_EQ(never.started_ms_ago, -1);
  EXPECT_FALSE(is_leased(unstartable));
  const AttemptStatus signalled = agent_->await_end(killed);
  EXPECT_EQ(signalled.end, EndReason::signalled);
  EXPECT_EQ(signalled.signal, SIGSEGV);
  EXPECT_EQ(agent_->await_end(expired).end, EndReason::lease_expired);
}

TEST_F(AgentProgram, StopsByTermAndThenByKill) {
  const auto saving =
      start(spec("saving", "trap 'echo saving; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
  const auto deaf = start(spec("deaf", "trap '' TERM; setsid sleep 80 & echo ready; sleep 80"));
  agent_->await(saving, speaks);
  EXPECT_TRUE(is_leased(saving));
  agent_->await(deaf, speaks);
  ASSERT_THAT(agent_->stop(saving, std::chrono::seconds{20}), IsOk());
  ASSERT_THAT(agent_->stop(deaf, std::chrono::milliseconds{300}), IsOk());
  const AttemptStatus saved = agent_->await_end(saving);
  EXPECT_EQ(saved.end, EndReason::stopped);
  EXPECT_EQ(saved.exit_code, 0);
  EXPECT_THAT(agent_->log(saving), HasSubstr("saving\n"));
  EXPECT_EQ(agent_->await_end(deaf).end, EndReason::stopped);
  EXPECT_TRUE(agent::marked_processes(deaf.job.value).empty());
  EXPECT_FALSE(is_leased(deaf));
}

TEST_F(AgentProgram, EndsWhatHasUsedUpItsAllowance) {
  wire::StartRequest request;
  request.op = {"limited"};
  request.echo = os::system_clock().boot();
  request.boot_id = agent_->hello().boot_id;
  request.lease = k_lease;
  request.spec = spec("limited", "trap 'echo saving; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  request.allowance = wire::Allowance{std::chrono::milliseconds{600}, "budget", {}};
  started_.push_back(request.spec);
  ASSERT_THAT(agent_->call(wire::encode(request)), IsOk());
  const AttemptStatus status = agent_->await_end(request.spec);
  EXPECT_EQ(status.end, EndReason::limit);
  EXPECT_EQ(status.detail, "budget");
  EXPECT_GE(status.running_ms_ago, 600);
  EXPECT_THAT(agent_->log(request.spec), HasSubstr("saving\n"));
}

TEST_F(AgentProgram, WarnsAJobThatItsHostEndsAndTerminatesItLater) {
  const auto log_of = [&](const char* name, const std::string& on_notice, Duration grace) {
    auto job = spec(name, "trap '" + on_notice + "' USR1; trap 'echo term; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    job.notice_signal = SIGUSR1;
    start(job);
    agent_->await(job, speaks);
    EXPECT_THAT(os::write_file_atomically(folder_of(job).notice_file(), "pause"), IsOk());
    EXPECT_THAT(agent_->stop(job, grace), IsOk());
    EXPECT_EQ(agent_->await_end(job).end, EndReason::stopped) << "it has not chosen to end, whatever its exit code";
    return agent_->log(job);
  };
  EXPECT_THAT(log_of("warned", "cat $GRIDCTL_NOTICE_FILE; echo saved; exit 0", std::chrono::seconds{20}),
              ::testing::AllOf(HasSubstr(R"("reason": "pause")"), HasSubstr("saved\n"), ::testing::Not(HasSubstr("term"))));
  EXPECT_THAT(log_of("stays", "echo saved", std::chrono::seconds{4}), ::testing::AllOf(::testing::StartsWith("ready\nsaved\n"), ::testing::EndsWith("term\n")));
}

TEST_F(AgentProgram, TakesNewLimitsAndTempoWithAPoll) {
  auto job = spec("told", "trap 'cat $GRIDCTL_CKPT_INTERVAL_FILE' USR1; echo ready; while :; do sleep 0.05; done");
  job.interval_signal = SIGUSR1;
  job.envs["GRIDCTL_CKPT_INTERVAL"] = "600";
  start(job);
  agent_->await(job, speaks);
  EXPECT_EQ(os::read_file(folder_of(job).run(1) / "ckpt_interval").value_or(""), "600\n");
  wire::PollRequest request;
  request.echo = os::system_clock().boot();
  request.lease = k_lease;
  request.attempts.push_back({job.job, job.epoch, 0, {std::chrono::milliseconds{42'499}, {}}, {}});
  ASSERT_THAT(agent_->call(wire::encode(request)), IsOk());
  agent_->await(job, [](const AttemptStatus& status) { return status.log_bytes > 6; });
  EXPECT_EQ(agent_->log(job), "ready\n42\n");
  request.echo = os::system_clock().boot();
  request.attempts[0].allowance = wire::Allowance{std::chrono::milliseconds{1}, "max_duration", {}};
  ASSERT_THAT(agent_->call(wire::encode(request)), IsOk());
  ASSERT_THAT(agent_->stop(job, std::chrono::seconds{20}), IsOk());
  const AttemptStatus status = agent_->await_end(job);
  EXPECT_TRUE(status.end == EndReason::limit || status.end == EndReason::stopped) << status.detail;
}

TEST_F(AgentProgram, FillsTheWorkingDirectoryAndTheRestoredCheckpoint) {
  auto job = spec("filled", "cat code.txt data/part.txt; ls out; cat out/model; echo \"from=$GRIDCTL_RESUME_FROM\"");
  job.workdir = put_tree({{"code.txt", "code\n"}, {"out/old", "stale\n"}});
  job.mounts.push_back({put_tree({{"part.txt", "part\n"}}), "data"});
  job.restore = put_tree({{"model", "weights\n"}});
  job.restore_name = "job@4";
  job.checkpoint_path = "out";
  EXPECT_EQ(agent_->await_end(start(job)).exit_code, 0);
  EXPECT_EQ(agent_->log(job), "code\npart\nmodel\nweights\nfrom=job@4\n");
}

TEST_F(AgentProgram, TakesCheckpointsByMarkerAndAtAGoodEnd) {
  auto marked = spec("marked", "cd $GRIDCTL_CKPT_DIR; echo 1 >model; touch .commit; sleep 80");
  auto ended = spec("ended", "echo 1 >$GRIDCTL_CKPT_DIR/model");
  auto failed = spec("failed", "echo 1 >$GRIDCTL_CKPT_DIR/model; exit 1");
  for (auto* one : {&marked, &ended, &failed}) one->checkpoints = true, start(*one);
  const AttemptStatus taken =
      agent_->await(marked, [](const AttemptStatus& status) { return !status.checkpoints.empty(); });
  ASSERT_EQ(taken.checkpoints.size(), 1u);
  EXPECT_EQ(taken.checkpoints[0].how, "commit-marker");
  EXPECT_EQ(taken.checkpoints[0].number, 1u);
  EXPECT_EQ(taken.checkpoints[0].files, 1u);
  EXPECT_TRUE(os::exists(folder_of(marked).snapshots()));
  const AttemptStatus last = agent_->await_end(ended);
  ASSERT_EQ(last.checkpoints.size(), 1u);
  EXPECT_EQ(last.checkpoints[0].how, "exit");
  const AttemptStatus kept = agent_->await_end(failed);
  ASSERT_EQ(kept.checkpoints.size(), 1u);
  EXPECT_EQ(kept.checkpoints[0].how, "left") << "nobody knows whether it had finished";
}

TEST_F(AgentProgram, ADeadSupervisorIsReplacedAndTheJobGoesOn) {
  const auto job = start(spec("adopted", "echo started; while [ ! -e done ]; do sleep 0.02; done; echo finished"));
  const auto unwatched =
      start(spec("unwatched", "echo started; while [ ! -e done ]; do sleep 0.02; done; echo finished"));
  agent_->await(job, speaks);
  agent_->await(unwatched, speaks);
  const auto payload = init(job);
  const auto old = supervisor(job);
  ASSERT_TRUE(payload && old);
  const os::ProcessId other = *init(unwatched);
  agent_->kill();
  kill_and_wait(*old);
  kill_and_wait(*supervisor(unwatched));
  std::ofstream(folder_of(unwatched).work() / "done") << "1";
  if (const auto pidfd = os::open_pidfd(other)) {
    pollfd waiting{pidfd->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
  }
  connect();
  EXPECT_EQ(agent_->await_end(unwatched).exit_code, 0);
  EXPECT_EQ(agent_->log(unwatched), "started\nfinished\n");
  const BootTime patience = os::system_clock().boot() + std::chrono::seconds{60};
  while (!supervisor(job) && os::system_clock().boot() < patience) os::pause_for(std::chrono::milliseconds{5});
  EXPECT_NE(supervisor(job), old);
  EXPECT_EQ(init(job), payload);
  std::ofstream(folder_of(job).work() / "done") << "1";
  EXPECT_EQ(agent_->await_end(job).exit_code, 0);
  EXPECT_EQ(agent_->log(job), "started\nfinished\n");
}

TEST_F(AgentProgram, AConnectionThatSaysNothingNoticesADeadSupervisor) {
  const auto job = start(spec("watched", "echo ready; while [ ! -e done ]; do sleep 0.02; done; exit 6"));
  agent_->await(job, speaks);
  const auto old = supervisor(job);
  ASSERT_TRUE(old);
  kill_and_wait(*old);
  const BootTime patience = os::system_clock().boot() + std::chrono::seconds{60};
  while (!supervisor(job) && os::system_clock().boot() < patience) os::pause_for(std::chrono::milliseconds{20});
  ASSERT_TRUE(supervisor(job));
  EXPECT_NE(supervisor(job), old);
  std::ofstream(folder_of(job).work() / "done") << "1";
  EXPECT_EQ(agent_->await_end(job).exit_code, 6);
}

TEST_F(AgentProgram, NothingLivesOnOfAJobWhoseFirstProcessIsKilled) {
  const auto job = start(spec("vanished", "(setsid sleep 80 &); echo ready; sleep 80"));
  const auto unknown = start(spec("unknown", "(setsid sleep 80 &); echo ready; sleep 80"));
  agent_->await(job, speaks);
  agent_->await(unknown, speaks);
  kill_and_wait(*init(job));
  const AttemptStatus status = agent_->await_end(job);
  EXPECT_EQ(status.end, EndReason::vanished);
  EXPECT_THAT(status.detail, HasSubstr("killed from outside"));
  EXPECT_TRUE(agent::marked_processes(folder_of(job).path.string()).empty());
  // Its specification is gone: what cannot be followed must not live.
  agent_->kill();
  kill_and_wait(*supervisor(unknown));
  ASSERT_THAT(os::write_file_atomically(folder_of(unknown).spec_file(), "a bad sector"), IsOk());
  connect();
  EXPECT_EQ(agent_->await_end(unknown).end, EndReason::start_failed);
  EXPECT_TRUE(agent::marked_processes(folder_of(unknown).path.string()).empty());
}

TEST_F(AgentProgram, TellsOfARestartOfTheHost) {
  const auto job = start(spec("rebooted", "echo ready; sleep 80"));
  const auto lost = start(spec("lost", "true"));
  agent_->await(job, speaks);
  agent_->await_end(lost);
  agent_->kill();
  kill_and_wait(*supervisor(job));
  kill_and_wait(*init(job));
  const std::string status = os::read_file(folder_of(job).status_file()).value();
  ASSERT_THAT(os::write_file_atomically(folder_of(job).status_file(), "another-boot" + status.substr(status.find(' '))),
              IsOk());
  // Of the other our own files came back empty.
  std::optional<os::FileLock> only_we = os::FileLock::acquire(folder_of(lost).supervisor_lock()).value();
  const AttemptDir folder = folder_of(lost);
  for (const os::Path& file : {folder.spec_file(), folder.boot_file(), folder.status_file(), folder.op_file()})
    ASSERT_THAT(os::write_file_atomically(file, ""), IsOk());
  only_we.reset();
  connect();
  EXPECT_EQ(agent_->poll(job)->attempts.at(0).end, EndReason::host_rebooted);
  EXPECT_EQ(agent_->await_end(job).end, EndReason::host_rebooted);
  EXPECT_EQ(agent_->await_end(lost).end, EndReason::host_rebooted);
}

TEST_F(AgentProgram, KeepsItsPromises) {
  const auto job = start(spec("promised", "echo ready; sleep 80"));
  agent_->await(job, speaks);
  EXPECT_TRUE(agent_->start(job, k_lease)->already);
  EXPECT_THAT(agent_->start(job, k_lease, {}, "another"), FailsWith(Code::refused));
  const auto newer = spec("promised", "true", 2);
  EXPECT_THAT(agent_->start(newer, k_lease), FailsWith(Code::busy)) << "two of one job never overlap";
  EXPECT_EQ(agent_->await_end(job).end, EndReason::stopped) << "the older one is told to go";
  EXPECT_THAT(agent_->start(newer, k_lease), FailsWith(Code::refused));
  ASSERT_THAT(agent_->stop(spec("never", "true", 3), {}), IsOk());
  EXPECT_THAT(agent_->start(spec("never", "true", 3)), FailsWith(Code::refused));
  const auto polled = agent_->poll(spec("never", "true", 5));
  ASSERT_THAT(polled, IsOk());
  EXPECT_EQ(polled->attempts.at(0).phase, AttemptPhase::absent);
  EXPECT_EQ(polled->attempts.at(0).max_epoch.value, 5u);
  EXPECT_THAT(agent_->start(spec("never", "true", 6), Duration{1}), FailsWith(Code::refused));
  auto greedy = spec("greedy", "true");
  greedy.cpus = 60000;
  EXPECT_THAT(agent_->start(greedy), FailsWith(Code::busy));
  EXPECT_FALSE(is_leased(greedy));
  auto bad = spec("bad", "");
  EXPECT_THAT(agent_->start(bad), FailsWith(Code::refused));
}

TEST_F(AgentProgram, CleansUpAndKeepsTheFence) {
  auto job = spec("cleaned", "echo x >$GRIDCTL_CKPT_DIR/model; echo kept >left.txt");
  job.checkpoints = true;
  job.keep_work = std::chrono::hours{1};
  ASSERT_THAT(agent_->start(job, k_lease), IsOk());
  agent_->await_end(job);
  const auto busy = start(spec("busy", "echo ready; sleep 80"));
  agent_->await(busy, speaks);
  EXPECT_THAT(agent_->clean(busy), FailsWith(Code::busy));
  ASSERT_THAT(agent_->clean(job), IsOk());
  ASSERT_THAT(agent_->clean(job), IsOk()) << "once more is no error";
  EXPECT_FALSE(os::exists(folder_of(job).path));
  EXPECT_EQ(os::list_directory(folder_of(job).path.parent_path()).value(), (std::vector<std::string>{"fence", "lock"}));
  EXPECT_THAT(agent_->start(job), FailsWith(Code::refused));
  wire::ResultsRequest request;
  request.job = job.job;
  request.epoch = job.epoch;
  const auto results = wire::parse_results_reply(agent_->call(wire::encode(request)).value());
  EXPECT_EQ(results->names, std::vector<std::string>{"left.txt"}) << "what it left outlives it";
}

TEST_F(AgentProgram, ShowsSecretsToTheJobAndForgetsThem) {
  auto job = spec("secret", "echo ${#TOKEN}; sleep 80");
  job.secret_names = {"TOKEN"};
  const auto folder = folder_of(job).secrets();
  if (!folder) GTEST_SKIP() << folder.error().message;
  EXPECT_THAT(agent_->start(job, k_lease), FailsWith(Code::refused)) << "its value is missing";
  job.epoch = Epoch{2};
  start(job, k_lease, {{"TOKEN", "canary-of-" + id_}});
  agent_->await(job, speaks);
  EXPECT_EQ(agent_->log(job), std::to_string(10 + id_.size()) + "\n");
  EXPECT_TRUE(os::exists(*folder_of(job).secrets()));
  EXPECT_EQ(os::run({"grep", "-rl", "--devices=skip", "canary-of-" + id_, host_.home.string()})->out, "");
  ASSERT_THAT(agent_->stop(job, {}), IsOk());
  agent_->await_end(job);
  EXPECT_FALSE(os::exists(*folder_of(job).secrets()));
}

TEST_F(AgentProgram, AnswersWhatIsAskedOfALiveJob) {
  const auto job =
      start(spec("asked", "echo '{\"step\": 7, \"step_s\": 0.5}' >> $GRIDCTL_METRICS; echo 0123456789; sleep 81"));
  agent_->await(job, speaks);
  const auto steps =
      wire::parse_steps_reply(agent_->call(wire::encode(wire::StepsRequest{job.job, job.epoch})).value());
  ASSERT_EQ(steps->steps.size(), 1u);
  EXPECT_EQ(steps->steps[0], (wire::ToldStep{0, 7, 0.5}));
  EXPECT_EQ(steps->log_bytes, 11u);
  const BootTime soon = os::system_clock().boot() + std::chrono::minutes{1};
  // The reply is followed by data and an end.
  const auto rest = [&] {
    std::string text;
    for (;;) {
      const auto frame = agent_->link().receive(soon);
      if (!frame || frame->kind == wire::FrameKind::end) return text;
      if (frame->kind == wire::FrameKind::data) text += frame->payload;
    }
  };
  // What has just begun runs until it sleeps.
  std::string stacks;
  const auto sleeps = [&] {
    const auto found = stacks.find("sleep 81");
    return found != std::string::npos && stacks.find("  state S", found) != std::string::npos;
  };
  while (!sleeps() && os::system_clock().boot() < soon) {
    ASSERT_THAT(agent_->call(wire::encode(wire::StacksRequest{job.job, job.epoch})), IsOk());
    stacks = rest();
  }
  EXPECT_TRUE(sleeps()) << stacks;
  EXPECT_THAT(stacks, HasSubstr("process "));
  const auto slice = [&](std::uint64_t offset, std::uint32_t bytes) {
    const auto reply = agent_->call(wire::encode(wire::LogRequest{job.job, job.epoch, offset, bytes}));
    return std::to_string(wire::parse_log_reply(reply.value())->offset) + ":" + rest();
  };
  EXPECT_EQ(slice(2, 3), "2:234");
  EXPECT_EQ(slice(11, 100), "11:");
}

TEST_F(AgentProgram, TellsOfItsHost) {
  const auto inventory = agent_->call(wire::encode_plain("probe"));
  ASSERT_THAT(inventory, IsOk());
  EXPECT_THAT(*inventory, HasSubstr("\"engines\""));
  EXPECT_THAT(*inventory, HasSubstr("\"process\""));
  wire::HealthRequest request;
  request.max_age = std::chrono::minutes{5};
  request.wait = std::chrono::seconds{30};
  const auto health = agent_->call(wire::encode(request));
  ASSERT_THAT(health, IsOk());
  EXPECT_THAT(*health, HasSubstr(os::boot_id()));
}

TEST_F(AgentProgram, KeepsACheckpointReadyAndDropsIt) {
  const JobId job{"ready" + id_};
  const os::Path lies = host_.home / "standby" / (controller_.value + "." + job.value);
  const Digest root = put_tree({{"model", "weights"}});
  const auto made = agent_->call(wire::encode(wire::StandbyRequest{job, root}));
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(os::read_file(lies / "tree/model").value_or(""), "weights");
  ASSERT_THAT(agent_->call(wire::encode(wire::StandbyRequest{job, std::nullopt})), IsOk());
  EXPECT_FALSE(os::exists(lies));
  EXPECT_THAT(agent_->call(wire::encode(wire::StandbyRequest{job, Digest{}})), FailsWith(Code::not_found));
}

TEST_F(AgentProgram, KnowsNothingOfWhatIsNotHere) {
  const JobId none{"none" + id_};
  EXPECT_THAT(agent_->call(wire::encode(wire::LogRequest{none, Epoch{1}, 0})), FailsWith(Code::not_found));
  EXPECT_THAT(agent_->call(wire::encode(wire::StepsRequest{none, Epoch{1}})), FailsWith(Code::not_found));
  EXPECT_THAT(agent_->call(wire::encode(wire::StacksRequest{none, Epoch{1}})), FailsWith(Code::not_found));
  EXPECT_THAT(agent_->call(wire::encode_plain("dance")), FailsWith(Code::unsupported));
  const auto ended = start(spec("ended", "true"));
  agent_->await_end(ended);
  EXPECT_THAT(agent_->call(wire::encode(wire::StacksRequest{ended.job, ended.epoch})), FailsWith(Code::not_found));
  EXPECT_FALSE(os::exists(host_.home / "jobs" / controller_.value / none.value));
}

TEST_F(AgentProgram, PreparesOnlyEpochsAboveTheFence) {
  const auto job = spec("prepared", "true", 2);
  const auto reply = agent_->call(wire::encode(wire::PrepareRequest{{"op"}, job.job, job.epoch}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(wire::parse_prepare_reply(*reply)->boot_id, os::boot_id());
  ASSERT_THAT(agent_->stop(job, {}), IsOk());
  EXPECT_THAT(agent_->call(wire::encode(wire::PrepareRequest{{"op"}, job.job, job.epoch})), FailsWith(Code::refused));
}

TEST_F(AgentProgram, GreetsWhoSpeaksItsLanguage) {
  const wire::AgentHello& hello = agent_->hello();
  EXPECT_EQ(hello.boot_id, os::boot_id());
  EXPECT_EQ(hello.machine_id, os::machine_id());
  EXPECT_EQ(hello.build.size(), 64u);
  for (const char* feature : {"events", "bulk", "links", "health"})
    EXPECT_THAT(hello.features, ::testing::Contains(feature));
}

// What the agent answers to these payloads, and how it ends.
std::pair<std::vector<std::string>, int> answers(const AgentHost& host, const std::vector<std::string>& payloads) {
  std::vector<std::string> command = host.command;
  command.emplace_back("connect");
  auto in = os::make_pipe().value(), out = os::make_pipe().value();
  os::SpawnOptions options;
  options.stdin_fd = in.first.get();
  options.stdout_fd = out.second.get();
  const int pid = os::spawn(command, options).value();
  in.first.reset();
  out.second.reset();
  transfer::FdLink link(out.first.get(), in.second.get(), true);
  const BootTime soon = os::system_clock().boot() + std::chrono::seconds{20};
  std::vector<std::string> found;
  for (const std::string& payload : payloads) {
    (void)link.send({wire::FrameKind::request, 1, payload}, soon);
    const auto frame = link.receive(soon);
    if (!frame) break;
    found.push_back(frame->payload);
  }
  in.second.reset();
  out.first.reset();
  return {found, os::wait(pid)->code};
}

TEST_F(AgentProgram, EndsAConnectionThatDoesNotBeginWell) {
  wire::ControllerHello hello;
  hello.controller = {"../x"};
  auto [said, status] = answers(host_, {wire::encode(hello)});
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(status, 1);
  hello.controller = controller_;
  hello.version_min = hello.version_max = 99;
  std::tie(said, status) = answers(host_, {wire::encode(hello)});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(wire::payload_error(said[0])->code, Code::unsupported);
  std::tie(said, status) = answers(host_, {wire::encode_plain("probe")});
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(status, 1);
  hello.version_min = 1;
  std::tie(said, status) = answers(host_, {wire::encode(hello)});
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(wire::parse_agent_hello(said[0])->boot_id, os::boot_id());
  EXPECT_EQ(status, 0) << "the controller has gone";
}

TEST_F(AgentProgram, EndsAConnectionWithAFrameOfNoOperation) {
  const BootTime soon = os::system_clock().boot() + std::chrono::seconds{20};
  ASSERT_THAT(agent_->link().send({wire::FrameKind::data, 77, "x"}, soon), IsOk());
  EXPECT_THAT(agent_->link().receive(soon), FailsWith(Code::host_unreachable));
}

TEST_F(AgentProgram, PushesEventsOnlyToWhoWantsThem) {
  AgentClient quiet(host_, controller_, {});
  const auto job = start(spec("events", "echo ready; sleep 80"));
  const BootTime patience = os::system_clock().boot() + std::chrono::seconds{60};
  for (;;) {
    const auto frame = agent_->link().receive(patience);
    ASSERT_THAT(frame, IsOk());
    ASSERT_EQ(frame->kind, wire::FrameKind::event);
    const auto event = wire::parse_poll_reply(frame->payload);
    ASSERT_EQ(event->attempts.size(), 1u);
    EXPECT_EQ(event->attempts[0].max_epoch, job.epoch);
    EXPECT_GT(event->disk_free_bytes, 0u);
    EXPECT_EQ(event->boot_id, os::boot_id());
    if (running(event->attempts[0])) break;
  }
  EXPECT_FALSE(quiet.link().receive(os::system_clock().boot() + std::chrono::milliseconds{50}));
  const auto polled = quiet.poll(job, k_lease);
  ASSERT_THAT(polled, IsOk());
  ASSERT_TRUE(polled->held);
  EXPECT_EQ(polled->held->size(), 1u);
  EXPECT_GE(polled->load1, 0);
}

TEST(AgentWords, ItSaysWhatItIsAndHowItIsCalled) {
  const std::string program = std::string(GRIDCTL_BINARY_DIR) + "/bin/gridctl-agent.stripped";
  const auto version = os::run({program, "--version"});
  EXPECT_EQ(version->status.code, 0);
  EXPECT_THAT(version->out, HasSubstr("gridctl-agent "));
  const auto hash = os::run({program, "--self-hash"});
  EXPECT_EQ(hash->out.size(), 65u);
  const auto usage = os::run({program});
  EXPECT_EQ(usage->status.code, 2);
  EXPECT_THAT(usage->err, HasSubstr("gridctl-agent supervise DIR"));
  for (const std::vector<std::string>& odd : {std::vector<std::string>{"connect", "x"}, {"supervise"}, {"init", "x"}}) {
    std::vector<std::string> argv{program};
    argv.insert(argv.end(), odd.begin(), odd.end());
    EXPECT_EQ(os::run(argv)->status.code, 2) << odd[0];
  }
  for (const char* word : {"gang-run", "gang-end", "gang-serve"}) {
    const auto outside = os::run({program, word, "0", "true"});
    EXPECT_NE(outside->status.code, 0) << word;
  }
}

}  // namespace
}  // namespace gridctl::testing::agent_program_test
