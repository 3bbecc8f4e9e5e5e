// SPDX-License-Identifier: Apache-2.0
#include "ssh/target.hpp"

#include <gtest/gtest.h>

#include "os/process.hpp"
#include "os/random.hpp"
#include "ssh/tokens.hpp"

namespace gridctl::ssh {
namespace {

TEST(Address, TakesEveryUsualForm) {
  struct Case {
    const char *text, *user, *host;
    int port;
  };
  for (const Case& c : {Case{"ann@host", "ann", "host", 0}, Case{"ssh://ann@host:2222/", "ann", "host", 2222},
                        Case{"host:22", "", "host", 22}, Case{"[::1]:2222", "", "::1", 2222},
                        Case{"ann@fe80::1%eth0", "ann", "fe80::1%eth0", 0}, Case{"a@b@host", "a@b", "host", 0},
                        Case{"gpu_box-1", "", "gpu_box-1", 0}}) {
    const auto address = parse_address(c.text);
    ASSERT_TRUE(address.has_value()) << c.text;
    EXPECT_EQ(address->user, c.user);
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port.value_or(0), c.port);
  }
}

TEST(Address, RefusesWhatCouldBeAnOptionOrReachAShell) {
  for (const char* text :
       {"", "@host", "ann@", "-oProxyCommand=x", "ann@-x", "-l@host", "host;reboot", "ho st", "`id`@host", "$(id)@host",
        "host:0", "host:65536", "host:ssh", "[::1", "[::1]x", "ho\nst", "user@ho\x1bst"})
    EXPECT_FALSE(parse_address(text).has_value()) << text;
}

class Resolve : public testing::Test {
 protected:
  Resolve() : dir_(os::temporary_directory() / ("gridctl-resolve-" + os::random_id(12))) {
    EXPECT_TRUE(os::make_directories(dir_).has_value());
    overrides_.config = dir_ / "config";
    write("key", "x");
  }
  ~Resolve() override { (void)os::remove_tree(dir_); }
  void SetUp() override {
    if (!os::find_program("ssh")) GTEST_SKIP() << "there is no ssh program";
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::write_file_atomically(dir_ / name, text).has_value());
  }
  os::Path dir_;
  Overrides overrides_;
};

TEST_F(Resolve, ExpandsTheTokensOfKeyFiles) {
  write("ann@10.0.0.7", "x");
  write("config", "Host box\n HostName 10.0.0.7\n User ann\n IdentityFile " + dir_.native() + "/%r@%h\n");
  const auto target = resolve("box", overrides_);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->identities, std::vector<os::Path>{dir_ / "ann@10.0.0.7"});
  EXPECT_FALSE(target->keys_unclear);
  write("config", "Host box\n IdentityFile " + dir_.native() + "/%C\n");
  EXPECT_TRUE(resolve("box", overrides_)->keys_unclear);
}

TEST_F(Resolve, QuotesWhatSshSaysOfABadLine) {
  write("config", "Host box\n Bogus yes\n");
  const auto target = resolve("box", overrides_);
  ASSERT_FALSE(target.has_value());
  EXPECT_EQ(target.error().code, Code::usage);
  EXPECT_NE(target.error().message.find("bogus"), std::string::npos) << target.error().message;
  EXPECT_EQ(target.error().hint, "ssh -G box");
}

TEST(Tokens, AreThoseOfSshConfig) {
  TokenValues values{"box",
                     "10.0.0.7",
                     "ann",
                     "22",
                     "/home/me",
                     "me",
                     "lap.example.org",
                     "1000",
                     [](std::string_view name) -> std::optional<std::string> {
                       return name == "KEYS" ? std::optional<std::string>{"/keys"} : std::nullopt;
                     }};
  EXPECT_EQ(expand_tokens("~/.ssh/%r@%h:%p", values), "/home/me/.ssh/ann@10.0.0.7:22");
  EXPECT_EQ(expand_tokens("%d/%u-%i-%L-%l-%n-100%%", values), "/home/me/me-1000-lap-lap.example.org-box-100%");
  EXPECT_EQ(expand_tokens("${KEYS}/id", values), "/keys/id");
  for (const char* only_ssh : {"%C", "${NONE}/id", "~other/id", "ends in %", "${open"})
    EXPECT_FALSE(expand_tokens(only_ssh, values)) << only_ssh;
}

TEST_F(Resolve, FollowsTheUsersConfiguration) {
  write("config", "Host box\n HostName 10.0.0.7\n Port 2200\n User ann\n IdentityFile " + (dir_ / "key").native() +
                      "\n IdentitiesOnly yes\n");
  const auto target = resolve("box", overrides_);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->peer(), "ann@10.0.0.7:2200");
  EXPECT_EQ(target->alias, "box");
  EXPECT_EQ(target->identities, std::vector<os::Path>{dir_ / "key"});
  EXPECT_TRUE(target->identities_only);
  EXPECT_FALSE(target->proxied);
}

TEST_F(Resolve, LetsTheCommandLineWin) {
  write("config", "Host box\n HostName 10.0.0.7\n Port 2200\n User ann\n");
  overrides_.port = 22;
  overrides_.identities = {dir_ / "key"};
  const auto target = resolve("bob@box", overrides_);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->peer(), "bob@10.0.0.7:22");
  EXPECT_EQ(target->identities, overrides_.identities);
}

TEST_F(Resolve, KnowsThatAHostIsBehindAnother) {
  write("config", "Host box\n ProxyJump gate\n");
  EXPECT_TRUE(resolve("box", overrides_)->proxied);
  write("config", "Host box\n ProxyCommand nc %h %p\n");
  EXPECT_TRUE(resolve("box", overrides_)->proxied);
  write("config", "Host box\n ProxyJump none\n");
  EXPECT_FALSE(resolve("box", overrides_)->proxied);
  overrides_.jump = "ann@gate:2222";
  EXPECT_TRUE(resolve("box", overrides_)->proxied);
}

TEST_F(Resolve, RefusesAMissingKeyFileAndAnOddJumpHost) {
  write("config", "");
  Overrides missing = overrides_;
  missing.identities = {dir_ / "none"};
  EXPECT_EQ(resolve("box", missing).error().code, Code::not_found);
  Overrides odd = overrides_;
  odd.jump = "-oProxyCommand=reboot";
  EXPECT_EQ(resolve("box", odd).error().code, Code::usage);
}

TEST(Transport, HasNamesThatCanBeStored) {
  for (const auto kind : {TransportKind::automatic, TransportKind::libssh2, TransportKind::system})
    EXPECT_EQ(*parse_transport(transport_name(kind)), kind);
  EXPECT_FALSE(parse_transport("telnet").has_value());
}

}  // namespace
}  // namespace gridctl::ssh
