// SPDX-License-Identifier: Apache-2.0
#include "agent/outside.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.hpp"
#include "os/entries.hpp"

namespace gridctl::agent {
namespace {

using os::Path;

constexpr std::uint64_t k_allowed_bytes_max = 64 * 1024, k_passwd_bytes_max = 4u << 20;
// Login programs, service managers and shells read these, or run programs in them.
constexpr std::array k_system{"bin", "boot", "dev",  "etc", "home", "lib", "lib32", "lib64", "libx32", "nix", "opt",
                              "proc", "root", "run", "sbin", "snap", "srv", "sys",  "usr",   "var"};

bool is_in(const Path& path, const Path& folder) {
  return !folder.empty() && std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

bool is_system(const Path& path) {
  if (is_in(path, "/var/tmp")) return false;
  const std::string first = path.relative_path().begin()->string();
  return std::ranges::find(k_system, first) != k_system.end();
}

Path without_links(const Path& path) {
  std::error_code failed;
  Path real = std::filesystem::weakly_canonical(path, failed);
  return failed ? path.lexically_normal() : real;
}

// Returns the home that logins use, whatever HOME says.
Path home_by_passwd() {
  const auto text = os::read_file("/etc/passwd", k_passwd_bytes_max);
  if (!text) return {};
  for (const std::string& line : split_lines(*text))
    if (const auto part = split(line, ':'); part.size() > 5 && part[2] == std::to_string(::geteuid())) return part[5];
  return {};
}

OutsideRules rules_here(const Path& agent_home) {
  OutsideRules rules;
  for (const Path& home : {os::home_directory(), agent_home, home_by_passwd()})
    if (home.is_absolute() && home != "/") rules.homes.push_back(without_links(home));
  if (const auto text = os::read_file(agent_home / k_allowed_links_file, k_allowed_bytes_max))
    for (const Path& folder : parse_allowed_links(*text)) rules.allowed.push_back(without_links(folder));
  return rules;
}

}  // namespace

std::vector<Path> parse_allowed_links(std::string_view text) {
  std::vector<Path> folders;
  for (const std::string& line : split_lines(text)) {
    std::string folder(trim(line.substr(0, line.find('#'))));
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (folder.starts_with('/')) folders.emplace_back(std::move(folder));
  }
  return folders;
}

Result<void> check_outside(const Path& real, const OutsideRules& rules) {
  const auto holds_it = [&](const Path& folder) { return is_in(real, folder); };
  if (std::ranges::any_of(rules.allowed, holds_it)) return {};
  const bool home = std::ranges::any_of(rules.homes, holds_it);
  if (!home && !is_system(real)) return {};
  return make_error(Code::refused, quoted_path(real.native()) + (home ? " lies in a home directory" : " belongs to the system") +
                                       ": a job that runs as a plain process gets no path of its own there, unless the "
                                       "host's owner names the folder in ~/.gridctl/" +
                                       k_allowed_links_file +
                                       "; a path relative to the working directory, or a mount at ~/NAME, is the job's own");
}

Result<void> check_link_outside(const Path& at, const Path& agent_home) {
  return check_outside(without_links(at.parent_path()) / at.filename(), rules_here(agent_home));
}

Result<void> make_link_outside(const Path& at, const Path& to, const Path& agent_home) {
  TRY_ASSIGN(const os::Fd folder, os::open_file(at.parent_path(), O_PATH | O_DIRECTORY));
  std::error_code failed;
  const Path real = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder.get()), failed);
  if (failed) return errno_error(failed.value(), "cannot find where " + at.string() + " lies");
  TRY(check_outside(real / at.filename(), rules_here(agent_home)));
  if (::symlinkat(to.c_str(), folder.get(), at.filename().c_str()) != 0)
    return errno_error(errno, "cannot make the link " + at.string());
  return {};
}

}  // namespace gridctl::agent
