// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "job/rank_start.hpp"

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

using namespace std::chrono_literals;

RankPlace place_of(int node) {
  RankPlace place;
  place.node_rank = node;
  place.gpus_per_node = 2;
  place.hosts = {{"10.0.0.7", 2}, {"10.0.0.8", 3}};
  place.port = 21000;
  return place;
}

const StarterPaths k_places{"/a gent", "/run/program.sh", "/run/host file", "/run/machines"};

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

TEST(RankStart, OfMpiSaysEveryVariableThatMakesItUseTheAgent) {
  const std::string text = starter_script(Launcher::mpi, place_of(0), k_places, false);
  for (const char* part :
       {"ln -sf '/a gent' \"$folder/gang-run\"\n", "export PATH=\"$folder:$PATH\"\n",
        "export OMPI_MCA_plm_rsh_agent=gang-run OMPI_MCA_plm_rsh_no_tree_spawn=1\n",
        "export OMPI_MCA_orte_default_hostfile='/run/host file' OMPI_MCA_orte_leave_session_attached=1\n",
        "export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2\n",
        "export OMPI_MCA_oob_tcp_keepalive_probes=3\n", "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n",
        "export PRTE_MCA_plm_ssh_agent=gang-run PRTE_MCA_prte_default_hostfile='/run/host file'\n",
        "export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=\"$folder/gang-run\" HYDRA_HOST_FILE=/run/machines\n",
        "export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC=\"$folder/gang-run\" I_MPI_HYDRA_HOST_FILE=/run/machines\n",
        "'/a gent' gang-end 127; exit 127; }\n", "mpirun -np 5 \"${BASH:-/bin/sh}\" /run/program.sh\n",
        "code=$?\n'/a gent' gang-end \"$code\"\nexit \"$code\"\n"})
    EXPECT_THAT(text, HasSubstr(part));
  const std::string itself = starter_script(Launcher::mpi, place_of(0), k_places, true);
  EXPECT_THAT(itself, Not(HasSubstr("command -v mpirun")));
  EXPECT_THAT(itself, HasSubstr("\n\"${BASH:-/bin/sh}\" /run/program.sh\ncode=$?"));
}

TEST(RankStart, OfRaySaysItsPortsAndWaitsForTheHead) {
  const std::string head = starter_script(Launcher::ray, place_of(0), k_places, false);
  const std::string common = " --node-manager-port 21002 --object-manager-port 21003 --runtime-env-agent-port 21004 --num-gpus 2 --disable-usage-stats --block &\n";
  EXPECT_THAT(head, HasSubstr("ray start --head --port 21000 --include-dashboard false --node-ip-address 10.0.0.7" + common));
  EXPECT_THAT(head, HasSubstr("ray health-check --address 10.0.0.7:21000 >/dev/null 2>&1 && break"));
  EXPECT_THAT(head, HasSubstr("\"${BASH:-/bin/sh}\" /run/program.sh\ncode=$?\n"));
  const std::string other = starter_script(Launcher::ray, place_of(1), k_places, false);
  EXPECT_THAT(other, HasSubstr("until ray health-check --address 10.0.0.7:21000 >/dev/null 2>&1; do sleep 1; done\n"));
  EXPECT_THAT(other, HasSubstr("ray start --address 10.0.0.7:21000 --node-ip-address 10.0.0.8" + common));
  EXPECT_THAT(other, ::testing::EndsWith("exec '/a gent' gang-serve\n"));
}

TEST(RankStart, KnowsWhoStartsTheRanksOfEachLauncherAndHowMany) {
  EXPECT_EQ(starter_of(Launcher::mpi), RankStarter::mpirun);
  EXPECT_EQ(starter_of(Launcher::ray), RankStarter::ray);
  EXPECT_EQ(starter_of(Launcher::torchrun), RankStarter::each_host);
  for (const Launcher one : {Launcher::torchrun, Launcher::deepspeed, Launcher::accelerate, Launcher::slurm_env, Launcher::mpi}) {
    EXPECT_EQ(usual_ranks(one, 2), 2);
    EXPECT_EQ(usual_ranks(one, 1'000'000), k_ranks_per_host_max);
    EXPECT_FALSE(binds_gpus(one));
  }
  for (const Launcher one : {Launcher::plain, Launcher::ray, Launcher::jax, Launcher::tensorflow}) EXPECT_EQ(usual_ranks(one, 2), 1);
  EXPECT_TRUE(binds_gpus(Launcher::jax));
  EXPECT_TRUE(binds_gpus(Launcher::tensorflow));
}

TEST(RankStart, ANegativeSkipIsNone) { EXPECT_EQ(gang_port({"abc"}, Epoch{3}, -4), gang_port({"abc"}, Epoch{3})); }

}  // namespace
}  // namespace gridctl::job::rank_start_test
