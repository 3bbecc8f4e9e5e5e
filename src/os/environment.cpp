// SPDX-License-Identifier: Apache-2.0
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.hpp"
#include "os/files.hpp"

namespace gridctl::os {

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Path home_directory() {
  if (const auto home = environment("HOME"); home && !home->empty()) return *home;
  // Parses the file directly, because the agent is linked statically, and name services cannot be.
  const std::string wanted = std::to_string(::getuid());
  for (const std::string& line : split_lines(read_file("/etc/passwd").value_or(""))) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() >= 6 && fields[2] == wanted && !fields[5].empty()) return fields[5];
  }
  return "/";
}

Path xdg_directory(std::string_view variable, const Path& usual) {
  const auto given = environment(variable);
  return given && given->starts_with('/') ? Path(*given) : home_directory() / usual;
}

Result<Path> executable_path() {
  std::error_code problem;
  Path path = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) return path_error(problem.value(), "read", "/proc/self/exe");
  return path;
}

Path temporary_directory() {
  if (const auto chosen = environment("TMPDIR"); chosen && !chosen->empty()) return *chosen;
  return "/tmp";
}

std::string file_system_kind(const Path& path) {
  struct Variable {
    unsigned long magic;
    const char* name;
  };
  static constexpr Variable k_rows[] = {
      {0xEF53, "ext4"},         {0x58465342, "xfs"},     {0x9123683E, "btrfs"}, {0x01021994, "tmpfs"},
      {0x858458F6, "ramfs"},    {0x794C7630, "overlay"}, {0x6969, "nfs"},       {0xFF534D42, "cifs"},
      {0xFE534D42, "smb2"},     {0x65735546, "fuse"},    {0x2FC12FC1, "zfs"},   {0x0BD00BD0, "lustre"},
      {0x47504653, "gpfs"},     {0x00C36400, "ceph"},    {0x01021997, "9p"},    {0xF2F52010, "f2fs"},
      {0xCA451A4E, "bcachefs"}, {0x4D44, "vfat"},        {0x5346414F, "afs"},   {0x19830326, "beegfs"},
  };
  Path at = path.empty() ? Path(".") : path;
  struct statfs info {};
  while (::statfs(at.c_str(), &info) != 0) {
    if (errno != ENOENT || !at.has_relative_path()) return "unknown";
    at = at.has_parent_path() ? at.parent_path() : Path(".");
  }
  for (const Variable& row : k_rows)
    if (row.magic == static_cast<unsigned long>(info.f_type) || row.magic == static_cast<unsigned>(info.f_type))
      return row.name;
  return "unknown";
}

}  // namespace gridctl::os
