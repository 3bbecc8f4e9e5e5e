// SPDX-License-Identifier: Apache-2.0
#include "ssh/user_trust.hpp"

#include <algorithm>

#include "os/process.hpp"

namespace gridctl::ssh {

std::optional<std::string> parse_recognised_key(std::string_view words) {
  // The last match counts: those of jump hosts come before.
  const std::size_t known = words.rfind(" is known and matches the ");
  if (known == std::string_view::npos) return std::nullopt;
  const std::string_view before = words.substr(0, known);
  const std::size_t at = std::max(before.rfind("Server host key: ") + 1, before.rfind("Server host certificate: ") + 1);
  if (at == 0) return std::nullopt;
  const std::size_t print = before.find("SHA256:", at);
  if (print == std::string_view::npos) return std::nullopt;
  const std::string_view rest = before.substr(print);
  return std::string(rest.substr(0, rest.find_first_of(", \r\n")));
}

std::optional<std::string> key_known_to_user(const Target& target, BootTime deadline, os::Clock& clock) {
  if (!os::find_program("ssh")) return std::nullopt;
  std::vector<std::string> argv = {"ssh", "-v", "-T", "-x", "-a"};
  if (!target.config.empty()) argv.insert(argv.end(), {"-F", target.config.native()});
  const auto seconds = std::max<std::int64_t>(
      1, std::chrono::ceil<std::chrono::seconds>(std::min(deadline - clock.boot(), target.connect_timeout)).count());
  for (const std::string& option :
       {std::string{"BatchMode=yes"}, std::string{"StrictHostKeyChecking=yes"},
        std::string{"PreferredAuthentications=none"}, std::string{"ControlMaster=no"}, std::string{"ControlPath=none"},
        std::string{"ClearAllForwardings=yes"}, std::string{"PermitLocalCommand=no"}, std::string{"RemoteCommand=none"},
        std::string{"RequestTTY=no"}, std::string{"UpdateHostKeys=no"}, std::string{"ConnectionAttempts=1"},
        "ConnectTimeout=" + std::to_string(seconds)})
    argv.insert(argv.end(), {"-o", option});
  if (!target.jump.empty()) argv.insert(argv.end(), {"-J", target.jump});
  argv.insert(argv.end(), {"-p", std::to_string(target.port), "-l", target.user, "--", target.alias, "true"});
  os::RunOptions options;
  options.timeout = std::max<Duration>(deadline - clock.boot(), std::chrono::milliseconds{1});
  const auto outcome = os::run(argv, options);
  return outcome ? parse_recognised_key(outcome->err) : std::nullopt;
}

}  // namespace gridctl::ssh
