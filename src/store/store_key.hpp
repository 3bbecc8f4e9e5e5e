// SPDX-License-Identifier: Apache-2.0
// The secret of a store, what is derived from it, and the text in which it is kept and handed over: gridctl-store(5),
// "ENCRYPTION" and "KEY FILES".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "crypto/sha256.hpp"
#include "store/cipher.hpp"

namespace gridctl::store {

class StoreKey final : public Cipher {
 public:
  [[nodiscard]] static StoreKey make();  // of new randomness
  explicit StoreKey(const Digest& secret);

  [[nodiscard]] KeyId id() const override { return id_; }
  [[nodiscard]] Digest storage_id(const Digest& digest) const override;
  [[nodiscard]] Bytes seal(const Digest& id, std::uint32_t plain_length, ByteView encoded) const override;
  [[nodiscard]] std::optional<Bytes> open(const Digest& id, std::uint32_t plain_length, ByteView sealed) const override;
  // Opens the one blob, and nothing else: it can be handed out without the others, and random nonces cannot meet.
  [[nodiscard]] Digest blob_key(const Digest& id) const;
  // Derives a key for any other use, by a label of its own ("gridctl/record/1").
  [[nodiscard]] Digest key_for(std::string_view label) const;

  // A key file, readable by whoever has it, or with the passphrase too.
  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] Result<std::string> to_text(std::string_view passphrase) const;

 private:
  Digest secret_;
  KeyId id_;
  crypto::HmacKey names_, keys_;
};

// state_unreadable when it is no key file; needs the passphrase when it was made with one: usage when that is missing
// or wrong.
[[nodiscard]] Result<StoreKey> parse_key(std::string_view text, const std::optional<std::string>& passphrase = {});

inline constexpr std::size_t k_key_file_max = 64 * 1024;  // bytes, with what newest.hpp adds

}  // namespace gridctl::store
