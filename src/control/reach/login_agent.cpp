// SPDX-License-Identifier: Apache-2.0
#include "control/reach/login_agent.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_socket_path_max = 4096;

os::Path login_agent_file(const Paths& paths) { return paths.root / "ssh-agent"; }
}  // namespace

os::Path offered_login_agent(const Paths& paths) {
  const os::Path offered = os::read_file(login_agent_file(paths), k_socket_path_max).value_or("");
  return offered != os::environment("SSH_AUTH_SOCK").value_or("") && os::exists(offered) ? offered : os::Path{};
}

void offer_login_agent(const Paths& paths) {
  const std::string ours = os::environment("SSH_AUTH_SOCK").value_or("");
  if (ours.empty() || os::read_file(login_agent_file(paths), k_socket_path_max).value_or("") == ours) return;
  (void)os::write_file_atomically(login_agent_file(paths), ours);  // without it the daemon keeps its own
}

}  // namespace gridctl::control
