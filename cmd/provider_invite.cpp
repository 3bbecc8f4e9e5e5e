// SPDX-License-Identifier: Apache-2.0

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/host_words.hpp"
#include "cmd/network.hpp"
#include "control/daemon/daemon.hpp"
#include "control/reach/relay.hpp"
#include "lend/token.hpp"
#include "os/process.hpp"
#include "os/random.hpp"

namespace gridctl::cmd {

namespace provider_invite {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{5};
constexpr Duration k_valid = std::chrono::hours{24};
constexpr Duration k_valid_max = std::chrono::hours{24 * 30};
constexpr std::size_t k_id = 12;

Result<registry::Provider> described(const Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Provider provider, provider_to_reach(parsed, context.now()));
  provider.host_class = "market";
  TRY(describe(parsed, provider));
  provider.inventory.edit().version = 0;  // it is taken when its owner has joined
  return provider;
}

Result<WallTime> expiry(const Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const auto given, parsed.duration("expires"));
  const Duration valid = given.value_or(k_valid);
  if (valid <= Duration{} || valid > k_valid_max)
    return make_error(Code::usage, "--expires takes a time of up to 30 days, such as 24h");
  return WallTime{context.now().ms + std::chrono::duration_cast<std::chrono::milliseconds>(valid).count()};
}

Result<ssh::HostKey> ed25519_of(const std::vector<ssh::HostKey>& keys, const std::string& where) {
  const auto found = std::ranges::find(keys, "ssh-ed25519", &ssh::HostKey::type);
  if (found != keys.end()) return *found;
  return make_error(Code::unsupported, where + " has no Ed25519 host key, by which your friend's machine would know it",
                    "sudo ssh-keygen -A   # on " + where);
}

Result<control::Relay> relay_at(Context& context, const Parsed& parsed, const registry::Provider& provider,
                                const ControllerId& controller, const std::string& typed, bool here,
                                BootTime deadline) {
  control::TrustRequest request;
  request.host_key = parsed.value("host-key");
  request.accept_command = "gridctl provider invite " + provider.name.value + " --" + (here ? "at " : "via ") +
                           shell_quote(typed) + " --host-key HOST_KEY";
  request.ask = asker(context);
  return control::make_relay(provider, typed, here, request, context.paths(), controller, deadline, context.clock);
}

std::string researcher() {
  return os::environment("USER").value_or(os::environment("LOGNAME").value_or("somebody")) + "@" + os::host_name();
}

int print_result(Context& context, const lend::Token& token, const std::string& text) {
  if (context.json)
    return context.print_line(JsonObject()("name", token.name)("token", text)("relay", token.relay)(
                                  "expires_at", format_rfc3339(token.expires)).text());
  context.note("send this line to the owner of " + token.name + ", by a way that only the two of you read:\n");
  context.print_line("gridctl provider join " + text);
  context.note("\nIt works once, until " + format_rfc3339(token.expires) +
               ". The machine appears in 'gridctl provider ls' when its owner has typed it.");
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  if (parsed.has("via") == parsed.has("at"))
    return make_error(Code::usage,
                      "name the SSH server where the two machines meet: --via USER@HOST for one that both of you reach, "
                      "or --at USER@HOST for this machine, by the address at which your friend reaches it");
  const bool here = parsed.has("at");
  const std::string typed = here ? parsed.value("at") : parsed.value("via");
  TRY_ASSIGN(registry::Provider provider, described(context, parsed));
  TRY_ASSIGN(const WallTime expires, expiry(context, parsed));
  TRY_ASSIGN(const AgreedOptions agreed, parse_agreed(parsed));
  TRY_ASSIGN(registry::Registry registry, context.open());
  if (const auto known = registry.provider(provider.name); known)
    return make_error(Code::exists, "provider " + provider.name.value + " is already registered, at " + known->address,
                      "gridctl provider rm " + provider.name.value + "   # or choose another name");
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  TRY_ASSIGN(const control::Relay relay, relay_at(context, parsed, provider, controller, typed, here, deadline));
  TRY_ASSIGN(const ssh::HostKey key, ed25519_of(relay.keys, relay.host));

  lend::Token token{provider.name.value, researcher(), os::random_id(k_id), controller, relay.address, key, {}, expires};
  std::ranges::copy(os::random_bytes(token.secret.bytes.size()), token.secret.bytes.begin());
  const lend::Invitation invitation{token.id, token.secret, expires, here ? "" : typed};
  TRY(lend::keep_invitation(context.state, invitation));
  TRY(lend::open_relay(relay.run, relay.program, invitation, deadline, context.clock));
  provider.user = relay.user;
  provider.host = relay.host;
  provider.port = relay.port;
  provider.address = std::string(lend::k_scheme) + token.id;
  TRY(registry.add_provider(provider));
  if (parsed.has("traffic") || parsed.has("minimum")) TRY(agree_on_price(context, provider, provider.price_per_hour, agreed));
  TRY(control::ensure_daemon(context.state, true));
  return print_result(context, token, lend::encode(token));
}
}  // namespace
}  // namespace provider_invite

const Command k_provider_invite{
    .name = "provider invite",
    .summary = "invite somebody to lend you a machine",
    .examples = {
        {"Both of you reach a server by ssh", "gridctl provider invite bob-4090 --via me@server.example.org"},
        {"Your friend reaches this machine by ssh", "gridctl provider invite bob-4090 --at me@203.0.113.7:2222"},
        {"For a script", "gridctl provider invite bob-4090 --via me@server --expires 1h --json | jq -r .token"}},
    .description =
        "Prints one line for the owner of a machine behind a home router: 'gridctl provider join TOKEN'. The machine then "
        "dials an SSH server that both of you reach, and jobs run on it as on any other host. Neither needs an open port, "
        "a forwarding or root access.\n\nWith --via the two of you meet at a server where you can log in. It needs an "
        "account of yours and nothing else: gridctl adds one line to its ~/.ssh/authorized_keys, which lets your friend's "
        "machine start one program there, and nothing more. The server passes bytes that it cannot read. With --at you "
        "meet at this machine.\n\nThe token contains the keys of the connection: send it by a channel that nobody else "
        "reads. The first machine that uses it is the only one that can. 'gridctl provider rm' takes it back.",
    .positionals = {{"NAME"}},
    .options = {
        {"via", 0, "[USER@]HOST[:PORT]", "meet at this SSH server, which both of you reach"},
        {"at", 0, "USER@HOST[:PORT]", "meet at the SSH server of this machine: its address as your friend reaches it"},
        {"expires", 0, "DURATION", "how long the invitation can be accepted; a host that has joined stays", "24h"},
        {"identity", 'i', "KEY", "private key file for your login at --via", "as ssh does", Completion::file, "", true},
        {"jump", 'J', "JUMP", "jump host on your way to --via, as with ssh -J"},
        {"host-key", 0, "SHA256:...", "expected fingerprint of that server's host key; suppresses the question"},
        {"price", 0, "USD", "hourly price of the whole host, as agreed", "0"},
        {"traffic", 0, "USD", "price of a gigabyte of traffic, as agreed", "0"},
        {"minimum", 0, "USD", "least price of an attempt, as agreed", "0"},
        {"region", 0, "REGION", "country or region, such as DE"},
        {"site", 0, "NAME", "hosts at the same site are near each other"},
        {"label", 'l', "K=V", "label that jobs can match", "", Completion::nothing, "", true}},
    .exit_codes = {5, 6, 7},
    .waits = true,
    .run = provider_invite::run};

}  // namespace gridctl::cmd
