// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/check.hpp"

namespace gridctl::crypto {

struct TlsStream::Openssl {
  struct Named {
    Digest key;
    std::string identity;
  };
  std::vector<Named> keys;
  mutable std::size_t used = 0;  // of them
  SSL* ssl = nullptr;
  BIO* in = nullptr;   // owned by ssl
  BIO* out = nullptr;  // owned by ssl
  ~Openssl() { SSL_free(ssl); }
};

namespace {

constexpr std::array<unsigned char, 2> k_suite{0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr int k_index = 0;                                   // of the application data that leads back to us

int clamped(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max() / 2));
}

// Returns the key as a session that both sides resume; nullptr without memory.
SSL_SESSION* session_of(SSL* ssl, const Digest& key) {
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, k_suite.data());
  const bool made = session != nullptr && suite != nullptr &&
                    SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.bytes.data()),
                                                key.bytes.size()) == 1 &&
                    SSL_SESSION_set_cipher(session, suite) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

template <class Owner>
const Owner& owner_of(const SSL* ssl) {
  return *static_cast<const Owner*>(SSL_get_ex_data(ssl, k_index));
}

template <class Owner>
int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_size, SSL_SESSION** session) {
  const Owner& owner = owner_of<Owner>(ssl);
  *session = session_of(ssl, owner.keys.front().key);
  *id = reinterpret_cast<const unsigned char*>(owner.keys.front().identity.data());
  *id_size = owner.keys.front().identity.size();
  return *session != nullptr ? 1 : 0;
}

template <class Owner>
int find_key(SSL* ssl, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  const Owner& owner = owner_of<Owner>(ssl);
  const std::string_view named(reinterpret_cast<const char*>(id), id_size);
  *session = nullptr;
  for (std::size_t i = 0; i < owner.keys.size() && *session == nullptr; ++i)
    if (named == owner.keys[i].identity) *session = session_of(ssl, owner.keys[owner.used = i].key);
  return 1;  // another identity is one that we do not know: without a certificate the handshake fails
}

template <class Owner>
SSL_CTX* context(TlsSide side) {
  SSL_CTX* made = SSL_CTX_new(side == TlsSide::client ? TLS_client_method() : TLS_server_method());
  GRIDCTL_CHECK(made != nullptr);
  GRIDCTL_CHECK(SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1);
  GRIDCTL_CHECK(SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_num_tickets(made, 0);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  // Only the handshake with our key proves anything: with no authority known, every certificate is refused. A server
  // asks for none and has none, so that there is no handshake without the key.
  if (side == TlsSide::client) SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_psk_use_session_callback(made, offer_key<Owner>);
  SSL_CTX_set_psk_find_session_callback(made, find_key<Owner>);
  return made;
}

std::string reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "the connection does not carry valid TLS" : text;
}

}  // namespace

TlsStream::TlsStream(TlsSide side, const Digest& key, std::string identity) : tls_(std::make_unique<Openssl>()) {
  static SSL_CTX* const client = context<Openssl>(TlsSide::client);
  static SSL_CTX* const server = context<Openssl>(TlsSide::server);
  tls_->keys.push_back({key, std::move(identity)});
  tls_->ssl = SSL_new(side == TlsSide::client ? client : server);
  tls_->in = BIO_new(BIO_s_mem());
  tls_->out = BIO_new(BIO_s_mem());
  GRIDCTL_CHECK(tls_->ssl != nullptr && tls_->in != nullptr && tls_->out != nullptr);
  BIO_set_mem_eof_return(tls_->in, -1);
  SSL_set_bio(tls_->ssl, tls_->in, tls_->out);
  SSL_set_ex_data(tls_->ssl, k_index, tls_.get());
  side == TlsSide::client ? SSL_set_connect_state(tls_->ssl) : SSL_set_accept_state(tls_->ssl);
}

TlsStream::~TlsStream() = default;

void TlsStream::also_accept(const Digest& key, std::string identity) { tls_->keys.push_back({key, std::move(identity)}); }

const std::string& TlsStream::identity() const { return tls_->keys[tls_->used].identity; }

void TlsStream::take_in(ByteView sealed) {
  while (!sealed.empty()) {
    const int took = BIO_write(tls_->in, sealed.data(), clamped(sealed.size()));
    GRIDCTL_CHECK(took > 0);
    sealed = sealed.subspan(static_cast<std::size_t>(took));
  }
}

std::string TlsStream::take_out() {
  std::string bytes(BIO_ctrl_pending(tls_->out), '\0');
  if (!bytes.empty()) GRIDCTL_CHECK(BIO_read(tls_->out, bytes.data(), clamped(bytes.size())) == clamped(bytes.size()));
  return bytes;
}

Result<bool> TlsStream::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(tls_->ssl);
  if (done == 1) {
    if (SSL_session_reused(tls_->ssl) == 1) return true;
    return make_error(Code::auth_refused, "the other side authenticated in a way that we did not ask for");
  }
  if (SSL_get_error(tls_->ssl, done) == SSL_ERROR_WANT_READ) return false;
  return make_error(Code::auth_refused, "the other side does not have the agreed key (" + reason() + ")");
}

Result<std::optional<std::size_t>> TlsStream::read(std::span<std::byte> into) {
  ERR_clear_error();
  const int got = SSL_read(tls_->ssl, into.data(), clamped(into.size()));
  if (got > 0) return std::optional<std::size_t>{static_cast<std::size_t>(got)};
  const int why = SSL_get_error(tls_->ssl, got);
  if (why == SSL_ERROR_WANT_READ) return std::optional<std::size_t>{};
  if (why == SSL_ERROR_ZERO_RETURN) return std::optional<std::size_t>{0};
  return make_error(Code::protocol_violation, "the received data was changed in transit (" + reason() + ")");
}

Result<void> TlsStream::write(ByteView plain) {
  while (!plain.empty()) {
    ERR_clear_error();
    const int took = SSL_write(tls_->ssl, plain.data(), clamped(plain.size()));
    if (took <= 0)
      return make_error(Code::protocol_violation, "the connection accepts no more bytes (" + reason() + ")");
    plain = plain.subspan(static_cast<std::size_t>(took));
  }
  return {};
}

void TlsStream::end_output() { (void)SSL_shutdown(tls_->ssl); }

}  // namespace gridctl::crypto
