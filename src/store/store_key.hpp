// SPDX-License-Identifier: Apache-2.0
// Holds the secret of a store and the keys derived from it, and converts it to the text in which it is stored and
// handed over: gridctl-store(5), "ENCRYPTION" and "KEY FILES".
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
  // Returns a key that opens one blob only: it can be given away without the others, and random nonces cannot collide.
  [[nodiscard]] Digest blob_key(const Digest& id) const;
  // Derives a key for another use, by its label ("gridctl/record/1").
  [[nodiscard]] Digest key_for(std::string_view label) const;

  // Returns the text of a key file, readable by anyone who has it, or only with the passphrase too.
  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] Result<std::string> to_text(std::string_view passphrase) const;

 private:
  Digest secret_;
  KeyId id_;
  crypto::HmacKey names_, keys_;
};

// Fails with state_unreadable if it is not a key file. A protected file needs its passphrase: usage if that is missing
// or wrong.
[[nodiscard]] Result<StoreKey> parse_key(std::string_view text, const std::optional<std::string>& passphrase = {});

inline constexpr std::size_t k_key_file_max = 64 * 1024;  // bytes, with what newest.hpp adds

}  // namespace gridctl::store
