// SPDX-License-Identifier: Apache-2.0
// Files that a rootless container has left to users whom only its engine may speak for.
#include "agent/foreign_files.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "os/clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::foreign_files_test {
namespace {

using gridctl::testing::IsOk;

constexpr unsigned k_user = 61'238;

class ForeignFiles : public ::testing::Test {
 protected:
  ForeignFiles() : path_(std::getenv("PATH")) {
    ::setenv("PATH", dir_.path().c_str(), 1);
    for (const char* name : {"job/theirs", "job/mine"}) std::filesystem::create_directories(dir_ / name);
    EXPECT_THAT(os::write_file_atomically(dir_ / "job/theirs/file", "x"), IsOk());
  }
  ~ForeignFiles() override { ::setenv("PATH", path_.c_str(), 1); }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may make files of others";
    for (const char* name : {"", "job", "job/mine"}) ASSERT_EQ(::chown((dir_ / name).c_str(), k_user, k_user), 0);
  }
  // As an ordinary user: 0 removed, 1 an error.
  [[nodiscard]] int remove_as_user() const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgid(k_user) != 0 || ::setuid(k_user) != 0) ::_exit(98);
      ::_exit(remove_job_files(dir_ / "job") ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
  }
  void podman(const std::string& script) const {
    ASSERT_THAT(os::write_file_atomically(dir_ / "podman", "#!/bin/sh\n" + script + "\n", 0755), IsOk());
  }

  std::string path_;
  gridctl::testing::TempDir dir_;
};

TEST_F(ForeignFiles, StayWhereNoEngineIsThere) {
  EXPECT_EQ(remove_as_user(), 1);
  EXPECT_TRUE(os::exists(dir_ / "job/theirs/file"));
}

TEST_F(ForeignFiles, AreRemovedByTheEngineThatKnowsTheirUsers) {
  // It stands for the user's own name space, and root here for what may be done in that.
  podman("echo \"$*\" > " + (dir_ / "asked.new").native() + "; /bin/mv " + (dir_ / "asked.new").native() + " " +
         (dir_ / "asked").native() + "; i=0; while [ ! -e " + (dir_ / "done").native() +
         " ] && [ $i -lt 400 ]; do /bin/sleep 0.05; i=$((i+1)); done");
  std::thread root([this] {
    const BootTime give_up = os::system_clock().boot() + std::chrono::seconds{60};
    while (!os::exists(dir_ / "asked") && os::system_clock().boot() < give_up) os::pause_for(std::chrono::milliseconds{5});
    EXPECT_THAT(os::remove_tree(dir_ / "job/theirs"), IsOk());
    EXPECT_THAT(os::write_file_atomically(dir_ / "done", "", 0644), IsOk());
  });
  EXPECT_EQ(remove_as_user(), 0);
  root.join();
  EXPECT_FALSE(os::exists(dir_ / "job"));
  EXPECT_EQ(os::read_file(dir_ / "asked").value_or(""), "unshare rm -rf --one-file-system -- " + (dir_ / "job").native() + "\n");
}

TEST_F(ForeignFiles, StayWhereTheEngineCannotEither) {
  podman("exit 1");
  EXPECT_EQ(remove_as_user(), 1);
  podman("exit 0");
  EXPECT_EQ(remove_as_user(), 1) << "its word alone is not enough";
  EXPECT_TRUE(os::exists(dir_ / "job/theirs/file"));
}

TEST_F(ForeignFiles, OfRootsNeedNoEngine) {
  podman(": > " + (dir_ / "asked").native());
  EXPECT_THAT(remove_job_files(dir_ / "job"), IsOk());
  EXPECT_FALSE(os::exists(dir_ / "job"));
  EXPECT_FALSE(os::exists(dir_ / "asked"));
}

}  // namespace
}  // namespace gridctl::agent::foreign_files_test
