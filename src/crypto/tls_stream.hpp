// SPDX-License-Identifier: Apache-2.0
// Implements TLS 1.3 between two programs that share a key, over bytes that the caller transports. It uses no
// certificates: the handshake with a pre-shared key (RFC 8446, section 2.2, with ephemeral Diffie-Hellman) proves both
// sides to each other.
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

// Moves no bytes itself. Use it from one thread at a time.
class TlsStream {
 public:
  // `identity` names the key to the server, unencrypted, in at most 128 bytes. Both sides give the same key and
  // identity.
  TlsStream(TlsSide side, const Digest& key, std::string identity);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Lets the other side use this key instead. REQUIRES: a server, before its handshake.
  void also_accept(const Digest& key, std::string identity);
  // Returns the name of the key that the handshake has used.
  [[nodiscard]] const std::string& identity() const;

  // Takes bytes that came from the other side.
  void take_in(ByteView sealed);
  // Returns bytes for the other side; empty: none. Call it after each call of the others.
  [[nodiscard]] std::string take_out();

  // Continues the handshake. Returns true once it is complete. auth_refused: the other side does not have the key, or
  // the received bytes are not TLS.
  [[nodiscard]] Result<bool> handshake();
  // Read and write; REQUIRES: the handshake is complete. nullopt: nothing yet. 0: the other side has ended its output.
  // protocol_violation: the received bytes were changed on the way.
  [[nodiscard]] Result<std::optional<std::size_t>> read(std::span<std::byte> into);
  [[nodiscard]] Result<void> write(ByteView plain);
  // Announces the end of our output; reading continues.
  void end_output();

 private:
  struct Openssl;
  std::unique_ptr<Openssl> tls_;
};

}  // namespace gridctl::crypto
