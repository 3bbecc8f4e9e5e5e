// SPDX-License-Identifier: Apache-2.0
#include "ssh/encoding.hpp"

#include <gtest/gtest.h>

#include "ssh/kex_offer.hpp"

namespace gridctl::ssh {
namespace {

TEST(Base64, TakesBackWhatItGave) {
  for (const char* text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"})
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  EXPECT_EQ(encode_base64("foobar!"), "Zm9vYmFyIQ==");
  EXPECT_EQ(encode_base64("foobar!", false), "Zm9vYmFyIQ");
}

TEST(Base64, RefusesForeignCharactersAndCutText) {
  EXPECT_FALSE(decode_base64("Zm9v*mFy"));
  EXPECT_FALSE(decode_base64("Zm9vY"));
  EXPECT_FALSE(decode_base64("Zg==Zg=="));
}

TEST(Fingerprint, IsWhatOpenSshSays) {
  // SHA-256 of the empty text and of "abc" (FIPS 180-2).
  EXPECT_EQ(fingerprint_of(""), "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU");
  EXPECT_EQ(fingerprint_of("abc"), "SHA256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0");
  EXPECT_EQ(fingerprint_of(std::string(200, 'x')).size(), 50u);
}

TEST(FieldReader, NeverReadsPastTheEnd) {
  std::string bytes;
  append_text(bytes, "ssh-ed25519");
  append_number(bytes, 7);
  FieldReader whole{bytes};
  EXPECT_EQ(whole.text(), "ssh-ed25519");
  EXPECT_EQ(whole.number(), 7u);
  EXPECT_FALSE(whole.byte());
  FieldReader lying{std::string_view{"\xff\xff\xff\xff", 4}};
  EXPECT_FALSE(lying.text());
}

std::string server_hello(const std::string& before, const std::vector<std::string>& lists) {
  std::string packet{"\x14"};
  packet += std::string(16, 'c');
  for (const std::string& list : lists) append_text(packet, list);
  std::string bytes = before + "SSH-2.0-OpenSSH_9.2\r\n";
  append_number(bytes, static_cast<std::uint32_t>(packet.size() + 1));
  bytes.push_back('\4');
  return bytes + packet;
}

TEST(KexOffer, SaysWhyNothingFits) {
  const std::vector<std::string> ours = {"ssh-ed25519"};
  const auto rsa = parse_kex_offer(server_hello("", {"curve25519-sha256", "rsa-sha2-512,rsa-sha2-256", "aes128-ctr",
                                                     "aes128-ctr", "hmac-sha2-256", "hmac-sha2-256"}));
  ASSERT_TRUE(rsa);
  EXPECT_EQ(rsa->difference(ours), "it offers host keys rsa-sha2-512,rsa-sha2-256 only");
  const auto aead =
      parse_kex_offer(server_hello("hello\r\n", {"curve25519-sha256", "ssh-ed25519", "aes256-gcm@openssh.com",
                                                 "aes256-gcm@openssh.com", "hmac-sha2-256", "hmac-sha2-256"}));
  ASSERT_TRUE(aead);
  EXPECT_EQ(aead->difference(ours), "it offers ciphers aes256-gcm@openssh.com only");
}

TEST(KexOffer, IsNothingWhenBytesAreMissingOrOdd) {
  const std::string whole = server_hello("", {"a", "b", "c", "d", "e", "f"});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_kex_offer(std::string_view{whole}.substr(0, size)));
  EXPECT_EQ(banner_of("HTTP/1.1 400 Bad\r\n"), "");
  EXPECT_EQ(banner_of("noise\nSSH-2.0-x\r\n"), "SSH-2.0-x");
}

}  // namespace
}  // namespace gridctl::ssh
