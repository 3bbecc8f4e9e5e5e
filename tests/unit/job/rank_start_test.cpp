// SPDX-License-Identifier: Apache-2.0
#include "job/rank_start.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace gridctl::job::rank_start_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RankPlace two_hosts(int node) {
  RankPlace place;
  place.node_rank = node;
  place.gpus_per_node = 2;
  place.hosts = {{"10.0.0.7", 2}, {"10.0.0.8", 2}};
  place.port = 21000;
  return place;
}
const StarterPaths k_paths{"/gridctl/agent", "/gridctl/run/program.sh", "/gridctl/run/hostfile",
                           "/gridctl/run/machinefile"};

TEST(RankStart, EveryEpochOfAJobHasARangeOfItsOwnBelowTheEphemeralPorts) {
  std::set<int> seen;
  for (std::uint64_t epoch = 1; epoch <= 399; ++epoch) {
    const int first = gang_port({"0123456789abc"}, Epoch{epoch});
    EXPECT_GE(first, k_gang_port_min);
    EXPECT_LE(first + k_gang_ports - 1, k_gang_port_max);
    EXPECT_LT(k_gang_port_max, 32768);
    EXPECT_EQ((first - k_gang_port_min) % k_gang_ports, 0);
    seen.insert(first);
  }
  EXPECT_EQ(seen.size(), 399u);
}

TEST(RankStart, ARangeInUseIsSkipped) {
  std::set<int> seen;
  for (int skip = 0; skip < 57; ++skip) seen.insert(gang_port({"abc"}, Epoch{3}, skip));
  EXPECT_EQ(seen.size(), 57u);
}

TEST(RankStart, OneRankForEachGpuWhereTheProgramsOfTheLauncherWantThat) {
  EXPECT_EQ(usual_ranks(Launcher::torchrun, 4), 4);
  EXPECT_EQ(usual_ranks(Launcher::torchrun, 0), 1);
  EXPECT_EQ(usual_ranks(Launcher::plain, 8), 1);
  EXPECT_EQ(usual_ranks(Launcher::jax, 8), 1);
}

TEST(RankStart, MpirunReachesTheOtherHostsThroughTheAgent) {
  const std::string first = starter_script(Launcher::mpi, two_hosts(0), k_paths, false);
  EXPECT_THAT(first, HasSubstr("OMPI_MCA_plm_rsh_agent="));
  EXPECT_THAT(first, HasSubstr("HYDRA_LAUNCHER_EXEC="));
  for (const char* variable :
       {"OMPI_MCA_oob_tcp_keepalive_probes=3", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_MCA_prte_default_hostfile=",
        "HYDRA_LAUNCHER=rsh", "HYDRA_HOST_FILE=", "I_MPI_HYDRA_BOOTSTRAP=rsh", "I_MPI_HYDRA_HOST_FILE="})
    EXPECT_THAT(first, HasSubstr(variable));
  EXPECT_THAT(first, HasSubstr("mpirun -np 4 "));
  EXPECT_THAT(first, HasSubstr("gang-end"));
  EXPECT_EQ(starter_script(Launcher::mpi, two_hosts(1), k_paths, false), "folder=$(dirname /gridctl/run/program.sh)\n"
            "ln -sf /gridctl/agent \"$folder/gang-run\"\n"  // OpenMPI's daemon looks for it there, too
            "export PATH=\"$folder:$PATH\"\n"
            "exec /gridctl/agent gang-serve\n");
}

TEST(RankStart, ACommandThatCallsMpirunItselfIsStartedOnce) {
  const std::string first = starter_script(Launcher::mpi, two_hosts(0), k_paths, true);
  EXPECT_THAT(first, Not(HasSubstr("mpirun -np")));
  EXPECT_THAT(first, HasSubstr("OMPI_MCA_orte_default_hostfile="));
}

TEST(RankStart, RaysProgramRunsOnTheHeadAlone) {
  const std::string first = starter_script(Launcher::ray, two_hosts(0), k_paths, false);
  EXPECT_THAT(first, HasSubstr("ray start --head --port 21000"));
  EXPECT_THAT(first, HasSubstr("program.sh"));
  const std::string second = starter_script(Launcher::ray, two_hosts(1), k_paths, false);
  EXPECT_THAT(second, HasSubstr("ray start --address 10.0.0.7:21000"));
  EXPECT_THAT(second, HasSubstr("--node-ip-address 10.0.0.8"));
  EXPECT_THAT(second, Not(HasSubstr("program.sh")));
}

// In a real shell: with a `ray` in PATH, and with Python's module only.
TEST(RankStart, RayIsFoundWhereverItsPackageHasPutIt) {
  const std::string script = starter_script(Launcher::ray, two_hosts(0), k_paths, false);
  const std::string function = script.substr(0, script.find("ray start"));
  ASSERT_THAT(function, StartsWith("ray() {"));
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "rank_start_ray";
  const auto program = [&](const std::string& name) {
    std::ofstream(folder / name) << "#!/bin/sh\necho " << name << " \"$@\"\n";
    std::filesystem::permissions(folder / name, std::filesystem::perms::all);
  };
  const auto said = [&] {
    const std::string command = "PATH=" + folder.string() + " /bin/sh -c '" + function + "ray status' > " + (folder / "said").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(folder / "said");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::filesystem::create_directories(folder);
  program("python3");
  EXPECT_EQ(said(), "python3 -m ray.scripts.scripts status\n");
  program("ray");
  EXPECT_EQ(said(), "ray status\n");
  std::filesystem::remove_all(folder);
}

TEST(RankStart, HostFilesAreWrittenAsEachMpiReadsThem) {
  EXPECT_EQ(hostfile(two_hosts(0).hosts), "10.0.0.7 slots=2\n10.0.0.8 slots=2\n");
  EXPECT_EQ(machinefile(two_hosts(0).hosts), "10.0.0.7:2\n10.0.0.8:2\n");
}

}  // namespace
}  // namespace gridctl::job::rank_start_test
