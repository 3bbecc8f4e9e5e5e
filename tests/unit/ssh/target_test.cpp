// SPDX-License-Identifier: Apache-2.0
#include "ssh/target.hpp"

#include <gtest/gtest.h>

#include "fake_ssh.hpp"
#include "os/process.hpp"
#include "os/random.hpp"

namespace gridctl::ssh::target_test {
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

class Resolve : public ::testing::Test {
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
  EXPECT_EQ(expand_tokens("~", values), "/home/me");
  EXPECT_EQ(expand_tokens("%k}$x~", values), "box}$x~");
  values.local_host = "lap";
  EXPECT_EQ(expand_tokens("%L", values), "lap");
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

TEST(Address, SaysWhatIsWrong) {
  for (const auto& [text, why] : {std::pair{"@host", "the user name is empty"},
                                  {"[::1", "']' is missing"},
                                  {"[::1]22", "':' is missing before the port"},
                                  {"host:0", "the port is not a number"},
                                  {"host:22x", "the port is not a number"},
                                  {"host:", "the port is not a number"},
                                  {"ho_st;", "a host consists of letters"},
                                  {"a;b@host", "a user consists of letters"}}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code, Code::usage);
    EXPECT_NE(address.error().message.find(why), std::string::npos) << address.error().message;
  }
}

TEST(Address, EndsAtItsLimits) {
  const std::string longest(255, 'a');
  EXPECT_TRUE(parse_address(longest + "@" + longest).has_value());
  EXPECT_FALSE(parse_address(longest + "a").has_value());
  EXPECT_FALSE(parse_address(longest + "a@host").has_value());
  EXPECT_EQ(parse_address("host:1")->port, 1);
  EXPECT_EQ(parse_address("host:65535")->port, 65535);
  EXPECT_TRUE(parse_address("azAZ09@azAZ09").has_value());
  for (const char* beside : {"a`b", "a{b", "a@b", "a[b", "a/b", "a:b:c;"})
    EXPECT_FALSE(parse_address(std::string("x@") + beside).has_value() && std::string(beside) != "a@b") << beside;
  EXPECT_EQ(parse_address("::1")->host, "::1");
  EXPECT_FALSE(parse_address("::1")->port);
  EXPECT_EQ(parse_address("[::1]")->host, "::1");
}

TEST(TargetNames, AreWhatPeopleAndOpenSshWrite) {
  Target target;
  target.host = "::1";
  EXPECT_EQ(target.address(), "[::1]:22");
  EXPECT_EQ(target.peer(), "[::1]:22");
  EXPECT_EQ(target.pin_name(), "::1");
  target.host = "Box.example";
  target.user = "ann";
  EXPECT_EQ(target.peer(), "ann@Box.example:22");
  EXPECT_EQ(target.pin_name(), "box.example");
  EXPECT_EQ(copy_id_command(target), "ssh-copy-id ann@Box.example");
  target.port = 2222;
  EXPECT_EQ(target.pin_name(), "[box.example]:2222");
  target.alias = "box";
  target.proxied = true;
  EXPECT_EQ(target.pin_name(), "[box.example]:2222@box");
  target.jump = "gate,wall";
  EXPECT_EQ(target.pin_name(), "[box.example]:2222@gate_wall");
  EXPECT_EQ(copy_id_command(target), "ssh-copy-id -p 2222 -o ProxyJump=gate,wall ann@Box.example");
}

class AsSshSays : public ::testing::Test {
 protected:
  AsSshSays() {
    overrides_.config = dir_ / "config";
    for (const char* name : {"one", "two"}) EXPECT_TRUE(os::write_file_atomically(dir_ / name, "x").has_value());
  }
  // What `ssh -G` prints.
  Target resolved(const std::string& config, const std::string& text = "box") {
    const FakeSsh ssh("printf '" + config + "'");
    auto target = resolve(text, overrides_);
    EXPECT_TRUE(target.has_value());
    words_ = join(ssh.words(), " ");
    return std::move(target).value();
  }
  gridctl::testing::TempDir dir_;
  Overrides overrides_;
  std::string words_;
};

TEST_F(AsSshSays, FindsTheAgentThatIsNamed) {
  const Variable agent("SSH_AUTH_SOCK", "/run/agent"), other("OTHER_AGENT", "/run/other");
  EXPECT_EQ(resolved("").agent_socket, "/run/agent");
  EXPECT_EQ(resolved("identityagent none\n").agent_socket, "");
  EXPECT_EQ(resolved("identityagent SSH_AUTH_SOCK\n").agent_socket, "/run/agent");
  EXPECT_EQ(resolved("identityagent $OTHER_AGENT\n").agent_socket, "/run/other");
  EXPECT_EQ(resolved("identityagent $NO_SUCH_VARIABLE\n").agent_socket, "");
  EXPECT_EQ(resolved("identityagent ${OTHER_AGENT}.sock\n").agent_socket, "/run/other.sock");
  EXPECT_EQ(resolved("identityagent /run/%%C\n").agent_socket, "") << "only ssh can work it out";
}

TEST_F(AsSshSays, TakesKeysThatExistInTheirOrder) {
  const std::string dir = dir_.path().native();
  const Target target = resolved("identityfile " + dir + "/two\nidentityfile " + dir + "/none\nidentityfile " + dir +
                                 "/one\nnovalue\nidentitiesonly yes\n");
  EXPECT_EQ(target.identities, (std::vector<os::Path>{dir_ / "two", dir_ / "one"}));
  EXPECT_TRUE(target.identities_only);
  EXPECT_FALSE(target.keys_unclear);
  EXPECT_FALSE(resolved("identitiesonly no\n").identities_only);
}

TEST_F(AsSshSays, KeysThatAreGivenAreTheOnlyOnes) {
  overrides_.identities = {dir_ / "one"};
  const Target target = resolved("identityfile ~other/key\nidentityfile " + (dir_ / "two").native() + "\n");
  EXPECT_EQ(target.identities, overrides_.identities);
  EXPECT_TRUE(target.identities_only);
  EXPECT_FALSE(target.keys_unclear);
}

TEST_F(AsSshSays, TheCommandLineGoesBeforeTheConfiguration) {
  overrides_.user = "bob";
  overrides_.port = 2200;
  overrides_.connect_timeout = std::chrono::seconds{3};
  overrides_.known_hosts = "/pins";
  overrides_.transport = TransportKind::system;
  const Target target = resolved("hostname 10.0.0.7\nuser ann\nport 2200\n", "ann@box:22");
  EXPECT_EQ(target.peer(), "bob@10.0.0.7:2200");
  EXPECT_EQ(words_, "-G -F " + overrides_.config.native() + " -p 2200 -l bob -- box");
  EXPECT_EQ(target.connect_timeout, std::chrono::seconds{3});
  EXPECT_EQ(target.known_hosts, "/pins");
  EXPECT_EQ(target.config, overrides_.config);
  EXPECT_EQ(target.transport, TransportKind::system);
  overrides_.user = "-oX";
  const FakeSsh ssh("true");
  EXPECT_FALSE(resolve("box", overrides_).has_value());
}

TEST_F(AsSshSays, AsksOnlyForWhatIsGiven) {
  overrides_ = {};
  const Target target = resolved("hostname box.example\nuser me\nport 0\nproxyjump none\nproxycommand none\n");
  EXPECT_EQ(words_, "-G -- box");
  EXPECT_EQ(target.peer(), "me@box.example:22") << "a port that is none changes nothing";
  EXPECT_EQ(target.alias, "box");
  EXPECT_FALSE(target.proxied);
  EXPECT_EQ(target.connect_timeout, std::chrono::seconds{10});
  EXPECT_EQ(resolved("", "box:2022").port, 2022);
  EXPECT_EQ(words_, "-G -p 2022 -- box");
  EXPECT_EQ(resolved("user me\n", "ann@box").user, "ann");
}

TEST_F(AsSshSays, NamesTheUserOfThisMachineWhereNobodyElseIsNamed) {
  const Variable user("USER", "local");
  EXPECT_EQ(resolved("").user, "local");
}

TEST_F(AsSshSays, ItsComplaintIsToldInOneLine) {
  const FakeSsh ssh("printf 'line one\\nline two\\n' >&2; exit 255");
  const auto target = resolve("box", overrides_);
  ASSERT_FALSE(target.has_value());
  EXPECT_EQ(target.error().code, Code::usage);
  EXPECT_EQ(target.error().message, "ssh cannot read its configuration for box: line one | line two");
}

TEST_F(AsSshSays, WithoutAnSshProgramTheDefaultKeysAreOffered) {
  const gridctl::testing::TempDir home;
  std::filesystem::create_directories(home / ".ssh");
  for (const char* name : {"id_rsa", "id_ed25519", "id_other"})
    ASSERT_TRUE(os::write_file_atomically(home / (std::string(".ssh/") + name), "x").has_value());
  const Variable path("PATH", home.path().native()), at_home("HOME", home.path().native()), user("USER", "local");
  const auto target = resolve("box:2022", overrides_);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->identities, (std::vector<os::Path>{home / ".ssh/id_ed25519", home / ".ssh/id_rsa"}));
  EXPECT_EQ(target->peer(), "local@box:2022");
  EXPECT_FALSE(target->identities_only);
  overrides_.jump = "gate";
  EXPECT_TRUE(resolve("box", overrides_)->proxied);
}

TEST(Transport, HasNamesThatCanBeStored) {
  for (const auto kind : {TransportKind::automatic, TransportKind::libssh2, TransportKind::system})
    EXPECT_EQ(*parse_transport(transport_name(kind)), kind);
  EXPECT_FALSE(parse_transport("telnet").has_value());
}

}  // namespace
}  // namespace gridctl::ssh::target_test
