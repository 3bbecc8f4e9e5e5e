// SPDX-License-Identifier: Apache-2.0
#include "control/reach/connect_agent.hpp"

#include <algorithm>
#include <utility>

#include "control/reach/embedded_agent.hpp"
#include "control/reach/login_agent.hpp"
#include "control/reach/peer.hpp"
#include "control/reach/ways.hpp"
#include "lend/call.hpp"
#include "lend/keys.hpp"
#include "os/random.hpp"
#include "wire/guest.hpp"
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

constexpr std::uint32_t k_rekey_stream = 1;  // of a connection that nobody else uses yet

// `address`: of the host, or of the relay of one that is lent.
Result<ssh::Target> target_at(const std::string& address, const registry::Provider& provider, const Paths& paths,
                              const os::Path& login_agent) {
  ssh::Overrides overrides;
  for (const std::string& identity : provider.identities) overrides.identities.emplace_back(identity);
  overrides.jump = provider.jump;
  overrides.known_hosts = paths.known_hosts();
  overrides.agent_socket = login_agent;
  if (const Result<ssh::TransportKind> kind = ssh::parse_transport(provider.transport)) overrides.transport = *kind;
  Result<ssh::Target> target = ssh::resolve(address, overrides);
  // A key file that is not there is the user's mistake, not an unknown provider.
  if (!target && target.error().code == Code::not_found) target.error().code = Code::usage;
  return target;
}

// From here on the token opens nothing. Until this machine has used the new key the host takes both, so that an answer
// that is lost costs nothing.
Result<AgentSession> agree_on_key(AgentSession session, const Paths& paths, const std::string& id, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const auto lock, lend::lock_invitation(paths.root, id));
  if (!lock) return session;
  TRY_ASSIGN(lend::Invitation invitation, lend::invitation_of(paths.root, id));
  if (invitation.session) return session;
  wire::RekeyRequest request;
  request.part = os::random_digest();
  const wire::AgentHello hello = session.hello;
  BlockingLink link(std::move(session), clock);
  TRY(link.send({wire::FrameKind::request, k_rekey_stream, wire::encode(request)}, deadline));
  for (;;) {
    TRY_ASSIGN(const wire::Frame frame, link.receive(deadline));
    if (frame.kind != wire::FrameKind::reply || frame.stream != k_rekey_stream) continue;  // news, which is told again
    if (!wire::payload_error(frame.payload)) {
      TRY_ASSIGN(const wire::RekeyReply reply, wire::parse_rekey_reply(frame.payload));
      invitation.session = lend::session_secret(request.part, reply.part);
      TRY(lend::keep_invitation(paths.root, invitation));
    }
    return std::move(link).release(hello);
  }
}

Result<AgentSession> open_lent(const registry::Provider& provider, const Paths& paths, const AgentCall& call,
                               const os::Path& login_agent, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const lend::Invitation invitation, lend::invitation_of(paths.root, provider.address));
  TRY_ASSIGN(const lend::RelayCommand relay, relay_of(provider, invitation, paths, login_agent, clock));
  // The machine has an agent of its own, and starts it for each call: there is no command to give.
  const Connector connector = [&](const std::string&, BootTime by) {
    return lend::call(relay, invitation, by, clock);
  };
  TRY_ASSIGN(AgentSession session, open_agent(connector, call, deadline, clock));
  const auto& words = session.hello.features;
  if (invitation.session || std::ranges::find(words, wire::k_rekey_feature) == words.end()) return session;
  return agree_on_key(std::move(session), paths, invitation.id, deadline, clock);
}

Result<AgentSession> call_once(const registry::Provider& provider, const Paths& paths, const AgentCall& how,
                               BootTime deadline, os::Clock& clock) {
  const auto open = [&](const os::Path& login_agent) -> Result<AgentSession> {
    if (is_lent(provider)) {
      AgentCall there = how;
      there.images.clear();
      return open_lent(provider, paths, there, login_agent, deadline, clock);
    }
    TRY_ASSIGN(const ssh::Target target, target_at(provider.address, provider, paths, login_agent));
    return open_agent(over_ssh(target, clock), how, deadline, clock);
  };
  Result<AgentSession> session = open({});
  if (!session && session.error().code == Code::auth_refused)
    if (const os::Path offered = offered_login_agent(paths); !offered.empty())
      if (Result<AgentSession> again = open(offered)) return again;
  return session;
}

}  // namespace

Result<AgentSession> open_session(const registry::Provider& provider, const Paths& paths,
                                  const ControllerId& controller, std::vector<std::string> features, BootTime deadline,
                                  os::Clock& clock, WayMemory& ways, const UploadProgress& progress) {
  AgentCall how{agent_images(), controller, std::move(features), progress};
  const auto open = [&](const registry::Way& way, Duration login_wait) -> Result<AgentSession> {
    how.login_wait = login_wait;
    Result<AgentSession> session = call_once(provider.by(way), paths, how, deadline, clock);
    if (!session) return session;
    TRY(check_peer(provider, way, session->hello));
    session->way = way.address;
    return session;
  };
  Result<AgentSession> session = try_ways(provider, ways, clock, k_login_wait, open);
  if (!session) return named(std::move(session).error(), provider);
  return session;
}

Result<lend::RelayCommand> relay_of(const registry::Provider& provider, const lend::Invitation& invitation,
                                    const Paths& paths, const os::Path& login_agent, os::Clock& clock) {
  if (invitation.relay.empty()) return lend::relay_here(clock);
  TRY_ASSIGN(const ssh::Target target, target_at(invitation.relay, provider, paths, login_agent));
  return lend::RelayCommand(over_ssh(target, clock));
}

Result<ssh::Target> target_of(const registry::Provider& provider, const Paths& paths) {
  if (!is_lent(provider)) return target_at(provider.address, provider, paths, {});
  return make_error(Code::unsupported, provider.name.value + " dials a relay: there is no address to log in at");
}

Result<transfer::BulkLink> open_bulk(const registry::Provider& provider, const Paths& paths,
                                     const ControllerId& controller, BootTime deadline, os::Clock& clock,
                                     WayMemory& ways, const UploadProgress& progress) {
  const BootTime began = clock.boot();
  std::vector<std::string> features = transfer::Codecs::ours().words();
  features.emplace_back("bulk");
  TRY_ASSIGN(AgentSession session,
             open_session(provider, paths, controller, std::move(features), deadline, clock, ways, progress));
  const transfer::Codecs codecs = transfer::Codecs::of(session.hello.features);
  const auto& said = session.hello.features;
  const bool uploads = std::find(said.begin(), said.end(), wire::k_uploads_feature) != said.end();
  const std::string peer_key = session.hello.peer_key ? to_hex(*session.hello.peer_key) : "";
  std::string way = session.way, transport(ssh::transport_name(session.channel->transport()));
  return transfer::BulkLink{std::make_unique<BlockingLink>(std::move(session), clock), codecs, uploads,
                            clock.boot() - began, std::move(transport), std::move(way), peer_key};
}

}  // namespace gridctl::control
