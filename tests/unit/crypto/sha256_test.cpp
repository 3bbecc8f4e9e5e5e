// SPDX-License-Identifier: Apache-2.0
#include "crypto/sha256.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gridctl::crypto::sha256_test {
namespace {

std::string hex(std::string_view text) { return to_hex(sha256(as_bytes(text))); }

// FIPS 180-4 examples and NIST's long message.
TEST(Sha256, GivesTheValuesOfTheStandard) {
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, StreamingGivesTheSameHoweverTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 31);
  for (const std::size_t piece : {1u, 3u, 63u, 64u, 65u, 999u}) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece)
      hash.update(as_bytes(std::string_view(text).substr(at, piece)));
    EXPECT_EQ(hash.finish(), sha256(as_bytes(text))) << piece;
  }
}

TEST(Sha256, BeginsAnewAfterFinishAndCopiesGoOnAlone) {
  Sha256 hash;
  hash.update(as_bytes("ab"));
  Sha256 copy = hash;
  EXPECT_EQ(hash.update(as_bytes("c")).finish(), sha256(as_bytes("abc")));
  EXPECT_EQ(copy.update(as_bytes("d")).finish(), sha256(as_bytes("abd")));
  EXPECT_EQ(hash.finish(), sha256({}));
}

TEST(Sha256, TwoAtOnceGiveWhatEachGivesAlone) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * i % 251);
  const auto piece = [&](std::size_t from, std::size_t size) {
    return as_bytes(std::string_view(text).substr(from, size));
  };
  for (const std::size_t size : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 127u, 128u, 1000u, 4096u}) {
    for (const std::size_t other : {0u, 63u, 64u, 119u, 120u, 192u, 777u, 4096u}) {
      const ByteView one = piece(1, size), two = piece(300, other);
      EXPECT_EQ(sha256(one, two), std::pair(sha256(one), sha256(two))) << size << ' ' << other;
    }
  }
}

// RFC 4231, cases 1, 2, 3, 6 and 7.
TEST(HmacSha256, GivesTheValuesOfTheStandard) {
  const auto hmac = [](const std::string& key, std::string_view message) {
    return to_hex(hmac_sha256(as_bytes(key), as_bytes(message)));
  };
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
                 "to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(HmacSha256, HashesOnlyKeysThatAreLongerThanABlock) {
  const auto hmac = [](std::size_t size) {
    return to_hex(hmac_sha256(as_bytes(std::string(size, '\x0b')), as_bytes("Hi There")));
  };
  EXPECT_EQ(hmac(63), "60becd3ada41eee378b576c2e0b3cc5d7392ae1f2e70e58b44aa88ab4a562149");
  EXPECT_EQ(hmac(64), "21cd586aeca0579d99a1c938127c92525a371f807bc5ba6eb78bc825bd4f2be3");
  EXPECT_EQ(hmac(65), "727b82fba264393c5d67fd6d6ad783e9019a1fa6a857fccb70f5852f04be5d5d");
}

TEST(EqualConstantTime, ComparesContentAndLength) {
  EXPECT_TRUE(equal_constant_time(as_bytes("same"), as_bytes("same")));
  EXPECT_FALSE(equal_constant_time(as_bytes("same"), as_bytes("sane")));
  EXPECT_FALSE(equal_constant_time(as_bytes("same"), as_bytes("same ")));
  EXPECT_TRUE(equal_constant_time({}, {}));
}

}  // namespace
}  // namespace gridctl::crypto::sha256_test
