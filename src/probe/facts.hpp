// SPDX-License-Identifier: Apache-2.0
// Facts that only the preflight judges.
#pragma once

#include "base/inventory.hpp"
#include "os/clock.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

// Has the file ("NAME:START:COUNT" per line) a range of at least 65536 ids for the user, by name or number?
[[nodiscard]] bool has_id_range(std::string_view subid_file, std::string_view user, std::uint32_t uid);
// Name of a uid in a passwd file, or empty.
[[nodiscard]] std::string user_name(std::string_view passwd, std::uint32_t uid);
// Options of the mount that holds `path`, by /proc/self/mountinfo; empty when unknown.
[[nodiscard]] std::string mount_options(std::string_view mountinfo, const os::Path& path);

// A path of mountinfo, where a blank is written \040.
[[nodiscard]] std::string unescaped_mount(std::string_view text);

[[nodiscard]] HostFacts read_facts(const HostFiles& files, const Toolbox& toolbox, const os::Path& home,
                                   os::Clock& clock);

}  // namespace gridctl::probe
