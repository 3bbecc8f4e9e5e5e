// SPDX-License-Identifier: Apache-2.0
#include "lend/token.hpp"

#include <algorithm>
#include <cctype>

#include "base/numbers.hpp"
#include "crypto/sha256.hpp"
#include "lend/keys.hpp"
#include "ssh/encoding.hpp"
#include "ssh/known_hosts.hpp"

namespace gridctl::lend {

namespace {

constexpr std::string_view k_mark = "gridctl-lend-1.";
constexpr std::string_view k_any_mark = "gridctl-lend-";
constexpr std::size_t k_token_max = 8192;  // characters
constexpr std::size_t k_tag = 16;          // bytes of the tag that are kept
constexpr std::size_t k_id_max = 64;     // characters of an id

// Mail programs and terminals take '+' and '/' for the end of a word.
std::string to_web(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::string from_web(std::string text) {
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return text;
}

Error damaged() {
  return make_error(Code::usage, "the token is damaged: a part of it is missing or was changed on the way",
                    "copy the whole line again, from 'gridctl-lend-' to its end");
}

Result<Digest> secret_of(std::string_view bytes) {
  Digest secret;
  if (bytes.size() != secret.bytes.size()) return damaged();
  std::ranges::copy(as_bytes(bytes), secret.bytes.begin());
  return secret;
}

// Both name files: the tag of a token is made with the token's own secret, and proves nothing of who made it.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= k_id_max &&
         std::ranges::all_of(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'a' && c <= 'z'); });
}

// nullopt: a field is missing, or is none.
std::optional<Token> read_fields(std::string_view body) {
  ssh::FieldReader reader(body);
  Token token;
  std::string blob, expires;
  for (std::string* field : {&token.name, &token.who, &token.id, &token.controller.value, &token.relay, &blob}) {
    const auto text = reader.text();
    if (!text) return std::nullopt;
    *field = *text;
  }
  if (!is_name(token.id) || !is_name(token.controller.value)) return std::nullopt;
  const auto secret = reader.text(), until = reader.text();
  if (!secret || !until || !parse_into(*until, token.expires.ms)) return std::nullopt;
  const auto read = secret_of(*secret);
  const auto key = ssh::make_host_key("ssh-ed25519", ssh::encode_base64(blob));
  if (!read || !key) return std::nullopt;
  token.secret = *read;
  token.relay_key = *key;
  return token;
}

}  // namespace

std::string encode(const Token& token) {
  std::string body;
  const std::string blob = ssh::decode_base64(token.relay_key.blob).value_or("");
  for (const std::string& field : {token.name, token.who, token.id, token.controller.value, token.relay, blob,
                                   std::string(as_text(token.secret.bytes)), std::to_string(token.expires.ms)})
    ssh::append_text(body, field);
  const Digest tag = token_tag(token.secret, as_bytes(body));
  body += as_text(tag.bytes).substr(0, k_tag);
  return std::string(k_mark) + to_web(ssh::encode_base64(body, false));
}

Result<Token> parse_token(std::string_view text) {
  std::string compact;
  for (const char c : text.substr(0, k_token_max + 1))
    if (std::isspace(static_cast<unsigned char>(c)) == 0) compact += c;
  if (!compact.starts_with(k_any_mark))
    return make_error(Code::usage, "this is no token of gridctl: it must begin with 'gridctl-lend-'",
                      "ask whoever invites you to type: gridctl provider invite");
  if (!compact.starts_with(k_mark))
    return compact.find('.') == std::string::npos
               ? damaged()
               : make_error(Code::usage, "the token is of another version of gridctl", "gridctl version");
  if (compact.size() > k_token_max) return damaged();
  const auto bytes = ssh::decode_base64(from_web(compact.substr(k_mark.size())));
  if (!bytes || bytes->size() <= k_tag) return damaged();
  const std::string body = bytes->substr(0, bytes->size() - k_tag);
  std::optional<Token> token = read_fields(body);
  if (!token) return damaged();
  const Digest tag = token_tag(token->secret, as_bytes(body));
  if (!crypto::equal_constant_time(ByteView{tag.bytes}.first(k_tag), as_bytes(*bytes).last(k_tag))) return damaged();
  return *std::move(token);
}

}  // namespace gridctl::lend
