// SPDX-License-Identifier: Apache-2.0
#include "config/job_file.hpp"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "os/process.hpp"
#include "support/temp_dir.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::job_file_test {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Interval = job::CheckpointPolicy::Interval;

ParsedJob parsed(std::string_view text, Overrides overrides = {}) {
  auto job = parse_job_file(text, "job.yaml", ada_s_laptop(std::move(overrides)));
  EXPECT_TRUE(job) << job.error().message;
  return job ? *std::move(job) : ParsedJob{};
}
std::string refusal(std::string_view text, Overrides overrides = {}) {
  const auto job = parse_job_file(text, "job.yaml", ada_s_laptop(std::move(overrides)));
  return job ? "accepted" : job.error().message;
}

TEST(JobFile, ReadsEveryKeyOfTheContract) {
  const ParsedJob job = parsed(R"(name: train-gpt
resources: {accelerators: "nvidia:A100,H100:40GB..:2", cpus: 4+, memory: 16+, disk: 50+}
num_nodes: 1
image: pytorch/pytorch:2.4.0
workdir: .
envs: {LR: "3e-4"}
secrets: {HF_TOKEN: null}
file_mounts: {/data: ./data}
setup: pip install -r requirements.txt
run: python train.py
resume_run: python train.py --resume
checkpoint: {path: out, interval: 15m, keep: 5, standby: true}
recovery: {lost_after: 90s, max_failures: 4, on_exit: {restart: [33], fail: [2]}, lease: 12h}
constraints: {region: {in: [DE, FI], not: [US]}, class: [datacenter, home], max_price: 1.5}
budget: {total: 50}
max_duration: 2d
priority: -5
owner: vision
replication: {replicas: 3, mode: active}
deadline: {at: 6h, hard: true}
)");
  job::Spec want;
  want.name = "train-gpt";
  want.resources = {{{Vendor::nvidia, {"A100", "H100"}, 40'000'000'000, {}, 2, 2}}, 4, 16ull << 30, 50ull << 30};
  want.image = "pytorch/pytorch:2.4.0";
  want.workdir = "/home/ada/job";
  want.envs = {{"LR", "3e-4"}};
  want.secrets = {"HF_TOKEN"};
  want.file_mounts = {{"/data", "/home/ada/job/data"}};
  want.setup = "pip install -r requirements.txt";
  want.run = "python train.py";
  want.resume_run = "python train.py --resume";
  want.checkpoint = {"out", Interval::fixed, 15min, job::KeepPolicy::newest(5), true};
  want.recovery = {90s, 4, {33}, {2}, 12h};
  want.constraints = {{"DE", "FI"}, {"US"}, {"datacenter", "home"}, 1.5, {}, {}};
  want.budget_total = 50;
  want.max_duration = 48h;
  want.priority = -5;
  want.owner = "vision";
  want.twins = 3;
  want.deadline = job::Deadline{std::nullopt, 6h, true};
  EXPECT_EQ(job.spec, want) << job::to_json(job.spec);
  EXPECT_EQ(job.secrets, (std::map<std::string, std::string>{{"HF_TOKEN", "hf_canary"}}));
  EXPECT_TRUE(job.warnings.empty());
}

TEST(JobFile, ReadsOutputs) {
  const ParsedJob job =
      parsed("run: x\noutputs: [result.txt, ./logs/*.csv, {from: models/, when: success, sync: 5m}]\n");
  EXPECT_THAT(job.spec.outputs, ElementsAre(job::Output{"result.txt"}, job::Output{"logs/*.csv"},
                                            job::Output{"models/", job::OutputWhen::success, 5min}));
  EXPECT_EQ(*job::parse_spec(job::to_json(job.spec)), job.spec);
  EXPECT_THAT(refusal("run: x\noutputs: [/etc/passwd]\n"), HasSubstr("must be relative to the working directory"));
  EXPECT_THAT(refusal("run: x\noutputs: [a/../../b]\n"), HasSubstr("is outside the working directory"));
  EXPECT_THAT(refusal("run: x\noutputs: [{from: a, when: sucess}]\n"), HasSubstr("did you mean 'success'?"));
  EXPECT_THAT(refusal("run: x\noutputs: {a: b}\n"), HasSubstr("a list such as"));
}

TEST(JobFile, ReadsWhetherTheRootOfItsContainerIsWritable) {
  EXPECT_EQ(parsed("run: x\n").spec.root_writable, std::nullopt);
  EXPECT_EQ(parsed("run: x\ncontainer: {root: read-only}\n").spec.root_writable, false);
  EXPECT_EQ(parsed("run: x\ncontainer: {root: writable}\n").spec.root_writable, true);
  EXPECT_THAT(refusal("run: x\ncontainer: {root: yes}\n"), HasSubstr("expected writable or read-only"));
}

TEST(JobFile, WritesItsEnvsIntoTheCheckpointPathOrRefusesIt) {
  EXPECT_EQ(parsed("run: x\nenvs: {OUT: ckpt}\ncheckpoint: {path: $OUT/a}\n").spec.checkpoint.path, "ckpt/a");
  EXPECT_THAT(refusal("run: x\ncheckpoint: {path: $OUT}\n"), HasSubstr("not among the job's envs"));
  EXPECT_THAT(refusal("run: x\ncheckpoint: {path: ~/out}\n"), HasSubstr("a different home directory on each host"));
  EXPECT_THAT(refusal("run: x\ncheckpoint: {path: ../out}\n"), HasSubstr("'..'"));
}

TEST(JobFile, IsUtf8AndNothingElse) {
  // The first and the last character of each length, and those that would come before or after them.
  for (const char* good : {"\x7E", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBD"})
    EXPECT_EQ(parsed(std::string("run: x\nenvs: {A: \"") + good + "\"}\n").spec.envs.at("A"), good);
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80",
                          "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_THAT(refusal(std::string("run: x\nenvs: {A: \"") + bad + "\"}\n"), HasSubstr("2:12: not valid UTF-8"));
}

TEST(JobFile, TellsOfAllItsErrorsInTheirOrder) {
  const auto job =
      parse_job_file("nmae: x\nrun: y\nresources: {cpus: many}\nbudget: {total: -1}\nsetpu: z\ncheckpoint: {keep: 0}\n",
                     "job.yaml", ada_s_laptop());
  ASSERT_FALSE(job);
  EXPECT_TRUE(job.error().message.starts_with("job.yaml:1:1: key 'nmae'")) << job.error().message;
  EXPECT_THAT(job.error().context, ElementsAre(HasSubstr("job.yaml:3:"), HasSubstr("job.yaml:4:"),
                                               HasSubstr("job.yaml:5:1: key 'setpu'"), HasSubstr("job.yaml:6:")));
}

TEST(JobFile, HasDefaults) {
  const job::Spec spec = parsed("run: x\n").spec;
  EXPECT_EQ(spec.name, "job");
  EXPECT_EQ(spec.recovery, job::RecoveryPolicy{});
  EXPECT_EQ(spec.checkpoint, job::CheckpointPolicy{});
  EXPECT_EQ(parse_job_file("run: x", "dir/Train GPT.yaml", ada_s_laptop())->spec.name, "train-gpt");
}

TEST(JobFile, TakesScalarsAsTheSchemaWantsThem) {
  const job::Spec spec =
      parsed("constraints: {region: NO}\nenvs: {A: NO, B: 010, C: 1e999, D: yes, E: ~x}\nrun: on\n").spec;
  EXPECT_THAT(spec.constraints.region_in, ElementsAre("NO"));
  EXPECT_EQ(spec.envs.at("A"), "NO");
  EXPECT_EQ(spec.envs.at("B"), "010");
  EXPECT_EQ(spec.envs.at("C"), "1e999");
  EXPECT_EQ(spec.envs.at("D"), "yes");
  EXPECT_EQ(spec.run, "on");
}

TEST(JobFile, KnowsTheThreeKindsOfCheckpointInterval) {
  EXPECT_EQ(parsed("checkpoint: {interval: auto}\nrun: x").spec.checkpoint.interval, Interval::automatic);
  EXPECT_EQ(parsed("checkpoint: {interval: off}\nrun: x").spec.checkpoint.interval, Interval::off);
  EXPECT_EQ(parsed("checkpoint: {interval: 90}\nrun: x").spec.checkpoint.every, 90s);
  EXPECT_EQ(parsed("checkpoint: {upload_limit: 20MB/s}\nrun: x").spec.checkpoint.upload_limit, 20'000'000u);
  EXPECT_EQ(parsed("checkpoint: {upload_limit: 100kB}\nrun: x").spec.checkpoint.upload_limit, 100'000u);
  EXPECT_EQ(parsed("checkpoint: {whole_when: 'step-*/done.json'}\nrun: x").spec.checkpoint.whole_when,
            "step-*/done.json");
}

TEST(JobFile, TakesADeadlineAsALengthOrATime) {
  EXPECT_EQ(parsed("deadline: 90m\nrun: x").spec.deadline, (job::Deadline{std::nullopt, 90min, false}));
  const auto moment = parse_rfc3339("2026-12-01T08:00:00Z").value();
  EXPECT_EQ(parsed("deadline: 2026-12-01T08:00:00Z\nrun: x").spec.deadline, (job::Deadline{moment, {}, false}));
  EXPECT_EQ(parsed("deadline: {at: '2026-12-01T09:00:00+01:00'}\nrun: x").spec.deadline->at, moment);
  const char* wanted = "expected a duration of at least 1s such as 6h, or a time such as 2026-12-01T08:00:00Z, got ";
  EXPECT_EQ(refusal("run: x\ndeadline: soon"), std::string("job.yaml:2:11: key 'deadline': ") + wanted + "'soon'");
  EXPECT_EQ(refusal("run: x\ndeadline: {at: 2026-12-01}"),
            std::string("job.yaml:2:16: key 'deadline.at': ") + wanted + "'2026-12-01'");
  EXPECT_EQ(refusal("run: x\ndeadline: {hard: true}"),
            std::string("job.yaml:2:11: key 'deadline.at': ") + wanted + "nothing");
  EXPECT_THAT(refusal("deadline: {at: 6h, firm: true}\nrun: x"), HasSubstr("key 'deadline.firm': not a known key"));
}

TEST(JobFile, ResolvesPathsAgainstItsOwnDirectory) {
  const job::Spec spec = parsed("image: ./image.tar\nworkdir: ~/code\nfile_mounts: {/d/: data/../data/}\nrun: x").spec;
  EXPECT_EQ(spec.image, "/home/ada/job/image.tar");
  EXPECT_TRUE(spec.image_is_archive);
  EXPECT_EQ(spec.workdir, "/home/ada/code");
  EXPECT_EQ(spec.file_mounts.at(0).source, "/home/ada/job/data");
}

TEST(JobFile, APathThatIsNotBesideTheFileStartsWhereTheCallerIs) {
  Context context = ada_s_laptop();
  context.caller_directory = "/home/ada";
  const auto workdir = [&](std::string_view path) {
    const auto job = parse_job_file("run: x\nworkdir: " + std::string(path) + "\n", "job.yaml", context);
    return job ? job->spec.workdir : job.error().message;
  };
  EXPECT_EQ(workdir("job/data"), "/home/ada/job/data");
  EXPECT_EQ(workdir("data"), "/home/ada/job/data");
  EXPECT_THAT(workdir("nowhere"), HasSubstr("no such directory: '/home/ada/job/nowhere'"));
}

TEST(JobFile, NormalisesPathsInTheJob) {
  const job::Spec spec =
      parsed("checkpoint: {path: ./out//a/}\nfile_mounts: {./in//: ./data, ~/x: ./data, /d/: ./data}\nrun: x").spec;
  EXPECT_EQ(spec.checkpoint.path, "out/a");
  EXPECT_EQ(spec.file_mounts.at(0).target, "in/");
  EXPECT_EQ(spec.file_mounts.at(1).target, "~/x");
  EXPECT_EQ(spec.file_mounts.at(2).target, "/d/");
  EXPECT_THAT(refusal("file_mounts: {/d: ./data, /d/: ./data}\nrun: x"), HasSubstr("is mounted twice"));
  EXPECT_THAT(refusal("file_mounts: {'/a,b': ./data}\nrun: x"), HasSubstr("without quotes, commas and backslashes"));
}

TEST(JobFile, WarnsOfASecretWrittenOut) {
  const ParsedJob job = parsed("secrets: {TOKEN: abc}\nrun: x");
  EXPECT_EQ(job.secrets.at("TOKEN"), "abc");
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("job.yaml:1:11: key 'secrets.TOKEN'")));
  EXPECT_THAT(job.warnings.at(0), Not(HasSubstr("abc")));
}

TEST(JobFile, NeverShowsASecretInAnError) {
  EXPECT_THAT(refusal("secrets: {TOKEN: [canary]}\nrun: x"), Not(HasSubstr("canary")));
}

TEST(JobFile, LetsTheCommandLineWin) {
  Overrides options;
  options.name = "other";
  options.gpu = "H100:8";
  options.cpus = "8";
  options.memory = "32+";
  options.image = "ubuntu:22.04";
  options.envs = {"MODEL=7b", "LR"};
  options.providers = {"bob"};
  const job::Spec spec =
      parsed("name: a\nenvs: {MODEL: null, LR: 1}\nimage: ./none.tar\nresources: {accelerators: T4}\nrun: x", options)
          .spec;
  EXPECT_EQ(spec.name, "other");
  EXPECT_EQ(spec.resources.gpus, (std::vector<job::GpuRequest>{{{}, {"H100"}, {}, {}, 8, 8}}));
  EXPECT_EQ(spec.resources.cpus, 8);
  EXPECT_EQ(spec.resources.memory_bytes, 32ull << 30);
  EXPECT_EQ(spec.image, "ubuntu:22.04");
  EXPECT_EQ(spec.envs, (std::map<std::string, std::string>{{"LR", "0.5"}, {"MODEL", "7b"}}));
  EXPECT_THAT(spec.constraints.providers, ElementsAre("bob"));
}

TEST(JobFile, NamesABadOption) {
  const auto with = [](auto set) {
    Overrides options;
    set(options);
    return refusal("run: x", options);
  };
  EXPECT_THAT(with([](Overrides& o) { o.gpu = "A100:8:x"; }), HasSubstr("--gpu: expected vendor:names"));
  EXPECT_THAT(with([](Overrides& o) { o.cpus = "x"; }), HasSubstr("--cpus: expected a number of CPUs"));
  EXPECT_THAT(with([](Overrides& o) { o.memory = "x"; }), HasSubstr("--memory: expected a number of GiB"));
  EXPECT_THAT(with([](Overrides& o) { o.name = "A b"; }), HasSubstr("--name: job name 'A b'"));
  EXPECT_THAT(with([](Overrides& o) { o.envs = {"1X=2"}; }), HasSubstr("--env: expected a name"));
  EXPECT_THAT(with([](Overrides& o) { o.envs = {"NOPE"}; }), HasSubstr("NOPE is not set in this environment"));
  EXPECT_THAT(with([](Overrides& o) { o.image = "-x"; }), HasSubstr("--image: expected an image reference"));
  EXPECT_THAT(with([](Overrides& o) { o.providers = {"X_"}; }), HasSubstr("--provider: "));
}

TEST(SkyPilotFile, MapsItsRecoveryOntoOurs) {
  const job::Spec spec = parsed(
                             "resources:\n  job_recovery: {strategy: EAGER_NEXT_REGION, max_restarts_on_errors: 7, "
                             "recover_on_exit_codes: [33, 34]}\nrun: x")
                             .spec;
  EXPECT_EQ(spec.recovery.max_failures, 7);
  EXPECT_THAT(spec.recovery.restart_on, ElementsAre(33, 34));
}

TEST(SkyPilotFile, TakesListsInOrderAndMappingsAsAnyOf) {
  const auto gpus = [](const char* value) {
    return parsed(std::string("resources: {accelerators: ") + value + "}\nrun: x").spec.resources.gpus;
  };
  EXPECT_EQ(gpus("[H100:8, A100:8]").size(), 2u);
  ASSERT_EQ(gpus("{L4: 1, A100: 1}").size(), 1u);
  EXPECT_THAT(gpus("{L4: 1, A100: 1}")[0].names, ElementsAre("L4", "A100"));
  EXPECT_EQ(gpus("{L4: 2, A100: 1}").size(), 2u);
  EXPECT_TRUE(gpus("none").empty());
}

TEST(SkyPilotFile, TakesAnyOfAndOrdered) {
  const ParsedJob any =
      parsed("resources:\n  any_of:\n  - {accelerators: A100:1, infra: aws}\n  - {accelerators: H100:1}\nrun: x");
  ASSERT_EQ(any.spec.resources.gpus.size(), 1u);
  EXPECT_THAT(any.spec.resources.gpus[0].names, ElementsAre("A100", "H100"));
  EXPECT_THAT(any.warnings, ElementsAre(HasSubstr("'resources.any_of[0].infra' is ignored")));
  const ParsedJob ordered = parsed("resources:\n  ordered:\n  - accelerators: A100\n  - accelerators: H100\nrun: x");
  EXPECT_EQ(ordered.spec.resources.gpus.size(), 2u);
}

TEST(SkyPilotFile, PinsInfraToARegisteredProviderOnly) {
  EXPECT_THAT(parsed("resources: {infra: ssh/bob}\nrun: x").spec.constraints.providers, ElementsAre("bob"));
  const ParsedJob other = parsed("resources: {infra: ssh/pool}\nrun: x");
  EXPECT_TRUE(other.spec.constraints.providers.empty());
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr("no provider is called 'pool'")));
}

TEST(SkyPilotFile, ClonesItsWorkdirOnTheHost) {
  const ParsedJob job =
      parsed("run: x\nsetup: make\nenvs: {TAG: v1}\nworkdir: {url: https://git.example/x.git, ref: $TAG}\n");
  EXPECT_THAT(job.spec.setup, HasSubstr("git clone --quiet https://git.example/x.git .gridctl-clone"));
  EXPECT_THAT(job.spec.setup, HasSubstr("checkout --quiet v1"));
  EXPECT_TRUE(job.spec.setup.ends_with("make"));
  EXPECT_EQ(job.warnings.size(), 1u);
  EXPECT_THAT(refusal("run: x\nworkdir: {url: --upload-pack=evil}\n"), HasSubstr("expected the address"));
}

TEST(SkyPilotFile, HasItsCloneWhereItRunsAndKeepsIt) {
  const gridctl::testing::TempDir folder;
  std::filesystem::create_directories(folder / "job");
  const auto shell = [&](const std::string& script) {
    const auto done = os::run({"sh", "-c", "cd '" + folder.path().string() + "'\n" + script});
    return done && done->status.success() ? std::string(trim(done->out)) : "failed";
  };
  ASSERT_EQ(shell("git init -q repo && cd repo && git config user.name a && git config user.email b\n"
                  "echo 1 > file && git add file && git commit -qm 1 && git tag v1 && echo 2 > file && git commit -qam 2"),
            "");
  const ParsedJob job =
      parsed("run: x\nsetup: echo made >> file\nworkdir: {url: " + (folder / "repo").string() + ", ref: v1}\n");
  EXPECT_EQ(shell("cd job\n" + job.spec.setup + "\ncat file; ls -A"), "1\nmade\n.git\nfile");
  EXPECT_EQ(shell("cd job\n" + job.spec.setup + "\ncat file"), "1\nmade\nmade") << "it is not cloned again";
}

TEST(SkyPilotFile, TakesItsDiskSizeForNoCondition) {
  const ParsedJob job = parsed("run: x\nresources: {disk_size: 2000}\n");
  EXPECT_EQ(job.spec.resources.disk_bytes, 0u);
  ASSERT_EQ(job.warnings.size(), 1u);
  EXPECT_THAT(job.warnings[0], HasSubstr("'disk: 100' requires free space"));
}

TEST(SkyPilotFile, IgnoresCloudKeysWithAWarningEach) {
  const ParsedJob job =
      parsed("resources: {cloud: aws, region: us-east-1, use_spot: true, disk_tier: best}\nrun: x");
  EXPECT_EQ(job.warnings.size(), 4u);
}

TEST(SkyPilotFile, WithAnInstanceTypeAloneIsRefusedIfThatHasGpus) {
  const auto refused = [](const std::string& type) { return refusal("run: x\nresources: {instance_type: " + type + "}\n"); };
  EXPECT_THAT(refused("p4d.24xlarge"), HasSubstr("'accelerators: A100:8'"));
  EXPECT_THAT(refused("g5.2xlarge"), HasSubstr("'accelerators: A10G:1'"));
  EXPECT_THAT(refused("g5.7xlarge"), HasSubstr("'accelerators: A10G:COUNT'"));
  EXPECT_THAT(refused("a2-highgpu-4g"), HasSubstr("'accelerators: A100:4'"));
  EXPECT_THAT(refused("Standard_NC24ads_A100_v4"), HasSubstr("'accelerators: NAME:COUNT'"));
  EXPECT_THAT(refusal("run: x\nresources: {any_of: [{accelerators: T4}, {instance_type: p3.2xlarge}]}\n"), HasSubstr("V100:1"));
  for (const char* type : {"m5.large", "n2-standard-8", "Standard_D4s_v5", "x.y", "''"})
    EXPECT_EQ(parsed("run: x\nresources: {instance_type: " + std::string(type) + "}\n").warnings.size(), 1u) << type;
  EXPECT_EQ(parsed("run: x\nresources: {instance_type: p4d.24xlarge, accelerators: A100:8}\n").warnings.size(), 1u);
}

TEST(JobFile, RestartsALoneJobThatHangsOnlyWhenAsked) {
  EXPECT_FALSE(parsed("run: x\n").spec.recovery.restart_one);
  EXPECT_FALSE(parsed("run: x\nrecovery: {hangs: tell}\n").spec.recovery.restart_one);
  const job::Spec spec = parsed("run: x\nrecovery: {hangs: restart, hang_after: 5m}\n").spec;
  EXPECT_TRUE(spec.recovery.restart_one);
  EXPECT_EQ(spec.recovery.hang_after, std::chrono::minutes{5});
  EXPECT_EQ(*job::parse_spec(job::to_json(spec)), spec);
  EXPECT_THAT(refusal("run: x\nrecovery: {hang_after: 1s}\n"), HasSubstr("hang_after"));
}

TEST(JobFile, NamesTheSignalThatWarns) {
  EXPECT_EQ(parsed("run: x\n").spec.recovery.notice, 0);
  const job::Spec spec = parsed("run: x\nrecovery: {notice: USR1}\n").spec;
  EXPECT_EQ(spec.recovery.notice, SIGUSR1);
  EXPECT_EQ(*job::parse_spec(job::to_json(spec)), spec);
  EXPECT_THAT(refusal("run: x\nrecovery: {notice: KILL}\n"), HasSubstr("USR1, USR2 or HUP"));
}

TEST(JobFile, DeclaresItsPorts) {
  const auto ports = [](const std::string& text) { return parsed(text + "\nrun: x").spec.envs["GRIDCTL_FORWARD_PORTS"]; };
  EXPECT_EQ(ports("ports: 8888"), "8888");
  EXPECT_EQ(ports("ports: [8888, 6006, 8000-8002]"), "6006,8000,8001,8002,8888");
  EXPECT_EQ(ports("resources: {ports: 80}"), "80") << "where SkyPilot has it";
  EXPECT_THAT(refusal("ports: 70000\nrun: x"), HasSubstr("ports from 1 to 65535"));
  EXPECT_THAT(refusal("ports: 1-300\nrun: x"), HasSubstr("at most 256"));
  EXPECT_THAT(refusal("ports: 0\nrun: x"), HasSubstr("ports from 1 to 65535"));
}

TEST(SkyPilotFile, WritesItsEnvsIntoMountsAndImage) {
  const job::Spec spec = parsed(
                             "envs: {D: data, IMG: ubuntu}\nresources: {image_id: 'docker:${IMG}:22.04'}\n"
                             "file_mounts: {'/in/$D': './${D}'}\nrun: echo $D")
                             .spec;
  EXPECT_EQ(spec.image, "ubuntu:22.04");
  EXPECT_EQ(spec.file_mounts.at(0), (job::Mount{"/in/data", "/home/ada/job/data"}));
  EXPECT_EQ(spec.run, "echo $D");
}

TEST(SkyPilotFile, RenamesWhatOurNamesDoNotAllow) {
  const ParsedJob job = parsed("name: My_Task.1\nrun: x");
  EXPECT_EQ(job.spec.name, "my-task-1");
  EXPECT_EQ(job.warnings.size(), 1u);
}

TEST(JobFile, LeavesSeveralHostsToTheCaller) { EXPECT_EQ(parsed("num_nodes: 4\nrun: x").spec.num_nodes, 4); }

TEST(JobFile, ReadsWhatAGangMayDo) {
  const job::Spec spec =
      parsed(
          "num_nodes: 2..4\nspares: 1\nranks_per_node: 8\nlauncher: torchrun\nrun: x\n"
          "checkpoint: {shards: local}\nrecovery: {stragglers: replace, hangs: tell, restore_from: trusted, exact: required}\n"
          "constraints: {interconnect: any, traffic: clear}\n")
          .spec;
  EXPECT_THAT(parsed("num_nodes: 2..4\nspares: 1\nrun: x\ncheckpoint: {shards: local}\n").warnings,
              ::testing::IsEmpty());
  EXPECT_EQ(spec.num_nodes, 4);
  EXPECT_EQ(spec.gang.nodes_min, 2);
  EXPECT_EQ(spec.gang.spares, 1);
  EXPECT_EQ(spec.gang.ranks_per_node, 8);
  EXPECT_TRUE(spec.checkpoint.local_shards);
  EXPECT_EQ(spec.recovery.stragglers, job::Stragglers::replace);
  EXPECT_EQ(spec.recovery.hangs, job::Hangs::tell);
  EXPECT_EQ(spec.recovery.restore_from, job::RestoreFrom::trusted);
  EXPECT_EQ(parsed("run: x\nrecovery: {restore_from: any}\n").spec.recovery.restore_from, job::RestoreFrom::any);
  EXPECT_EQ(parsed("run: x\nrecovery: {max_failures: 1}\n").spec.recovery.restore_from, job::RestoreFrom::own_class);
  EXPECT_TRUE(spec.constraints.clear_traffic);
  EXPECT_FALSE(parsed("run: x\nconstraints: {traffic: protected}\n").spec.constraints.clear_traffic);
  EXPECT_TRUE(parsed("run: x\nconstraints: {unmeasured: allow}\n").spec.constraints.unmeasured);
  EXPECT_TRUE(parsed("run: x\nconstraints: {unproven: allow}\n").spec.constraints.unproven);
  EXPECT_TRUE(parsed("run: x\nconstraints: {images: tags}\n").spec.constraints.image_tags);
  EXPECT_FALSE(parsed("run: x\nconstraints: {images: digests}\n").spec.constraints.image_tags);
  EXPECT_THAT(refusal("run: x\nconstraints: {traffic: open}\n"), HasSubstr("expected protected or clear"));
  EXPECT_TRUE(spec.recovery.exact_required);
  EXPECT_TRUE(spec.constraints.any_interconnect);
  EXPECT_EQ(*job::parse_spec(job::to_json(spec)), spec);
  EXPECT_EQ(parsed("num_nodes: 3..3\nrun: x").spec.gang.nodes_min, 0) << "that is no range";
}

TEST(JobFile, RefusesGangsThatCannotBe) {
  EXPECT_THAT(refusal("num_nodes: 4..2\nrun: x"), HasSubstr("a range such as 2..4"));
  EXPECT_THAT(refusal("num_nodes: 0..2\nrun: x"), HasSubstr("a range such as 2..4"));
  EXPECT_THAT(refusal("num_nodes: many\nrun: x"), HasSubstr("key 'num_nodes'"));
  EXPECT_THAT(refusal("spares: 1\nrun: x"), HasSubstr("expected num_nodes above 1"));
  EXPECT_THAT(refusal("ranks_per_node: 0\nrun: x"), HasSubstr("key 'ranks_per_node'"));
  EXPECT_THAT(refusal("recovery: {stragglers: kill}\nrun: x"), HasSubstr("expected tell or replace"));
  EXPECT_THAT(refusal("checkpoint: {shards: some}\nrun: x"), HasSubstr("expected all or local"));
  EXPECT_THAT(refusal("constraints: {interconnect: slow}\nrun: x"), HasSubstr("expected fast or any"));
}

TEST(JobFile, WantsALeaseThatOutlastsTheSilenceOfItsHost) {
  EXPECT_THAT(refusal("recovery: {lost_after: 60s, lease: 60s}\nrun: x"), HasSubstr("must be longer than lost_after"));
  EXPECT_EQ(parsed("recovery: {lost_after: 60s, lease: 61s}\nrun: x").spec.recovery.lease, 61s);
}

TEST(JobFile, ReadsEveryTemplate) {
  int found = 0, services = 0;
  for (const auto& folder : std::filesystem::directory_iterator(GRIDCTL_SOURCE_DIR "/cmd/templates")) {
    if (!folder.is_directory()) continue;
    ++found;
    std::ifstream file(folder.path() / "job.yaml");
    std::stringstream text;
    text << file.rdbuf();
    const ParsedJob job = parsed(text.str());
    EXPECT_TRUE(job.warnings.empty()) << folder.path() << ": " << job.warnings.front();
    if (job.spec.service) {
      ++services;
      const std::string port = "--port " + std::to_string(job.spec.service->port);
      EXPECT_THAT(job.spec.run, ::testing::AllOf(HasSubstr("\"$MODEL\""), HasSubstr("127.0.0.1"), HasSubstr(port))) << folder.path();
      EXPECT_EQ(job.spec.service->path, "/health") << folder.path();
      EXPECT_TRUE(job.spec.envs.contains("MODEL")) << folder.path();
    } else {
      EXPECT_EQ(job.spec.run, "python3 train.py") << folder.path();
    }
  }
  EXPECT_EQ(found, 14);
  EXPECT_EQ(services, 4);
}
}  // namespace
}  // namespace gridctl::config::job_file_test
