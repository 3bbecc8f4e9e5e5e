// SPDX-License-Identifier: Apache-2.0
#include "job/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/spec.hpp"

namespace gridctl::job::launcher_test {
namespace {

RankPlace third_of_four() {
  RankPlace place;
  place.run_id = "abc";
  place.job_name = "train";
  place.restarts = 2;
  place.node_rank = 1;
  place.local_rank = 0;
  place.gpus_per_node = 2;
  place.hosts = {{"10.0.0.7", 2}, {"10.0.0.8", 2}};
  place.port = 21000;
  return place;
}

TEST(Launcher, PlainSetsNothing) { EXPECT_TRUE(launcher_environment(Launcher::plain, third_of_four()).empty()); }

TEST(Launcher, TorchrunNumbersRanksOverAllHosts) {
  const auto env = launcher_environment(Launcher::torchrun, third_of_four());
  EXPECT_EQ(env.at("RANK"), "2");
  EXPECT_EQ(env.at("LOCAL_RANK"), "0");
  EXPECT_EQ(env.at("WORLD_SIZE"), "4");
  EXPECT_EQ(env.at("LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(env.at("GROUP_RANK"), "1");
  EXPECT_EQ(env.at("MASTER_ADDR"), "10.0.0.7");
  EXPECT_EQ(env.at("MASTER_PORT"), "21000");
  EXPECT_EQ(env.at("TORCHELASTIC_RESTART_COUNT"), "2");
}

TEST(Launcher, EachSetsItsOwnVariablesAlone) {
  const std::map<Launcher, std::vector<std::string>> own{
      {Launcher::torchrun, {"RANK", "TORCHELASTIC_RUN_ID"}},
      {Launcher::deepspeed, {"RANK"}},
      {Launcher::accelerate, {"RANK"}},
      {Launcher::mpi, {"OMPI_COMM_WORLD_RANK"}},
      {Launcher::slurm_env, {"SLURM_PROCID"}},
      {Launcher::jax, {"JAX_COORDINATOR_ADDRESS"}},
      {Launcher::tensorflow, {"TF_CONFIG"}},
      {Launcher::ray, {"RAY_ADDRESS"}},
  };
  for (const auto& [launcher, names] : own) {
    RankPlace place = third_of_four();
    if (launcher == Launcher::mpi) place.hosts = {{"10.0.0.7", 1}}, place.node_rank = 0;
    const auto env = launcher_environment(launcher, place);
    for (const auto& [other, foreign] : own)
      for (const std::string& name : foreign) {
        const bool is_own = std::find(names.begin(), names.end(), name) != names.end();
        EXPECT_EQ(env.contains(name), is_own) << launcher_name(launcher) << " and " << name;
      }
  }
}

TEST(Launcher, TensorflowsClusterNamesEveryRankOnce) {
  EXPECT_EQ(launcher_environment(Launcher::tensorflow, third_of_four()).at("TF_CONFIG"),
            R"({"cluster":{"worker":["10.0.0.7:21000","10.0.0.7:21001","10.0.0.8:21000","10.0.0.8:21001"]},)"
            R"("task":{"type":"worker","index":2}})");
}

TEST(Launcher, CountsRanksOverUnequalHosts) {
  RankPlace place = third_of_four();
  place.hosts = {{"10.0.0.7", 8}, {"10.0.0.8", 8}, {"10.0.0.9", 4}};
  place.node_rank = 2;
  place.local_rank = 3;
  EXPECT_EQ(place.rank(), 19);
  const auto torch = launcher_environment(Launcher::torchrun, place);
  EXPECT_EQ(torch.at("RANK"), "19");
  EXPECT_EQ(torch.at("WORLD_SIZE"), "20");
  EXPECT_EQ(torch.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(torch.at("NODE_RANK"), "2");
  const auto slurm = launcher_environment(Launcher::slurm_env, place);
  EXPECT_EQ(slurm.at("SLURM_TASKS_PER_NODE"), "8(x2),4");
  EXPECT_EQ(slurm.at("SLURM_NODELIST"), "10.0.0.7,10.0.0.8,10.0.0.9");
}

TEST(Launcher, LeavesTheRanksOfMpirunToMpirun) {
  EXPECT_TRUE(launcher_environment(Launcher::mpi, third_of_four()).empty());
}

TEST(Launcher, IsReadBackByItsName) {
  for (const std::string& name : launcher_names()) {
    const auto launcher = parse_launcher(name);
    ASSERT_TRUE(launcher) << name;
    EXPECT_EQ(launcher_name(*launcher), name);
  }
  EXPECT_FALSE(parse_launcher("torch"));
}

TEST(Launcher, IsKeptInTheSpecificationAndAbsentInOldOnes) {
  Spec spec;
  spec.name = "train";
  spec.run = "true";
  spec.launcher = Launcher::slurm_env;
  const auto back = parse_spec(to_json(spec));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->launcher, Launcher::slurm_env);
  const auto old = parse_spec(R"({"format":1,"name":"train","run":"true"})");
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->launcher, Launcher::plain);
}

}  // namespace
}  // namespace gridctl::job::launcher_test
