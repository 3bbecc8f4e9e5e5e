// SPDX-License-Identifier: Apache-2.0
#include "ssh/libssh2_session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "base/text.hpp"
#include "os/net.hpp"
#include "os/ready.hpp"
#include "ssh/encoding.hpp"
#include "ssh/kex_offer.hpp"

namespace gridctl::ssh {

// Holds memory limits and the first bytes of the server, kept to explain errors.
struct Session::Hooks {
  // Precedes each piece of memory that libssh2 requests. Kept in a list, because libssh2 1.10 forgets some (the public
  // key at each login with an Ed25519 file): we free the rest when the session ends.
  struct alignas(std::max_align_t) Block {
    std::size_t size = 0;
    Block *previous = nullptr, *next = nullptr;
  };
  Block* blocks = nullptr;
  std::size_t allocated = 0;
  std::string first_bytes;
  bool closed = false;
};

namespace {

constexpr std::size_t k_first_bytes_max = 16 * 1024;  // banner and the server's KEXINIT
constexpr std::size_t k_noise_max = 8 * 1024;         // lines before the banner that RFC 4253 allows
// libssh2 1.10 allocates the size that an `exit-signal` message claims before checking it (up to 4 GiB). Its queue
// holds at most one window of 2 MiB, in packets that may be tiny.
constexpr std::size_t k_allocation_max = 1u << 20;
constexpr std::size_t k_allocated_max = 64u << 20;

Session::Hooks& hooks_of(void** abstract) { return *static_cast<Session::Hooks*>(*abstract); }

using Block = Session::Hooks::Block;

void* take_memory(std::size_t count, void** abstract) {
  Session::Hooks& hooks = hooks_of(abstract);
  if (count > k_allocation_max || hooks.allocated + count > k_allocated_max) return nullptr;
  void* memory = std::malloc(sizeof(Block) + count);
  if (memory == nullptr) return nullptr;
  auto* block = new (memory) Block{count, nullptr, hooks.blocks};
  if (hooks.blocks != nullptr) hooks.blocks->previous = block;
  hooks.blocks = block;
  hooks.allocated += count;
  return block + 1;
}

void drop(Block* block, Session::Hooks& hooks) {
  (block->previous != nullptr ? block->previous->next : hooks.blocks) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  hooks.allocated -= block->size;
  std::free(block);
}

void release(void* pointer, void** abstract) {
  if (pointer != nullptr) drop(static_cast<Block*>(pointer) - 1, hooks_of(abstract));
}

void* reallocate(void* pointer, std::size_t count, void** abstract) {
  void* fresh = take_memory(count, abstract);
  if (fresh == nullptr || pointer == nullptr) return fresh;
  std::memcpy(fresh, pointer, std::min((static_cast<Block*>(pointer) - 1)->size, count));
  release(pointer, abstract);
  return fresh;
}

ssize_t receive(libssh2_socket_t fd, void* buffer, std::size_t length, int, void** abstract) {
  Session::Hooks& hooks = hooks_of(abstract);
  if (hooks.first_bytes.size() > k_noise_max && banner_of(hooks.first_bytes).empty()) return -EPROTO;
  const auto moved = os::read_now(fd, {static_cast<std::byte*>(buffer), length});
  if (!moved) return -EIO;
  if (moved->closed) hooks.closed = true;
  if (moved->closed) return 0;
  if (moved->blocked) return -EAGAIN;
  if (hooks.first_bytes.size() < k_first_bytes_max)
    hooks.first_bytes.append(static_cast<const char*>(buffer), moved->bytes);
  return static_cast<ssize_t>(moved->bytes);
}

void initialise_library() {
  static std::once_flag once;
  std::call_once(once, [] { libssh2_init(0); });
}

Error not_ssh(const std::string& address, std::string_view said) {
  return make_error(Code::host_unreachable,
                    address + " is not an SSH server: it answered '" + sanitize(trim(said.substr(0, 80)), 80) + "'",
                    "check the port");
}

}  // namespace

Session::Session(os::Fd fd, std::string address, os::Clock& clock)
    : fd_(std::move(fd)), address_(std::move(address)), clock_(&clock), hooks_(std::make_unique<Hooks>()) {
  initialise_library();
  session_ = libssh2_session_init_ex(take_memory, release, reallocate, hooks_.get());
  GRIDCTL_CHECK(session_ != nullptr);
  libssh2_session_set_blocking(session_, 0);
  libssh2_session_callback_set(session_, LIBSSH2_CALLBACK_RECV, reinterpret_cast<void*>(&receive));
}

Session::~Session() {
  // With the socket shut, nothing that freeing wants to send can block; the server sees the connection end.
  os::shut_down(fd_.get());
  for (int i = 0; i < 1000 && libssh2_session_free(session_) == LIBSSH2_ERROR_EAGAIN; ++i) continue;
  while (hooks_->blocks != nullptr) drop(hooks_->blocks, *hooks_);
}

std::string Session::last_error() const {
  char* text = nullptr;
  int length = 0;
  libssh2_session_last_error(session_, &text, &length, 0);
  return text == nullptr ? std::string{"unknown error"}
                         : sanitize(std::string_view(text, static_cast<std::size_t>(length)), 200);
}

Result<bool> Session::wait(BootTime deadline) {
  os::Poll poll{fd_.get(), {.read = true, .write = sending()}, {}};
  return os::wait_any({&poll, 1}, deadline, *clock_);
}

void* Session::allocate(std::size_t count) { return take_memory(count, libssh2_session_abstract(session_)); }

Result<void> Session::prefer(std::span<const std::string> key_types) {
  // Allows no CBC, no SHA-1, no MD5 and no ssh-rsa. A list without any known name gives -33 and silently keeps the
  // defaults.
  const std::pair<int, std::string> wanted[] = {
      {LIBSSH2_METHOD_HOSTKEY, join(key_types, ",")},
      {LIBSSH2_METHOD_KEX,
       "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256,diffie-hellman-group-exchange-sha256"},
      {LIBSSH2_METHOD_CRYPT_CS, "aes128-ctr,aes256-ctr,aes192-ctr"},
      {LIBSSH2_METHOD_CRYPT_SC, "aes128-ctr,aes256-ctr,aes192-ctr"},
      {LIBSSH2_METHOD_MAC_CS, "hmac-sha2-256,hmac-sha2-512"},
      {LIBSSH2_METHOD_MAC_SC, "hmac-sha2-256,hmac-sha2-512"}};
  for (const auto& [method, names] : wanted)
    if (libssh2_session_method_pref(session_, method, names.c_str()) != 0)
      return make_error(Code::unsupported, "libssh2 supports none of " + names);
  return {};
}

Error Session::handshake_error(long rc, std::span<const std::string> key_types) const {
  const std::string& said = hooks_->first_bytes;
  const std::string banner = banner_of(said);
  if (said.find("Exceeded MaxStartups") != std::string::npos)
    return make_error(Code::busy, address_ + " is busy with other logins (MaxStartups)");
  if (said.find("Not allowed at this time") != std::string::npos)
    return make_error(Code::busy, address_ + " refuses connections from here for a while (PerSourcePenalties)");
  if (rc == LIBSSH2_ERROR_TIMEOUT && said.empty())
    return make_error(Code::timed_out,
                      address_ + " accepts connections but sends nothing: it is not an SSH server, or it hangs");
  if (banner.empty() && !said.empty()) return not_ssh(address_, said);
  if (rc == LIBSSH2_ERROR_TIMEOUT)
    return make_error(Code::timed_out, address_ + " started SSH but did not finish the key exchange in time");
  if (banner.empty()) return make_error(Code::busy, address_ + " closed the connection without sending anything");
  const auto offer = parse_kex_offer(said);
  if ((rc == LIBSSH2_ERROR_KEX_FAILURE || rc == LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE) && offer && !hooks_->closed)
    return make_error(Code::unsupported,
                      address_ + " and libssh2 have no algorithm in common: " + offer->difference(key_types));
  return make_error(Code::host_unreachable, "the SSH handshake with " + address_ + " failed: " + last_error());
}

Result<void> Session::shake_hands(const Target& target, std::span<const std::string> key_types, BootTime deadline) {
  TRY(prefer(key_types));
  const BootTime silent_until = std::min(deadline, clock_->boot() + target.connect_timeout);
  TRY_ASSIGN(long rc, drive([this] { return libssh2_session_handshake(session_, fd_.get()); }, silent_until));
  // A server that has begun to answer may use the complete time; a silent one only the connect timeout.
  if (rc == LIBSSH2_ERROR_TIMEOUT && !banner_of(hooks_->first_bytes).empty()) {
    TRY_ASSIGN(rc, drive([this] { return libssh2_session_handshake(session_, fd_.get()); }, deadline));
  }
  if (rc != 0) return handshake_error(rc, key_types);
  return {};
}

bool Session::lacks(std::span<const std::string> key_types) const {
  const auto offer = parse_kex_offer(hooks_->first_bytes);
  if (!offer || offer->offers_any(key_types)) return false;
  // A server may show a certificate of the very key that is pinned: only the ssh program can check that.
  return std::ranges::none_of(offer->host_keys,
                              [](const std::string& type) { return type.find("-cert-") != std::string::npos; });
}

Result<std::unique_ptr<Session>> Session::open(const Target& target, std::span<const std::string> key_types,
                                               BootTime deadline, os::Clock& clock, bool* lacks_key_types) {
  const BootTime connect_by = std::min(deadline, clock.boot() + target.connect_timeout);
  TRY_ASSIGN(os::Fd fd, os::connect_tcp(target.host, target.port, connect_by, clock));
  std::unique_ptr<Session> session{new Session(std::move(fd), target.address(), clock)};
  auto shaken = session->shake_hands(target, key_types, deadline);
  if (shaken) return session;
  if (lacks_key_types != nullptr) *lacks_key_types = session->lacks(key_types);
  return std::move(shaken).error();
}

Result<HostKey> Session::host_key() const {
  std::size_t length = 0;
  int kind = 0;
  const char* blob = libssh2_session_hostkey(session_, &length, &kind);
  if (blob == nullptr) return make_error(Code::protocol_violation, address_ + " sent no host key");
  const std::string_view bytes{blob, length};
  const auto type = FieldReader{bytes}.text();
  if (!type) return make_error(Code::protocol_violation, address_ + " sent a malformed host key");
  return HostKey{std::string{*type}, encode_base64(bytes), fingerprint_of(bytes)};
}

Result<LIBSSH2_CHANNEL*> Session::start(const std::string& command, BootTime deadline) {
  LIBSSH2_CHANNEL* channel = nullptr;
  const auto open_channel = [this, &channel]() -> long {
    channel = libssh2_channel_open_session(session_);
    return channel != nullptr ? 0 : libssh2_session_last_errno(session_);
  };
  TRY_ASSIGN(long rc, drive(open_channel, deadline));
  if (rc == 0) {
    TRY_ASSIGN(rc, drive([&] { return libssh2_channel_exec(channel, command.c_str()); }, deadline));
  }
  if (rc == 0) return channel;
  if (rc == LIBSSH2_ERROR_TIMEOUT)
    return make_error(Code::timed_out, address_ + " accepted the login but did not start the command in time");
  return make_error(Code::host_unreachable,
                    address_ + " accepted the login but does not start the command: " + last_error());
}

std::vector<std::string> libssh2_host_key_types() {
  return {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"};
}

std::string libssh2_in_use() {
  const char* version = ::libssh2_version(0);
  return version == nullptr ? std::string{} : version;
}

}  // namespace gridctl::ssh
