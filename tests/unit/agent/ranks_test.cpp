// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/companion.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::FailsWith;
using testing::IsOk;

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
  const testing::TempDir folder;
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

TEST(Ranks, MpisHostsBesidesTheFirstServeIt) {
  const auto spec = gang_of_two("mpi");
  const testing::TempDir folder;
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
}  // namespace gridctl::agent
