// SPDX-License-Identifier: Apache-2.0
#include "control/reach.hpp"

#include <utility>

#include "control/embedded_agent.hpp"

namespace gridctl::control {

namespace {

Result<AgentSession> call(const registry::Provider& provider, const Paths& paths, const ControllerId& controller,
                          std::vector<std::string> features, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const ssh::Target target, target_of(provider, paths));
  return open_agent(target, {agent_images(), controller, std::move(features)}, deadline, clock)
      .context("while reaching provider " + provider.name.value);
}

}  // namespace

std::vector<AgentImage> agent_images() {
  std::vector<AgentImage> images;
  for (const char* arch : {"x86_64", "aarch64"})
    if (const EmbeddedAgent* agent = embedded_agent(arch))
      images.push_back({agent->arch, agent->bytes, agent->sha256_hex});
  return images;
}

Result<ssh::Target> target_of(const registry::Provider& provider, const Paths& paths) {
  ssh::Overrides overrides;
  for (const std::string& identity : provider.identities) overrides.identities.emplace_back(identity);
  overrides.jump = provider.jump;
  overrides.known_hosts = paths.known_hosts();
  if (const Result<ssh::TransportKind> kind = ssh::parse_transport(provider.transport)) overrides.transport = *kind;
  return ssh::resolve(provider.address, overrides);
}

Result<AgentSession> open_session(const registry::Provider& provider, const Paths& paths,
                                  const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  return call(provider, paths, controller, {"events"}, deadline, clock);
}

Result<std::unique_ptr<wire::Link>> open_link(const registry::Provider& provider, const Paths& paths,
                                              const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(AgentSession session, call(provider, paths, controller, {"bulk"}, deadline, clock));
  return std::unique_ptr<wire::Link>(
      std::make_unique<BlockingLink>(std::move(session.channel), std::move(session.decoder), clock));
}

}  // namespace gridctl::control
