// SPDX-License-Identifier: Apache-2.0
#include "store/store_key.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "crypto/sealing.hpp"
#include "os/random.hpp"
#include "store/big_endian.hpp"
#include "store/pack.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_id_label = "gridctl/key-id/1", k_export_label = "gridctl/key/1", k_first_line = "gridctl-key 1";
constexpr std::size_t k_salt_bytes = 16;
static_assert(k_sealing_bytes == crypto::k_gcm_nonce + crypto::k_gcm_tag);

Bytes labelled(std::string_view label, ByteView what) {
  Bytes bytes(as_bytes(label).begin(), as_bytes(label).end());
  put_bytes(bytes, what);
  return bytes;
}

Bytes seal_under(ByteView key, ByteView extra, ByteView plain) {
  Bytes sealed = os::random_bytes(crypto::k_gcm_nonce);
  sealed.resize(k_sealing_bytes + plain.size());
  const std::span all(sealed);
  crypto::gcm_seal(key, all.first(crypto::k_gcm_nonce), extra, plain, all.subspan(crypto::k_gcm_nonce));
  return sealed;
}

std::optional<Bytes> open_under(ByteView key, ByteView extra, ByteView sealed) {
  if (sealed.size() < k_sealing_bytes) return std::nullopt;
  Bytes plain(sealed.size() - k_sealing_bytes);
  if (!crypto::gcm_open(key, sealed.first(crypto::k_gcm_nonce), extra, sealed.subspan(crypto::k_gcm_nonce), plain))
    return std::nullopt;
  return plain;
}

KeyId id_of(const Digest& secret) {
  return {first_bytes<16>(crypto::hmac_sha256(secret.bytes, as_bytes(k_id_label)).bytes)};
}

Error not_a_key(std::string_view why) {
  return make_error(Code::state_unreadable, "this is not a gridctl key file: " + std::string(why));
}

// Holds the lines of a key file: "gridctl-key 1", "id HEX", then "secret HEX", or "scrypt LOG2N R P SALT" and "sealed
// HEX".
struct KeyText {
  KeyId id;
  Bytes secret, salt, sealed;
  crypto::ScryptCost cost;
};

std::optional<crypto::ScryptCost> parse_cost(const std::vector<std::string>& words) {
  crypto::ScryptCost cost;
  const std::pair<unsigned*, std::size_t> numbers[] = {{&cost.log2_n, 1}, {&cost.r, 2}, {&cost.p, 3}};
  for (const auto& [number, at] : numbers) {
    if (!parse_into(words[at], *number)) return std::nullopt;
  }
  return cost;
}

Result<KeyText> read_lines(std::string_view text) {
  if (text.size() > k_key_file_max) return not_a_key("it is too long");
  const std::vector<std::string> lines = split_lines(text);
  if (lines.empty() || lines[0] != k_first_line)
    return not_a_key("it does not begin with '" + std::string(k_first_line) + "'");
  KeyText key;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].starts_with("newest")) continue;  // of newest.hpp
    const std::vector<std::string> words = split(lines[i], ' ');
    const auto bytes = parse_hex(words.back());
    const std::string& name = words[0];
    const bool fits = name == "scrypt" ? words.size() == 5 : words.size() == 2;
    if (!fits || !bytes) return not_a_key("line " + std::to_string(i + 1) + " cannot be read");
    if (name == "id" && bytes->size() == key.id.bytes.size()) {
      key.id = {first_bytes<16>(*bytes)};
    } else if (name == "secret" && bytes->size() == sizeof(Digest)) {
      key.secret = *bytes;
    } else if (name == "sealed" && bytes->size() == sizeof(Digest) + k_sealing_bytes) {
      key.sealed = *bytes;
    } else if (name == "scrypt" && bytes->size() == k_salt_bytes) {
      const auto cost = parse_cost(words);
      if (!cost) return not_a_key("line " + std::to_string(i + 1) + " cannot be read");
      key.cost = *cost;
      key.salt = *bytes;
    } else {
      return not_a_key("line " + std::to_string(i + 1) + " cannot be read");
    }
  }
  const bool is_protected = !key.sealed.empty() && !key.salt.empty();
  if (!key.id || key.secret.empty() != is_protected) return not_a_key("it is incomplete");
  return key;
}

std::string head_of(const KeyId& id) { return std::string(k_first_line) + "\nid " + to_hex(ByteView{id.bytes}) + "\n"; }

Result<Bytes> secret_of(const KeyText& text, const std::optional<std::string>& passphrase) {
  if (!text.secret.empty()) return text.secret;
  if (!passphrase)
    return make_error(Code::usage, "this key is protected by a passphrase",
                      "gridctl key import FILE --passphrase-file FILE");
  TRY_ASSIGN(const Digest key, crypto::scrypt(*passphrase, text.salt, text.cost));
  auto secret = open_under(key.bytes, labelled(k_export_label, text.id.bytes), text.sealed);
  if (!secret) return make_error(Code::usage, "the passphrase does not match this key");
  return *std::move(secret);
}

}  // namespace

StoreKey::StoreKey(const Digest& secret)
    : secret_(secret),
      id_(id_of(secret)),
      names_(secret.bytes),
      keys_(ByteView{crypto::hkdf_extract({}, secret.bytes).bytes}) {}

StoreKey StoreKey::make() { return StoreKey(Digest{first_bytes<32>(os::random_bytes(sizeof(Digest)))}); }

Digest StoreKey::storage_id(const Digest& digest) const { return names_.of(digest.bytes); }

Digest StoreKey::blob_key(const Digest& id) const {
  return crypto::hkdf_expand(keys_, labelled(k_blob_label, id.bytes));
}

Digest StoreKey::key_for(std::string_view label) const { return crypto::hkdf_expand(keys_, as_bytes(label)); }

Bytes StoreKey::seal(const Digest& id, std::uint32_t plain_length, ByteView encoded) const {
  return seal_under(blob_key(id).bytes, sealing_context(id, plain_length), encoded);
}

std::optional<Bytes> StoreKey::open(const Digest& id, std::uint32_t plain_length, ByteView sealed) const {
  return open_under(blob_key(id).bytes, sealing_context(id, plain_length), sealed);
}

std::string StoreKey::to_text() const { return head_of(id_) + "secret " + to_hex(secret_) + "\n"; }

Result<std::string> StoreKey::to_text(std::string_view passphrase) const {
  const Bytes salt = os::random_bytes(k_salt_bytes);
  const crypto::ScryptCost cost;
  TRY_ASSIGN(const Digest key, crypto::scrypt(passphrase, salt, cost));
  const Bytes sealed = seal_under(key.bytes, labelled(k_export_label, id_.bytes), secret_.bytes);
  return head_of(id_) + "scrypt " + std::to_string(cost.log2_n) + " " + std::to_string(cost.r) + " " +
         std::to_string(cost.p) + " " + to_hex(salt) + "\nsealed " + to_hex(sealed) + "\n";
}

Result<StoreKey> parse_key(std::string_view text, const std::optional<std::string>& passphrase) {
  TRY_ASSIGN(const KeyText lines, read_lines(text));
  TRY_ASSIGN(const Bytes bytes, secret_of(lines, passphrase));
  StoreKey key(Digest{first_bytes<32>(bytes)});
  if (key.id() != lines.id) return not_a_key("its secret does not belong to its id");
  return key;
}

}  // namespace gridctl::store
