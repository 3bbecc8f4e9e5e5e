// SPDX-License-Identifier: Apache-2.0
#include "control/reach/connect_agent.hpp"

#include <algorithm>
#include <utility>

#include "control/reach/embedded_agent.hpp"
#include "wire/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::control {

namespace {

// The room below knows hosts, not providers: it is here that the command which mends it can be named.
Error named(Error error, const registry::Provider& provider) {
  error.context.push_back("while reaching provider " + provider.name.value);
  const std::size_t at = error.message.rfind("SHA256:");
  if (error.code != Code::host_key_mismatch || at == std::string::npos) return error;
  const std::string shown = error.message.substr(at, error.message.find_first_of(" ,;)", at) - at);
  error.hint = "if its owner confirms: gridctl provider check " + provider.name.value + " --host-key " + shown;
  return error;
}

Result<AgentSession> call(const registry::Provider& provider, const Paths& paths, const ControllerId& controller,
                          std::vector<std::string> features, BootTime deadline, os::Clock& clock,
                          const UploadProgress& progress = {}) {
  TRY_ASSIGN(const ssh::Target target, target_of(provider, paths));
  Result<AgentSession> session =
      open_agent(target, {agent_images(), controller, std::move(features), progress}, deadline, clock);
  if (!session) return named(std::move(session).error(), provider);
  return session;
}

}  // namespace

std::vector<AgentImage> agent_images() {
  std::vector<AgentImage> images;
  for (const char* arch : {"x86_64", "aarch64"})
    if (const EmbeddedAgent* agent = embedded_agent(arch))
      images.push_back({agent->arch, agent->bytes, agent->sha256_hex, agent->gzip});
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
                                  const ControllerId& controller, BootTime deadline, os::Clock& clock,
                                  const UploadProgress& progress) {
  return call(provider, paths, controller, {"events"}, deadline, clock, progress);
}

Result<AgentSession> open_streams(const registry::Provider& provider, const Paths& paths,
                                  const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  return call(provider, paths, controller, {std::string(wire::k_streams_feature)}, deadline, clock);
}

Result<std::unique_ptr<wire::Link>> open_link(const registry::Provider& provider, const Paths& paths,
                                              const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(transfer::BulkLink bulk, open_bulk(provider, paths, controller, deadline, clock));
  return std::move(bulk.link);
}

Result<transfer::BulkLink> open_bulk(const registry::Provider& provider, const Paths& paths,
                                     const ControllerId& controller, BootTime deadline, os::Clock& clock) {
  const BootTime began = clock.boot();
  std::vector<std::string> features = transfer::Codecs::ours().words();
  features.emplace_back("bulk");
  TRY_ASSIGN(AgentSession session, call(provider, paths, controller, std::move(features), deadline, clock));
  const transfer::Codecs codecs = transfer::Codecs::of(session.hello.features);
  const auto& said = session.hello.features;
  const bool uploads = std::find(said.begin(), said.end(), wire::k_uploads_feature) != said.end();
  return transfer::BulkLink{std::make_unique<BlockingLink>(std::move(session), clock), codecs, uploads,
                            clock.boot() - began};
}

}  // namespace gridctl::control
