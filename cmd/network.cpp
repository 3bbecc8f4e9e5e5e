// SPDX-License-Identifier: Apache-2.0
#include "cmd/network.hpp"

#include "base/text.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

std::function<bool(const std::string&, std::span<const ssh::HostKey>)> asker(Context& context) {
  const auto ci = os::environment("CI");
  if (!context.terminal_in || !context.terminal_err || context.json || (ci && !ci->empty())) return {};
  return [&context](const std::string& peer, std::span<const ssh::HostKey> keys) {
    context.note("ssh does not know the host keys of " + sanitize(peer) + ":");
    for (const ssh::HostKey& key : keys) context.note("  " + sanitize(key.type) + " " + sanitize(key.fingerprint));
    context.write_err(
        "compare them with the output of 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub' on the host. Trust them? "
        "[yes/no] ");
    const Result<std::string> answer = os::read_typed_line();
    return answer && lower(trim(*answer)) == "yes";
  };
}

}  // namespace gridctl::cmd
