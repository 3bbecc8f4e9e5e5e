// SPDX-License-Identifier: Apache-2.0
#include "ssh/key_file.hpp"

#include <gtest/gtest.h>

#include "os/process.hpp"
#include "os/random.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::ssh::key_file_test {
namespace {

class KeyFile : public ::testing::Test {
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

TEST_F(KeyFile, TellsOtherOldFormats) {
  const auto of = [&](const std::string& kind) {
    return inspect_key(write("-----BEGIN " + kind + "PRIVATE KEY-----\nAAAA\n-----END " + kind + "PRIVATE KEY-----\n"))
        .value();
  };
  EXPECT_EQ(of("EC ").type, "ecdsa-sha2-nistp256");
  EXPECT_EQ(of("DSA ").type, "ssh-dss");
  EXPECT_EQ(of("").type, "");
  EXPECT_FALSE(of("").encrypted);
  EXPECT_TRUE(of("ENCRYPTED ").encrypted);
  EXPECT_EQ(of("").public_blob, "");
}

TEST_F(KeyFile, ReadsThePublicHalfThatLiesBeside) {
  const os::Path made = generate({"-t", "ed25519", "-N", ""});
  const std::string beside = os::read_file(made.native() + ".pub").value();
  const std::string blob = inspect_key(made)->public_blob;
  const os::Path pkcs8 = write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  EXPECT_EQ(inspect_key(pkcs8)->type, "ssh-ed25519");
  EXPECT_EQ(inspect_key(pkcs8)->public_blob, blob);
  for (const std::string& odd :
       {std::string("ssh-ed25519"), std::string("ssh-ed25519 *"), "ssh-rsa" + beside.substr(11)}) {
    ASSERT_TRUE(os::write_file_atomically(made.native() + ".pub", odd).has_value());
    EXPECT_EQ(inspect_key(pkcs8)->type, "") << odd;
    EXPECT_EQ(inspect_key(pkcs8)->public_blob, "") << odd;
  }
}

TEST_F(KeyFile, SeesACertificateBeside) {
  const os::Path made = generate({"-t", "ed25519", "-N", ""});
  EXPECT_FALSE(inspect_key(made)->has_certificate);
  ASSERT_TRUE(os::write_file_atomically(made.native() + "-cert.pub", "").has_value());
  EXPECT_TRUE(inspect_key(made)->has_certificate);
}

TEST_F(KeyFile, RefusesEveryCutOfAKey) {
  std::string whole("openssh-key-v1\0", 15);
  std::string blob;
  append_text(blob, "ssh-ed25519");
  for (const char* part : {"none", "none", ""}) append_text(whole, part);
  append_number(whole, 1);
  append_text(whole, blob);
  const auto facts = [&](const std::string& bytes) {
    return inspect_key(write("text\n-----BEGIN OPENSSH PRIVATE KEY-----\n" + encode_base64(bytes) +
                             "\n-----END OPENSSH PRIVATE KEY-----\nmore\n"));
  };
  ASSERT_TRUE(facts(whole).has_value());
  EXPECT_EQ(facts(whole)->type, "ssh-ed25519");
  EXPECT_FALSE(facts(whole)->encrypted);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(facts(whole.substr(0, size)).has_value()) << size;
  std::string other = whole;
  other[0] = 'O';
  EXPECT_FALSE(facts(other).has_value());
  std::string typeless = whole.substr(0, whole.size() - blob.size() - 4);
  append_text(typeless, "xy");
  EXPECT_FALSE(facts(typeless).has_value());
}

TEST(KeyTypes, ThatLibssh2SignsWith) {
  for (const char* type : {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"})
    EXPECT_TRUE(libssh2_signs_with(type)) << type;
  for (const char* type : {"ssh-rsa", "ssh-dss", "sk-ssh-ed25519@openssh.com", ""})
    EXPECT_FALSE(libssh2_signs_with(type)) << type;
}

}  // namespace
}  // namespace gridctl::ssh::key_file_test
