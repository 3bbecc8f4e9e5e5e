// SPDX-License-Identifier: Apache-2.0
// How a host becomes a provider and leaves again: real agents, beyond an ssh program of the test's own.
#include "control/fleet/register_host.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "control/fleet/leave_host.hpp"
#include "os/entries.hpp"
#include "ssh_hosts.hpp"
#include "support/results.hpp"

namespace gridctl::control::register_host_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Registering : public ::testing::Test {
 protected:
  Registering() {
    request.provider = hosts.add("ada");
    hosts.put_behind_proxy("ada");
    request.address = request.provider.address;
    request.accept_command = "gridctl provider add ada --host-key HOST_KEY";
    key = hosts.new_key("ada");
  }
  Result<Examined> enroll() { return control::enroll(hosts.net, request, hosts.paths, hosts.soon(), clock); }
  ssh::Target target(const std::string& name = "ada") {
    ssh::Overrides overrides;
    overrides.known_hosts = hosts.paths.known_hosts();
    overrides.transport = ssh::TransportKind::system;
    return *ssh::resolve("me@" + name, overrides);
  }
  Result<std::vector<ssh::HostKey>> trust() { return trust_host(target(), request, hosts.soon(), clock); }
  std::vector<ssh::HostKey> pins() { return *ssh::pinned(target()); }

  os::Clock& clock = os::system_clock();
  test::SshHosts hosts;
  EnrollRequest request;
  ssh::HostKey key;
};

TEST_F(Registering, TrustsNoUnknownKeyThatNobodyHasConfirmed) {
  const auto refused = trust();
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("is not known: the host shows ssh-ed25519 " + key.fingerprint));
  EXPECT_EQ(refused.error().hint, "if its owner confirms: gridctl provider add ada --host-key " + key.fingerprint);
  request.ask = [](const std::string&, std::span<const ssh::HostKey>) { return false; };
  EXPECT_THAT(trust(), FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(pins(), IsEmpty());
}

TEST_F(Registering, PinsWhatAPersonConfirms) {
  std::string shown;
  request.ask = [&](const std::string& peer, std::span<const ssh::HostKey> keys) {
    shown = peer + " " + keys.front().fingerprint;
    return true;
  };
  EXPECT_THAT(*trust(), ElementsAre(key));
  EXPECT_EQ(shown, "me@ada:22 " + key.fingerprint);
  EXPECT_THAT(pins(), ElementsAre(key));
  request.ask = nullptr;
  EXPECT_THAT(trust(), IsOk()) << "it is known now";
}

TEST_F(Registering, TakesTheKeyThatWasGivenAndNoOther) {
  request.host_key = "SHA256:another";
  const auto refused = trust();
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("is not SHA256:another: the host shows ssh-ed25519 " + key.fingerprint));
  EXPECT_THAT(pins(), IsEmpty());
  request.host_key = key.fingerprint;
  EXPECT_THAT(trust(), IsOk());
  EXPECT_THAT(pins(), ElementsAre(key));
}

TEST_F(Registering, RefusesAKeyThatHasChangedUntilItsOwnerConfirms) {
  request.host_key = key.fingerprint;
  ASSERT_THAT(trust(), IsOk());
  request.host_key.clear();
  request.ask = [](const std::string&, std::span<const ssh::HostKey>) { return true; };
  const ssh::HostKey other = hosts.new_key("ada");
  const auto refused = trust();
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("has changed: pinned is ssh-ed25519 " + key.fingerprint));
  EXPECT_THAT(refused.error().hint, HasSubstr(other.fingerprint));
  EXPECT_THAT(pins(), ElementsAre(key)) << "nobody is asked whether a changed key is good";
  ASSERT_THAT(pin_again(request.provider, other.fingerprint, hosts.paths, hosts.soon(), clock), IsOk());
  EXPECT_THAT(pins(), ElementsAre(other));
  EXPECT_THAT(pin_again(request.provider, key.fingerprint, hosts.paths, hosts.soon(), clock),
              FailsWith(Code::host_key_mismatch));
}

TEST_F(Registering, TrustsWhatTheUsersOwnSshKnows) {
  hosts.trust_by_ssh("ada");
  EXPECT_THAT(trust(), IsOk());
  EXPECT_THAT(pins(), ElementsAre(key));
}

TEST_F(Registering, TakesTheInventory) {
  request.host_key = key.fingerprint;
  request.provider.engine = "process";
  const WallTime began = clock.wall();
  const auto found = enroll();
  ASSERT_THAT(found, IsOk());
  const registry::Provider& provider = found->provider;
  EXPECT_EQ(provider.user, "me");
  EXPECT_EQ(provider.host, "ada");
  EXPECT_EQ(provider.port, 22);
  EXPECT_EQ(provider.alias, "");
  EXPECT_EQ(provider.address, "me@ada");
  EXPECT_EQ(provider.transport, "ssh");
  EXPECT_EQ(provider.liveness, "answering");
  ASSERT_TRUE(provider.last_seen_at);
  EXPECT_GE(*provider.last_seen_at, began);
  EXPECT_FALSE(provider.inventory->boot_id.empty());
  EXPECT_GT(provider.inventory->memory_bytes, 0u);
  EXPECT_EQ(found->shares_machine_with.value, "");
  EXPECT_TRUE(os::exists(hosts.home("ada") / ".gridctl/bin"));
}

TEST_F(Registering, SaysWhichHostDoesNotAnswer) {
  request.host_key = key.fingerprint;
  hosts.take_down("ada");
  EXPECT_THAT(enroll(), FailsWith(Code::host_unreachable));
  request.provider.identities = {(hosts.dir / "no such key").native()};
  EXPECT_THAT(enroll(), FailsWith(Code::usage)) << "the user's mistake";
  EXPECT_THAT(pin_again(request.provider, key.fingerprint, hosts.paths, hosts.soon(), clock), FailsWith(Code::usage));
}

TEST_F(Registering, KnowsAMachineUnderAnotherName) {
  request.host_key = key.fingerprint;
  request.others = {enroll()->provider};
  request.provider = hosts.add("bob");
  hosts.put_behind_proxy("bob");
  request.address = "me@bob";
  const ssh::HostKey other = hosts.new_key("bob");
  request.host_key = other.fingerprint;
  const auto beside = enroll();
  ASSERT_THAT(beside, IsOk()) << "another SSH server on one kernel";
  EXPECT_EQ(beside->shares_machine_with.value, "ada");
  hosts.share_key("bob", "ada");
  request.host_key = key.fingerprint;
  const auto twice = enroll();
  ASSERT_THAT(twice, FailsWith(Code::exists));
  EXPECT_THAT(twice.error().message, HasSubstr("as ada at me@ada: it shows the same SSH host key and runs the same kernel"));
  request.force = true;
  const auto forced = enroll();
  ASSERT_THAT(forced, IsOk());
  EXPECT_EQ(forced->shares_machine_with.value, "ada");
}

TEST_F(Registering, TellsTwinsByTheirKeyFirst) {
  request.host_key = key.fingerprint;
  ASSERT_THAT(trust(), IsOk());
  registry::Provider ada = request.provider, bob = hosts.add_pinned("bob"), lost = hosts.add("cay");
  lost.identities = {"/no such key"};
  Inventory found;
  found.machine_id = "m";
  found.boot_id = "b";
  bob.inventory = found;
  const auto twin = [&](const std::vector<registry::Provider>& others) {
    const auto one = find_twin(found, {&key, 1}, others, hosts.paths);
    EXPECT_THAT(one, IsOk());
    return std::pair(one->kind, one->provider.name.value);
  };
  EXPECT_EQ(twin({lost, bob, ada}), std::pair(Twin::Kind::same_key, std::string("ada")));
  EXPECT_EQ(twin({bob}), std::pair(Twin::Kind::same_kernel, std::string("bob")));
  bob.inventory.edit().boot_id = "c";
  EXPECT_EQ(twin({bob}).first, Twin::Kind::none) << "images are cloned with their machine id";
  bob.inventory = {};
  found = {};
  EXPECT_EQ(twin({bob}).first, Twin::Kind::none) << "nobody told";
}

// Two ways to one machine: the second name is another address of the same home.
class TwoWays : public Registering {
 protected:
  TwoWays() {
    ada = hosts.add_pinned("ada");
    (void)hosts.add("lan");
    hosts.put_behind_proxy("lan");  // as ada: its key is scanned by ssh
    registry::Provider lan = hosts.add_pinned("lan");
    std::filesystem::remove_all(hosts.home("lan"));
    std::filesystem::create_directory_symlink(hosts.home("ada"), hosts.home("lan"));
    ada.more_ways = {registry::Way(lan)};
    const auto seen = examine(hosts.net, ada, hosts.soon(), clock);
    EXPECT_THAT(seen, IsOk());
    ada.inventory = seen->provider.inventory;
  }
  std::string way() {
    const auto link = hosts.net.open(ada, hosts.soon());
    return link ? link->way : link.error().message;
  }
  registry::Provider ada;
};

TEST_F(TwoWays, TheSecondIsTriedWhenTheFirstLeadsToNoAnswer) {
  EXPECT_EQ(way(), "me@ada");
  hosts.take_down("ada");
  EXPECT_EQ(way(), "me@lan");
  hosts.bring_up("ada");
  EXPECT_EQ(way(), "me@lan") << "it has just helped";
  hosts.take_down("lan");
  EXPECT_EQ(way(), "me@ada");
  hosts.take_down("ada");
  const auto none = hosts.net.open(ada, hosts.soon());
  ASSERT_THAT(none, FailsWith(Code::host_unreachable));
  EXPECT_THAT(none.error().one_line(), HasSubstr("by way of me@lan"));
}

TEST_F(TwoWays, AnAddressThatIsAnotherMachinesNowIsPassedOver) {
  (void)hosts.new_key("ada");
  EXPECT_EQ(way(), "me@lan") << "another machine shows another key: nothing was sent to it";
  hosts.take_down("lan");
  const auto refused = hosts.net.open(ada, hosts.soon());
  EXPECT_THAT(refused, FailsWith(Code::host_unreachable)) << "the last that answered was tried first";
  EXPECT_THAT(refused.error().one_line(), HasSubstr("me@ada"));
}

TEST_F(TwoWays, AnotherMachineAtTheSecondIsRefused) {
  ada.inventory.edit().machine_id = "another";
  const auto refused = hosts.net.open(ada, hosts.soon());
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("another machine answers at me@ada"));
  registry::Way typed;
  typed.address = "me@lan";
  typed.transport = "ssh";
  const auto added = try_way(hosts.net, ada, typed, {}, hosts.paths, hosts.soon(), clock);
  ASSERT_THAT(added, FailsWith(Code::refused));
  EXPECT_THAT(added.error().message, HasSubstr("that of ada is another"));
}

TEST_F(TwoWays, AWayIsAddedOnceItHasLedThere) {
  registry::Way typed;
  typed.address = "me@lan";
  typed.transport = "ssh";
  const auto added = try_way(hosts.net, ada, typed, {}, hosts.paths, hosts.soon(), clock);
  ASSERT_THAT(added, IsOk());
  EXPECT_EQ(added->user + " " + added->host, "me lan");
  EXPECT_EQ(added->transport, "ssh");
  hosts.take_down("lan");
  EXPECT_THAT(try_way(hosts.net, ada, typed, {}, hosts.paths, hosts.soon(), clock), FailsWith(Code::host_unreachable));
}

class Identities : public Registering {
 protected:
  Identities() {
    ada = hosts.add_pinned("ada");
    const auto seen = examine(hosts.net, ada, hosts.soon(), clock);
    EXPECT_THAT(seen, IsOk());
    ada = seen->provider;
  }
  [[nodiscard]] os::Path file() const { return hosts.home("ada") / ".gridctl" / "identity"; }
  registry::Provider ada;
};

TEST_F(Identities, ArePinnedWithTheHostAndProvedAtEachConnection) {
  EXPECT_EQ(ada.peer_key.size(), 64u);
  EXPECT_THAT(hosts.net.open(ada, hosts.soon()), IsOk());
  ASSERT_TRUE(std::filesystem::remove(file()));
  const auto refused = hosts.net.open(ada, hosts.soon());
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("another host answers at me@ada"));
  EXPECT_THAT(refused.error().hint, HasSubstr("gridctl provider check ada --accept-identity "));
  registry::Provider accepted = ada;
  accepted.peer_key = refused.error().hint.substr(refused.error().hint.rfind(' ') + 1);
  EXPECT_THAT(hosts.net.open(accepted, hosts.soon()), IsOk());
}

// Cloned machines have one identity and one machine id; they differ in their host keys, which are looked at first.
TEST_F(Identities, OfAClonedImageMakeNoneOfItsMachinesAnother) {
  const registry::Provider clone = hosts.add_pinned("clone");
  std::filesystem::create_directories(hosts.home("clone") / ".gridctl");
  std::filesystem::copy_file(file(), hosts.home("clone") / ".gridctl" / "identity");
  EXPECT_EQ(examine(hosts.net, clone, hosts.soon(), clock)->provider.peer_key, ada.peer_key);
  EXPECT_THAT(hosts.net.open(ada, hosts.soon()), IsOk());
}

class Leaving : public Registering {
 protected:
  Leaving() {
    ada = hosts.add_pinned("ada");
    EXPECT_THAT(examine(hosts.net, ada, hosts.soon(), clock), IsOk());
  }
  Result<LeftBehind> leave() { return leave_host(hosts.net, ada, hosts.controller, hosts.soon()); }
  void keep(const std::string& path) {
    const os::Path file = hosts.home("ada") / ".gridctl" / path;
    EXPECT_THAT(os::make_directories(file.parent_path()), IsOk());
    EXPECT_THAT(os::write_file_atomically(file, std::string(10'000, 'x')), IsOk());
  }
  registry::Provider ada;
};

TEST_F(Leaving, RemovesTheAgentWithTheLastController) {
  const auto left = leave();
  ASSERT_THAT(left, IsOk());
  EXPECT_EQ(left->bytes, 0u);
  EXPECT_FALSE(left->busy);
  EXPECT_FALSE(os::exists(hosts.home("ada") / ".gridctl"));
  EXPECT_EQ(leave()->bytes, 0u) << "there is nothing left";
}

TEST_F(Leaving, TouchesNothingWhileAnAttemptIsThere) {
  keep("jobs/testcontroller/job/1/spec");
  const auto left = leave();
  ASSERT_THAT(left, IsOk());
  EXPECT_TRUE(left->busy);
  EXPECT_TRUE(os::exists(hosts.home("ada") / ".gridctl/jobs/testcontroller/job/1/spec"));
}

TEST_F(Leaving, SaysHowMuchOfOthersStays) {
  keep("jobs/another/job/1/spec");
  keep("kept/testcontroller.x");
  const auto left = leave();
  ASSERT_THAT(left, IsOk());
  EXPECT_FALSE(left->busy);
  EXPECT_GE(left->bytes, 10'000u);
  EXPECT_EQ(left->bytes % 1024, 0u);
  EXPECT_FALSE(os::exists(hosts.home("ada") / ".gridctl/kept/testcontroller.x"));
  EXPECT_TRUE(os::exists(hosts.home("ada") / ".gridctl/jobs/another/job/1/spec"));
}

}  // namespace
}  // namespace gridctl::control::register_host_test
