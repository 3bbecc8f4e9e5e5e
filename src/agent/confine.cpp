// SPDX-License-Identifier: Apache-2.0
#include "agent/confine.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "agent/secret_folders.hpp"

namespace gridctl::agent {
namespace {

using os::Path;

constexpr std::uint64_t k_access_refer = 1ull << 13;  // LANDLOCK_ACCESS_FS_REFER, which older headers lack

// Matches the newest headers: the kernel is told how much of it is used.
struct RulesetAttributes {
  std::uint64_t handled_access_fs = 0, handled_access_net = 0, scoped = 0;
};
constexpr std::uint64_t k_scope_signal = 1ull << 1;  // LANDLOCK_SCOPE_SIGNAL
constexpr long k_version_of_scopes = 6;              // Linux 6.12

// A process in a Landlock domain cannot inspect processes outside it, whatever the domain allows; on newer kernels, it
// cannot send them signals either.
Result<void> enter_domain() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  // The first version forbids every rename from one folder into another, whatever the rules say.
  if (version < 2) return make_error(Code::unsupported, "this kernel has no Landlock, or too old a one");
  RulesetAttributes attributes;
  attributes.handled_access_fs = k_access_refer;
  if (version >= k_version_of_scopes) attributes.scoped = k_scope_signal;
  const std::size_t meant = version >= k_version_of_scopes ? sizeof attributes : sizeof attributes.handled_access_fs;
  const os::Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, meant, 0)));
  const os::Fd root(::open("/", O_PATH | O_CLOEXEC));
  landlock_path_beneath_attr everywhere{};
  everywhere.allowed_access = k_access_refer;
  everywhere.parent_fd = root.get();
  if (!ruleset.valid() || !root.valid() ||
      ::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return errno_error(errno, "cannot confine a job with Landlock");
  return {};
}

bool set_proc_file(const char* file, const std::string& text) {
  const os::Fd fd(::open(file, O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Creates our own view of the file system, in which our user stays the same.
Result<void> leave_view() {
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return make_error(Code::unsupported, "this host does not let ordinary users create namespaces");
  if (!set_proc_file("/proc/self/setgroups", "deny") || !set_proc_file("/proc/self/uid_map", uid + " " + uid + " 1\n") ||
      !set_proc_file("/proc/self/gid_map", gid + " " + gid + " 1\n"))
    return errno_error(errno, "cannot keep our user in a namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return errno_error(errno, "cannot make a view of the file system");
  return {};
}

bool is_within(const Path& path, const Path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

constexpr unsigned long k_read_only = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;

// Replaces the path with an empty folder, and puts back into it what is kept.
Result<void> hide(const Path& path, const Confinement& confinement) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode)) {
    if ((S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode)) && ::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return errno_error(errno, "cannot hide " + path.string());
    return {};
  }
  struct Through {
    os::Fd fd;
    Path path;
    bool writable;
  };
  std::vector<Through> through;
  for (const std::vector<Path>* list : {&confinement.kept, &confinement.readable})
    for (const Path& one : *list)
      if (is_within(one, path) && one != path)
        if (os::Fd fd(::open(one.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); fd.valid())
          through.push_back({std::move(fd), one, list == &confinement.kept});
  if (::mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") != 0)
    return errno_error(errno, "cannot hide " + path.string());
  for (const auto& [fd, one, writable] : through) {
    TRY(os::make_directories(one));
    const std::string from = "/proc/self/fd/" + std::to_string(fd.get());
    if (::mount(from.c_str(), one.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return errno_error(errno, "cannot keep " + one.string());
    if (!writable && ::mount(nullptr, one.c_str(), nullptr, k_read_only, nullptr) != 0)
      return errno_error(errno, "cannot protect " + one.string());
  }
  if (::mount(nullptr, path.c_str(), nullptr, k_read_only, nullptr) != 0)
    return errno_error(errno, "cannot hide " + path.string());
  return {};
}

}  // namespace

Confinement confinement_of(const Path& home, const Path& agent_home, const Path& attempt, const Path& secrets,
                           const Path& program) {
  Confinement confinement;
  for (const char* name :
       {".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".config/gcloud",
        ".config/rclone", ".config/gh", ".local/share/keyrings", ".local/state/gridctl", ".password-store"})
    confinement.hidden.push_back(home / name);
  // These files let someone in, or start programs outside: units and variables of the service manager, and start-up
  // files of a session.
  for (const char* name :
       {".ssh", ".config/systemd", ".config/environment.d", ".config/autostart", ".local/share/systemd"}) {
    confinement.hidden.push_back(home / name);
    confinement.made.push_back(home / name);
  }
  for (const char* name : {".config", ".local", ".local/share"}) confinement.pinned.push_back(home / name);
  confinement.hidden.push_back(agent_home);
  for (const Path& folder : secret_folders()) confinement.hidden.push_back(folder);
  // The user's service manager starts programs that are not confined. Docker's socket stays: some jobs are containers.
  for (const char* name : {"systemd", "bus"})
    confinement.hidden.push_back(Path("/run/user") / std::to_string(::geteuid()) / name);
  confinement.kept.push_back(attempt);
  if (!secrets.empty()) confinement.kept.push_back(secrets);
  if (!program.empty()) confinement.readable.push_back(program);
  // The lists hold paths as the kernel sees them: a home may be behind a link.
  for (std::vector<Path>* list : {&confinement.hidden, &confinement.made, &confinement.pinned, &confinement.kept, &confinement.readable})
    for (Path& path : *list) {
      std::error_code failed;
      if (const Path real = std::filesystem::weakly_canonical(path, failed); !failed) path = real;
    }
  return confinement;
}

bool is_hidden(const Confinement& confinement, const Path& path) {
  const auto lies_in = [&](const Path& folder) { return is_within(path, folder); };
  return std::ranges::any_of(confinement.hidden, lies_in) && std::ranges::none_of(confinement.kept, lies_in);
}

Result<void> confine(const Confinement& confinement) {
  Result<void> hidden = {};
  // Root could undo it, and would lose in a namespace the abilities that jobs of root need.
  if (::geteuid() != 0) {
    // A folder that cannot be made here cannot be made by the job either.
    for (const Path& path : confinement.made) (void)os::make_directories(path, 0700);
    hidden = leave_view();
    for (const Path& path : confinement.pinned)  // a place where something is mounted cannot be renamed
      if (hidden && ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 && errno != ENOENT)
        hidden = errno_error(errno, "cannot pin " + path.string());
    for (const Path& path : confinement.hidden)
      if (hidden) hidden = hide(path, confinement);
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "cannot give up new privileges");
  const Result<void> apart = enter_domain();
  return hidden ? apart : hidden;
}

}  // namespace gridctl::agent
