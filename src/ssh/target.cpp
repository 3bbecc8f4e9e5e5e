// SPDX-License-Identifier: Apache-2.0
#include "ssh/target.hpp"

#include <algorithm>
#include <map>

#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/process.hpp"

namespace gridctl::ssh {
namespace {

constexpr Duration k_config_timeout = std::chrono::seconds{5};  // `Match exec` in a user's configuration may hang
constexpr std::string_view k_default_keys[] = {"id_ed25519", "id_ecdsa", "id_rsa"};

bool all_in(std::string_view text, std::string_view extra) {
  return std::ranges::all_of(
      text, [extra](char c) { return is_letter(c) || is_digit(c) || extra.find(c) != std::string_view::npos; });
}

Error bad_address(std::string_view text, const std::string& why) {
  return make_error(Code::usage, "'" + sanitize(text, 200) + "' is not an address: " + why,
                    "[ssh://]user@host[:port], or a name from your ssh configuration");
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  return port == 0 ? std::nullopt : port;
}

Result<void> check_jump(const std::string& jump) {
  for (const std::string& hop : split(jump, ',')) TRY(parse_address(hop).context("while reading the jump host"));
  return {};
}

TokenValues token_values(const Target& target) {
  TokenValues values;
  values.alias = target.alias;
  values.host = target.host;
  values.user = target.user;
  values.port = std::to_string(target.port);
  values.home = os::home_directory().native();
  values.local_user = os::environment("USER").value_or(os::environment("LOGNAME").value_or(""));
  values.local_host = os::host_name();
  values.uid = std::to_string(os::user_id());
  values.variable = [](std::string_view name) { return os::environment(name); };
  return values;
}

// Parses lines "key value" of `ssh -G`; keys may repeat.
std::multimap<std::string, std::string> parse_config(std::string_view text) {
  std::multimap<std::string, std::string> values;
  for (const std::string& line : split_lines(text)) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) values.emplace(line.substr(0, space), line.substr(space + 1));
  }
  return values;
}

using Config = std::multimap<std::string, std::string>;

// Returns nullopt if there is no ssh program, or it hangs.
Result<std::optional<Config>> ask_ssh(const Address& address, const Overrides& overrides) {
  if (!os::find_program("ssh")) return std::optional<Config>{};
  std::vector<std::string> argv = {"ssh", "-G"};
  if (!overrides.config.empty()) argv.insert(argv.end(), {"-F", overrides.config.native()});
  if (const auto port = overrides.port ? overrides.port : address.port)
    argv.insert(argv.end(), {"-p", std::to_string(*port)});
  if (!address.user.empty()) argv.insert(argv.end(), {"-l", address.user});
  argv.insert(argv.end(), {"--", address.host});
  os::RunOptions options;
  options.timeout = k_config_timeout;
  const auto outcome = os::run(argv, options);
  if (!outcome) return std::optional<Config>{};
  if (!outcome->status.success()) {
    std::string said{trim(sanitize(outcome->err, 300))};
    std::ranges::replace(said, '\n', ' ');
    return make_error(Code::usage, "ssh cannot read its configuration for " + address.host + ": " + said,
                      "ssh -G " + address.host);
  }
  return std::optional{parse_config(outcome->out)};
}

void apply_config(const Config& config, Target& target) {
  const auto value = [&config](const char* key) {
    const auto found = config.find(key);
    return found == config.end() ? std::string{} : found->second;
  };
  if (!value("hostname").empty()) target.host = value("hostname");
  if (target.user.empty()) target.user = value("user");
  if (const auto port = parse_port(value("port"))) target.port = *port;
  const std::string jump = value("proxyjump"), command = value("proxycommand"), agent = value("identityagent");
  target.proxied = (!jump.empty() && jump != "none") || (!command.empty() && command != "none");
  target.identities_only = value("identitiesonly") == "yes";
  const TokenValues values = token_values(target);
  if (agent == "none") target.agent_socket.clear();
  else if (agent.starts_with('$') && !agent.starts_with("${"))
    target.agent_socket = os::environment(std::string_view(agent).substr(1)).value_or("");
  else if (!agent.empty() && agent != "SSH_AUTH_SOCK") target.agent_socket = expand_tokens(agent, values).value_or("");
  const auto [first, last] = config.equal_range("identityfile");
  for (auto item = first; item != last; ++item) {
    const auto path = expand_tokens(item->second, values);
    if (!path) target.keys_unclear = true;
    else if (os::exists(*path)) target.identities.emplace_back(*path);
  }
}

void apply_defaults(Target& target) {
  for (const std::string_view name : k_default_keys) {
    const os::Path path = os::home_directory() / ".ssh" / name;
    if (os::exists(path)) target.identities.push_back(path);
  }
}

constexpr Names<TransportKind, TransportKind::system> k_transport_names{"auto", "libssh2", "ssh"};
}  // namespace

std::string_view transport_name(TransportKind kind) { return k_transport_names(kind); }

Result<TransportKind> parse_transport(std::string_view name) {
  if (const auto kind = k_transport_names.find(name)) return *kind;
  return make_error(Code::usage, "unknown transport '" + sanitize(name, 64) + "'", "auto, libssh2 or ssh");
}

std::string Target::address() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

std::string Target::peer() const { return (user.empty() ? "" : user + "@") + address(); }

std::string Target::pin_name() const {
  std::string name = port == 22 ? host : "[" + host + "]:" + std::to_string(port);
  // One private address behind two jump hosts means two hosts.
  if (!jump.empty() || proxied) name += "@" + (jump.empty() ? alias : jump);
  for (char& c : name)
    if (!all_in({&c, 1}, "@:.[]_-%")) c = '_';
  return lower(name);
}

std::string copy_id_command(const Target& target) {
  std::string command = "ssh-copy-id ";
  if (target.port != 22) command += "-p " + std::to_string(target.port) + " ";
  if (!target.jump.empty()) command += "-o ProxyJump=" + shell_quote(target.jump) + " ";
  return command + target.user + "@" + target.host;
}

Result<Address> parse_address(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with("ssh://")) rest.remove_prefix(6);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  Address address;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    address.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (address.user.empty()) return bad_address(text, "the user name is empty");
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return bad_address(text, "']' is missing");
    address.host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
    if (!port.empty() && port[0] != ':') return bad_address(text, "':' is missing before the port");
  } else if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos && rest.rfind(':') == colon) {
    address.host = rest.substr(0, colon);
    port = rest.substr(colon);
  } else {
    address.host = rest;
  }
  if (!port.empty()) {
    address.port = parse_port(port.substr(1));
    if (!address.port) return bad_address(text, "the port is not a number from 1 to 65535");
  }
  // User and host may reach a shell through %h and %r of the user's configuration, or be read as an option.
  if (address.host.empty() || address.host[0] == '-' || address.host.size() > 255 || !all_in(address.host, "._:%-"))
    return bad_address(text, "a host consists of letters, digits and ._:%-");
  if (address.user.starts_with('-') || address.user.size() > 255 || !all_in(address.user, "._@+-"))
    return bad_address(text, "a user consists of letters, digits and ._@+-");
  return address;
}

Result<Target> resolve(std::string_view text, const Overrides& overrides) {
  TRY_ASSIGN(Address address, parse_address(text));
  if (!overrides.user.empty()) {
    TRY(parse_address(overrides.user + "@host"));
    address.user = overrides.user;
  }
  if (!overrides.jump.empty()) TRY(check_jump(overrides.jump));
  Target target;
  target.alias = target.host = address.host;
  target.user = address.user;
  if (const auto port = overrides.port ? overrides.port : address.port) target.port = *port;
  target.agent_socket =
      overrides.agent_socket.empty() ? os::Path(os::environment("SSH_AUTH_SOCK").value_or("")) : overrides.agent_socket;
  TRY_ASSIGN(const auto config, ask_ssh(address, overrides));
  if (config) apply_config(*config, target);
  else apply_defaults(target);
  if (target.user.empty()) target.user = os::environment("USER").value_or("root");
  for (const os::Path& key : overrides.identities)
    if (!os::exists(key)) return make_error(Code::not_found, "no such key file: " + key.native());
  if (!overrides.identities.empty()) {
    target.identities = overrides.identities;
    target.identities_only = true;
    target.keys_unclear = false;
  }
  target.jump = overrides.jump;
  if (!target.jump.empty()) target.proxied = true;
  target.config = overrides.config;
  target.known_hosts = overrides.known_hosts;
  target.transport = overrides.transport;
  if (overrides.connect_timeout) target.connect_timeout = *overrides.connect_timeout;
  return target;
}

namespace {

std::optional<std::string> value_of(char token, const TokenValues& values) {
  switch (token) {
    case '%': return "%";
    case 'd': return values.home;
    case 'h': return values.host;
    case 'i': return values.uid;
    case 'k': return values.alias;  // without HostKeyAlias, which names no key files in practice
    case 'L': return values.local_host.substr(0, values.local_host.find('.'));
    case 'l': return values.local_host;
    case 'n': return values.alias;
    case 'p': return values.port;
    case 'r': return values.user;
    case 'u': return values.local_user;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> expand_tokens(std::string_view text, const TokenValues& values) {
  std::string out;
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/') return std::nullopt;
    out = values.home;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) return std::nullopt;
      const auto value = values.variable(text.substr(2, end - 2));
      if (!value) return std::nullopt;
      out += *value;
      text.remove_prefix(end + 1);
    } else if (text.front() == '%') {
      const auto value = text.size() > 1 ? value_of(text[1], values) : std::nullopt;
      if (!value) return std::nullopt;
      out += *value;
      text.remove_prefix(2);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace gridctl::ssh
