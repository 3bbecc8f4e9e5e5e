// SPDX-License-Identifier: Apache-2.0
#include "agent/secret_folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"

namespace gridctl::agent {
namespace {

using os::Path;

std::string usual_name() { return "gridctl-" + std::to_string(::geteuid()); }

bool is_ours(const Path& folder) {
  const auto status = os::status_of(folder);
  return status && *status && (*status)->kind == os::FileKind::directory && (*status)->is_ours &&
         ((*status)->mode & 077) == 0;
}

}  // namespace

std::vector<Path> secret_bases() {
  std::vector<Path> bases;
  for (const Path& base : {Path("/dev/shm"), Path("/run/user") / std::to_string(::geteuid())})
    if (is_one_of(os::file_system_kind(base), {"tmpfs"}) && ::access(base.c_str(), W_OK) == 0) bases.push_back(base);
  return bases;
}

std::vector<Path> secret_folders(const std::vector<Path>& bases) {
  std::vector<Path> found;
  const std::string usual = usual_name();
  for (const Path& base : bases) {
    if (is_ours(base / usual)) found.push_back(base / usual);
    if (const auto names = os::list_directory(base))
      for (const std::string& name : *names)
        if (name.starts_with(usual + ".") && is_ours(base / name)) found.push_back(base / name);
  }
  return found;
}

Result<Path> secrets_at(const std::string& name, const std::vector<Path>& bases) {
  const std::vector<Path> folders = secret_folders(bases);
  for (const Path& folder : folders)
    if (os::exists(folder / name)) return folder / name;
  if (!folders.empty()) return folders.front() / name;
  for (const Path& base : bases)
    if (!os::exists(base / usual_name())) return base / usual_name() / name;
  if (!bases.empty()) return bases.front() / (usual_name() + "." + std::to_string(os::random_u64())) / name;
  return make_error(Code::unsupported,
                    "this host has no tmpfs for secrets: neither /dev/shm nor /run/user/" + std::to_string(::geteuid()));
}

Result<void> make_secret_folder(const Path& secrets) {
  const Path folder = secrets.parent_path();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(errno, "cannot make " + folder.string());
  if (is_ours(folder)) return {};
  return make_error(Code::busy, folder.string() + " is not our folder with mode 0700");
}

}  // namespace gridctl::agent
