// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/leave_host.hpp"

#include <string>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::control {

namespace {
constexpr int k_looks = 16;  // at running agents, half a second apart

// A running agent recreates its folders, and a daemon may start one more agent before it learns that the host is
// forgotten. So the folder is removed once no agent runs, and must still be absent at the next look. The id consists of
// letters, digits and '-': agents accept no others.
std::string script_for(const ControllerId& controller) {
  const std::string id = shell_quote(controller.value);
  return "h=${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}; c=" + id +
         "; [ -d \"$h/bin\" ] || { echo gone; exit 0; }; "
         "for f in \"$h/jobs/$c\"/*/[0-9]*; do [ -e \"$f\" ] && { echo busy; exit 0; }; done; "
         "rm -rf \"$h/jobs/$c\" \"$h/kept/$c\".* \"$h/standby/$c\".*; "
         "if [ -z \"$(ls -A \"$h/jobs\" 2>/dev/null)\" ]; then r=$(cd \"$h\" && pwd -P); i=0; "
         "while [ -e \"$h\" ] && [ $i -lt " +
         std::to_string(k_looks) +
         " ]; do i=$((i+1)); "
         "ls -l /proc/[0-9]*/exe 2>/dev/null | grep -qF -e \" $r/bin/\" || rm -rf \"$h\"; sleep 0.5; done; fi; "
         "if [ -e \"$h\" ]; then du -sk \"$h\" | cut -f1; else echo gone; fi";
}
}  // namespace

Result<LeftBehind> leave_host(AgentNetwork& net, const registry::Provider& provider, const ControllerId& controller,
                              BootTime deadline) {
  TRY_ASSIGN(const std::string answer, net.run_script(provider, script_for(controller), deadline));
  const std::string_view word = trim(answer);
  if (is_one_of(word, {"gone"})) return LeftBehind{};
  if (is_one_of(word, {"busy"})) return LeftBehind{0, true};
  const auto kib = leading_number<std::uint64_t>(word);
  if (!kib) return make_error(Code::protocol_violation, "the host did not report what is left of ~/.gridctl");
  return LeftBehind{*kib << 10, false};
}

}  // namespace gridctl::control
