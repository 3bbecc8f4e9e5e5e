// SPDX-License-Identifier: Apache-2.0
// What the user's own ssh knows of a host, asked of the real programs.
#include <gtest/gtest.h>

#include "os/process.hpp"
#include "ssh/connect.hpp"
#include "ssh/known_hosts.hpp"
#include "support/ssh_server.hpp"

namespace gridctl::ssh::host_trust_test {
namespace {

class HostTrust : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::exists("/usr/sbin/sshd") || !os::find_program("ssh-keygen")) GTEST_SKIP() << "there is no sshd";
  }
  [[nodiscard]] BootTime soon() const { return clock_.boot() + std::chrono::seconds{20}; }
  // The user's known_hosts holds this text.
  Target target_with(const std::string& known) {
    const os::Path file = dir_.path() / "users_known_hosts", config = dir_.path() / "users_config";
    EXPECT_TRUE(os::write_file_atomically(file, known).has_value());
    EXPECT_TRUE(os::write_file_atomically(
                    config, "Host *\n UserKnownHostsFile " + file.native() + "\n GlobalKnownHostsFile /dev/null\n")
                    .has_value());
    Target target = server_->target(TransportKind::automatic);
    target.config = config;
    return target;
  }
  [[nodiscard]] std::string line_of(const HostKey& key) const {
    return "[127.0.0.1]:" + std::to_string(server_->port()) + " " + key.type + " " + key.blob + "\n";
  }
  void run(const std::vector<std::string>& argv) {
    const auto done = os::run(argv);
    ASSERT_TRUE(done.has_value() && done->status.success()) << done->err;
  }

  os::Clock& clock_ = os::system_clock();
  test::TempDir dir_;
  std::unique_ptr<test::SshServer> server_;
};

TEST_F(HostTrust, FindsTheKeyInKnownHostsAlsoWhenItIsHashed) {
  server_ = test::SshServer::start(dir_.path(), "server");
  const HostKey key = server_->host_key("ed25519");
  EXPECT_FALSE(key_known_to_user(target_with(""), soon(), clock_));
  EXPECT_EQ(key_known_to_user(target_with(line_of(key)), soon(), clock_), key.fingerprint);
  run({"ssh-keygen", "-q", "-H", "-f", (dir_.path() / "users_known_hosts").native()});
  const auto hashed = os::read_file(dir_.path() / "users_known_hosts");
  ASSERT_TRUE(hashed && hashed->starts_with("|1|"));
  EXPECT_EQ(key_known_to_user(target_with(*hashed), soon(), clock_), key.fingerprint);
}

TEST_F(HostTrust, BelievesNoOtherKey) {
  server_ = test::SshServer::start(dir_.path(), "server");
  test::make_key(dir_.path(), "other", "ed25519");
  const std::string other = os::read_file(dir_.path() / "other.pub").value();
  EXPECT_FALSE(
      key_known_to_user(target_with("[127.0.0.1]:" + std::to_string(server_->port()) + " " + other), soon(), clock_));
}

// A server that shows a certificate only: of the very key that is pinned it is no change.
TEST_F(HostTrust, ReachesAHostThatShowsOnlyACertificate) {
  test::make_key(dir_.path(), "ca", "ed25519");
  server_ = test::SshServer::start(dir_.path(), "first");
  const HostKey key = server_->host_key("ed25519");
  const std::string host_key = (dir_.path() / "first-host-ed25519").native();
  ASSERT_TRUE(os::exists(host_key + ".pub")) << host_key;
  run({"ssh-keygen", "-q", "-s", (dir_.path() / "ca").native(), "-I", "h", "-h", host_key + ".pub"});
  server_.reset();
  server_ = test::SshServer::start(
      dir_.path(), "first",
      {.config = "HostCertificate " + host_key + "-cert.pub\nHostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com\n"});
  Target target = server_->target(TransportKind::automatic);
  ASSERT_TRUE(pin(target, {&key, 1}).has_value());
  const auto channel = connect(target, "echo fine", soon(), clock_);
  ASSERT_TRUE(channel.has_value()) << channel.error().one_line();
  EXPECT_EQ((*channel)->transport(), TransportKind::system);

  const std::string ca = os::read_file(dir_.path() / "ca.pub").value();
  EXPECT_EQ(key_known_to_user(target_with("@cert-authority * " + ca), soon(), clock_), key.fingerprint);
}

}  // namespace
}  // namespace gridctl::ssh::host_trust_test
