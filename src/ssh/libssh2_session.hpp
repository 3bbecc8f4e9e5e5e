// SPDX-License-Identifier: Apache-2.0
// Represents one libssh2 session: connection, key exchange, login. libssh2 never blocks here; we wait, with our own
// deadlines.
#pragma once

#include <libssh2.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "ssh/channel.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

// Runs one session. Code::busy: the server accepts no more logins now, so try again later. Code::unsupported: libssh2
// cannot connect, but the `ssh` program may.
class Session {
 public:
  // Connects and exchanges keys; the server's key is one of the wanted types (e.g. those pinned), and not yet trusted.
  // With unsupported, `lacks_key_types` says that the server has no key of these types (it may have been exchanged).
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const Target& target,
                                                             std::span<const std::string> key_types, BootTime deadline,
                                                             os::Clock& clock, bool* lacks_key_types = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] Result<HostKey> host_key() const;
  [[nodiscard]] Result<LIBSSH2_CHANNEL*> start(const std::string& command, BootTime deadline);

  [[nodiscard]] LIBSSH2_SESSION* raw() const { return session_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] os::Clock& clock() const { return *clock_; }
  // A packet of ours is half sent: only the call that began it may continue (otherwise libssh2 answers BAD_USE).
  [[nodiscard]] bool sending() const {
    return (libssh2_session_block_directions(session_) & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
  }
  [[nodiscard]] std::string last_error() const;  // of libssh2; sanitised
  // Repeats a libssh2 call until it is done; returns its result, or LIBSSH2_ERROR_TIMEOUT at the deadline.
  template <class Call>
  [[nodiscard]] Result<long> drive(Call call, BootTime deadline) {
    for (;;) {
      const long rc = call();
      if (rc != LIBSSH2_ERROR_EAGAIN) return rc;
      TRY_ASSIGN(const bool ready, wait(deadline));
      if (!ready) return static_cast<long>(LIBSSH2_ERROR_TIMEOUT);
    }
  }
  // Allocates memory that libssh2 will release, e.g. a signature.
  [[nodiscard]] void* allocate(std::size_t count);

  // Callbacks of libssh2; see the .cpp.
  struct Hooks;

 private:
  Session(os::Fd fd, std::string address, os::Clock& clock);
  Result<bool> wait(BootTime deadline);
  Result<void> prefer(std::span<const std::string> key_types);
  Result<void> shake_hands(const Target& target, std::span<const std::string> key_types, BootTime deadline);
  [[nodiscard]] bool lacks(std::span<const std::string> key_types) const;
  Error handshake_error(long rc, std::span<const std::string> key_types) const;

  os::Fd fd_;
  std::string address_;
  os::Clock* clock_;
  std::unique_ptr<Hooks> hooks_;
  LIBSSH2_SESSION* session_ = nullptr;
};

// Returns the types requested if none is pinned.
[[nodiscard]] std::vector<std::string> libssh2_host_key_types();

inline constexpr std::string_view k_only_ssh = ", which libssh2 cannot use";  // said of what the ssh program could

// Logs in: key files first, then the keys of ssh-agent. auth_refused with the keys that were offered and why others
// were not; unsupported if one of those others may be the right one and the `ssh` program could offer it. Offers at
// most 5 keys (MaxAuthTries is 6).
[[nodiscard]] Result<void> log_in(Session& session, const Target& target, BootTime deadline);

// Takes over a session in which `channel` runs its command.
[[nodiscard]] std::unique_ptr<Channel> make_libssh2_channel(std::unique_ptr<Session> session, LIBSSH2_CHANNEL* channel,
                                                            std::string peer);

}  // namespace gridctl::ssh
