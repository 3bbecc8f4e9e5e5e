// SPDX-License-Identifier: Apache-2.0
#include "control/reach/relay.hpp"

#include "control/reach/connect_agent.hpp"

namespace gridctl::control {

Result<Relay> make_relay(const registry::Provider& provider, const std::string& address, bool here,
                         const TrustRequest& trust, const Paths& paths, const ControllerId& controller,
                         BootTime deadline, os::Clock& clock) {
  registry::Provider server = provider;
  server.address = address;
  server.transport.clear();
  TRY_ASSIGN(const ssh::Target target, target_of(server, paths));
  Relay relay;
  TRY_ASSIGN(relay.keys, trust_host(target, trust, deadline, clock));
  relay.address = target.peer();
  relay.user = target.user;
  relay.host = target.host;
  relay.port = target.port;
  relay.run = here ? lend::relay_here(clock) : lend::RelayCommand(over_ssh(target, clock));
  TRY_ASSIGN(const AgentSession session,
             open_agent(Connector(relay.run), {agent_images(), controller, {}}, deadline, clock));
  relay.program = "\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/" + session.hello.build + "/gridctl-agent\"";
  return relay;
}

Result<void> close_relay_of(const registry::Provider& provider, const lend::Invitation& invitation, const Paths& paths,
                            BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const lend::RelayCommand relay, relay_of(provider, invitation, paths, {}, clock));
  return lend::close_relay(relay, invitation.id, deadline, clock);
}

Result<std::string> place_agent_here(const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const AgentSession session,
             open_agent(Connector(lend::relay_here(clock)), {agent_images(), controller, {}}, deadline, clock));
  return session.hello.build;
}

}  // namespace gridctl::control
