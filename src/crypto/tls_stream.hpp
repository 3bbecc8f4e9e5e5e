// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 between two programs that share a key, over bytes that somebody else carries. No certificates: the handshake
// with a pre-shared key (RFC 8446, section 2.2, with ephemeral Diffie-Hellman) proves both sides to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::crypto {

enum class TlsSide : std::uint8_t { client, server };

// Moves no bytes itself. One thread at a time.
class TlsStream {
 public:
  // `identity` names the key to the server, in clear; at most 128 bytes. Both sides give the same key and identity.
  TlsStream(TlsSide side, const Digest& key, std::string identity);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Lets the other side use this key instead. REQUIRES: a server, before its handshake.
  void also_accept(const Digest& key, std::string identity);
  // The name of the key that the handshake has used.
  [[nodiscard]] const std::string& identity() const;

  // Takes bytes that came from the other side.
  void take_in(ByteView sealed);
  // Bytes for the other side; empty: none. Asked for after each call of the others.
  [[nodiscard]] std::string take_out();

  // Goes on with the handshake. True once it is complete. auth_refused: the other side does not have the key, or what
  // came is no TLS.
  [[nodiscard]] Result<bool> handshake();
  // REQUIRES of both: the handshake is complete. nullopt: nothing yet. 0: the other side has ended its output.
  // protocol_violation: what came was changed on the way.
  [[nodiscard]] Result<std::optional<std::size_t>> read(std::span<std::byte> into);
  [[nodiscard]] Result<void> write(ByteView plain);
  // Tells the other side that no more is written; reading goes on.
  void end_output();

 private:
  struct Openssl;
  std::unique_ptr<Openssl> tls_;
};

}  // namespace gridctl::crypto
