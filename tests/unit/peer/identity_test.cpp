// SPDX-License-Identifier: Apache-2.0
#include "peer/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <thread>
#include <vector>

#include "crypto/ed25519.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::peer::identity_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

class IdentityFile : public ::testing::Test {
 protected:
  TempDir dir;
  const os::Path file = dir.path() / "identity";
};

TEST_F(IdentityFile, IsMadeOnceAndIsItsOwnersAlone) {
  const auto made = Identity::open(file);
  ASSERT_THAT(made, IsOk());
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(Identity::open(file)->public_key(), made->public_key());
  EXPECT_NE(Identity::open(dir.path() / "another")->public_key(), made->public_key());
}

TEST_F(IdentityFile, IsOneForAllWhoComeFirst) {
  std::array<Digest, 8> keys;
  {
    std::vector<std::jthread> threads;
    for (Digest& key : keys) threads.emplace_back([&key, this] { key = Identity::open(file)->public_key(); });
  }
  for (const Digest& key : keys) EXPECT_EQ(key, keys.front());
}

TEST_F(IdentityFile, ThatHoldsNoKeyIsNotReplaced) {
  ASSERT_TRUE(os::write_file_atomically(file, "half a key"));
  EXPECT_THAT(Identity::open(file), FailsWith(Code::state_unreadable));
  EXPECT_EQ(*os::read_file(file), "half a key");
}

// RFC 8032, 7.1, test 3: both libraries are told to make the same of one seed.
TEST_F(IdentityFile, SignsAsOpensslVerifies) {
  const std::string seed = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
  ASSERT_TRUE(os::write_file_atomically(file, seed + "\n"));
  const auto identity = Identity::open(file);
  ASSERT_THAT(identity, IsOk());
  EXPECT_EQ(to_hex(identity->public_key()), "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
  EXPECT_EQ(identity->public_key(), crypto::ed25519_public(*parse_digest(seed)));
  const auto signature = identity->sign(as_bytes("\xaf\x82"));
  EXPECT_EQ(signature, crypto::ed25519_sign(*parse_digest(seed), as_bytes("\xaf\x82")));
  EXPECT_TRUE(crypto::ed25519_verifies(identity->public_key(), as_bytes("\xaf\x82"), signature));
  EXPECT_FALSE(crypto::ed25519_verifies(identity->public_key(), as_bytes("\xaf\x83"), signature));
}

}  // namespace
}  // namespace gridctl::peer::identity_test
