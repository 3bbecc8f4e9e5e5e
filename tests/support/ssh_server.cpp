// SPDX-License-Identifier: Apache-2.0
#include "support/ssh_server.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "os/net.hpp"
#include "os/random.hpp"
#include "ssh/known_hosts.hpp"
#include "support/loopback.hpp"

namespace gridctl::test {
namespace {

const char* const k_sshd = "/usr/sbin/sshd";  // sshd insists on an absolute path

std::string run_ok(const std::vector<std::string>& argv) {
  const auto outcome = os::run(argv);
  EXPECT_TRUE(outcome.has_value() && outcome->status.success()) << join(argv, " ");
  return outcome ? outcome->out : std::string{};
}

// Only what we started: pid 0 and 1 have every process of the machine as descendants.
void stop_process(const os::ProcessId& process) {
  if (process.pid <= 1) return;
  (void)os::send_signal(process, SIGCONT);
  (void)os::send_signal(process, SIGKILL);
  (void)os::wait(process.pid);
}

bool answers(std::uint16_t port) {
  os::Clock& clock = os::system_clock();
  const auto fd = os::connect_tcp("127.0.0.1", port, clock.boot() + std::chrono::seconds{1}, clock);
  return fd.has_value();
}

}  // namespace

TempDir::TempDir() : path_(os::temporary_directory() / ("gridctl-test-" + os::random_id(12))) {
  EXPECT_TRUE(os::make_directories(path_).has_value());
}
TempDir::~TempDir() { (void)os::remove_tree(path_); }

os::Path make_key(const os::Path& dir, const std::string& name, const std::string& type,
                  const std::string& passphrase) {
  const os::Path path = dir / name;
  if (!os::exists(path)) {
    std::vector<std::string> argv = {"ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", name, "-f", path.native()};
    if (type == "rsa") argv.insert(argv.end(), {"-b", "2048"});
    if (!passphrase.empty()) argv.insert(argv.end(), {"-a", "1"});
    run_ok(argv);
  }
  return path;
}

std::unique_ptr<SshServer> SshServer::start(const os::Path& dir, const std::string& name, ServerOptions options) {
  if (!os::exists(k_sshd)) return nullptr;
  if (current_user() == "root") (void)os::make_directories("/run/sshd", 0755);
  auto server = std::make_unique<SshServer>();
  server->dir_ = dir;
  server->name_ = name;
  if (options.accepted.empty()) options.accepted = {"user"};
  std::string authorized;
  for (const std::string& key : options.accepted) {
    if (key == "user") make_key(dir, "user", "ed25519");
    authorized += os::read_file(dir / (key + ".pub")).value();
  }
  const os::Path keys = dir / (name + "-authorized_keys");
  EXPECT_TRUE(os::write_file_atomically(keys, authorized).has_value());
  std::string config = "ListenAddress 127.0.0.1\nAuthorizedKeysFile " + keys.native() +
                       "\nStrictModes no\nUsePAM no\nUseDNS no\nPidFile none\nPasswordAuthentication no\n"
                       "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel VERBOSE\n";
  for (const std::string& type : options.host_keys)
    config += "HostKey " + make_key(dir, name + "-host-" + type, type).native() + "\n";
  // Bash takes itself for the first shell of a login otherwise and runs the user's own .bashrc, which may be slow, or
  // hang after one of them was killed. The first SetEnv of a file counts: the options' own must say it too.
  config += options.config + "SetEnv SHLVL=1\n";
  for (int i = 0; i < 5; ++i) {
    server->port_ = os::listen_loopback().value().second;  // free a moment ago
    const os::Path file = dir / (name + "-sshd_config");
    EXPECT_TRUE(os::write_file_atomically(file, "Port " + std::to_string(server->port_) + "\n" + config).has_value());
    const auto log = os::open_file(dir / (name + "-sshd.log"), 02101 /* O_WRONLY|O_CREAT|O_APPEND */);
    os::SpawnOptions spawn;
    spawn.stderr_fd = log.value().get();
    const auto pid = os::spawn({k_sshd, "-D", "-e", "-f", file.native()}, spawn);
    EXPECT_TRUE(pid.has_value());
    server->process_ = os::identify(*pid).value_or(os::ProcessId{*pid, 0});
    for (int wait = 0; wait < 200; ++wait) {
      if (answers(server->port_)) return server;
      if (!os::is_alive(server->process_)) break;
      os::pause_for(std::chrono::milliseconds{10});
    }
    server->stop();
  }
  ADD_FAILURE() << "sshd does not start: " << os::read_file(dir / (name + "-sshd.log")).value();
  return nullptr;
}

void SshServer::stop() {
  if (process_.pid <= 1) return;  // stopped already
  const std::vector<os::ProcessId> sessions = os::descendants(process_.pid);
  stop_process(std::exchange(process_, {}));
  for (const os::ProcessId& session : sessions) (void)os::send_signal(session, SIGKILL);
}

SshServer::~SshServer() { stop(); }

ssh::HostKey SshServer::host_key(const std::string& type) const {
  const std::vector<std::string> parts = split(os::read_file(dir_ / (name_ + "-host-" + type + ".pub")).value(), ' ');
  return ssh::make_host_key(parts.at(0), parts.at(1)).value();
}

ssh::Target SshServer::target(ssh::TransportKind transport) const {
  ssh::Target target;
  target.alias = target.host = "127.0.0.1";
  target.port = port_;
  target.user = current_user();
  target.identities = {dir_ / "user"};
  target.identities_only = true;
  target.known_hosts = dir_ / "known_hosts";
  target.config = dir_ / "ssh_config";
  target.transport = transport;
  if (!os::exists(target.config)) {
    EXPECT_TRUE(os::write_file_atomically(target.config, "").has_value());
  }
  return target;
}

std::string current_user() { return std::string{trim(run_ok({"id", "-un"}))}; }

SshAgent::SshAgent(const os::Path& dir, const os::Path& key) : socket_(dir / ("agent-" + os::random_id(6))) {
  const auto pid = os::spawn({"ssh-agent", "-D", "-a", socket_.native()}, {});
  EXPECT_TRUE(pid.has_value());
  process_ = os::identify(*pid).value_or(os::ProcessId{*pid, 0});
  os::RunOptions options;
  options.environment_extra = {{"SSH_AUTH_SOCK", socket_.native()}};
  // The socket has its name before anybody listens on it: only an answer says that the agent is there.
  bool added = false;
  for (int attempt = 0; attempt < 500 && !added; ++attempt) {
    if (attempt > 0) os::pause_for(std::chrono::milliseconds{10});
    const auto answer = os::run({"ssh-add", "-q", key.native()}, options);
    added = answer.has_value() && answer->status.success();
  }
  EXPECT_TRUE(added);
}

SshAgent::~SshAgent() { stop_process(process_); }

}  // namespace gridctl::test
