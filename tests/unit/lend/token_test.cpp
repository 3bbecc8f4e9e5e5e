// SPDX-License-Identifier: Apache-2.0
#include "lend/token.hpp"

#include <gtest/gtest.h>

#include "crypto/sha256.hpp"
#include "lend/keys.hpp"
#include "ssh/encoding.hpp"
#include "ssh/known_hosts.hpp"
#include "wire/guest.hpp"

namespace gridctl::lend::token_test {
namespace {

Token sample() {
  Token token{"bob-4090", "alice@laptop", "abcdefghijkm", {"c0ffee"}, "me@203.0.113.7:2222", {}, {}, WallTime{1'800'000'000'000}};
  token.secret = crypto::sha256(as_bytes("secret"));
  std::string blob;
  ssh::append_text(blob, "ssh-ed25519");
  ssh::append_text(blob, std::string(32, 'k'));
  token.relay_key = *ssh::make_host_key("ssh-ed25519", ssh::encode_base64(blob));
  return token;
}

// Whoever makes a token chooses what is in it, and its tag is right.
TEST(Token, NamesNoFilesButItsOwn) {
  for (const char* name : {"../../precious", "/home/me", "..", "", "a/b", "A", "a.b", "-x"}) {
    Token token = sample();
    token.id = name;
    EXPECT_FALSE(parse_token(encode(token))) << name;
    token = sample();
    token.controller.value = name;
    EXPECT_FALSE(parse_token(encode(token))) << name;
  }
}

TEST(Token, ComesBackAsItWasAlsoThroughAMailThatBreaksLines) {
  const std::string text = encode(sample());
  EXPECT_LT(text.size(), 400u);
  EXPECT_EQ(text.find_first_of("+/= \n"), std::string::npos);
  for (const std::string& sent : {text, text.substr(0, 70) + "\r\n  " + text.substr(70) + "\n"}) {
    const auto read = parse_token(sent);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->name, "bob-4090");
    EXPECT_EQ(read->who, "alice@laptop");
    EXPECT_EQ(read->id, "abcdefghijkm");
    EXPECT_EQ(read->controller.value, "c0ffee");
    EXPECT_EQ(read->relay, "me@203.0.113.7:2222");
    EXPECT_EQ(read->relay_key, sample().relay_key);
    EXPECT_EQ(read->secret, sample().secret);
    EXPECT_EQ(read->expires, sample().expires);
  }
}

TEST(Token, DamageOfAnyKindIsNoticed) {
  const std::string text = encode(sample());
  for (std::size_t cut = 0; cut < text.size(); ++cut) EXPECT_FALSE(parse_token(text.substr(0, cut))) << cut;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = flipped[at] == 'A' ? 'B' : 'A';
    if (flipped == text) continue;
    const auto read = parse_token(flipped);
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, Code::usage) << at;
  }
  EXPECT_FALSE(parse_token(std::string(1u << 20, 'x')));
  EXPECT_FALSE(parse_token("gridctl-lend-1." + std::string(1u << 20, 'A')));
}

TEST(Keys, OfOneSecretAreDifferentForEachUse) {
  const Digest secret = crypto::sha256(as_bytes("secret"));
  const LoginKey key = login_key(secret);
  EXPECT_EQ(key.public_blob, login_key(secret).public_blob);
  EXPECT_NE(key.public_blob, login_key(crypto::sha256(as_bytes("another"))).public_blob);
  const ssh::SealedWith sealed = sealing(crypto::TlsSide::client, secret, "id");
  EXPECT_NE(sealed.key, secret);
  EXPECT_NE(sealed.key, token_tag(secret, as_bytes(std::string("id"))));
}

TEST(GuestTerms, HoursMayPassMidnight) {
  wire::GuestTerms terms;
  terms.controller = {"alice"};
  EXPECT_TRUE(terms.is_open_at(0));
  terms.from_minute = 23 * 60, terms.to_minute = 7 * 60;
  EXPECT_TRUE(terms.is_open_at(23 * 60));
  EXPECT_TRUE(terms.is_open_at(0));
  EXPECT_TRUE(terms.is_open_at(7 * 60 - 1));
  EXPECT_FALSE(terms.is_open_at(7 * 60));
  EXPECT_FALSE(terms.is_open_at(12 * 60));
  EXPECT_EQ(terms.minutes_left(23 * 60 + 30), 7 * 60 + 30);
  EXPECT_EQ(terms.minutes_left(6 * 60 + 59), 1);
  EXPECT_EQ(terms.minutes_left(7 * 60), std::nullopt);
  EXPECT_EQ(wire::GuestTerms{}.minutes_left(0), std::nullopt);
  terms.from_minute = 9 * 60, terms.to_minute = 17 * 60;
  EXPECT_FALSE(terms.is_open_at(8 * 60));
  EXPECT_TRUE(terms.is_open_at(9 * 60));
  EXPECT_EQ(terms.minutes_left(9 * 60), 8 * 60);
  const auto read = wire::parse_guest_terms(wire::encode(terms));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, terms);
}

TEST(GuestTerms, PauseEndsByItselfOrNever) {
  wire::GuestTerms terms;
  terms.controller = {"alice"};
  EXPECT_FALSE(terms.is_paused({5}));
  terms.paused_until_ms = 10;
  EXPECT_TRUE(terms.is_paused({9}));
  EXPECT_FALSE(terms.is_paused({10}));
  terms.paused_until_ms = wire::k_until_resumed;
  EXPECT_TRUE(terms.is_paused({INT64_MAX - 1}));
  EXPECT_EQ(wire::parse_guest_terms(wire::encode(terms)).value(), terms);
}

}  // namespace
}  // namespace gridctl::lend::token_test
