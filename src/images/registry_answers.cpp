// SPDX-License-Identifier: Apache-2.0
#include "images/registry_answers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/record.hpp"
#include "base/text.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::images {

namespace {

constexpr std::array<std::string_view, 2> k_index_types{"application/vnd.oci.image.index.v1+json",
                                                        "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::array<std::string_view, 2> k_manifest_types{"application/vnd.oci.image.manifest.v1+json",
                                                           "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::size_t k_token_max = 16u << 10;  // bytes; those of public registries have 1 to 5 KiB
constexpr std::size_t k_shown_max = 100;        // bytes of foreign text in a message
// A stranger wrote it, and it holds more than is read here.
constexpr ReadRules k_foreign_rules{true, true, 64 * 1024, 4096, 32};

struct Descriptor {
  std::string digest;
};
struct Manifest {
  int schema_version = 0;
  std::string media_type;
  std::optional<Descriptor> config;     // of a manifest
  std::vector<Descriptor> manifests{};  // of an index
};
struct Token {
  std::string token, access_token;
};

template <class R>
void fields(R& r, Of<R, Descriptor>& m) {
  r("digest", m.digest);
}
template <class R>
void fields(R& r, Of<R, Manifest>& m) {
  r("schemaVersion", m.schema_version)("mediaType", m.media_type).maybe("config", m.config)("manifests", m.manifests);
}
template <class R>
void fields(R& r, Of<R, Token>& m) {
  r("token", m.token)("access_token", m.access_token);
}

bool is_unreserved(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").find(c) != std::string_view::npos; }

std::string encoded(std::string_view text) {
  constexpr std::string_view k_digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(c)) out += c;
    else out += {'%', k_digits[byte >> 4], k_digits[byte & 15]};
  }
  return out;
}

void skip(std::string_view& text, std::string_view what) { text.remove_prefix(std::min(text.find_first_not_of(what), text.size())); }

// Takes `word` or `"quoted \" text"` off the front.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    value = text.substr(0, text.find_first_of(", \t"));
    text.remove_prefix(value.size());
    return value;
  }
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '"') {
    if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    value += text.front();
    text.remove_prefix(1);
  }
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

Error no_manifest(const std::string& why) {
  return make_error(Code::protocol_violation, "the answer is no manifest of an image: " + why);
}

}  // namespace

std::string accepted_types() {
  std::string all;
  for (const auto& types : {k_index_types, k_manifest_types})
    for (const std::string_view type : types) all += (all.empty() ? "" : ", ") + std::string(type);
  return all;
}

std::optional<Challenge> parse_challenge(std::string_view header) {
  constexpr std::string_view k_scheme = "bearer ";
  skip(header, " \t");
  if (lower(header.substr(0, k_scheme.size())) != k_scheme) return std::nullopt;
  header.remove_prefix(k_scheme.size());
  Challenge challenge;
  while (true) {
    skip(header, ", \t");
    const std::size_t equals = header.find('=');
    if (equals == std::string_view::npos) break;
    const std::string name = lower(trim(header.substr(0, equals)));
    header.remove_prefix(equals + 1);
    std::string value = take_value(header);
    if (name == "realm") challenge.realm = std::move(value);
    else if (name == "service") challenge.service = std::move(value);
  }
  return challenge.realm.empty() ? std::nullopt : std::optional(challenge);
}

std::string token_url(const Challenge& challenge, std::string_view repository) {
  std::string url = challenge.realm + (challenge.realm.find('?') == std::string::npos ? "?" : "&");
  if (!challenge.service.empty()) url += "service=" + encoded(challenge.service) + "&";
  return url + "scope=" + encoded("repository:" + std::string(repository) + ":pull");
}

Result<std::string> parse_token(std::string_view body) {
  TRY_ASSIGN(const Token read, read_record<Token>(body, "the answer of the token server", k_foreign_rules, Code::protocol_violation));
  std::string token = read.token.empty() ? read.access_token : read.token;
  const bool fits = !token.empty() && token.size() <= k_token_max && std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!fits) return make_error(Code::protocol_violation, "the token server gave no usable token");
  return token;
}

Result<std::string> digest_of_manifest(std::string_view media_type, ByteView body, std::string_view told) {
  const std::string type = lower(trim(media_type.substr(0, media_type.find(';'))));
  const bool index = std::ranges::find(k_index_types, type) != k_index_types.end();
  if (!index && std::ranges::find(k_manifest_types, type) == k_manifest_types.end())
    return no_manifest("its type is '" + sanitize(std::string_view(type).substr(0, k_shown_max)) + "'");
  const auto read = read_record<Manifest>(as_text(body), "a manifest", k_foreign_rules, Code::protocol_violation);
  if (!read) return no_manifest(sanitize(read.error().message.substr(0, 2 * k_shown_max)));
  if (read->schema_version != 2 || (index ? read->manifests.empty() : !read->config.has_value()))
    return no_manifest("it lists no image");
  if (!read->media_type.empty() && read->media_type != type) return no_manifest("it says that it is of another type");
  std::string digest = "sha256:" + to_hex(crypto::sha256(body));
  // A digest by another hash cannot be compared; what was hashed here holds.
  if (told.starts_with("sha256:") && told != digest)
    return make_error(Code::protocol_violation, "it says that the digest is " + sanitize(told.substr(0, k_shown_max)) +
                                                    ", but the manifest that it sent has " + digest);
  return digest;
}

}  // namespace gridctl::images
