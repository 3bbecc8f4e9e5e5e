// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "agent/cgroup.hpp"
#include "agent/job_view.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::engine_test {
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

std::string command_line(EngineKind kind, const wire::AttemptSpec& spec, std::vector<Gpu> gpus = {},
                         const std::vector<Bind>& more = {}) {
  LaunchPlan plan;
  plan.name = attempt_name(spec.job, spec.epoch, os::home_directory() / ".gridctl");
  plan.image = spec.image;
  plan.init = {"/gridctl/run", "/gridctl/ctl", "/work", {}, std::chrono::seconds{1}, {}};
  plan.binds = {{"/host/work", "/work", false}};
  plan.binds.insert(plan.binds.end(), more.begin(), more.end());
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

// The engine would refuse two mounts at one path: a mount of the job's, or what was made for a root that turned out to
// be read-only.
TEST(Engine, MakesNoTemporaryFilesWhereSomethingIsMounted) {
  EXPECT_THAT(command_line(EngineKind::podman, a_spec(), {}, {{"/host/tmp", "/tmp", false}}), Not(HasSubstr("--tmpfs")));
}

// A job gets a GPU that is surely its own, or none.
TEST(Engine, PassesTheOnlyRenderNodeAndNeverOneOfSeveral) {
  const gridctl::testing::TempDir folder;
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

TEST(Engine, LetsNoImageChooseItsGpus) {
  // NVIDIA's older hooks show an image that says so all GPUs of the machine, whatever was leased.
  Gpu gpu;
  gpu.uuid = "GPU-1";
  constexpr const char* k_none = "--env NVIDIA_VISIBLE_DEVICES=void";
  for (const EngineKind kind : {EngineKind::docker, EngineKind::podman}) EXPECT_THAT(command_line(kind, a_spec()), HasSubstr(k_none));
  EXPECT_THAT(command_line(EngineKind::podman, a_spec(), {gpu}), HasSubstr(k_none)) << "it gets them another way";
  EXPECT_THAT(command_line(EngineKind::docker, a_spec(), {gpu}), Not(HasSubstr("NVIDIA_VISIBLE_DEVICES"))) << "docker sets it";
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

Gpu gpu_of(Vendor vendor, const std::string& uuid, std::optional<int> index = std::nullopt) {
  Gpu gpu;
  gpu.vendor = vendor;
  gpu.uuid = uuid;
  gpu.index = index;
  return gpu;
}

TEST(Engine, NamesGpusOfEachMakerAsItsOwnLibrariesDo) {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(gpu_variables({}), Variables{});
  EXPECT_EQ(gpu_variables({gpu_of(Vendor::nvidia, "GPU-1", 7), gpu_of(Vendor::nvidia, "GPU-2", 3)}),
            (Variables{{"CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2"}}))
      << "its numbers differ from program to program";
  EXPECT_EQ(gpu_variables({gpu_of(Vendor::amd, "A", 2), gpu_of(Vendor::amd, "B"), gpu_of(Vendor::intel, "I", 1)}),
            (Variables{{"ROCR_VISIBLE_DEVICES", "2,B"}, {"ZE_AFFINITY_MASK", "1"}}));
}

TEST(Engine, OpensTheDevicesOfTheLeasedGpusAlone) {
  const auto line = [](EngineKind kind, const std::vector<Gpu>& gpus) { return join(gpu_arguments(kind, gpus), " "); };
  const Gpu nvidia = gpu_of(Vendor::nvidia, "GPU-1"), more = gpu_of(Vendor::nvidia, "GPU-2");
  EXPECT_EQ(line(EngineKind::docker, {nvidia, more}), "--gpus \"device=GPU-1,GPU-2\"");
  EXPECT_EQ(line(EngineKind::podman, {nvidia, more}), "--device nvidia.com/gpu=GPU-1 --device nvidia.com/gpu=GPU-2");
  EXPECT_EQ(line(EngineKind::podman, {}), "");
  EXPECT_EQ(line(EngineKind::docker, {}), "");
  const std::string amd = line(EngineKind::docker, {gpu_of(Vendor::amd, "A", 0), gpu_of(Vendor::amd, "B", 1)});
  EXPECT_TRUE(amd.starts_with("--device /dev/kfd")) << amd;
  EXPECT_EQ(amd.find("/dev/kfd"), amd.rfind("/dev/kfd")) << "once for all of them";
  EXPECT_THAT(amd, Not(HasSubstr("--gpus")));
  EXPECT_THAT(line(EngineKind::podman, {gpu_of(Vendor::intel, "I", 0)}), Not(HasSubstr("kfd")));
}

TEST(Engine, TellsWhoseAContainerIs) {
  auto spec = a_spec();
  spec.epoch = Epoch{12};
  LaunchPlan plan;
  plan.name = "n";
  plan.controller = {"c0ffee"};
  plan.image = "img:1";
  const auto line = [&](EngineKind kind) { return join(container_arguments(kind, spec, plan, {7, 8}), " ") + " "; };
  EXPECT_THAT(line(EngineKind::docker), HasSubstr(" --label gridctl.job=j --label gridctl.epoch=12 --label gridctl.controller=c0ffee "));
  EXPECT_THAT(line(EngineKind::docker), Not(HasSubstr("--image-volume")));
  EXPECT_THAT(line(EngineKind::podman), HasSubstr(" --image-volume tmpfs "));
  spec.root_writable = true;
  EXPECT_THAT(line(EngineKind::podman), HasSubstr(" --image-volume ignore "));
  EXPECT_THAT(line(EngineKind::podman), HasSubstr(" --entrypoint /gridctl/agent img:1 init "));
}

TEST(Engine, NamesWhatLiesOutsideTheUsualHomeByIt) {
  const os::Path usual = os::home_directory() / ".gridctl";
  EXPECT_EQ(attempt_name({"job"}, Epoch{4}, usual), "gridctl-job-e4");
  const std::string other = attempt_name({"job"}, Epoch{4}, "/srv/gridctl");
  EXPECT_EQ(other.size(), std::string("gridctl-job-e4-12345678").size());
  EXPECT_NE(other, attempt_name({"job"}, Epoch{4}, "/srv/gridctl2"));
  EXPECT_EQ(home_mark("/srv/./gridctl"), home_mark("/srv/gridctl"));
}

TEST(Engine, ReadsTheNameOfALoadedImage) {
  EXPECT_EQ(loaded_image("Loaded image: a:1\nLoaded image: b:1\n"), "b:1") << "the last one";
  EXPECT_EQ(loaded_image("Loaded image without a name\n"), "");
  EXPECT_EQ(loaded_image("Not Loaded image: a:1\n"), "");
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
    name_ = plan.name;
    ASSERT_THAT(os::write_file_atomically(plan.agent, "#!/bin/sh\n" + script + "\n", 0700), gridctl::testing::IsOk());
    ASSERT_THAT(engine_->launch(a_spec(), plan), gridctl::testing::IsOk());
  }
  ~LaunchedProcess() override {
    if (name_.empty()) return;
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

  gridctl::testing::TempDir folder_;
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

TEST_F(LaunchedProcess, NeedsNoImage) {
  auto spec = a_spec();
  spec.image.clear();
  EXPECT_EQ(engine_->ensure_image(spec, {}).value_or("?"), "");
}

TEST_F(LaunchedProcess, BeginsASessionOfItsOwnWithoutWhatIsNotTheJobs) {
  const std::vector<const char*> kept{"SLURMISH", "RANKED", "UNIT_KEPT"};
  const std::vector<const char*> dropped{
      "SSH_CONNECTION", "GRIDCTL_UNIT", "SLURM_JOB_ID", "SRUN_DEBUG", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
      "HYDRA_IFACE", "TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK",
      "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "RAY_ADDRESS"};
  for (const auto* list : {&kept, &dropped})
    for (const char* name : *list) ::setenv(name, "a=b", 1);
  const std::string out = (folder_ / "out").native();
  launch("(cut -d ' ' -f 6 /proc/$$/stat; echo $$ \"$@\"; env) > " + out + ".new; mv " + out + ".new " + out);
  for (const auto* list : {&kept, &dropped})
    for (const char* name : *list) ::unsetenv(name);
  wait_for_end();
  const std::vector<std::string> lines = split_lines(os::read_file(folder_ / "out").value_or(""));
  ASSERT_GT(lines.size(), 3u);
  EXPECT_TRUE(lines[1].starts_with(lines[0] + " init " + folder_.path().native() + " ")) << "no terminal reaches it: " << lines[1];
  for (const char* name : kept) EXPECT_THAT(lines, ::testing::Contains(std::string(name) + "=a=b"));
  for (const char* name : dropped) EXPECT_THAT(lines, Not(::testing::Contains(std::string(name) + "=a=b"))) << name;
}

TEST_F(LaunchedProcess, ItsMembersAreAllItStartedAndNotWeOurselves) {
  const std::string file = (folder_ / "pid").native();
  launch("setsid sleep 77 & echo $! > " + file + ".new; mv " + file + ".new " + file + "; wait");
  const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60};
  while (!os::exists(folder_ / "pid") && os::system_clock().boot() < give_up) os::pause_for(std::chrono::milliseconds{5});
  const auto child = os::identify(std::stoi(os::read_file(folder_ / "pid").value_or("0")));
  ASSERT_TRUE(child);
  const auto members = engine_->members(name_, folder_.path());
  EXPECT_THAT(members, ::testing::Contains(*child));
  EXPECT_THAT(members, Not(::testing::Contains(*os::identify(::getpid()))));
  EXPECT_GE(members.size(), 2u);
}

TEST_F(LaunchedProcess, OfAnotherSupervisorIsNotKnownToBeGone) {
  name_ = "gridctl-unit-none";
  EXPECT_FALSE(is_gone());
}

TEST(Groups, WithoutANameAreNone) {
  EXPECT_TRUE(Group::find("").empty()) << "that would be the group of everybody on this machine";
  EXPECT_TRUE(Group::make("", {}).empty());
}

TEST(Groups, LimitWhatIsInThemAndGoWithIt) {
  const std::string name = "gridctl-unit-group-" + std::to_string(os::process_id());
  EXPECT_TRUE(Group::find(name).empty());
  Group group = Group::make(name, {1.5, 64u << 20, 99});
  if (group.empty()) GTEST_SKIP() << "this host lets us make no control groups";
  for (const os::Path& folder : group.folders()) EXPECT_THAT(Group::find(name).folders(), ::testing::Contains(folder));
  EXPECT_TRUE(group.members().empty());
  std::map<std::string, std::string> limits;
  for (const os::Path& folder : group.folders())
    for (const char* file : {"memory.max", "memory.swap.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "pids.max"})
      if (const auto text = os::read_file(folder / file)) limits[file] = std::string(trim(*text));
  for (const auto& [file, wanted] : std::map<std::string, std::string>{{"memory.max", "67108864"},
                                                                       {"memory.swap.max", "0"},
                                                                       {"memory.limit_in_bytes", "67108864"},
                                                                       {"cpu.max", "150000 100000"},
                                                                       {"cpu.cfs_quota_us", "150000"},
                                                                       {"pids.max", "99"}})
    if (limits.contains(file)) {
      EXPECT_EQ(limits[file], wanted) << file;
    }
  const pid_t child = ::fork();
  if (child == 0) {
    for (const os::Path& folder : group.folders()) join_group(folder);
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60};
  while (group.members().empty() && os::system_clock().boot() < give_up) os::pause_for(std::chrono::milliseconds{5});
  EXPECT_EQ(group.members(), std::vector{*os::identify(child)});
  ::kill(child, SIGKILL);
  (void)os::wait(child);
  group.remove();
  for (const os::Path& folder : group.folders()) EXPECT_FALSE(os::exists(folder));
}

TEST(Spec, IsRefusedWhenItCouldLeadOutOfTheAttempt) {
  EXPECT_THAT(check_spec(a_spec()), gridctl::testing::IsOk());
  for (const char* bad : {"../x", "/a/../b", "a,b", "a\"b", "a\nb", "./a"}) {
    auto spec = a_spec();
    spec.checkpoint_path = bad;
    EXPECT_THAT(check_spec(spec), gridctl::testing::FailsWith(Code::refused)) << bad;
    spec = a_spec();
    spec.mounts.push_back({Digest{}, bad});
    EXPECT_THAT(check_spec(spec), gridctl::testing::FailsWith(Code::refused)) << bad;
  }
  for (const char* root : {"/", "//", "///"}) {
    auto spec = a_spec();
    spec.checkpoint_path = root;
    EXPECT_THAT(check_spec(spec), gridctl::testing::FailsWith(Code::refused)) << root;
    spec = a_spec();
    spec.mounts.push_back({Digest{}, root});
    EXPECT_THAT(check_spec(spec), gridctl::testing::FailsWith(Code::refused)) << root;
  }
  auto option = a_spec();
  option.image = "--privileged";
  EXPECT_THAT(check_spec(option), gridctl::testing::FailsWith(Code::refused));
  wire::AttemptSpec many = a_spec();  // each is small enough, and all together are what no program can be started with
  for (int i = 0; i < 8; ++i) many.envs["V" + std::to_string(i)] = std::string(60'000, 'x');
  EXPECT_THAT(check_spec(many), gridctl::testing::IsOk());
  for (int i = 8; i < 10; ++i) many.envs["V" + std::to_string(i)] = std::string(60'000, 'x');
  EXPECT_THAT(check_spec(many), gridctl::testing::FailsWith(Code::refused));
  auto variable = a_spec();
  variable.envs["A=B"] = "x";
  EXPECT_THAT(check_spec(variable), gridctl::testing::FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(a_spec(), {{"../x", "y"}}), gridctl::testing::FailsWith(Code::refused));
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
}  // namespace gridctl::agent::engine_test
