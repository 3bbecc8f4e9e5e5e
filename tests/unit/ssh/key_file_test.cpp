// SPDX-License-Identifier: Apache-2.0
#include "ssh/key_file.hpp"

#include <gtest/gtest.h>

#include "os/process.hpp"
#include "os/random.hpp"

namespace gridctl::ssh {
namespace {

class KeyFile : public testing::Test {
 protected:
  KeyFile() : dir_(os::temporary_directory() / ("gridctl-key-" + os::random_id(12))) {
    EXPECT_TRUE(os::make_directories(dir_).has_value());
  }
  ~KeyFile() override { (void)os::remove_tree(dir_); }
  os::Path generate(std::vector<std::string> options) {
    const os::Path path = dir_ / "key";
    options.insert(options.begin(), {"ssh-keygen", "-q", "-a", "1", "-f", path.native()});
    const auto made = os::run(options);
    EXPECT_TRUE(made.has_value() && made->status.success());
    return path;
  }
  os::Path write(const std::string& text) {
    EXPECT_TRUE(os::write_file_atomically(dir_ / "key", text).has_value());
    return dir_ / "key";
  }
  os::Path dir_;
};

TEST_F(KeyFile, TellsTheTypeOfAnOpenSshKey) {
  const auto facts = inspect_key(generate({"-t", "ed25519", "-N", ""}));
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->type, "ssh-ed25519");
  EXPECT_FALSE(facts->encrypted);
  EXPECT_EQ(facts->public_blob.size(), 51u);
}

TEST_F(KeyFile, TellsThatAKeyIsEncryptedWithoutItsPassphrase) {
  const auto facts = inspect_key(generate({"-t", "ecdsa", "-N", "secret"}));
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->type, "ecdsa-sha2-nistp256");
  EXPECT_TRUE(facts->encrypted);
  EXPECT_FALSE(facts->public_blob.empty());
}

TEST_F(KeyFile, TellsOldRsaKeys) {
  const auto facts = inspect_key(write(
      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE "
      "KEY-----\n"));
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->type, "ssh-rsa");
  EXPECT_TRUE(facts->encrypted);
  EXPECT_FALSE(libssh2_signs_with(facts->type));
}

TEST_F(KeyFile, RefusesWhatIsNoKey) {
  EXPECT_EQ(inspect_key(write("ssh-ed25519 AAAA me\n")).error().code, Code::unsupported);
  EXPECT_EQ(
      inspect_key(write("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")).error().code,
      Code::unsupported);
  EXPECT_EQ(inspect_key(dir_ / "none").error().code, Code::not_found);
}

}  // namespace
}  // namespace gridctl::ssh
