// SPDX-License-Identifier: Apache-2.0
#include "ssh/known_hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/random.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::ssh::known_hosts_test {
namespace {

HostKey key(const std::string& type, const std::string& body) {
  std::string blob;
  append_text(blob, type);
  append_text(blob, body);
  return make_host_key(type, encode_base64(blob)).value();
}

class KnownHosts : public ::testing::Test {
 protected:
  KnownHosts() {
    target_.host = target_.alias = "node.example";
    target_.port = 2222;
    target_.known_hosts = os::temporary_directory() / ("gridctl-pins-" + os::random_id(12)) / "known_hosts";
  }
  ~KnownHosts() override { (void)os::remove_tree(target_.known_hosts.parent_path()); }
  Target target_;
};

TEST_F(KnownHosts, KeepsPinsInOpenSshFormat) {
  const std::vector<HostKey> keys = {key("ecdsa-sha2-nistp256", "b"), key("ssh-ed25519", "a")};
  ASSERT_TRUE(pin(target_, keys).has_value());
  EXPECT_THAT(*pinned(target_), ::testing::ElementsAre(keys[1], keys[0]));
  EXPECT_THAT(*os::read_file(target_.known_hosts), ::testing::HasSubstr("[node.example]:2222 ssh-ed25519 AAAAC3"));
}

TEST_F(KnownHosts, ReplacesOnlyTheHostItIsAbout) {
  Target other = target_;
  other.port = 22;
  const HostKey mine = key("ssh-ed25519", "a"), theirs = key("ssh-ed25519", "b"), fresh = key("ssh-ed25519", "c");
  ASSERT_TRUE(pin(target_, {&mine, 1}).has_value());
  ASSERT_TRUE(pin(other, {&theirs, 1}).has_value());
  ASSERT_TRUE(pin(target_, {&fresh, 1}).has_value());
  EXPECT_THAT(*pinned(target_), ::testing::ElementsAre(fresh));
  EXPECT_THAT(*pinned(other), ::testing::ElementsAre(theirs));
  ASSERT_TRUE(pin(target_, {}).has_value());
  EXPECT_TRUE(pinned(target_)->empty());
}

TEST_F(KnownHosts, IgnoresMarkersCommentsAndBrokenLines) {
  const std::string good = key("ssh-ed25519", "a").blob;
  const std::string text = "# node ssh-ed25519 " + good + "\n@revoked node ssh-ed25519 " + good + "\nnode ssh-rsa " +
                           good + "\nnode ssh-ed25519 not-base64\nnode\n\na,node ssh-ed25519 " + good + " comment\n";
  EXPECT_THAT(parse_known_hosts(text, "node"), ::testing::ElementsAre(key("ssh-ed25519", "a")));
  EXPECT_TRUE(parse_known_hosts(text, "nod").empty());
}

TEST_F(KnownHosts, KeepsOneAddressBehindTwoJumpHostsApart) {
  Target behind = target_;
  behind.jump = "admin@gate-a";
  Target elsewhere = target_;
  elsewhere.jump = "admin@gate-b";
  EXPECT_NE(behind.pin_name(), elsewhere.pin_name());
  EXPECT_NE(behind.pin_name(), target_.pin_name());
}

TEST_F(KnownHosts, ShowsBothFingerprintsOfAChange) {
  const HostKey old = key("ssh-ed25519", "a"), shown = key("ssh-ed25519", "b");
  const Error error = mismatch_error(target_, {&old, 1}, shown.type + " " + shown.fingerprint);
  EXPECT_EQ(error.code, Code::host_key_mismatch);
  EXPECT_THAT(error.message,
              ::testing::AllOf(::testing::HasSubstr(old.fingerprint), ::testing::HasSubstr(shown.fingerprint)));
}

TEST_F(KnownHosts, KeepsForeignLinesAndComments) {
  ASSERT_TRUE(os::make_directories(target_.known_hosts.parent_path()).has_value());
  const HostKey own = key("ssh-ed25519", "a"), fresh = key("ssh-ed25519", "b");
  ASSERT_TRUE(os::write_file_atomically(target_.known_hosts, "# mine\n\nother ssh-ed25519 AAAA\n" + target_.pin_name() +
                                                                 " " + own.type + " " + own.blob + "\n")
                  .has_value());
  ASSERT_TRUE(pin(target_, {&fresh, 1}).has_value());
  EXPECT_EQ(*os::read_file(target_.known_hosts),
            "# mine\n\nother ssh-ed25519 AAAA\n" + target_.pin_name() + " ssh-ed25519 " + fresh.blob + "\n");
}

TEST_F(KnownHosts, NeedsAFileToPinInAndNoneToRead) {
  Target nowhere = target_;
  nowhere.known_hosts.clear();
  EXPECT_EQ(pin(nowhere, {}).error().code, Code::internal);
  EXPECT_TRUE(pinned(nowhere)->empty());
  EXPECT_TRUE(pinned(target_)->empty()) << "the file does not exist yet";
}

TEST_F(KnownHosts, PutsTheBestKeyFirstAndEachOnce) {
  const HostKey rsa = key("ssh-rsa", "r"), ecdsa = key("ecdsa-sha2-nistp256", "e"), best = key("ssh-ed25519", "a");
  std::string text;
  for (const HostKey& one : {rsa, ecdsa, best, rsa, best}) text += "node  " + one.type + "\t " + one.blob + "\n";
  EXPECT_THAT(parse_known_hosts(text, "node"), ::testing::ElementsAre(best, ecdsa, rsa));
}

TEST_F(KnownHosts, DescribesKeysAndSaysHowToTrustAHost) {
  const HostKey one = key("ssh-ed25519", "a"), two = key("ssh-rsa", "b");
  EXPECT_EQ(describe({}), "none");
  EXPECT_EQ(describe(std::vector{one, two}), "ssh-ed25519 " + one.fingerprint + ", ssh-rsa " + two.fingerprint);
  const Error unknown = mismatch_error(target_, {}, "ssh-ed25519 SHA256:x");
  EXPECT_THAT(unknown.message, ::testing::HasSubstr("no key is pinned"));
  EXPECT_THAT(unknown.hint, ::testing::HasSubstr("provider register NAME node.example:2222 --host-key"));
  const Error changed = mismatch_error(target_, {&one, 1}, "x");
  EXPECT_THAT(changed.message, ::testing::HasSubstr("has changed"));
  EXPECT_THAT(changed.hint, ::testing::HasSubstr("provider register NAME node.example:2222 --host-key"));
}

}  // namespace
}  // namespace gridctl::ssh::known_hosts_test
