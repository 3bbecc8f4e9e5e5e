// SPDX-License-Identifier: Apache-2.0
#include "peer/identity.hpp"

#include <sodium/crypto_sign_ed25519.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "os/random.hpp"

namespace gridctl::peer {

namespace {
static_assert(crypto_sign_ed25519_SEEDBYTES == sizeof(Digest::bytes));
static_assert(crypto_sign_ed25519_PUBLICKEYBYTES == sizeof(Digest::bytes));
static_assert(crypto_sign_ed25519_SECRETKEYBYTES == 64 && crypto_sign_ed25519_BYTES == 64);
constexpr std::uint64_t k_file_max = 1024;  // bytes

unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* octets(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

Result<std::optional<Digest>> read_seed(const os::Path& file) {
  if (!os::exists(file)) return std::optional<Digest>{};
  TRY_ASSIGN(const std::string text, os::read_file(file, k_file_max));
  Result<Digest> seed = parse_digest(trim(text));
  if (!seed)
    return make_error(Code::state_unreadable, file.string() + " holds no key of this host",
                      "rm " + shell_quote(file.string()) + "   # the host gets a new key, which has to be accepted");
  return std::optional(*seed);
}
}  // namespace

// sodium_init() only chooses among implementations that signing does not use, and would link all of them.
Identity::Identity(const Digest& seed) {
  crypto_sign_ed25519_seed_keypair(octets(public_key_.bytes.data()), octets(secret_.data()), octets(seed.bytes.data()));
}

Result<Identity> Identity::open(const os::Path& file) {
  TRY_ASSIGN(std::optional<Digest> seed, read_seed(file));
  if (seed) return Identity(*seed);
  // Two first connections at once make one key.
  os::Path lock_file = file;
  lock_file += ".lock";
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(lock_file));
  TRY_ASSIGN(seed, read_seed(file));
  if (seed) return Identity(*seed);
  Digest fresh;
  std::ranges::copy(os::random_bytes(fresh.bytes.size()), fresh.bytes.begin());
  TRY(os::write_file_durably(file, to_hex(fresh) + "\n"));
  return Identity(fresh);
}

std::array<std::byte, 64> Identity::sign(ByteView message) const {
  std::array<std::byte, 64> signature{};
  crypto_sign_ed25519_detached(octets(signature.data()), nullptr, octets(message.data()), message.size(),
                               octets(secret_.data()));
  return signature;
}

}  // namespace gridctl::peer
