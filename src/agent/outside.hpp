// SPDX-License-Identifier: Apache-2.0
// Decides where a plain process may have its own path outside its folders: an absolute mount or checkpoint path is a
// symbolic link there, and the agent that makes it is not confined. gridctl-agent(7), "AS A JOB SEES IT".
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr const char* k_allowed_links_file = "allowed_links";  // in the agent's home, written by the owner

// Holds the paths that decide, without links in them.
struct OutsideRules {
  std::vector<os::Path> homes;    // of the user, and the agent's: nothing is put there
  std::vector<os::Path> allowed;  // by the host's owner, in spite of all else
};
// Returns the folders in `text`, one absolute path a line; '#' begins a comment.
[[nodiscard]] std::vector<os::Path> parse_allowed_links(std::string_view text);
// `refused` if a link at `real`, whose folder has no links in its path, could let someone in or run programs. Pure.
[[nodiscard]] Result<void> check_outside(const os::Path& real, const OutsideRules& rules);

// Applies check_outside() to a link that does not exist yet, by the rules of this host.
[[nodiscard]] Result<void> check_link_outside(const os::Path& at, const os::Path& agent_home);
// Makes the link `at` -> `to` on this host, if the rules allow it. Nobody can exchange a folder of `at` in the
// meantime.
[[nodiscard]] Result<void> make_link_outside(const os::Path& at, const os::Path& to, const os::Path& agent_home);

}  // namespace gridctl::agent
