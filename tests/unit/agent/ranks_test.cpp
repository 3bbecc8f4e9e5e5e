// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "agent/companion.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::ranks_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

wire::AttemptSpec gang_of_two(const std::string& launcher, std::uint32_t ranks = 2) {
  wire::AttemptSpec spec;
  spec.job = {"abc"};
  spec.job_name = "train";
  spec.epoch = Epoch{4};
  spec.run = "python3 train.py";
  spec.engine = EngineKind::podman;
  spec.image = "torch:cpu";
  spec.gang.emplace();
  spec.gang->node_rank = 1;
  spec.gang->members = {{"ada", "10.0.0.7", ranks}, {"bob", "10.0.0.8", ranks}};
  spec.gang->launcher = launcher;
  spec.gang->port = 20'032;
  spec.gang->ports = 32;
  return spec;
}

std::vector<Gpu> four_gpus(Vendor vendor) {
  std::vector<Gpu> gpus(4);
  for (int i = 0; i < 4; ++i) {
    gpus[static_cast<std::size_t>(i)].vendor = vendor;
    gpus[static_cast<std::size_t>(i)].uuid = "GPU-" + std::to_string(i);
    gpus[static_cast<std::size_t>(i)].index = i + 4;  // of eight in the machine, the last four are leased
  }
  return gpus;
}

TEST(Ranks, EachGetsItsLaunchersVariables) {
  const Variables env = rank_variables(gang_of_two("torchrun"), {}, 1);
  EXPECT_EQ(env.at("RANK"), "3");
  EXPECT_EQ(env.at("LOCAL_RANK"), "1");
  EXPECT_EQ(env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(env.at("NODE_RANK"), "1");
  EXPECT_EQ(env.at("MASTER_ADDR"), "10.0.0.7");
  EXPECT_EQ(env.at("MASTER_PORT"), "20032");
  EXPECT_EQ(env.at("GRIDCTL_RANK"), "3");
}

TEST(Ranks, TorchrunsRanksSeeAllGpusOfTheirHostAndChooseByTheirLocalRank) {
  auto spec = gang_of_two("torchrun", 4);
  const Variables env = rank_variables(spec, four_gpus(Vendor::nvidia), 2);
  EXPECT_FALSE(env.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(env.at("LOCAL_RANK"), "2");
}

TEST(Ranks, JaxsRanksSeeTheirOwnGpuAlone) {
  auto spec = gang_of_two("jax", 4);
  EXPECT_EQ(rank_variables(spec, four_gpus(Vendor::nvidia), 2).at("CUDA_VISIBLE_DEVICES"), "GPU-2");
  // In a container the four are numbered from 0, outside they are 4 to 7.
  EXPECT_EQ(rank_variables(spec, four_gpus(Vendor::amd), 2).at("ROCR_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(rank_variables(spec, four_gpus(Vendor::intel), 3).at("ZE_AFFINITY_MASK"), "3");
  spec.engine = EngineKind::process;
  EXPECT_EQ(rank_variables(spec, four_gpus(Vendor::amd), 2).at("ROCR_VISIBLE_DEVICES"), "6");
}

TEST(Ranks, FewerRanksThanGpusShareThemEvenly) {
  EXPECT_EQ(rank_variables(gang_of_two("jax", 2), four_gpus(Vendor::nvidia), 1).at("CUDA_VISIBLE_DEVICES"),
            "GPU-2,GPU-3");
}

TEST(Ranks, OneRankOfAHostSeesAllOfIt) {
  EXPECT_FALSE(rank_variables(gang_of_two("jax", 1), four_gpus(Vendor::nvidia), 0).contains("CUDA_VISIBLE_DEVICES"));
}

TEST(Ranks, WhatTheUserSetsWins) {
  auto spec = gang_of_two("torchrun", 1);
  spec.envs["MASTER_PORT"] = "29500";
  spec.envs["GLOO_SOCKET_IFNAME"] = "ib0";
  const gridctl::testing::TempDir folder;
  JobView view;
  view.run = "/gridctl/run";
  ASSERT_THAT(make_rank_files(folder.path(), spec, view, {}, "/gridctl/agent"), IsOk());
  const auto env = os::read_file(folder / "env.0", 1 << 20);
  ASSERT_THAT(env, IsOk());
  EXPECT_THAT(*env, ::testing::Not(HasSubstr("MASTER_PORT")));
  EXPECT_THAT(*env, HasSubstr("MASTER_ADDR=10.0.0.7"));
}

TEST(Ranks, AHostOfAGangHasAHostNameThatAllResolveToItsRealAddress) {
  const auto spec = gang_of_two("torchrun");
  EXPECT_EQ(host_name_in(*spec.gang), "node1");
  EXPECT_EQ(host_names(*spec.gang),
            "127.0.0.1 localhost\n::1 localhost\n10.0.0.7 node0 ada\n10.0.0.8 node1 bob\n");
}

TEST(Ranks, ContainersOfSeveralHostsShareTheHostsNetworkAndStayHardened) {
  auto spec = gang_of_two("torchrun");
  LaunchPlan plan;
  plan.name = "gridctl-abc-e4";
  plan.image = "torch:cpu";
  plan.host_run = "/home/w/.gridctl/run/1";
  auto arguments = container_arguments(EngineKind::podman, spec, plan, {});
  const std::string all = ::testing::PrintToString(arguments);
  EXPECT_THAT(all, HasSubstr("\"--network\", \"host\""));
  EXPECT_THAT(all, HasSubstr("\"--hostname\", \"node1\""));
  EXPECT_THAT(all, HasSubstr("target=/etc/hosts,readonly"));
  EXPECT_THAT(all, HasSubstr("\"--cap-drop\", \"all\""));
  EXPECT_THAT(all, HasSubstr("no-new-privileges"));
  spec.gang->members.resize(1);
  spec.gang->node_rank = 0;
  arguments = container_arguments(EngineKind::podman, spec, plan, {});
  EXPECT_THAT(arguments, ::testing::Not(Contains("--network")));
}

TEST(Ranks, AGangThatHostsCannotTrustIsRefused) {
  auto spec = gang_of_two("torchrun");
  EXPECT_THAT(check_gang(spec), IsOk());
  for (const auto& spoil : std::vector<void (*)(wire::Gang&)>{
           [](wire::Gang& gang) { gang.launcher = "rm -rf"; }, [](wire::Gang& gang) { gang.port = 22; },
           [](wire::Gang& gang) { gang.ports = 0; }, [](wire::Gang& gang) { gang.members[0].address = "evil.example"; },
           [](wire::Gang& gang) { gang.members[0].name = "a\nb"; }}) {
    auto bad = spec;
    spoil(*bad.gang);
    EXPECT_THAT(check_gang(bad), FailsWith(Code::refused));
  }
}

// What lies in a run folder, by name.
std::map<std::string, std::string> rank_files(const wire::AttemptSpec& spec, const std::vector<Gpu>& gpus = {}) {
  const gridctl::testing::TempDir folder;
  JobView view;
  view.run = "/gridctl/run";
  EXPECT_THAT(make_rank_files(folder.path(), spec, view, gpus, "/gridctl/agent"), IsOk());
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files[entry.path().filename().string()] = os::read_file(entry.path()).value_or("");
  return files;
}

TEST(Ranks, OfAHostAreStartedOneByOneWithTheirNumbers) {
  auto files = rank_files(gang_of_two("torchrun"));
  EXPECT_EQ(files["ranks"], "rank 2\nrank 3\n");
  EXPECT_THAT(files["env.0"], HasSubstr(std::string("RANK=2\0", 7)));
  EXPECT_THAT(files["env.1"], HasSubstr(std::string("RANK=3\0", 7)));
  EXPECT_EQ(files["hostfile"], "10.0.0.7 slots=2\n10.0.0.8 slots=2\n");
  EXPECT_EQ(files["machinefile"], "10.0.0.7:2\n10.0.0.8:2\n");
  EXPECT_EQ(files["hosts"], host_names(*gang_of_two("torchrun").gang));
  for (const char* none : {"env.2", "gang", "program.sh", "run.sh"}) EXPECT_FALSE(files.contains(none)) << none;
}

TEST(Ranks, WithoutAGangNothingIsMade) {
  auto spec = gang_of_two("torchrun");
  spec.gang.reset();
  EXPECT_TRUE(rank_files(spec).empty());
  EXPECT_FALSE(needs_host_network(spec));
  EXPECT_THAT(check_gang(spec), IsOk());
}

TEST(Ranks, AProgramThatStartsThemItselfRunsOnceOnEachHost) {
  auto spec = gang_of_two("torchrun");
  spec.gang->self_starting = true;
  auto files = rank_files(spec);
  EXPECT_EQ(files["ranks"], "node 1\n");
  EXPECT_FALSE(files.contains("env.1"));
  EXPECT_THAT(files["env.0"], ::testing::Not(HasSubstr("OMP_NUM_THREADS"))) << "how many there are is its own business";
}

TEST(Ranks, TheOnlyOneOfAJobHasNoLabel) {
  auto spec = gang_of_two("torchrun", 1);
  spec.gang->members.resize(1);
  spec.gang->node_rank = 0;
  EXPECT_EQ(rank_files(spec)["ranks"], "\n");
  spec.gang->launcher = "mpi";
  EXPECT_FALSE(rank_files(spec).contains("gang")) << "a single rank needs nobody to start it";
  spec.gang->members[0].ranks = 2;
  EXPECT_TRUE(rank_files(spec).contains("gang"));
}

TEST(Ranks, OfRayServeItsClusterWhereThereIsMoreThanOneHost) {
  auto spec = gang_of_two("ray", 1);
  EXPECT_TRUE(rank_files(spec).contains("gang"));
  EXPECT_EQ(rank_files(spec)["ranks"], "node 1\n");
  spec.gang->members.resize(1);
  spec.gang->node_rank = 0;
  spec.gang->members[0].ranks = 4;
  EXPECT_FALSE(rank_files(spec).contains("gang")) << "on one host it starts its cluster itself";
}

TEST(Ranks, ACommandOfOneHostOfSeveralIsFollowedForWhatItLeavesRunning) {
  auto spec = gang_of_two("plain", 1);
  EXPECT_THAT(rank_files(spec)["run.sh"], HasSubstr("gang-node \"${BASH:-/bin/sh}\""));
  EXPECT_THAT(rank_files(spec)["gang"], HasSubstr("\n20063\n1\n10.0.0.7\n10.0.0.8\n")) << "the last port of the range";
  spec.gang->members[1].ranks = 2;
  EXPECT_FALSE(rank_files(spec).contains("run.sh")) << "ranks are followed each";
  spec.gang->members.resize(1);
  spec.gang->node_rank = 0;
  EXPECT_FALSE(rank_files(spec).contains("run.sh"));
}

TEST(Ranks, SeveralOnAHostDoNotTakeAllProcessorsEach) {
  EXPECT_EQ(rank_variables(gang_of_two("torchrun", 2), {}, 0).at("OMP_NUM_THREADS"), "1");
  EXPECT_FALSE(rank_variables(gang_of_two("torchrun", 1), {}, 0).contains("OMP_NUM_THREADS"));
  EXPECT_EQ(rank_variables(gang_of_two("torchrun", 2), {}, 1).at("GRIDCTL_LOCAL_RANK"), "1");
}

TEST(Ranks, AllOfAHostSeeTheGang) {
  auto spec = gang_of_two("torchrun");
  spec.gang->restarts = 3;
  JobView view;
  view.run = "/gridctl/run";
  const Variables all = gang_variables(spec, view, "eth7");
  for (const auto& [name, value] : std::map<std::string, std::string>{{"GRIDCTL_NODE_RANK", "1"},
                                                                      {"SKYPILOT_NODE_RANK", "1"},
                                                                      {"GRIDCTL_NUM_NODES", "2"},
                                                                      {"SKYPILOT_NUM_NODES", "2"},
                                                                      {"GRIDCTL_NODE_IPS", "10.0.0.7\n10.0.0.8"},
                                                                      {"GRIDCTL_MASTER_ADDR", "10.0.0.7"},
                                                                      {"GRIDCTL_MASTER_PORT", "20032"},
                                                                      {"GRIDCTL_PORTS", "20032-20063"},
                                                                      {"GRIDCTL_WORLD_SIZE", "4"},
                                                                      {"GRIDCTL_HOSTFILE", "/gridctl/run/hostfile"},
                                                                      {"GRIDCTL_GANG_FILE", "/gridctl/run/gang"},
                                                                      {"GLOO_SOCKET_IFNAME", "eth7"},
                                                                      {"TP_SOCKET_IFNAME", "eth7"},
                                                                      {"NCCL_SOCKET_IFNAME", "=eth7"},
                                                                      {"OMPI_MCA_btl_tcp_if_include", "eth7"},
                                                                      {"OMPI_MCA_oob_tcp_if_include", "eth7"},
                                                                      {"HYDRA_IFACE", "eth7"},
                                                                      {"TORCH_FR_BUFFER_SIZE", "2000"}})
    EXPECT_EQ(all.contains(name) ? all.at(name) : "none", value) << name;
  EXPECT_FALSE(gang_variables(spec, view, "").contains("GLOO_SOCKET_IFNAME")) << "which it is is not known";
  for (const char* torch : {"deepspeed", "accelerate"}) {
    spec.gang->launcher = torch;
    EXPECT_TRUE(gang_variables(spec, view, "").contains("TORCH_NCCL_DUMP_ON_TIMEOUT")) << torch;
  }
  spec.gang->launcher = "jax";
  EXPECT_FALSE(gang_variables(spec, view, "").contains("TORCH_NCCL_DUMP_ON_TIMEOUT"));
  spec.gang->members.resize(1);
  spec.gang->node_rank = 0;
  EXPECT_FALSE(gang_variables(spec, view, "eth7").contains("GLOO_SOCKET_IFNAME")) << "nobody is to be found by it";
}

TEST(Ranks, AGangMayHaveTheLowestPortsOfOrdinaryUsers) {
  auto spec = gang_of_two("torchrun");
  spec.gang->port = 1024;
  EXPECT_THAT(check_gang(spec), IsOk());
  spec.gang->port = 1023;
  EXPECT_THAT(check_gang(spec), FailsWith(Code::refused));
}

TEST(Ranks, MpisHostsBesidesTheFirstServeIt) {
  const auto spec = gang_of_two("mpi");
  const gridctl::testing::TempDir folder;
  JobView view;
  view.run = "/gridctl/run";
  ASSERT_THAT(make_rank_files(folder.path(), spec, view, {}, "/gridctl/agent"), IsOk());
  EXPECT_TRUE(os::read_file(folder / "run.sh", 1 << 20)->ends_with("\nexec /gridctl/agent gang-serve\n"));
  EXPECT_EQ(*os::read_file(folder / "program.sh", 1 << 20), "python3 train.py\n");
  EXPECT_EQ(*os::read_file(folder / "ranks", 1 << 20), "node 1\n");
  const auto gang = parse_gang_file(*os::read_file(folder / "gang", 1 << 20));
  ASSERT_THAT(gang, IsOk());
  EXPECT_EQ(gang->port, 20'033);
  EXPECT_EQ(gang->node_rank, 1u);
  EXPECT_EQ(gang->addresses, (std::vector<std::string>{"10.0.0.7", "10.0.0.8"}));
}

}  // namespace
}  // namespace gridctl::agent::ranks_test
