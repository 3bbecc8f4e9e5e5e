// SPDX-License-Identifier: Apache-2.0
// Reads versions of the programs through which a host is reached or its jobs are run, and finds public advisories
// against them. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/host_files.hpp"
#include "probe/tools.hpp"
#include "wire/health.hpp"

namespace gridctl::probe {

[[nodiscard]] std::vector<ToolCall> package_calls();
// Returns the packages under the names openssh, runc, docker, podman, nvidia-container-toolkit, linux.
[[nodiscard]] std::vector<wire::Package> read_packages(const HostFiles& files, std::span<const ToolAnswer> answers);

// Compares like dpkg: epoch, then upstream part, then revision; '~' sorts before everything. Returns -1, 0 or 1 for
// below, equal or above.
[[nodiscard]] int compare_debian(std::string_view a, std::string_view b);
// Converts "1:9.2p1-2+deb12u7" to "9.2p1", and "1.1.5+ds1-1+deb12u1" to "1.1.5".
[[nodiscard]] std::string upstream_version(std::string_view package_version);

// Holds a public advisory. Versions are upstream's: affected from `since` (empty = always) to before `fixed`. Releases
// that are maintained beside the newest one have separate rows.
struct Advisory {
  std::string_view id;       // "CVE-2024-6387"
  std::string_view package;  // as above
  std::string_view since, fixed;
  std::string_view debian;  // first fixed revisions, one a release: "bookworm 1:9.2p1-2+deb12u3"; a release that is
                            // not vulnerable: "bullseye -"
  std::string_view what;    // in a few words, and when it matters here
  bool grave = false;       // by it a job or a stranger gets the host
};
[[nodiscard]] std::span<const Advisory> advisories();

enum class Exposure : std::uint8_t {
  none,     // not affected, or fixed by the distributor
  likely,   // in the affected range, and the version is upstream's own
  unclear,  // in the range, but the distributor may have patched it
};
[[nodiscard]] Exposure exposure(const Advisory& advisory, const wire::Package& package);

}  // namespace gridctl::probe
