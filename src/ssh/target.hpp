// SPDX-License-Identifier: Apache-2.0
// Describes the target of a connection: an address with everything needed to log in, and the host keys that prove that
// it is the same host.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::ssh {

// Describes how bytes travel. libssh2 (Debian 12's 1.10) is light enough for thousands of connections, but cannot do
// RSA keys, FIDO keys, certificates, jump hosts, proxy commands and servers with AEAD ciphers only; the `ssh` program
// can.
enum class TransportKind : std::uint8_t { automatic, libssh2, system };
[[nodiscard]] std::string_view transport_name(TransportKind kind);  // "auto", "libssh2", "ssh"
[[nodiscard]] Result<TransportKind> parse_transport(std::string_view name);

struct Target {
  std::string alias;  // the host as the user typed it: the user's ssh configuration knows it by this name
  std::string host;   // what it resolves to by that configuration: a name or an address
  std::uint16_t port = 22;
  std::string user;
  std::vector<os::Path> identities;                     // private key files that exist, in order
  bool identities_only = false;                         // no other key of the agent is offered
  bool keys_unclear = false;                            // the configuration names key files in ways only `ssh` reads
  std::string jump;                                     // as given with -J; empty = what the user's configuration says
  bool proxied = false;                                 // reached through a jump host or proxy command: only `ssh` can
  os::Path agent_socket;                                // of ssh-agent; empty = none
  os::Path config;                                      // ssh configuration file; empty = the user's own
  os::Path known_hosts;                                 // ours, in the state directory, OpenSSH format
  Duration connect_timeout = std::chrono::seconds{10};  // for TCP and for the server's first line, each
  TransportKind transport = TransportKind::automatic;

  [[nodiscard]] std::string address() const;  // "host:port", "[::1]:22"
  [[nodiscard]] std::string peer() const;     // "user@host:port", for messages
  // Returns the name under which known_hosts keeps its keys; it differs for one address behind different jump hosts.
  [[nodiscard]] std::string pin_name() const;
};

struct Overrides {
  std::vector<os::Path> identities;  // given: these and no other
  std::string jump;                  // ssh -J syntax
  std::optional<std::uint16_t> port;
  std::string user;
  os::Path config;
  os::Path known_hosts;
  os::Path agent_socket;  // in the place of $SSH_AUTH_SOCK
  TransportKind transport = TransportKind::automatic;
  std::optional<Duration> connect_timeout;
};

// Returns the command that installs a key of the user's on the host.
[[nodiscard]] std::string copy_id_command(const Target& target);

// Holds the parts of "[ssh://][user@]host[:port]" or "[user@][::1]:port"; refuses text that could be taken for an
// option or reach a shell through the user's ssh configuration.
struct Address {
  std::string user, host;
  std::optional<std::uint16_t> port;
};
[[nodiscard]] Result<Address> parse_address(std::string_view text);

// Resolves `text` to a target. Asks `ssh -G` for the user's own configuration if there is an ssh program (at most 5 s,
// otherwise plain parsing and the default key files). Makes no connection. Code::usage if it is not an address, or ssh
// cannot read its configuration; not_found if a given key file does not exist.
[[nodiscard]] Result<Target> resolve(std::string_view text, const Overrides& overrides);

struct HostKey {
  std::string type;         // "ssh-ed25519"
  std::string blob;         // base64
  std::string fingerprint;  // "SHA256:…"
  bool operator==(const HostKey&) const = default;
};

// Asks the host for its keys (Ed25519 and ECDSA; RSA only if there is nothing else), best first. Not authenticated:
// anyone who answers supplies them. Errors as in connect().
[[nodiscard]] Result<std::vector<HostKey>> scan_host_keys(const Target& target, BootTime deadline, os::Clock& clock);
// Returns the keys pinned for this host, Ed25519 first; empty if there are none.
[[nodiscard]] Result<std::vector<HostKey>> pinned(const Target& target);
// Makes exactly these the pinned keys of the host, durably (none: forgets it). Safe against concurrent processes.
[[nodiscard]] Result<void> pin(const Target& target, std::span<const HostKey> keys);

struct TokenValues {
  std::string alias, host, user, port;                                   // %n %h %r %p
  std::string home, local_user, local_host, uid;                         // %d %u %l %i
  std::function<std::optional<std::string>(std::string_view)> variable;  // ${NAME}
};

// Expands "~/.ssh/%r@%h", "${KEYS}/id" to a path. nullopt: it contains parts that only `ssh` itself can expand (%C,
// ~other), or a variable that is not set.
[[nodiscard]] std::optional<std::string> expand_tokens(std::string_view text, const TokenValues& values);

[[nodiscard]] std::string libssh2_in_use();  // "1.10.0": of the library that was loaded, not of the one built with

}  // namespace gridctl::ssh
