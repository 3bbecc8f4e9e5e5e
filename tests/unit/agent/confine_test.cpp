// SPDX-License-Identifier: Apache-2.0
// Red team: a job that runs as a plain process and looks for what is not its own.
#include "agent/confine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "support/temp_dir.hpp"

namespace gridctl::agent::confine_test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned k_user = 61'236;

class PlainJob : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
      GTEST_SKIP() << "this kernel has no Landlock";
    if (!can_make_namespaces()) GTEST_SKIP() << "this host does not let ordinary users create namespaces";
    for (const os::Path& folder :
         {home_ / ".ssh", home_ / ".aws", attempt_ / "work", other_ / "work", agent_ / "cache"})
      fs::create_directories(folder);
    for (const os::Path& file :
         {home_ / ".ssh/id_ed25519", home_ / ".aws/credentials", home_ / "notes.txt", attempt_ / "work/train.py",
          other_ / "work/model.pt", agent_ / "cache/pack", agent_ / "fence"})
      std::ofstream(file) << "content";
    if (::geteuid() != 0) return;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      ASSERT_EQ(::lchown(entry.path().c_str(), k_user, k_user), 0);
    ASSERT_EQ(::chown(folder_.path().c_str(), k_user, k_user), 0);
  }
  // Jobs are not root's here: it would not be kept from anything.
  static void become_ordinary() {
    if (::geteuid() == 0 && (::setgid(k_user) != 0 || ::setuid(k_user) != 0)) ::_exit(98);
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // as after exec: otherwise /proc/self is root's
  }
  static bool can_make_namespaces() {
    const pid_t child = ::fork();
    if (child == 0) {
      become_ordinary();
      ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  // What the job finds out, as its exit status: 0 when `is_possible` says no.
  [[nodiscard]] int try_as_job(const std::function<bool()>& is_possible) const {
    const pid_t child = ::fork();
    if (child == 0) {
      become_ordinary();
      Confinement confinement = confinement_of(home_, agent_, attempt_, {}, program_.parent_path());
      confinement.hidden.insert(confinement.hidden.end(), extra_hidden_.begin(), extra_hidden_.end());
      if (const auto done = confine(confinement); !done) {
        std::cerr << done.error().one_line() << std::endl;
        ::_exit(99);
      }
      ::_exit(is_possible() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool can_read(const os::Path& file) { return ::open(file.c_str(), O_RDONLY) >= 0; }
  static bool can_write(const os::Path& file) { return ::open(file.c_str(), O_WRONLY | O_CREAT, 0600) >= 0; }

  gridctl::testing::TempDir folder_;
  std::vector<os::Path> extra_hidden_;
  const os::Path home_ = fs::canonical(folder_.path()) / "home";
  const os::Path agent_ = home_ / ".gridctl";
  const os::Path attempt_ = agent_ / "jobs/c/mine/1", other_ = agent_ / "jobs/c/other/1";
  const os::Path program_ = agent_ / "bin/0123/gridctl-agent";
};

TEST_F(PlainJob, WorksWithItsOwnFilesAndTheSystems) {
  EXPECT_EQ(try_as_job([&] {
              return !(can_read(attempt_ / "work/train.py") && can_write(attempt_ / "work/new") &&
                       can_write(attempt_ / "ckpt.pt") && can_read("/etc/passwd") && can_read(home_ / "notes.txt") &&
                       can_write(home_ / "new.txt") && can_write("/dev/null") &&
                       ::mkdir((attempt_ / "more").c_str(), 0700) == 0 &&
                       ::rename((attempt_ / "more").c_str(), (attempt_ / "work/moved").c_str()) == 0 &&
                       ::access("/bin/sh", X_OK) == 0);
            }),
            0);
  EXPECT_EQ(try_as_job([] { return std::system("exit 0") != 0; }), 0);
}

TEST_F(PlainJob, CannotReadKeysAndPasswordsOfTheUser) {
  EXPECT_EQ(try_as_job([&] { return can_read(home_ / ".ssh/id_ed25519") || can_read(home_ / ".aws/credentials"); }), 0);
}

TEST_F(PlainJob, CannotLetSomebodyIn) {
  EXPECT_EQ(try_as_job([&] { return can_write(home_ / ".ssh/authorized_keys") || can_write(home_ / ".ssh/rc"); }), 0);
}

TEST_F(PlainJob, CannotMakeTheFoldersByWhichSomebodyGetsIn) {
  fs::remove_all(home_ / ".ssh");
  EXPECT_EQ(try_as_job([&] {
              bool can = false;
              for (const char* name : {".ssh", ".config/systemd/user", ".config/environment.d", ".config/autostart",
                                       ".local/share/systemd/user"}) {
                std::error_code failed;
                fs::create_directories(home_ / name, failed);
                can = can || can_write(home_ / name / "evil");
              }
              return can || ::rename((home_ / ".config").c_str(), (home_ / "moved").c_str()) == 0;
            }),
            0);
  EXPECT_FALSE(os::exists(home_ / ".ssh/evil"));
  EXPECT_FALSE(os::exists(home_ / ".config/systemd/user/evil"));
}

TEST_F(PlainJob, CannotReadOrChangeAnotherJob) {
  EXPECT_EQ(try_as_job([&] {
              return can_read(other_ / "work/model.pt") || can_write(other_ / "work/model.pt") ||
                     ::unlink((other_ / "work/model.pt").c_str()) == 0 || can_write(other_ / "work/added");
            }),
            0);
}

TEST_F(PlainJob, CannotChangeTheAgentsFenceOrCache) {
  EXPECT_EQ(try_as_job([&] {
              return can_write(agent_ / "fence") || can_read(agent_ / "cache/pack") ||
                     ::rename((agent_ / "fence").c_str(), (attempt_ / "fence").c_str()) == 0 ||
                     ::unlink((agent_ / "fence").c_str()) == 0;
            }),
            0);
}

// By which MPI starts ranks on other hosts. Whoever could change it would be the agent of all later jobs.
TEST_F(PlainJob, CanRunTheAgentsProgramAndCannotChangeIt) {
  fs::create_directories(program_.parent_path());
  fs::copy_file("/bin/true", program_);
  ASSERT_EQ(::lchown(program_.parent_path().c_str(), k_user, k_user), 0);
  ASSERT_EQ(::lchown(program_.c_str(), k_user, k_user), 0);
  EXPECT_EQ(try_as_job([&] { return std::system(program_.c_str()) != 0; }), 0);
  EXPECT_EQ(try_as_job([&] {
              return can_write(program_) || can_write(program_.parent_path() / "more") || ::unlink(program_.c_str()) == 0 ||
                     ::chmod(program_.c_str(), 0777) == 0;
            }),
            0);
}

TEST_F(PlainJob, CannotReachThemByLinks) {
  fs::create_symlink(home_ / ".ssh/id_ed25519", attempt_ / "work/link");
  fs::create_directory_symlink(home_ / ".ssh", attempt_ / "work/folder");
  EXPECT_EQ(try_as_job([&] {
              return can_read(attempt_ / "work/link") || can_read(attempt_ / "work/folder/id_ed25519") ||
                     can_read(attempt_ / "work/../../../../../../.ssh/id_ed25519") ||
                     ::link((home_ / ".ssh/id_ed25519").c_str(), (attempt_ / "work/hard").c_str()) == 0;
            }),
            0);
}

TEST_F(PlainJob, CannotReachThemThroughProc) {
  EXPECT_EQ(try_as_job([&] {
              const std::string root = "/proc/" + std::to_string(::getppid());
              return can_read(root + "/root" + (home_ / ".ssh/id_ed25519").string()) || can_read(root + "/environ") ||
                     can_read(root + "/mem") || can_read("/proc/self/root" + (home_ / ".ssh/id_ed25519").string());
            }),
            0);
}

TEST_F(PlainJob, CannotLookIntoOtherProcesses) {
  EXPECT_EQ(try_as_job([] { return ::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr) == 0; }), 0);
}

TEST_F(PlainJob, CannotEndOtherProcesses) {
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 6)
    GTEST_SKIP() << "this kernel's Landlock knows no signals";
  const pid_t other = ::fork();
  if (other == 0) {
    become_ordinary();
    for (;;) ::pause();
  }
  while (::access(("/proc/" + std::to_string(other) + "/stat").c_str(), R_OK) != 0) ::usleep(1000);
  EXPECT_EQ(try_as_job([&] { return ::kill(other, 0) == 0 || ::kill(other, SIGTERM) == 0; }), 0);
  EXPECT_EQ(try_as_job([] { return std::system("sleep 100 & kill $!") != 0; }), 0) << "its own it can end";
  EXPECT_EQ(::kill(other, SIGKILL), 0);
  EXPECT_EQ(::waitpid(other, nullptr, 0), other);
}

// No service manager of this machine is asked: a socket is hidden as its are.
TEST_F(PlainJob, CannotHaveOthersRunItsPrograms) {
  const auto hidden = confinement_of(home_, agent_, attempt_, {}, {}).hidden;
  for (const char* name : {"systemd", "bus"})
    EXPECT_NE(std::find(hidden.begin(), hidden.end(), "/run/user/" + std::to_string(::geteuid()) + "/" + name), hidden.end());
  const os::Path path = attempt_ / "work/engine.sock";
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  std::copy_n(path.c_str(), path.string().size(), address.sun_path);
  ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(server, 1), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const auto can_connect = [&] {
    const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
    return ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  EXPECT_EQ(try_as_job(can_connect), 1) << "a socket of its own it can use";
  extra_hidden_ = {path};
  EXPECT_EQ(try_as_job(can_connect), 0);
  ::close(server);
}

TEST_F(PlainJob, CannotGetPrivilegesBack) {
  EXPECT_EQ(try_as_job([] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1; }), 0);
}

TEST_F(PlainJob, CannotPassItOnToAChild) {
  EXPECT_EQ(try_as_job([&] {
              return std::system(("cat '" + (home_ / ".ssh/id_ed25519").string() + "' > /dev/null 2>&1").c_str()) == 0;
            }),
            0);
}

}  // namespace
}  // namespace gridctl::agent::confine_test
