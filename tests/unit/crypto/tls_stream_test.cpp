// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_stream.hpp"

#include <gtest/gtest.h>

#include <array>

#include "crypto/ed25519.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::crypto::tls_stream_test {
namespace {

const Digest k_key = sha256(as_bytes("a key"));

// Passes on what each has for the other, until neither has anything more to say.
void exchange(TlsStream& one, TlsStream& other) {
  for (bool moved = true; moved;) {
    const std::string there = one.take_out(), back = other.take_out();
    moved = !there.empty() || !back.empty();
    other.take_in(as_bytes(there));
    one.take_in(as_bytes(back));
    (void)one.handshake();
    (void)other.handshake();
  }
}

std::string read_all(TlsStream& stream) {
  std::string text;
  std::array<std::byte, 1000> piece{};
  for (;;) {
    const auto got = stream.read(piece);
    if (!got || !*got || **got == 0) return text;
    text += as_text(ByteView{piece}.first(**got));
  }
}

TEST(TlsStream, CarriesBytesBothWaysBetweenThoseWhoShareAKey) {
  TlsStream client(TlsSide::client, k_key, "id"), server(TlsSide::server, k_key, "id");
  EXPECT_FALSE(*client.handshake());
  exchange(client, server);
  ASSERT_TRUE(*client.handshake());
  ASSERT_TRUE(*server.handshake());
  const std::string long_text(300'000, 'x');
  ASSERT_TRUE(client.write(as_bytes(long_text)));
  ASSERT_TRUE(server.write(as_bytes(std::string("back"))));
  const std::string sealed = client.take_out();
  EXPECT_EQ(sealed.find("xxxxxxxx"), std::string::npos);
  server.take_in(as_bytes(sealed));
  client.take_in(as_bytes(server.take_out()));
  EXPECT_EQ(read_all(server), long_text);
  EXPECT_EQ(read_all(client), "back");
  client.end_output();
  server.take_in(as_bytes(client.take_out()));
  std::array<std::byte, 10> piece{};
  EXPECT_EQ(server.read(piece).value(), std::optional<std::size_t>{0});
}

TEST(TlsStream, AServerWithTwoKeysSaysWhichOneWasUsed) {
  const Digest other = sha256(as_bytes("another key"));
  for (const bool second : {false, true}) {
    TlsStream client(TlsSide::client, second ? other : k_key, second ? "new" : "id"), server(TlsSide::server, k_key, "id");
    server.also_accept(other, "new");
    EXPECT_FALSE(*client.handshake());
    exchange(client, server);
    ASSERT_TRUE(*client.handshake());
    ASSERT_TRUE(*server.handshake());
    EXPECT_EQ(server.identity(), second ? "new" : "id");
  }
  TlsStream crossed(TlsSide::client, k_key, "new"), server(TlsSide::server, k_key, "id");
  server.also_accept(other, "new");
  EXPECT_FALSE(*crossed.handshake());
  exchange(crossed, server);
  EXPECT_FALSE(server.handshake());
}

TEST(TlsStream, AnotherKeyOrIdentityIsRefusedByBoth) {
  struct Case {
    Digest key;
    std::string identity;
  };
  for (const Case& one : {Case{sha256(as_bytes("another")), "id"}, Case{k_key, "another"}}) {
    TlsStream client(TlsSide::client, one.key, one.identity), server(TlsSide::server, k_key, "id");
    (void)client.handshake();
    exchange(client, server);
    const auto there = client.handshake(), here = server.handshake();
    EXPECT_FALSE(there && *there) << one.identity;
    EXPECT_FALSE(here && *here) << one.identity;
  }
}

TEST(TlsStream, NoiseIsNoHandshakeAndAChangedByteIsNoticed) {
  TlsStream noisy(TlsSide::server, k_key, "id");
  noisy.take_in(as_bytes(std::string(500, 'n')));
  EXPECT_EQ(noisy.handshake().error().code, Code::auth_refused);

  TlsStream client(TlsSide::client, k_key, "id"), server(TlsSide::server, k_key, "id");
  (void)client.handshake();
  exchange(client, server);
  ASSERT_TRUE(client.write(as_bytes(std::string("pay 10"))));
  std::string sealed = client.take_out();
  sealed[sealed.size() - 3] ^= 1;
  server.take_in(as_bytes(sealed));
  std::array<std::byte, 10> piece{};
  EXPECT_EQ(server.read(piece).error().code, Code::protocol_violation);
}

// RFC 8032, section 7.1, test 1.
TEST(Ed25519, GivesThePublicKeyOfTheStandard) {
  const auto seed = parse_digest("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  EXPECT_EQ(to_hex(ed25519_public(*seed)), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

// RFC 8032, section 7.1, test 2.
TEST(Ed25519, SignsAsTheStandardDoes) {
  const auto seed = parse_digest("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  const Signature signature = ed25519_sign(*seed, as_bytes("r"));
  EXPECT_EQ(to_hex(signature), "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(ed25519_verifies(ed25519_public(*seed), as_bytes("r"), signature));
  EXPECT_FALSE(ed25519_verifies(ed25519_public(*seed), as_bytes("s"), signature));
}

}  // namespace
}  // namespace gridctl::crypto::tls_stream_test
