// SPDX-License-Identifier: Apache-2.0
#include "crypto/sha256.hpp"

// OpenSSL 3 deprecates the direct functions in favour of EVP, which brings the provider machinery into a static
// program: several megabytes in an agent that is copied to every host. The direct functions are the same assembler.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <new>

#include "crypto/sha256_two.hpp"

namespace gridctl::crypto {

namespace {
constexpr std::size_t k_block_bytes = 64;  // of SHA-256, for HMAC's padding

SHA256_CTX* context(std::array<std::byte, 112>& state) {
  static_assert(sizeof(SHA256_CTX) == 112 && alignof(SHA256_CTX) <= 8);
  return std::launder(reinterpret_cast<SHA256_CTX*>(state.data()));
}
}  // namespace

Sha256::Sha256() { SHA256_Init(new (state_.data()) SHA256_CTX); }

Sha256& Sha256::update(ByteView bytes) {
  SHA256_Update(context(state_), bytes.data(), bytes.size());
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.bytes.data()), context(state_));
  SHA256_Init(context(state_));
  return digest;
}

Digest sha256(ByteView bytes) { return Sha256().update(bytes).finish(); }

std::pair<Digest, Digest> sha256(ByteView one, ByteView other) {
  const std::size_t blocks = std::min(one.size(), other.size()) / k_block_bytes;
  if (blocks == 0 || !can_compress_two()) return {sha256(one), sha256(other)};
  Sha256 first, second;
  SHA256_CTX &state = *context(first.state_), &other_state = *context(second.state_);
  compress_two(state.h, one.data(), other_state.h, other.data(), blocks);
  const std::size_t taken = blocks * k_block_bytes;
  for (SHA256_CTX* each : {&state, &other_state}) {
    each->Nl = static_cast<std::uint32_t>(taken << 3u);  // bits, in two words
    each->Nh = static_cast<std::uint32_t>(taken >> 29u);
  }
  return {first.update(one.subspan(taken)).finish(), second.update(other.subspan(taken)).finish()};
}

// Implements HMAC directly, because OpenSSL's HMAC goes through EVP.
HmacKey::HmacKey(ByteView key) {
  std::array<std::byte, k_block_bytes> inner{}, outer{};
  Digest short_key;
  if (key.size() > k_block_bytes) {
    short_key = sha256(key);
    key = short_key.bytes;
  }
  for (std::size_t i = 0; i < k_block_bytes; ++i) {
    const std::byte b = i < key.size() ? key[i] : std::byte{0};
    inner[i] = b ^ std::byte{0x36};
    outer[i] = b ^ std::byte{0x5C};
  }
  inner_.update(inner);
  outer_.update(outer);
}

Digest HmacKey::of(ByteView message) const {
  Sha256 inner = inner_, outer = outer_;
  const Digest first = inner.update(message).finish();
  return outer.update(ByteView{first.bytes}).finish();
}

Digest hmac_sha256(ByteView key, ByteView message) { return HmacKey(key).of(message); }

Digest hkdf_extract(ByteView salt, ByteView secret) { return hmac_sha256(salt, secret); }

Digest hkdf_expand(const HmacKey& extracted, ByteView info) {
  Bytes block(info.begin(), info.end());
  block.push_back(std::byte{1});  // the number of the only block
  return extracted.of(block);
}

bool equal_constant_time(ByteView a, ByteView b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace gridctl::crypto
