// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "crypto/sha256.hpp"
#include "support/results.hpp"

namespace gridctl::crypto::sealing_test {
namespace {

using gridctl::testing::FailsWith;

Bytes unhex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}
Bytes seal(ByteView key, ByteView nonce, ByteView extra, ByteView plain) {
  Bytes out(plain.size() + k_gcm_tag);
  gcm_seal(key, nonce, extra, plain, out);
  return out;
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 13, 14 and 16.
TEST(Gcm, GivesTheValuesOfItsAuthors) {
  const Bytes zero_key(32), zero_nonce(12);
  EXPECT_EQ(to_hex(seal(zero_key, zero_nonce, {}, {})), "530f8afbc74536b9a963b4f1c4cb738b");
  EXPECT_EQ(to_hex(seal(zero_key, zero_nonce, {}, Bytes(16))),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
  const Bytes key = unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  EXPECT_EQ(
      to_hex(seal(key, unhex("cafebabefacedbaddecaf888"), unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
                  unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b5"
                        "25b16aedf5aa0de657ba637b39"))),
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
      "bcc9f66276fc6ece0f4e1768cddf8853bb2d551b");
}

TEST(Gcm, OpensWhatWasSealedAndNothingElse) {
  Bytes key(32, std::byte{7}), nonce(12, std::byte{9}), extra(5, std::byte{1}), plain(100, std::byte{3});
  Bytes sealed = seal(key, nonce, extra, plain), back(plain.size());
  ASSERT_TRUE(gcm_open(key, nonce, extra, sealed, back));
  EXPECT_EQ(back, plain);
  for (Bytes* part : {&key, &nonce, &extra, &sealed}) {
    for (std::byte& byte : *part) {
      byte ^= std::byte{4};
      EXPECT_FALSE(gcm_open(key, nonce, extra, sealed, back));
      EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](std::byte b) { return b == std::byte{0}; }));
      byte ^= std::byte{4};
    }
  }
}

TEST(Gcm, IsTheSameWithoutEvp) {
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 4095u, 100'000u}) {
    const Bytes key(32, std::byte{5}), nonce(12, static_cast<std::byte>(size)), extra(size % 61, std::byte{1});
    Bytes plain(size);
    for (std::size_t i = 0; i < size; ++i) plain[i] = static_cast<std::byte>(i * 7 + i / 251);
    Bytes small(size + k_gcm_tag);
    gcm_seal_small(key, nonce, extra, plain, small);
    EXPECT_EQ(small, seal(key, nonce, extra, plain)) << size;
  }
}

// RFC 5869, case 1, the first 32 of its 42 bytes.
TEST(Hkdf, GivesTheValuesOfTheStandard) {
  const Digest extracted = hkdf_extract(unhex("000102030405060708090a0b0c"), Bytes(22, std::byte{0x0b}));
  EXPECT_EQ(to_hex(extracted), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  EXPECT_EQ(to_hex(hkdf_expand(HmacKey(extracted.bytes), unhex("f0f1f2f3f4f5f6f7f8f9"))),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

// RFC 7914, section 12, the first 32 of its 64 bytes.
TEST(Scrypt, GivesTheValueOfTheStandardAndRefusesEndlessWork) {
  EXPECT_EQ(to_hex(*scrypt("password", as_bytes("NaCl"), {10, 8, 16})),
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162");
  EXPECT_THAT(scrypt("password", as_bytes("NaCl"), {k_scrypt_log2_n_max + 1, 8, 1}), FailsWith(Code::unsupported));
  EXPECT_THAT(scrypt("password", as_bytes("NaCl"), {10, 1'000'000, 1}), FailsWith(Code::unsupported));
}

TEST(Scrypt, TakesEachCostUpToItsLimitAndNoOther) {
  const auto of = [](unsigned log2_n, unsigned r, unsigned p) {
    const auto key = scrypt("password", as_bytes("NaCl"), {log2_n, r, p});
    return key ? to_hex(*key) : std::string(code_name(key.error().code));
  };
  EXPECT_EQ(of(1, 1, 1), "a2f63b8c062d326091944189baeb665b072c901775e8e81b1376ebc572a17849");
  EXPECT_EQ(of(1, 8, 1), "e5ed8edc019edfef2d3ced0896faf9eec6921dcc68125ce81c10d53474ce1be5");
  EXPECT_EQ(of(1, 1, 16), "0b0c7f51ace19f55236b1d614b581aa994bc29ac780610175a1d5a8f745d5a7d");
  const std::string refused(code_name(Code::unsupported));
  EXPECT_EQ(of(0, 1, 1), refused);
  EXPECT_EQ(of(1, 0, 1), refused);
  EXPECT_EQ(of(1, 9, 1), refused);
  EXPECT_EQ(of(1, 1, 0), refused);
  EXPECT_EQ(of(1, 1, 17), refused);
}

}  // namespace
}  // namespace gridctl::crypto::sealing_test
