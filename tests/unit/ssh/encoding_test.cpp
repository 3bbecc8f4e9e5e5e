// SPDX-License-Identifier: Apache-2.0
#include "ssh/encoding.hpp"

#include <gtest/gtest.h>

#include "ssh/kex_offer.hpp"

namespace gridctl::ssh::encoding_test {
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

TEST(Base64, IgnoresWhiteSpaceAndTakesEveryByte) {
  EXPECT_EQ(decode_base64(" Zm9v\nYmFy\r\n\tIQ=="), "foobar!");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_FALSE(decode_base64("Zg="));
  EXPECT_FALSE(decode_base64("Zg==Z"));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(encode_base64(all).substr(0, 20), "AAECAwQFBgcICQoLDA0O");
  EXPECT_EQ(decode_base64(encode_base64(all)), all);
  EXPECT_EQ(encode_base64("\xff\xef\xbe"), "/+++");
}

// Where the length no longer fits behind the text in its block of 64 bytes.
TEST(Fingerprint, HoldsAtTheEdgesOfABlock) {
  for (const auto& [size, wanted] : {std::pair{55, "1eKFaDzU78AtAhpcYgFGlJWJAQBdb3HongmJ+sd+QHI"},
                                     {56, "BMJiYTcO51QVSdFt7jIMcj4/0UZx5moJmv4KN3wWiI4"},
                                     {63, "dSILRyGCeOZW8gE7uPDEVaJerwHobGSSTp1I2Jd21vI"},
                                     {64, "fOEAlx9k5wAej+WlGXPs3+HO1Cvv5+6NX9YhlQa1OTw"},
                                     {119, "AAtI1O3w+nvuPGI27NJ4W6pdtO64u1Q0GwKeDZ+l+ww"},
                                     {120, "E/BaC1lHh/Xs0xXtyWFBvTJDID0bfU8INvNzCLJ2upg"}})
    EXPECT_EQ(fingerprint_of(std::string(static_cast<std::size_t>(size), 'x')), std::string("SHA256:") + wanted)
        << size;
}

TEST(FieldReader, ReadsBytesAndTakesWhatIsThere) {
  FieldReader fields{
      "\xff"
      "ab"};
  EXPECT_EQ(fields.left(), 3u);
  EXPECT_EQ(fields.byte(), 255);
  EXPECT_FALSE(fields.take(3));
  EXPECT_EQ(fields.left(), 2u) << "what cannot be read is left";
  EXPECT_EQ(fields.take(2), "ab");
  EXPECT_EQ(fields.take(0), "");
  EXPECT_FALSE(fields.number());
  EXPECT_EQ(FieldReader{std::string_view("\1\2\3\xff", 4)}.number(), 0x010203ffu);
  std::string number;
  append_number(number, 0x80000001);
  EXPECT_EQ(number, std::string("\x80\0\0\1", 4));
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
  EXPECT_EQ(rsa->difference(ours), "it offers only host keys rsa-sha2-512,rsa-sha2-256");
  const auto aead =
      parse_kex_offer(server_hello("hello\r\n", {"curve25519-sha256", "ssh-ed25519", "aes256-gcm@openssh.com",
                                                 "aes256-gcm@openssh.com", "hmac-sha2-256", "hmac-sha2-256"}));
  ASSERT_TRUE(aead);
  EXPECT_EQ(aead->difference(ours), "it offers only ciphers aes256-gcm@openssh.com");
}

TEST(KexOffer, IsNothingWhenBytesAreMissingOrOdd) {
  const std::string whole = server_hello("", {"a", "b", "c", "d", "e", "f"});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_kex_offer(std::string_view{whole}.substr(0, size)));
  EXPECT_EQ(banner_of("HTTP/1.1 400 Bad\r\n"), "");
  EXPECT_EQ(banner_of("noise\nSSH-2.0-x\r\n"), "SSH-2.0-x");
}

TEST(KexOffer, NamesTheFirstThingThatDoesNotFit) {
  const std::vector<std::string> ours = {"ssh-ed25519"};
  const auto difference = [&](const KexOffer& offer) { return offer.difference(ours); };
  KexOffer offer{{"dh-group1"}, {"ssh-ed25519"}, {"aes128-ctr"}, {"hmac-sha2-256"}};
  EXPECT_EQ(difference(offer), "it offers key exchanges dh-group1");
  offer.macs = {"hmac-md5", "hmac-sha2-512"};
  EXPECT_EQ(difference(offer), "it offers key exchanges dh-group1");
  offer.macs = {"hmac-md5", "hmac-sha1"};
  EXPECT_EQ(difference(offer), "it offers only MACs hmac-md5,hmac-sha1");
  offer.ciphers = {"aes128-cbc"};
  EXPECT_EQ(difference(offer), "it offers only ciphers aes128-cbc");
  offer.host_keys = {"\x1bodd"};
  EXPECT_EQ(difference(offer).find('\x1b'), std::string::npos);
}

TEST(KexOffer, TakesAnRsaKeyForEverySignatureOfIt) {
  const KexOffer offer{{}, {"rsa-sha2-512", "ecdsa-sha2-nistp256"}, {}, {}};
  const auto offers = [&](const std::string& type) { return offer.offers_any(std::vector{type}); };
  EXPECT_TRUE(offers("ssh-rsa"));
  EXPECT_TRUE(offers("ecdsa-sha2-nistp256"));
  EXPECT_FALSE(offers("ssh-ed25519"));
  EXPECT_FALSE((KexOffer{{}, {"ssh-ed25519"}, {}, {}}.offers_any(std::vector<std::string>{"ssh-rsa"})));
  EXPECT_FALSE(offer.offers_any({}));
}

TEST(KexOffer, ReadsTheListsInTheirOrder) {
  const auto offer = parse_kex_offer(server_hello("noise\n", {"kex", "keys,more", "cs", "sc", "mac", "cam"}));
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->kex, std::vector<std::string>{"kex"});
  EXPECT_EQ(offer->host_keys, (std::vector<std::string>{"keys", "more"}));
  EXPECT_EQ(offer->ciphers, std::vector<std::string>{"cs"});
  EXPECT_EQ(offer->macs, std::vector<std::string>{"mac"});
  std::string other = server_hello("", {"a", "b", "c", "d", "e", "f"});
  other[other.find('\x14')] = '\x15';
  EXPECT_FALSE(parse_kex_offer(other)) << "another packet";
  EXPECT_EQ(banner_of("SSH-2.0-x"), "") << "the line has not ended";
  EXPECT_EQ(banner_of("xSSH-2.0-x\n"), "");
}

}  // namespace
}  // namespace gridctl::ssh::encoding_test
