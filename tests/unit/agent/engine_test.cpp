// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/job_view.hpp"
#include "base/text.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::AttemptSpec a_spec() {
  wire::AttemptSpec spec;
  spec.job = {"j"};
  spec.epoch = Epoch{3};
  spec.engine = EngineKind::docker;
  spec.image = "img:1";
  spec.run = "true";
  return spec;
}

std::string command_line(EngineKind kind, const wire::AttemptSpec& spec, std::vector<Gpu> gpus = {}) {
  LaunchPlan plan;
  plan.name = attempt_name(spec.job, spec.epoch, os::home_directory() / ".gridctl");
  plan.image = spec.image;
  plan.init = {"/gridctl/run", "/gridctl/ctl", "/work", {}, std::chrono::seconds{1}, {}};
  plan.binds = {{"/host/work", "/work", false}};
  plan.gpus = std::move(gpus);
  return join(container_arguments(kind, spec, plan, {1000, 1001}), " ");
}

TEST(Engine, HardensEveryContainer) {
  for (const EngineKind kind : {EngineKind::docker, EngineKind::podman}) {
    const std::string line = command_line(kind, a_spec());
    for (const char* flag : {"--cap-drop all", "no-new-privileges", "--read-only", "--pids-limit 4096", "--pull never",
                             "--tmpfs /tmp", "--name gridctl-j-e3", "--label gridctl.job=j"})
      EXPECT_THAT(line, HasSubstr(flag));
    for (const char* never : {"--privileged", "--network host", "--pid", "docker.sock"})
      EXPECT_THAT(line + " ", Not(HasSubstr(std::string(never) + " ")));
  }
  for (const EngineKind kind : {EngineKind::docker, EngineKind::podman})
    EXPECT_THAT(command_line(kind, a_spec()), HasSubstr("--user 1000:1001"));
}

TEST(Engine, LimitsTheTemporaryFilesOfAContainer) {
  for (const EngineKind kind : {EngineKind::docker, EngineKind::podman}) {
    const std::string line = command_line(kind, a_spec());
    const std::size_t at = line.find("--tmpfs /tmp:");
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_THAT(line.substr(at, line.find(' ', at + 8) - at), HasSubstr("size=25%"));
  }
}

// A job gets a GPU that is surely its own, or none.
TEST(Engine, PassesTheOnlyRenderNodeAndNeverOneOfSeveral) {
  const testing::TempDir folder;
  const auto add = [&](const char* name) { std::ofstream(folder / name) << ""; };
  EXPECT_THAT(only_render_node(folder / "missing"), ::testing::IsEmpty());
  add("card0");
  add("card1");
  EXPECT_THAT(only_render_node(folder.path()), ::testing::IsEmpty());
  add("renderD128");
  EXPECT_THAT(only_render_node(folder.path()), ::testing::ElementsAre((folder / "renderD128").string()));
  add("renderD129");
  EXPECT_THAT(only_render_node(folder.path()), ::testing::IsEmpty());
}

TEST(Engine, LetsSetupInstallSoftwareWhereTheRootIsWritable) {
  auto spec = a_spec();
  spec.root_writable = true;
  const std::string podman = command_line(EngineKind::podman, spec);
  for (const char* flag : {"--read-only", "--cap-drop", "--tmpfs /tmp", "--privileged"})
    EXPECT_THAT(podman, Not(HasSubstr(flag)));
  EXPECT_THAT(podman, HasSubstr("no-new-privileges"));
  // Root of a container of docker's is root of the host: there the job stays an ordinary user.
  const std::string docker = command_line(EngineKind::docker, spec);
  EXPECT_THAT(docker, Not(HasSubstr("--read-only")));
  EXPECT_THAT(docker, HasSubstr("--cap-drop all"));
  EXPECT_THAT(docker, HasSubstr("--user 1000:1001"));
}

TEST(Engine, SetsLimits) {
  auto spec = a_spec();
  spec.memory_bytes = 1u << 30;
  spec.cpus = 1.5;
  EXPECT_THAT(command_line(EngineKind::podman, spec), HasSubstr("--memory 1073741824 --memory-swap 1073741824"));
  EXPECT_THAT(command_line(EngineKind::podman, spec), HasSubstr("--cpus 1.50"));
}

TEST(Engine, ShowsOnlyTheLeasedGpus) {
  Gpu one, two;
  one.uuid = "GPU-1", two.uuid = "GPU-2";
  EXPECT_THAT(command_line(EngineKind::docker, a_spec(), {one, two}), HasSubstr("--gpus \"device=GPU-1,GPU-2\""));
  EXPECT_THAT(command_line(EngineKind::podman, a_spec(), {one}), HasSubstr("--device nvidia.com/gpu=GPU-1"));
  const auto variables = gpu_variables({one, two});
  ASSERT_EQ(variables.size(), 1u);
  EXPECT_EQ(variables[0].second, "GPU-1,GPU-2");
}

TEST(Engine, ReadsTheNameOfALoadedImage) {
  EXPECT_EQ(loaded_image("Getting image source\nLoaded image: localhost/a:1\n"), "localhost/a:1");
  EXPECT_EQ(loaded_image("Loaded image ID: sha256:abc\n"), "sha256:abc");
  EXPECT_EQ(loaded_image("nothing"), "");
}

// A process that stands in for init: it does what the script says and never touches the run folder.
class LaunchedProcess : public ::testing::Test {
 protected:
  void launch(const std::string& script) {
    LaunchPlan plan;
    plan.name = "gridctl-unit-" + std::to_string(os::process_id());
    plan.agent = folder_.path() / "init";
    plan.init = {folder_.path(), folder_.path(), folder_.path(), {}, {}, {}};
    plan.host_run = folder_.path();
    ASSERT_THAT(os::write_file_atomically(plan.agent, "#!/bin/sh\n" + script + "\n", 0700), testing::IsOk());
    ASSERT_THAT(engine_->launch(a_spec(), plan), testing::IsOk());
    name_ = plan.name;
  }
  ~LaunchedProcess() override {
    for (const os::ProcessId& process : engine_->members(name_, folder_.path()))
      (void)os::send_signal(process, SIGKILL);
    (void)engine_->remove(name_);
  }
  [[nodiscard]] bool is_gone() { return engine_->is_gone(name_); }
  void wait_for_end() {
    const auto members = engine_->members(name_, folder_.path());
    for (const os::ProcessId& process : members)
      if (auto pidfd = os::open_pidfd(process))
        (void)os::wait_ready(pidfd->get(), true, false, std::chrono::seconds{10});
  }

  testing::TempDir folder_;
  std::unique_ptr<Engine> engine_ = make_engine(EngineKind::process);
  std::string name_;
};

TEST_F(LaunchedProcess, IsNotGoneWhileItRuns) {
  const os::Path fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  launch("read never < " + fifo.string());
  EXPECT_FALSE(is_gone());
}

TEST_F(LaunchedProcess, IsGoneWhenItEndedBeforeItBegan) {
  launch("exit 125");
  wait_for_end();
  EXPECT_TRUE(is_gone());
}

TEST(Spec, IsRefusedWhenItCouldLeadOutOfTheAttempt) {
  EXPECT_THAT(check_spec(a_spec()), testing::IsOk());
  for (const char* bad : {"../x", "/a/../b", "a,b", "a\"b", "a\nb", "./a"}) {
    auto spec = a_spec();
    spec.checkpoint_path = bad;
    EXPECT_THAT(check_spec(spec), testing::FailsWith(Code::refused)) << bad;
    spec = a_spec();
    spec.mounts.push_back({Digest{}, bad});
    EXPECT_THAT(check_spec(spec), testing::FailsWith(Code::refused)) << bad;
  }
  auto option = a_spec();
  option.image = "--privileged";
  EXPECT_THAT(check_spec(option), testing::FailsWith(Code::refused));
  wire::AttemptSpec many = a_spec();  // each is small enough, and all together are what no program can be started with
  for (int i = 0; i < 8; ++i) many.envs["V" + std::to_string(i)] = std::string(60'000, 'x');
  EXPECT_THAT(check_spec(many), testing::IsOk());
  for (int i = 8; i < 10; ++i) many.envs["V" + std::to_string(i)] = std::string(60'000, 'x');
  EXPECT_THAT(check_spec(many), testing::FailsWith(Code::refused));
  auto variable = a_spec();
  variable.envs["A=B"] = "x";
  EXPECT_THAT(check_spec(variable), testing::FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(a_spec(), {{"../x", "y"}}), testing::FailsWith(Code::refused));
}

TEST(JobView, PutsTheCheckpointDirectoryWhereTheJobFileSays) {
  const AttemptDir attempt{"/h/jobs/c/j/3"};
  auto spec = a_spec();
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoints, "/ckpt");
  spec.checkpoint_path = "out/";
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoints, "/work/out");
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoint_base, "/h/jobs/c/j/3/work");
  spec.checkpoint_path = "/work/a/b";
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoint_relative, "a/b");
  spec.checkpoint_path = "/data";
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoint_base, "/h/jobs/c/j/3");
  spec.engine = EngineKind::process;
  spec.checkpoint_path = "";
  EXPECT_EQ(view_of(attempt, spec, 1).checkpoints, "/h/jobs/c/j/3/ckpt");
}

}  // namespace
}  // namespace gridctl::agent
