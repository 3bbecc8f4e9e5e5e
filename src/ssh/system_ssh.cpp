// SPDX-License-Identifier: Apache-2.0
#include "ssh/system_ssh.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "ssh/known_hosts.hpp"
#include "ssh/process_channel.hpp"

namespace gridctl::ssh {
namespace {

// ssh prints this line at LogLevel VERBOSE once it has logged in. A server's banner could print it too: then connect()
// merely returns early, and the first read fails.
constexpr std::string_view k_logged_in = "Authenticated to ";
constexpr int k_lost = 255;  // ssh's exit status when the connection failed or broke
constexpr std::size_t k_banner_max = 64 * 1024;  // bytes of stderr before the login

std::string option_path(const os::Path& path) {
  std::string text = "\"";
  for (const char c : path.native()) text += c == '%' ? "%%" : std::string{c};
  return text + "\"";
}

// Asks for the version once.
const std::string& version_in_use() {
  static const std::string version = [] {
    os::RunOptions options;
    options.timeout = std::chrono::seconds{5};
    const auto told = os::run({"ssh", "-V"}, options);
    return told ? told->err + told->out : "";
  }();
  return version;
}

// Returns ssh's arguments up to the host: `flags` and `options`, and what keeps each use of it from asking, waiting and
// sharing.
std::vector<std::string> ssh_argv(const Target& target, const std::vector<std::string>& flags,
                                  std::vector<std::string> options, Duration left) {
  const auto whole_seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(left).count());
  options.insert(options.end(),
                 {"BatchMode=yes", "UpdateHostKeys=no", "ControlMaster=no", "ControlPath=none", "ClearAllForwardings=yes",
                  "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "ConnectionAttempts=1",
                  "ConnectTimeout=" + std::to_string(whole_seconds)});
  std::vector<std::string> argv = {"ssh", "-T", "-x", "-a"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (!target.config.empty()) argv.insert(argv.end(), {"-F", target.config.native()});
  for (const std::string& option : options) argv.insert(argv.end(), {"-o", option});
  if (!target.jump.empty()) argv.insert(argv.end(), {"-J", target.jump});
  argv.insert(argv.end(), {"-p", std::to_string(target.port), "-l", target.user});
  return argv;
}

// The user's configuration applies to everything except what decides whom we trust and what would disturb the stream.
std::vector<std::string> base_argv(const Target& target, const os::Path& known_hosts, const char* checking,
                                   Duration left) {
  std::vector<std::string> options = {
      "StrictHostKeyChecking=" + std::string{checking}, "UserKnownHostsFile=" + option_path(known_hosts),
      "GlobalKnownHostsFile=/dev/null", "HostKeyAlias=" + target.pin_name(), "CheckHostIP=no", "VerifyHostKeyDNS=no",
      "HashKnownHosts=no", "NoHostAuthenticationForLocalhost=no", "Tunnel=no", "LogLevel=VERBOSE",
      "ServerAliveInterval=15", "ServerAliveCountMax=3",
      "IdentityAgent=" + (target.agent_socket.empty() ? std::string{"none"} : option_path(target.agent_socket))};
  // A command in the user's configuration may supply keys for any host, but ours are pinned. Before 8.5, there was no
  // such option.
  if (knows_host_key_commands(version_in_use())) options.emplace_back("KnownHostsCommand=none");
  if (target.identities_only) options.emplace_back("IdentitiesOnly=yes");
  std::vector<std::string> keys;
  for (const os::Path& key : target.identities) keys.insert(keys.end(), {"-i", key.native()});
  return ssh_argv(target, keys, std::move(options), left);
}

bool has(std::string_view words, std::string_view part) { return words.find(part) != std::string_view::npos; }

// Returns ssh's last words without our own noise, suitable for one line.
std::string quote(std::string_view words) {
  std::vector<std::string> lines;
  for (const std::string& line : split_lines(sanitize_lines(words, 300))) {
    const std::string text{trim(line)};
    if (!text.empty() && text.find_first_not_of('@') != std::string::npos && !text.starts_with("Connecting to ") &&
        !text.starts_with("Connection established"))
      lines.push_back(text);
  }
  if (lines.size() > 3) lines.erase(lines.begin(), lines.end() - 3);
  return join(lines, "; ");
}

// Returns the word after the last `before`, e.g. a fingerprint.
std::string word_after(std::string_view words, std::string_view before) {
  const std::size_t at = words.rfind(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = words.substr(at + before.size());
  return sanitize(rest.substr(0, rest.find_first_of(" \r\n.;,'\"")), 100);
}

std::string shown_key(std::string_view words) {
  const std::size_t at = words.rfind("SHA256:");
  const std::string fingerprint = word_after(words, "SHA256:");
  if (at == std::string_view::npos || fingerprint.empty()) {
    const std::string type = word_after(words, "No ");
    return type.empty() ? "another one" : "a key of type " + type;
  }
  return "SHA256:" + fingerprint;
}

Result<void> judge_end(const std::string& peer, const os::ExitStatus& status, const std::string& words) {
  if (status.code != k_lost && status.signal == 0) return {};
  return make_error(Code::host_unreachable, "the connection to " + peer + " broke, or its command was killed: " +
                                                (words.empty() ? "ssh gave no reason" : quote(words)));
}

}  // namespace

bool knows_host_key_commands(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "OpenSSH_%d.%d", &major, &minor) != 2) return true;
  return std::pair(major, minor) >= std::pair(8, 5);
}

Error missing_program() {
  return make_error(Code::host_unreachable, "the ssh program is needed, but it is not installed on this machine",
                    "apt-get install openssh-client");
}

Error classify_ssh_error(const Target& target, std::span<const HostKey> pins, std::string_view words) {
  const std::string said = quote(words), at = target.address();
  const std::string via = target.proxied ? " (through " + (target.jump.empty() ? "a proxy" : target.jump) + ")" : "";
  if (has(words, "Host key verification failed") || has(words, "HOST IDENTIFICATION HAS CHANGED")) {
    // The user's own known_hosts applies to jump hosts: the key in question need not be the target's.
    if (target.proxied && !has(words, target.pin_name()))
      return make_error(Code::host_key_mismatch,
                        "the jump host on the way to " + at + " is not trusted by your ssh: " + said,
                        "ssh " + (target.jump.empty() ? target.alias : target.jump));
    return mismatch_error(target, pins, shown_key(words));
  }
  // The connection to a jump host ended before the target could answer: the fault is at the jump host.
  if (target.proxied && has(words, "UNKNOWN port 65535")) {
    const std::string jump = target.jump.empty() ? "the jump host" : "the jump host " + target.jump;
    if (has(words, "stdio forwarding failed") || has(words, "open failed"))
      return make_error(Code::host_unreachable, jump + " cannot reach " + at + ": " + said);
    return make_error(has(words, "Permission denied") ? Code::auth_refused : Code::host_unreachable,
                      "cannot log in to " + jump + " on the way to " + at + ": " + said,
                      "ssh " + (target.jump.empty() ? target.alias : target.jump));
  }
  if (has(words, "Exceeded MaxStartups") || has(words, "Not allowed at this time"))
    return make_error(Code::busy, at + " is busy with other logins");
  if (has(words, "Permission denied") || has(words, "Too many authentication failures")) {
    if (has(words, "with partial success"))
      return make_error(Code::auth_refused,
                        target.peer() + " accepted our key but also asks for input that cannot be typed here: " + said,
                        "ask its owner to let this user log in with a key alone (AuthenticationMethods publickey)");
    if (has(words, "device not found") || has(words, "-SK "))
      return make_error(Code::auth_refused,
                        target.peer() + " asks for a security key that is missing or was not touched: " + said,
                        "plug it in, or log in with another key: -i KEY");
    std::string keys;
    for (const os::Path& key : target.identities) keys += (keys.empty() ? "" : ", ") + key.native();
    return make_error(
        Code::auth_refused,
        target.peer() + " accepts none of our keys" + (keys.empty() ? "" : " (" + keys + ")") + ": " + said,
        copy_id_command(target));
  }
  if (has(words, "Could not resolve hostname"))
    return make_error(Code::host_unreachable, "cannot find the address of " + at + via + ": " + said);
  if (has(words, "Connection refused"))
    return make_error(Code::host_unreachable,
                      "cannot connect to " + at + via + ": connection refused (nothing listens on this port)");
  if (has(words, "timed out during banner exchange"))
    return make_error(Code::timed_out,
                      at + " accepts connections but sends nothing: it is not an SSH server, or it hangs");
  if (has(words, "timed out"))
    return make_error(Code::timed_out, "cannot connect to " + at + via + ": no answer in time");
  if (has(words, "banner line contains invalid characters") || has(words, "banner line 0: ") ||
      has(words, "client sent invalid protocol identifier") || has(words, "Bad remote protocol version"))
    return make_error(Code::host_unreachable, at + " is not an SSH server: " + said, "check the port");
  if (has(words, "kex_exchange_identification") || has(words, "banner exchange"))
    return make_error(Code::busy, at + " closed the connection without sending anything: " + said);
  if (has(words, "Unable to negotiate"))
    return make_error(Code::unsupported, at + " and ssh have no algorithm in common: " + said);
  if (has(words, "Bad configuration option") || has(words, "terminating, ") || has(words, "Can't open user config"))
    return make_error(Code::usage, "ssh cannot read its configuration: " + said);
  return make_error(Code::host_unreachable,
                    "cannot reach " + at + via + ": " + (said.empty() ? "ssh gave no reason" : said));
}

Result<std::unique_ptr<Channel>> connect_system(const Target& target, std::span<const HostKey> pins,
                                                const std::string& command, BootTime deadline, os::Clock& clock) {
  if (!os::find_program("ssh")) return missing_program();
  // ssh would say "unknown key" without pins too, but only after it has fallen back to other files.
  const os::Path known_hosts = target.known_hosts.empty() ? os::Path{"/dev/null"} : target.known_hosts;
  const BootTime silent_until = std::min(deadline, clock.boot() + target.connect_timeout);
  std::vector<std::string> argv = base_argv(target, known_hosts, "yes", silent_until - clock.boot());
  argv.insert(argv.end(), {"--", target.alias, command});
  ProcessChannelOptions options;
  options.peer = target.peer();
  options.judge = [peer = target.peer()](const os::ExitStatus& status, const std::string& words) {
    return judge_end(peer, status, words);
  };
  TRY_ASSIGN(auto channel, ProcessChannel::open(argv, std::move(options), clock));
  std::string words;
  for (;;) {
    TRY_ASSIGN(const bool ended, channel->has_ended());  // before we read: what it said has arrived then
    for (std::string more = channel->take_stderr(); !more.empty(); more = channel->take_stderr()) {
      words += more;
      const std::size_t at = words.starts_with(k_logged_in) ? 0 : words.find("\n" + std::string{k_logged_in});
      if (at != std::string::npos) {
        const std::size_t end = words.find('\n', at + 1);
        if (end != std::string::npos) channel->put_back_stderr(std::string_view{words}.substr(end + 1));
        return std::unique_ptr<Channel>{std::move(channel)};
      }
      if (words.size() > k_banner_max)
        return make_error(Code::protocol_violation, target.address() + " sends too long a banner");
    }
    if (ended) return classify_ssh_error(target, pins, words);
    std::vector<os::Poll> polls;
    for (const Watched& watched : channel->wants(false)) polls.push_back({watched.fd, watched.interest, {}});
    TRY_ASSIGN(const bool ready, os::wait_any(polls, deadline, clock));
    if (!ready)
      return make_error(Code::timed_out, "logging in to " + target.peer() + " with ssh took too long" +
                                             (quote(words).empty() ? "" : ": " + quote(words)));
  }
}

Result<std::vector<HostKey>> scan_with_system(const Target& target, BootTime deadline, os::Clock& clock) {
  if (!os::find_program("ssh")) return missing_program();
  const Duration left = deadline - clock.boot();
  const os::Path file = os::temporary_directory() / ("gridctl-scan-" + os::random_id(16));
  std::vector<std::string> argv = base_argv(target, file, "accept-new", std::min(left, target.connect_timeout));
  // No login is made: the key is recorded before it, which is all we need.
  argv.insert(argv.end(), {"-o", "PreferredAuthentications=none", "--", target.alias, "true"});
  os::RunOptions options;
  options.timeout = std::max<Duration>(left, std::chrono::milliseconds{1});
  auto outcome = os::run(argv, options);
  const auto text = os::read_file(file);
  (void)os::remove_tree(file);
  if (text) {
    std::vector<HostKey> keys = parse_known_hosts(*text, target.pin_name());
    if (!keys.empty()) return keys;
  }
  if (!outcome && outcome.error().code == Code::timed_out)
    return make_error(Code::timed_out, "asking " + target.address() + " for its host key took too long");
  if (!outcome) return std::move(outcome).error();
  return classify_ssh_error(target, {}, outcome->err);
}

std::optional<std::string> key_known_to_user(const Target& target, BootTime deadline, os::Clock& clock) {
  if (!os::find_program("ssh")) return std::nullopt;
  const Duration left = deadline - clock.boot();
  std::vector<std::string> argv =
      ssh_argv(target, {"-v"}, {"StrictHostKeyChecking=yes", "PreferredAuthentications=none"},
               std::min(left, target.connect_timeout));
  argv.insert(argv.end(), {"--", target.alias, "true"});
  os::RunOptions options;
  options.timeout = std::max<Duration>(left, std::chrono::milliseconds{1});
  const auto outcome = os::run(argv, options);
  return outcome ? parse_recognised_key(outcome->err) : std::nullopt;
}

}  // namespace gridctl::ssh
