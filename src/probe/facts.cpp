// SPDX-License-Identifier: Apache-2.0
#include "probe/facts.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/random.hpp"
#include "probe/cgroup.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::uint64_t k_ids_wanted = 65536;  // an image's files are owned by ids up to 65535

std::uint32_t own_uid(const HostFiles& files) {
  return leading_number<std::uint32_t>(line_value(files.read("/proc/self/status").value_or(""), "Uid:")).value_or(0);
}

// Tries the agent's later steps: it creates the folder and writes a file into it.
void try_home(const os::Path& home, HostFacts& facts) {
  if (auto made = os::make_directories(home); !made) {
    facts.home_problem = made.error().message;
    return;
  }
  const os::Path probe = home / (".probe-" + os::random_id(8));
  auto written = os::write_file_atomically(probe, "gridctl\n");
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  if (!written) facts.home_problem = written.error().message;
  else facts.home_writable = true;
}

}  // namespace

std::string unescaped_mount(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool has_id_range(std::string_view subid_file, std::string_view user, std::uint32_t uid) {
  for (const std::string& line : split_lines(subid_file)) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() != 3 || (fields[0] != user && fields[0] != std::to_string(uid))) continue;
    if (whole_number(fields[2]).value_or(0) >= k_ids_wanted) return true;
  }
  return false;
}

std::string user_name(std::string_view passwd, std::uint32_t uid) {
  for (const std::string& line : split_lines(passwd)) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() >= 3 && fields[2] == std::to_string(uid)) return fields[0];
  }
  return {};
}

MountPoint mount_of_path(std::string_view mountinfo, const os::Path& path) {
  const std::string wanted = path.lexically_normal().string();
  std::size_t best = 0;
  MountPoint mount;
  for (const std::string& line : split_lines(mountinfo)) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6) continue;
    const std::string point = unescaped_mount(fields[4]);
    const bool holds = point == "/" || wanted == point || wanted.starts_with(point + "/");
    if (!holds || point.size() < best) continue;  // a later mount on the same point hides the earlier one
    best = point.size();
    mount.options = split(fields[5], ',');
    if (fields.end() - dash > 2) mount.source = *(dash + 2);
  }
  return mount;
}

HostFacts read_facts(const HostFiles& files, const Toolbox& toolbox, const os::Path& home, os::Clock& clock) {
  HostFacts facts;
  facts.uid = own_uid(files);
  facts.user = user_name(files.read("/etc/passwd").value_or(""), facts.uid);
  // Users of LDAP and similar services are not in the file; login programs set their names.
  for (const char* variable : {"USER", "LOGNAME"})
    if (facts.user.empty()) facts.user = os::environment(variable).value_or("");
  facts.home_path = home.string();
  try_home(home, facts);
  facts.home_file_system = os::file_system_kind(home);
  std::error_code error;
  const os::Path real = std::filesystem::weakly_canonical(home, error);
  const MountPoint mount = mount_of_path(files.read("/proc/self/mountinfo").value_or(""), error ? home : real);
  facts.home_noexec = std::ranges::find(mount.options, "noexec") != mount.options.end();
  const auto shm = std::filesystem::space(files.at("/dev/shm"), error);
  if (!error && files.exists("/dev/shm")) facts.shm_bytes = shm.capacity;
  facts.subuid = has_id_range(files.read("/etc/subuid").value_or(""), facts.user, facts.uid) &&
                 has_id_range(files.read("/etc/subgid").value_or(""), facts.user, facts.uid);
  facts.newuidmap = find_tool(toolbox, "newuidmap") && find_tool(toolbox, "newgidmap");
  const CgroupLimits limits = cgroup_limits(files);
  facts.cgroup_version = limits.version;
  facts.cgroup_delegated = limits.delegated;
  facts.clock_wall_ms = clock.wall().ms;
  return facts;
}

}  // namespace gridctl::probe
