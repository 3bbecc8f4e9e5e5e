// SPDX-License-Identifier: Apache-2.0
#include "lend/call.hpp"

#include <algorithm>

#include "base/record.hpp"
#include "base/text.hpp"
#include "lend/keys.hpp"
#include "lend/lines.hpp"
#include "ssh/process_channel.hpp"
#include "ssh/sealed_channel.hpp"
#include "wire/relay.hpp"

namespace gridctl::lend {

template <class R>
void fields(R& r, Of<R, Invitation>& m) {
  r("id", m.id)("secret", m.secret)("expires_ms", m.expires.ms)("relay", m.relay).maybe("session", m.session);
}

namespace {

constexpr std::string_view k_done = "\nGRIDCTL-RELAY/1 done\n";
constexpr Duration k_words_wait = std::chrono::seconds{20};
constexpr Duration k_call_seal_wait = std::chrono::seconds{10};
constexpr std::size_t k_call_noise_max = 256 * 1024;
constexpr std::string_view k_program = "\"${GRIDCTL_RELAY_HOME:-$HOME/.gridctl-relay}/gridctl-agent\"";

os::Path file_of(const os::Path& state, const std::string& id) { return state / "lent" / (id + ".json"); }

os::Path lock_of(const os::Path& state, const std::string& id) { return state / "lent" / (id + ".lock"); }

std::string in_sh(const std::string& command) { return "exec /bin/sh -c " + shell_quote("exec " + command); }

Error no_relay(const ssh::Channel& channel, std::string_view noise) {
  std::string said = sanitize(trim(noise), 200);
  if (const std::string words = sanitize(trim(channel.stderr_tail()), 200); !words.empty()) said += " " + words;
  return make_error(Code::protocol_violation, channel.peer() + " does not work as a relay" +
                                                  (said.empty() ? "" : "; it said: " + said));
}

// Reads until `mark`; what came before is `noise`. False: a refusal or the end came instead.
Result<bool> read_until(ssh::Channel& channel, std::string_view mark, std::string& noise, BootTime deadline,
                        os::Clock& clock) {
  while (noise.find(mark) == std::string::npos) {
    if (noise.size() > k_call_noise_max || line_after(noise, wire::k_relay_refused) || line_after(noise, wire::k_relay_nobody))
      return false;
    const Result<bool> more = read_more(channel, noise, deadline, clock);
    if (!more && more.error().code == Code::host_unreachable) return noise.find(mark) != std::string::npos;
    if (!more) return more.error();
    if (!*more) return make_error(Code::timed_out, channel.peer() + " does not answer");
  }
  return true;
}

Result<void> have_done(const RelayCommand& relay, const std::string& command, BootTime deadline, os::Clock& clock) {
  deadline = std::min(deadline, clock.boot() + k_words_wait);
  TRY_ASSIGN(const auto channel, relay(in_sh(command), deadline));
  std::string text;
  TRY_ASSIGN(const bool done, read_until(*channel, k_done, text, deadline, clock));
  if (done) return {};
  if (const auto why = line_after(text, wire::k_relay_refused))
    return make_error(Code::refused, "the relay " + channel->peer() + " refuses: " + *why);
  return no_relay(*channel, text);
}

std::string in_words(std::string_view why) {
  if (why == "never") return "its owner has not joined yet";
  if (why == "away") return "it is not connected to the relay: switched off, asleep, or without network";
  return "the relay knows nothing of it: 'provider invite' makes a new token";
}

}  // namespace

Result<void> keep_invitation(const os::Path& state, const Invitation& invitation) {
  TRY(os::make_directories(state / "lent"));
  return os::write_file_durably(file_of(state, invitation.id), write_record(invitation));
}

Result<Invitation> invitation_of(const os::Path& state, std::string_view address) {
  const std::string id(address.starts_with(k_scheme) ? address.substr(k_scheme.size()) : address);
  Result<std::string> text = os::read_file(file_of(state, id));
  if (!text) return make_error(Code::state_unreadable, "the key of this lent host is gone: " + text.error().message);
  return read_record<Invitation>(*text, "invitation", k_own_rules, Code::state_unreadable);
}

Result<std::optional<os::FileLock>> lock_invitation(const os::Path& state, const std::string& id) {
  return os::FileLock::try_acquire(lock_of(state, id));
}

void forget_invitation(const os::Path& state, const std::string& id) {
  (void)os::remove_tree(file_of(state, id));
  (void)os::remove_tree(lock_of(state, id));
}

RelayCommand relay_here(os::Clock& clock) {
  return [&clock](const std::string& command, BootTime) -> Result<std::unique_ptr<ssh::Channel>> {
    ssh::ProcessChannelOptions options;
    options.peer = "this machine";
    TRY_ASSIGN(auto channel, ssh::ProcessChannel::open({"/bin/sh", "-c", command}, options, clock));
    return std::unique_ptr<ssh::Channel>(std::move(channel));
  };
}

Result<void> open_relay(const RelayCommand& relay, const std::string& program, const Invitation& invitation,
                        BootTime deadline, os::Clock& clock) {
  return have_done(relay,
                   program + " relay add " + invitation.id + " " + std::to_string(invitation.expires.ms) + " " +
                       login_key(invitation.secret).public_blob,
                   deadline, clock);
}

Result<void> close_relay(const RelayCommand& relay, const std::string& id, BootTime deadline, os::Clock& clock) {
  return have_done(relay, std::string(k_program) + " relay rm " + id, deadline, clock);
}

Result<std::unique_ptr<ssh::Channel>> call(const RelayCommand& relay, const Invitation& invitation, BootTime deadline,
                                           os::Clock& clock) {
  TRY_ASSIGN(auto channel, relay(in_sh(std::string(k_program) + " relay call " + invitation.id), deadline));
  std::string text;
  const BootTime by = std::min(deadline, clock.boot() + k_words_wait);
  TRY_ASSIGN(const bool connected, read_until(*channel, wire::k_relay_connected, text, by, clock));
  if (!connected) {
    if (const auto why = line_after(text, wire::k_relay_nobody)) return make_error(Code::host_unreachable, in_words(*why));
    return no_relay(*channel, text);
  }
  const ssh::SealedWith with = invitation.session
                                   ? sealing(crypto::TlsSide::client, *invitation.session, session_identity(invitation.id))
                                   : sealing(crypto::TlsSide::client, invitation.secret, invitation.id);
  return ssh::seal(std::move(channel), with, std::min(deadline, clock.boot() + k_call_seal_wait), clock);
}

}  // namespace gridctl::lend
