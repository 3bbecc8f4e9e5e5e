// SPDX-License-Identifier: Apache-2.0
#include "agent/surroundings.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::surroundings_test {
namespace {

class SurroundingsTest : public ::testing::Test {
 protected:
  void listen_at(const os::Path& path) {
    ASSERT_TRUE(os::make_directories(path.parent_path()).has_value());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.native().size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    sockets_.emplace_back(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(sockets_.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  std::map<std::string, std::string> missing() {
    return missing_variables({[this](std::string_view name) -> std::optional<std::string> {
                                const auto found = variables_.find(std::string(name));
                                return found == variables_.end() ? std::nullopt : std::optional{found->second};
                              },
                              folder_.path(), folder_.path() / "home", 1500});
  }

  gridctl::testing::TempDir folder_;
  std::map<std::string, std::string> variables_{
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"}};
  std::vector<os::Fd> sockets_;
};

TEST_F(SurroundingsTest, AddTheUsualFoldersBehindTheUsersOwn) {
  EXPECT_FALSE(missing().contains("PATH"));
  variables_["PATH"] = "/opt/tools";
  EXPECT_EQ(missing().at("PATH"), "/opt/tools:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
  ASSERT_TRUE(os::make_directories(folder_.path() / "home/bin").has_value());
  variables_.erase("PATH");
  EXPECT_TRUE(missing().at("PATH").ends_with(":/sbin:" + (folder_.path() / "home/bin").native()));
}

TEST_F(SurroundingsTest, FindARootlessDocker) {
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
  listen_at(folder_.path() / "run/user/1500/docker.sock");
  EXPECT_EQ(missing().at("DOCKER_HOST"), "unix://" + (folder_.path() / "run/user/1500/docker.sock").native());
}

TEST_F(SurroundingsTest, LeaveTheUsersOwnChoiceOfADocker) {
  listen_at(folder_.path() / "run/user/1500/docker.sock");
  variables_["DOCKER_HOST"] = "tcp://10.0.0.1:2375";
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
  variables_.erase("DOCKER_HOST");
  ASSERT_TRUE(os::make_directories(folder_.path() / "home/.docker").has_value());
  const os::Path config = folder_.path() / "home/.docker/config.json";
  ASSERT_TRUE(os::write_file_atomically(config, R"({"currentContext": "farm"})").has_value());
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
  ASSERT_TRUE(os::write_file_atomically(config, R"({"currentContext": "default", "auths": {}})").has_value());
  EXPECT_TRUE(missing().contains("DOCKER_HOST"));
}

TEST_F(SurroundingsTest, TakeAContextForChosenOnlyWhereOneIsNamed) {
  listen_at(folder_.path() / "home/.docker/run/docker.sock");
  const os::Path config = folder_.path() / "home/.docker/config.json";
  for (const auto& [text, chosen] : std::vector<std::pair<std::string, bool>>{{R"({"currentContext": ""})", false},
                                                                              {R"({"currentContext": "x"})", true},
                                                                              {R"({"currentContext": "x)", false},
                                                                              {R"({"currentContext")", false},
                                                                              {R"({"auths": {}})", false}}) {
    ASSERT_TRUE(os::write_file_atomically(config, text).has_value());
    EXPECT_EQ(missing().contains("DOCKER_HOST"), !chosen) << text;
  }
  variables_["DOCKER_CONTEXT"] = "farm";
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
  variables_["DOCKER_CONTEXT"] = "";
  EXPECT_TRUE(missing().contains("DOCKER_HOST")) << "an empty word chooses nothing";
}

TEST_F(SurroundingsTest, TakeTheFolderOfTheSessionBeforeTheUsualOne) {
  variables_["XDG_RUNTIME_DIR"] = (folder_.path() / "session").native();
  listen_at(folder_.path() / "run/user/1500/docker.sock");
  EXPECT_EQ(missing().at("DOCKER_HOST"), "unix://" + (folder_.path() / "run/user/1500/docker.sock").native());
  listen_at(folder_.path() / "session/docker.sock");
  EXPECT_EQ(missing().at("DOCKER_HOST"), "unix://" + (folder_.path() / "session/docker.sock").native());
}

TEST_F(SurroundingsTest, AFileInTheSocketsPlaceIsNone) {
  ASSERT_TRUE(os::make_directories(folder_.path() / "run/user/1500").has_value());
  ASSERT_TRUE(os::write_file_atomically(folder_.path() / "run/user/1500/docker.sock", "").has_value());
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
  listen_at(folder_.path() / "run/docker.sock");
  listen_at(folder_.path() / "home/.docker/run/docker.sock");
  EXPECT_FALSE(missing().contains("DOCKER_HOST")) << "the machine's own is for this user";
}

TEST_F(SurroundingsTest, PreferTheMachinesOwnDockerWhereItIsForTheUser) {
  listen_at(folder_.path() / "run/user/1500/docker.sock");
  listen_at(folder_.path() / "var/run/docker.sock");
  EXPECT_FALSE(missing().contains("DOCKER_HOST"));
}

}  // namespace
}  // namespace gridctl::agent::surroundings_test
