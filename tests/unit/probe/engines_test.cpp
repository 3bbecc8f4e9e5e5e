// SPDX-License-Identifier: Apache-2.0
#include "probe/engines.hpp"

#include <gtest/gtest.h>

namespace gridctl::probe::engines_test {
namespace {

ToolAnswer answer(int exit_code, std::string out, std::string err = {}) {
  ToolAnswer a;
  a.found = a.answered = true;
  a.exit_code = exit_code;
  a.out = std::move(out);
  a.err = std::move(err);
  return a;
}

TEST(Docker, IsReadWithItsLimits) {
  const Engine engine = read_docker(
      answer(0, R"({"ID":"x","MemoryLimit":true,"CpuCfsQuota":true,"CgroupDriver":"systemd","CgroupVersion":"2",
                    "SecurityOptions":["name=apparmor","name=seccomp,profile=builtin"],"ServerVersion":"27.3.1"})"),
      "ada");
  EXPECT_EQ(engine, (Engine{EngineKind::docker, "27.3.1", false, true, ""}));
}

TEST(Docker, WithoutDelegatedGroupsEnforcesNothing) {
  const Engine engine = read_docker(answer(0, R"({"MemoryLimit":true,"CpuCfsQuota":true,"CgroupDriver":"none",
                                "SecurityOptions":["name=rootless"],"ServerVersion":"20.10.24"})",
                                           "WARNING: Running in rootless-mode without cgroups"),
                                    "ada");
  EXPECT_TRUE(engine.rootless);
  EXPECT_FALSE(engine.limits_enforced);
  EXPECT_EQ(engine.problem, "");
}

TEST(Docker, TellsHowToBeAllowedOnItsSocket) {
  const Engine engine = read_docker(
      answer(
          1,
          R"({"ServerErrors":["permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://x\": dial unix"],"ServerVersion":""})"),
      "ada");
  EXPECT_EQ(
      engine.problem,
      "docker: permission denied on /var/run/docker.sock: add the user to group docker: sudo usermod -aG docker ada");
}

TEST(Docker, TellsHowToStartItsDaemon) {
  const Engine engine = read_docker(
      answer(1, "",
             "Cannot connect to the Docker daemon at unix:///run/user/1000/docker.sock. Is the docker daemon running?"),
      "ada");
  EXPECT_EQ(engine.problem,
            "docker: no daemon answers on /run/user/1000/docker.sock: sudo systemctl enable --now docker");
}

TEST(Docker, ThatIsPodmanIsNotUsed) {
  const Engine engine = read_docker(answer(0, R"({"host":{},"store":{},"version":{"Version":"4.3.1"}})"), "ada");
  EXPECT_FALSE(engine.problem.empty());
}

TEST(Docker, ThatPrintsGarbageHasAProblem) {
  EXPECT_EQ(read_docker(answer(0, "\x1b[31mwat\n"), "ada").problem, "docker: \x1b[31mwat");
  EXPECT_EQ(read_docker(answer(3, ""), "ada").problem, "docker: reported no server version");
}

constexpr const char* k_rootless_v1 =
    R"({"host":{"cgroupControllers":[],"cgroupManager":"cgroupfs","cgroupVersion":"v1",
        "ociRuntime":{"name":"crun","path":"/usr/bin/crun"},"security":{"rootless":true}},"version":{"Version":"4.3.1"}})";

TEST(Podman, RootlessOnCgroupV1EnforcesNothing) {
  EXPECT_EQ(read_podman(answer(0, k_rootless_v1), "ada"), (Engine{EngineKind::podman, "4.3.1", true, false, ""}));
}

TEST(Podman, RootlessOnCgroupV2EnforcesWhenControllersAreDelegated) {
  const Engine engine =
      read_podman(answer(0, R"({"host":{"cgroupControllers":["cpu","memory","pids"],"cgroupVersion":"v2",
                    "security":{"rootless":true}},"version":{"Version":"5.2.0"}})"),
                  "ada");
  EXPECT_TRUE(engine.limits_enforced);
}

TEST(Podman, OfOlderVersionsSaysElsewhereThatItIsRootless) {
  const auto rootless = [](const std::string& host) {
    return read_podman(answer(0, R"({"host":{)" + host + R"(},"version":{"Version":"3.0"}})"), "ada").rootless;
  };
  EXPECT_TRUE(rootless(R"("rootless":true)"));
  EXPECT_TRUE(rootless(R"("security":{"rootless":true})"));
  EXPECT_TRUE(rootless(R"("rootless":true,"security":{"rootless":false})"));
  EXPECT_FALSE(rootless(R"("rootless":false)"));
  EXPECT_FALSE(rootless(R"("cgroupVersion":"v2")"));
}

TEST(Docker, EnforcesLimitsOnlyWithAllThatTheyNeed) {
  const auto enforces = [](const char* memory, const char* cpu, const char* driver) {
    return read_docker(answer(0, std::string(R"({"MemoryLimit":)") + memory + R"(,"CpuCfsQuota":)" + cpu +
                                     R"(,"CgroupDriver":")" + driver + R"(","ServerVersion":"27"})"),
                       "ada")
        .limits_enforced;
  };
  EXPECT_TRUE(enforces("true", "true", "systemd"));
  EXPECT_FALSE(enforces("false", "true", "systemd"));
  EXPECT_FALSE(enforces("true", "false", "systemd"));
  EXPECT_FALSE(enforces("true", "true", "none"));
}

TEST(Docker, ThatDoesNotAnswerSaysWhatIsKnown) {
  ToolAnswer none;
  none.problem = "docker: no answer within 10s";
  EXPECT_EQ(read_docker(none, "ada").problem, "docker: no answer within 10s");
  const auto problem = [](const std::string& out, const std::string& err, const std::string& user) {
    return read_docker(answer(1, out, err), user).problem;
  };
  EXPECT_NE(problem("", "Permission Denied", "").find("docker $USER"), std::string::npos);
  EXPECT_NE(problem("", "failed to connect to the docker API", "ada").find("no daemon answers on"), std::string::npos);
  EXPECT_EQ(problem(R"({"ServerErrors":["odd things"]})", "", "ada"), "docker: odd things");
  EXPECT_NE(read_docker(answer(0, R"({"host":{},"ServerVersion":"27"})"), "ada").version, "") << "that is no podman";
}

TEST(Podman, TellsHowToGetSubordinateIds) {
  const Engine engine = read_podman(
      answer(125, "",
             "Error: cannot find mappings for user ada: no subuid ranges found for user \"ada\" in /etc/subuid"),
      "ada");
  EXPECT_NE(engine.problem.find("sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ada"),
            std::string::npos);
}

TEST(Podman, AbsentOrHangingSaysSo) {
  ToolAnswer none;
  none.problem = "podman: not installed";
  EXPECT_EQ(read_podman(none, "ada").problem, "podman: not installed");
}

TEST(Podman, EnforcesLimitsWhereItMayAndWithoutRootOnlyWithBothControllersOfVersionTwo) {
  const auto enforces = [](const std::string& rootless, const std::string& controllers, const std::string& version) {
    const std::string text = R"({"host":{"cgroupControllers":[)" + controllers + R"(],"cgroupVersion":")" + version +
                             R"(","security":{"rootless":)" + rootless + R"(}},"version":{"Version":"5"}})";
    return read_podman(answer(0, text), "ada").limits_enforced;
  };
  EXPECT_TRUE(enforces("true", R"("cpu","memory")", "v2"));
  EXPECT_FALSE(enforces("true", R"("cpu","memory")", "v1"));
  EXPECT_FALSE(enforces("true", R"("cpu","pids")", "v2"));
  EXPECT_FALSE(enforces("true", R"("memory","pids")", "v2"));
  EXPECT_FALSE(enforces("true", "", "v2"));
  EXPECT_TRUE(enforces("false", "", "v1")) << "root may always";
}

TEST(Podman, WithoutARuntimeHasAProblem) {
  const auto problem = [](const std::string& runtime) {
    return read_podman(answer(0, R"({"host":{"ociRuntime":)" + runtime + R"(},"version":{"Version":"5"}})"), "ada")
        .problem;
  };
  EXPECT_EQ(problem(R"({"name":"","path":""})"), "podman: no OCI runtime: sudo apt-get install crun");
  EXPECT_EQ(problem(R"({"name":"crun","path":""})"), "");
  EXPECT_EQ(problem(R"({"name":"","path":"/usr/bin/crun"})"), "");
  EXPECT_EQ(problem("null"), "") << "it does not say";
}

TEST(Podman, SaysWhyItDoesNotWork) {
  const auto problem = [](const std::string& said, const std::string& user) {
    return read_podman(answer(125, "", said), user).problem;
  };
  EXPECT_EQ(problem("Error: exec: \"newuidmap\": not found", "ada"),
            "podman: newuidmap is missing: sudo apt-get install uidmap");
  EXPECT_NE(problem("no SUBGID ranges", "").find("100000-165535 $USER"), std::string::npos);
  EXPECT_EQ(problem("Error: something else", "ada"), "podman: Error: something else");
  EXPECT_EQ(problem("", "ada"), "podman: reported no information");
}

}  // namespace
}  // namespace gridctl::probe::engines_test
