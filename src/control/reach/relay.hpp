// SPDX-License-Identifier: Apache-2.0
// Relays, where lent hosts and this machine meet (gridctl-lend(7)), as the commands that make and end invitations need
// them; and this machine's own agent, for its owner's commands.
#pragma once

#include <string>

#include "base/ids.hpp"
#include "control/reach/host_keys.hpp"
#include "control/reach/paths.hpp"
#include "lend/call.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct Relay {
  std::string address;  // for the owner's machine
  std::string user, host;
  int port = 22;
  std::vector<ssh::HostKey> keys;  // that it shows
  std::string program;             // the agent there, for a shell
  lend::RelayCommand run;
};
// The server at `address` proves to be the one that the user means, and gets the agent. `provider`: with the login
// there. `here`: it is the SSH server of this machine.
[[nodiscard]] Result<Relay> make_relay(const registry::Provider& provider, const std::string& address, bool here,
                                       const TrustRequest& trust, const Paths& paths, const ControllerId& controller,
                                       BootTime deadline, os::Clock& clock);
// Nobody gets in with that invitation any more.
[[nodiscard]] Result<void> close_relay_of(const registry::Provider& provider, const lend::Invitation& invitation,
                                          const Paths& paths, BootTime deadline, os::Clock& clock);
// Puts the agent that this gridctl carries on this machine, where it is missing. Returns its build.
[[nodiscard]] Result<std::string> place_agent_here(const ControllerId& controller, BootTime deadline, os::Clock& clock);

}  // namespace gridctl::control
