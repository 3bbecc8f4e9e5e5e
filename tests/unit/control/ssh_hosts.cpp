// SPDX-License-Identifier: Apache-2.0
#include "ssh_hosts.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "ssh/encoding.hpp"
#include "ssh/known_hosts.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::test {
namespace {

const char* const k_ssh = R"sh(#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -V) echo 'OpenSSH_9.9' >&2; exit 0;;
    -G) config=1; shift;;
    -v) verbose=1; shift;;
    -o)
      case $2 in
        UserKnownHostsFile=*) known=${2#*=\"}; known=${known%\"};;
        HostKeyAlias=*) alias=${2#*=};;
        PreferredAuthentications=none) scan=1;;
        StrictHostKeyChecking=*) checking=${2#*=};;
      esac
      shift 2;;
    -F|-i|-J|-p|-l) shift 2;;
    --) shift; break;;
    *) shift;;
  esac
done
host=$1
at=$GRIDCTL_TEST_HOSTS/$host
if [ "$config" ]; then
  printf 'hostname %s\nuser somebody\nport 22\n' "$host"
  [ -e "$at/proxied" ] && echo 'proxycommand nc %h %p'
  exit 0
fi
if [ -e "$at/down" ]; then echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255; fi
read -r type blob print < "$at/key"
if [ "$verbose" ]; then
  [ -e "$at/trusted" ] && printf "debug1: Server host key: %s %s\ndebug1: Host '%s' is known and matches the ED25519 host key.\n" "$type" "$print" "$host" >&2
  exit 255
fi
if [ "$checking" = accept-new ]; then echo "$alias $type $blob" > "$known"; echo 'Permission denied (none).' >&2; exit 255; fi
if ! grep -qF "$alias $type $blob" "$known"; then
  printf '%s key fingerprint is %s.\nHost key verification failed.\n' "$type" "$print" >&2
  exit 255
fi
echo "Authenticated to $host" >&2
if [ -d "$at/played" ]; then exec "$GRIDCTL_TEST_PROGRAM" agent "$at"; fi
unset GRIDCTL_AGENT_HOME
HOME=$at/home exec sh -c "$2"
)sh";

void put(const os::Path& path, const std::string& text, unsigned mode = 0600) {
  EXPECT_TRUE(os::write_file_atomically(path, text, mode).has_value()) << path;
}

}  // namespace

SshHosts::SshHosts() : former_path_(os::environment("PATH").value_or("/bin:/usr/bin")) {
  EXPECT_TRUE(os::make_directories(paths.root).has_value());
  EXPECT_TRUE(os::make_directories(dir / "bin").has_value());
  put(dir / "bin/ssh", k_ssh, 0755);
  ::setenv("PATH", ((dir / "bin").native() + ":" + former_path_).c_str(), 1);
  ::setenv("GRIDCTL_TEST_HOSTS", (dir / "hosts").c_str(), 1);
  ::setenv("GRIDCTL_TEST_PROGRAM", os::executable_path()->c_str(), 1);
}

SshHosts::~SshHosts() { ::setenv("PATH", former_path_.c_str(), 1); }

os::Path SshHosts::home(const std::string& name) const { return folder(name) / "home"; }

registry::Provider SshHosts::add(const std::string& name) {
  EXPECT_TRUE(os::make_directories(home(name)).has_value());
  (void)new_key(name);
  registry::Provider provider;
  provider.name = {name};
  provider.address = "me@" + name;
  provider.transport = ssh::transport_name(ssh::TransportKind::system);
  return provider;
}

registry::Provider SshHosts::add_pinned(const std::string& name) {
  registry::Provider provider = add(name);
  ssh::Overrides overrides;
  overrides.known_hosts = paths.known_hosts();
  const auto target = ssh::resolve(provider.address, overrides);
  EXPECT_TRUE(target.has_value());
  const auto key = new_key(name);
  EXPECT_TRUE(ssh::pin(*target, {&key, 1}).has_value());
  return provider;
}

ssh::HostKey SshHosts::new_key(const std::string& name) {
  std::string blob;
  ssh::append_text(blob, "ssh-ed25519");
  ssh::append_text(blob, std::string(31, 'k') + static_cast<char>('A' + ++keys_));
  const auto key = ssh::make_host_key("ssh-ed25519", ssh::encode_base64(blob));
  EXPECT_TRUE(key.has_value());
  put(folder(name) / "key", key->type + " " + key->blob + " " + key->fingerprint + "\n");
  return *key;
}

void SshHosts::share_key(const std::string& name, const std::string& of) {
  put(folder(name) / "key", *os::read_file(folder(of) / "key"));
}

void SshHosts::trust_by_ssh(const std::string& name) const { put(folder(name) / "trusted", ""); }
void SshHosts::put_behind_proxy(const std::string& name) const { put(folder(name) / "proxied", ""); }
void SshHosts::take_down(const std::string& name) const { put(folder(name) / "down", ""); }
void SshHosts::bring_up(const std::string& name) const { (void)os::remove_file(folder(name) / "down"); }

control::HostAccess SshHosts::access(const registry::Provider& provider) const {
  return {provider, &net, &os::system_clock()};
}

void SshHosts::play(const std::string& name, const std::string& op, int count, const std::vector<Played>& frames) const {
  std::string text;
  for (const Played& one : frames) text += std::to_string(static_cast<int>(one.kind)) + " " + one.payload + "\n";
  EXPECT_TRUE(os::make_directories(folder(name) / "played").has_value());
  put(folder(name) / "played" / (op + "." + std::to_string(count)), text);
}

std::vector<std::string> SshHosts::asked(const std::string& name) const {
  auto text = os::read_file(folder(name) / "asked");
  return split_lines(std::move(text).value_or(""));
}

int play_agent(const os::Path& folder) {
  const auto say = [](const std::string& bytes) { return os::write_all(1, as_bytes(bytes)).has_value(); };
  if (!say(std::string(wire::k_preamble))) return 1;
  wire::Decoder decoder{false};
  Bytes piece(64 * 1024);
  for (;;) {
    auto frame = decoder.next();
    if (!frame) return 1;
    if (!*frame) {
      const ssize_t got = ::read(0, piece.data(), piece.size());
      if (got <= 0) return 0;
      decoder.feed(ByteView(piece).first(static_cast<std::size_t>(got)));
      continue;
    }
    if ((*frame)->kind != wire::FrameKind::request) continue;
    const std::string op = wire::request_name((*frame)->payload);
    if (op == "hello") {
      wire::AgentHello hello;
      hello.machine_id = hello.boot_id = "played";
      hello.build = std::string(64, 'a');
      if (!say(wire::encode(wire::Frame{wire::FrameKind::reply, (*frame)->stream, wire::encode(hello)}))) return 1;
      continue;
    }
    auto asked = os::read_file(folder / "asked");
    const std::string before = std::move(asked).value_or("");
    if (!os::write_file_atomically(folder / "asked", before + (*frame)->payload + "\n")) return 1;
    int count = 1;  // over all connections, of which each has a process of its own
    for (const std::string& line : split_lines(before)) count += wire::request_name(line) == op ? 1 : 0;
    auto frames = os::read_file(folder / "played" / (op + "." + std::to_string(count)));
    if (!frames) return 1;
    for (const std::string& line : split_lines(*frames)) {
      const auto kind = static_cast<wire::FrameKind>(line.at(0) - '0');
      if (!say(wire::encode(wire::Frame{kind, (*frame)->stream, line.substr(2)}))) return 1;
    }
  }
}

}  // namespace gridctl::test
