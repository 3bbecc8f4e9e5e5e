// SPDX-License-Identifier: Apache-2.0
// Reads facts that only the preflight judges.
#pragma once

#include "base/inventory.hpp"
#include "os/clock.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Returns whether the file ("NAME:START:COUNT" per line) has a range of at least 65536 ids for the user, by name or
// number.
[[nodiscard]] bool has_id_range(std::string_view subid_file, std::string_view user, std::uint32_t uid);
// Returns the name of a uid in a passwd file, or an empty text.
[[nodiscard]] std::string user_name(std::string_view passwd, std::uint32_t uid);
// Returns the mount that holds `path`, from /proc/self/mountinfo; empty if unknown.
struct MountPoint {
  std::vector<std::string> options;  // "rw", "noexec"
  std::string source;                // "/dev/sda3"
};
[[nodiscard]] MountPoint mount_of_path(std::string_view mountinfo, const os::Path& path);
// Decodes a path of mountinfo, in which a blank is written \040.
[[nodiscard]] std::string unescaped_mount(std::string_view text);

[[nodiscard]] HostFacts read_facts(const HostFiles& files, const Toolbox& toolbox, const os::Path& home,
                                   os::Clock& clock);

}  // namespace gridctl::probe
