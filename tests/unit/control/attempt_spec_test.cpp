// SPDX-License-Identifier: Apache-2.0
#include "control/follow/attempt_spec.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "control/follow/gang_backend.hpp"

namespace gridctl::control::attempt_spec_test {
namespace {

class AttemptSpec : public ::testing::Test {
 protected:
  AttemptSpec() {
    job.id = {"abc"};
    job.name = "train";
    job.spec.run = "python train.py";
    job.spec.resume_run = "python train.py --resume";
    attempt.number = {2};
    attempt.epoch = {5};
    attempt.members = {job::Member{0, {"lab"}, EngineKind::podman, {"GPU-1", "GPU-2"}, 4, 1 << 30, 0}};
  }
  wire::AttemptSpec build() {
    registry::Provider host;
    host.host = "10.0.0.7";
    for (const std::string& uuid : attempt.lead().gpu_uuids) {
      Gpu gpu;
      gpu.uuid = uuid;
      gpu.vendor = vendor.value_or(Vendor::other);
      if (vendor) host.inventory.edit().gpus.push_back(gpu);
    }
    return build_attempt_spec({job,
                               attempt,
                               attempt.lead(),
                               inputs,
                               restore,
                               std::vector(attempt.members.size(), host),
                               {},
                               std::chrono::minutes{15},
                               "host_lost",
                               std::chrono::seconds{20},
                               lent,
                               lent});
  }
  registry::Checkpoint checkpoint(const std::string& how) {
    registry::Checkpoint c;
    c.seq = {3};
    c.root.bytes[0] = std::byte{7};
    c.how = how;
    return c;
  }

  registry::Job job;
  job::Attempt attempt;
  std::vector<registry::Input> inputs;
  std::optional<registry::Checkpoint> restore;
  std::optional<Vendor> vendor = Vendor::nvidia;
  bool lent = false;
};

TEST_F(AttemptSpec, NamesTheImageByDigestToAHostOfOthers) {
  job.spec.image = "debian:12";
  job.spec.image_digests["debian:12"] = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(build().image, "debian:12");
  lent = true;
  EXPECT_EQ(build().image, "docker.io/library/debian@sha256:" + std::string(64, 'a'));
  job.spec.constraints.image_tags = true;
  EXPECT_EQ(build().image, "debian:12");
}

TEST_F(AttemptSpec, UsesResumeRunOnlyWhenSomethingIsRestored) {
  EXPECT_EQ(build().run, "python train.py");
  EXPECT_EQ(build().envs.at("GRIDCTL_RESUME_FROM"), "");
  restore = checkpoint("format");
  EXPECT_EQ(build().run, "python train.py --resume");
  EXPECT_EQ(build().envs.at("GRIDCTL_RESUME_FROM"), "abc@3");
  EXPECT_EQ(build().restore, restore->root);
}

TEST_F(AttemptSpec, NamesTheAttemptAndWhereItRuns) {
  const wire::AttemptSpec spec = build();
  EXPECT_EQ(spec.job.value + " " + spec.job_name, "abc train");
  EXPECT_EQ(spec.attempt.value, 2u);
  EXPECT_EQ(spec.epoch.value, 5u);
  EXPECT_EQ(spec.engine, EngineKind::podman);
}

TEST_F(AttemptSpec, CarriesBothIntervals) {
  job.spec.checkpoint.signal = SIGUSR1;
  EXPECT_EQ(build().envs.at("GRIDCTL_CKPT_INTERVAL"), "900");
  EXPECT_EQ(build().checkpoint_min_interval, std::chrono::seconds{20});
  EXPECT_EQ(build().interval_signal, SIGUSR1);
  job.spec.recovery.notice = SIGUSR2;
  EXPECT_EQ(build().notice_signal, SIGUSR2);
}

TEST_F(AttemptSpec, KeepsAJobToItsCommitMarkers) {
  restore = checkpoint("quiet");
  EXPECT_FALSE(build().checkpoint_by_marker);
  restore = checkpoint("commit-marker");
  EXPECT_TRUE(build().checkpoint_by_marker);
}

TEST_F(AttemptSpec, TellsTheJobWhatTheContractPromises) {
  const auto env = build().envs;
  for (const char* name :
       {"JOB_ID", "JOB_NAME", "ATTEMPT", "EPOCH", "NODE_RANK", "NUM_NODES", "NODE_IPS", "MASTER_ADDR", "MASTER_PORT",
        "GPUS_PER_NODE", "GPU_VENDOR", "BACKEND", "WORLD_SCALE", "CKPT_INTERVAL", "RESUME_FROM", "RESTART_REASON"})
    EXPECT_TRUE(env.contains(std::string("GRIDCTL_") + name)) << name;
  EXPECT_EQ(env.at("GRIDCTL_GPUS_PER_NODE"), "2");
  EXPECT_EQ(env.at("GRIDCTL_BACKEND"), "nccl");
  EXPECT_EQ(env.at("GRIDCTL_CKPT_INTERVAL"), "900");
  EXPECT_EQ(env.at("GRIDCTL_RESTART_REASON"), "host_lost");
  EXPECT_EQ(env.at("SKYPILOT_TASK_ID"), "abc");
}

TEST_F(AttemptSpec, TellsAnElasticGangBySizeHowMuchMoreEachRankDoes) {
  EXPECT_EQ(build().envs.at("GRIDCTL_WORLD_SCALE"), "1");
  job.spec.num_nodes = 4;
  job.spec.gang.nodes_min = 1;
  EXPECT_EQ(build().envs.at("GRIDCTL_WORLD_SCALE"), "4") << "it runs on one host";
  job.spec.num_nodes = 3;
  attempt.members.push_back(attempt.members.front());
  attempt.members.back().rank = 1;
  EXPECT_EQ(build().envs.at("GRIDCTL_NUM_NODES"), "2");
  EXPECT_EQ(build().envs.at("GRIDCTL_WORLD_SCALE"), "1.5");
}

TEST_F(AttemptSpec, ShowsAPlainJobNothingOfAnyLauncher) {
  for (const auto& [name, value] : build().envs)
    EXPECT_TRUE(name.starts_with("GRIDCTL_") || name.starts_with("SKYPILOT_")) << name << "=" << value;
}

TEST_F(AttemptSpec, StartsARankForEachGpuOfTheHostWhereTheLauncherWantsThat) {
  job.spec.launcher = job::Launcher::torchrun;
  const wire::AttemptSpec two = build();
  ASSERT_TRUE(two.gang);
  EXPECT_EQ(two.gang->world_size(), 2u);
  EXPECT_EQ(two.gang->members.at(0).address, "127.0.0.1");
  EXPECT_GE(two.gang->port, 20'000);
  EXPECT_EQ(two.gang->restarts, 1u) << "it is the second attempt";
  EXPECT_FALSE(two.envs.contains("RANK")) << "each rank gets its own";
  EXPECT_FALSE(two.gang->self_starting);
  job.spec.run = "torchrun --nproc-per-node 2 train.py";
  EXPECT_TRUE(build().gang->self_starting);
  job.spec.launcher = job::Launcher::plain;
  EXPECT_FALSE(build().gang);
}

TEST_F(AttemptSpec, SetsTheLaunchersVariablesWhenTheJobAsksForThem) {
  job.spec.gang.ranks_per_node = 1;
  job.spec.launcher = job::Launcher::torchrun;
  EXPECT_EQ(build().envs.at("WORLD_SIZE"), "1");
  EXPECT_EQ(build().envs.at("TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_FALSE(build().envs.contains("SLURM_JOB_ID"));
  job.spec.launcher = job::Launcher::slurm_env;
  EXPECT_EQ(build().envs.at("SLURM_JOB_ID"), "abc");
  EXPECT_FALSE(build().envs.contains("RANK"));
}

TEST_F(AttemptSpec, NamesTheBackendThatTheJobFileAsksFor) {
  job.spec.workload.backend = job::Backend::gloo;
  EXPECT_EQ(build().envs.at("GRIDCTL_BACKEND"), "gloo");
}

TEST_F(AttemptSpec, LetsTheUsersVariablesWin) {
  job.spec.envs = {{"WORLD_SIZE", "8"}, {"LR", "3e-4"}};
  EXPECT_EQ(build().envs.at("WORLD_SIZE"), "8");
  EXPECT_EQ(build().envs.at("LR"), "3e-4");
}

TEST_F(AttemptSpec, SendsInputsByTheirRoles) {
  Digest root;
  root.bytes[1] = std::byte{1};
  inputs = {{"workdir", "", root, 1}, {"mount", "/data", root, 1}, {"image", "", root, 1}};
  job.spec.image = "/home/me/image.tar";
  job.spec.image_is_archive = true;
  const wire::AttemptSpec spec = build();
  EXPECT_EQ(spec.workdir, root);
  EXPECT_EQ(spec.image_archive, root);
  EXPECT_EQ(spec.image, "") << "the laptop's path is none of the host's business";
  ASSERT_EQ(spec.mounts.size(), 1u);
  EXPECT_EQ(spec.mounts[0].target, "/data");
}

TEST_F(AttemptSpec, RunsTheVariantForTheLeasedGpus) {
  Digest cuda, cpu;
  cuda.bytes[1] = std::byte{1};
  cpu.bytes[1] = std::byte{2};
  inputs = {{"image", "cuda", cuda, 1}, {"image", "cpu", cpu, 1}};
  job.spec.variants = {{"cuda", "/home/me/cuda.tar", true, "", "on nvidia", ""},
                       {"rocm", "torch:rocm", false, "prepare", "on amd", "again on amd"},
                       {"cpu", "/home/me/cpu.tar", true, "", "on cores", ""}};
  vendor = Vendor::nvidia;
  EXPECT_EQ(build().image_archive, cuda);
  EXPECT_EQ(build().run, "on nvidia");
  vendor = Vendor::amd;
  EXPECT_EQ(build().image, "torch:rocm");
  EXPECT_FALSE(build().image_archive);
  EXPECT_EQ(build().setup, "prepare");
  EXPECT_EQ(build().run, "on amd");
  restore = checkpoint("format");
  EXPECT_EQ(build().run, "again on amd");
  vendor.reset();
  EXPECT_EQ(build().image_archive, cpu);
  EXPECT_EQ(build().image, "");
}

class GangSpec : public AttemptSpec {
 protected:
  GangSpec() {
    attempt.members = {job::Member{0, {"ada"}, EngineKind::podman, {"GPU-1"}, 4, 1 << 30, 0},
                       job::Member{1, {"bob"}, EngineKind::podman, {"GPU-2"}, 4, 1 << 30, 0}};
    job.spec.num_nodes = 2;
    job.spec.workload.job_class = job::JobClass::tight;
    for (int i = 0; i < 2; ++i) {
      registry::Provider host;
      host.host = "10.0.0." + std::to_string(i + 1);
      Gpu gpu;
      gpu.uuid = "GPU-" + std::to_string(i + 1);
      gpu.vendor = Vendor::nvidia;
      host.inventory.edit().gpus = {gpu};
      Nic ethernet, fabric;
      ethernet.interface = "enp3s0", ethernet.kind = NicKind::ethernet, ethernet.up = true, ethernet.bits_per_second = 1e10;
      fabric.device = "mlx5_0", fabric.port = 1, fabric.kind = NicKind::infiniband, fabric.up = true;
      fabric.bits_per_second = 4e11;
      host.inventory.edit().nics = {ethernet, fabric};
      hosts.push_back(host);
    }
  }
  wire::AttemptSpec build_member(int rank) {
    return build_attempt_spec({job, attempt, *attempt.member(rank), inputs, restore, hosts, {}, {}, "", {}});
  }
  std::vector<registry::Provider> hosts;
};

TEST_F(GangSpec, TellsEachMemberHowTheNetworkIsToBeUsed) {
  const wire::AttemptSpec spec = build_member(1);
  EXPECT_EQ(spec.envs.at("GRIDCTL_BACKEND"), "nccl");
  EXPECT_EQ(spec.envs.at("NCCL_IB_HCA"), "=mlx5_0:1");
  EXPECT_FALSE(spec.envs.contains("NCCL_IB_DISABLE"));
  hosts[0].inventory.edit().nics.pop_back();
  EXPECT_EQ(build_member(1).envs.at("NCCL_IB_DISABLE"), "1") << "the other member has no InfiniBand";
}

TEST_F(GangSpec, LeavesTheUsersOwnWordTheLast) {
  job.spec.envs["NCCL_IB_HCA"] = "mlx5_3";
  EXPECT_EQ(build_member(0).envs.at("NCCL_IB_HCA"), "mlx5_3");
  for (const std::string& line : explain_backend(job.spec, attempt, hosts))
    EXPECT_EQ(line.find("NCCL_IB_HCA"), std::string::npos) << line;
  job.spec.num_nodes = 1;
  attempt.members.pop_back();
  hosts.pop_back();
  EXPECT_FALSE(build_member(0).envs.contains("NCCL_IB_DISABLE")) << "one host";
}

}  // namespace
}  // namespace gridctl::control::attempt_spec_test
