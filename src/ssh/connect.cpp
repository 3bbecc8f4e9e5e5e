// SPDX-License-Identifier: Apache-2.0
#include "ssh/connect.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "os/log.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "ssh/known_hosts.hpp"
#include "ssh/libssh2_session.hpp"
#include "ssh/system_ssh.hpp"

namespace gridctl::ssh {
namespace {

constexpr Duration k_login_max = std::chrono::seconds{30};  // from the first byte to the end of the login
constexpr Duration k_backoff_first = std::chrono::milliseconds{250};
constexpr Duration k_backoff_max = std::chrono::seconds{4};  // a deadline is some 30 s: several tries fit

struct Slots {
  os::Mutex mutex;
  os::Condition freed;
  std::map<std::string, int> taken GRIDCTL_GUARDED_BY(mutex);
};

Slots& slots() {
  static Slots all;
  return all;
}

using Pins = std::vector<HostKey>;

std::vector<std::string> types_of(const Pins& pins) {
  std::vector<std::string> types;
  for (const HostKey& key : pins)
    if (std::ranges::find(types, key.type) == types.end()) types.push_back(key.type);
  return types;
}

// Returns the pinned types that libssh2 can check.
std::vector<std::string> usable_types(const Pins& pins) {
  const std::vector<std::string> known = libssh2_host_key_types();
  std::vector<std::string> types = types_of(pins);
  std::erase_if(types, [&](const std::string& type) { return std::ranges::find(known, type) == known.end(); });
  return types;
}

// Returns the key that a host shows if it has none of the pinned types, to name it.
std::string shown_instead(const Target& target, BootTime deadline, os::Clock& clock) {
  const std::vector<std::string> any = libssh2_host_key_types();
  const auto session = Session::open(target, any, deadline, clock);
  if (!session) return "none of these types (" + session.error().message + ")";
  const auto key = (*session)->host_key();
  return key ? key->type + " " + key->fingerprint : "none of these types";
}

Result<std::unique_ptr<Channel>> connect_libssh2(const Target& target, const Pins& pins, const std::string& command,
                                                 BootTime deadline, os::Clock& clock) {
  if (target.proxied)
    return make_error(Code::unsupported,
                      target.address() + " is behind a jump host or proxy, which libssh2 cannot use");
  if (target.keys_unclear)
    return make_error(Code::unsupported, "the ssh configuration of " + target.alias +
                                             " names a key file with tokens that only the ssh program can expand");
  const std::vector<std::string> types = pins.empty() ? libssh2_host_key_types() : usable_types(pins);
  if (types.empty())
    return make_error(Code::unsupported, "the pinned host key of " + target.address() + " is " + describe(pins) +
                                             ", which libssh2 cannot check");
  bool lacks_key_types = false;
  auto session = Session::open(target, types, deadline, clock, &lacks_key_types);
  if (!session) {
    // If libssh2 can check all pinned types, a host without any of them has exchanged its keys.
    const bool changed = session.error().code == Code::unsupported && lacks_key_types && !pins.empty() &&
                         types.size() == types_of(pins).size();
    if (changed) return mismatch_error(target, pins, shown_instead(target, deadline, clock));
    return std::move(session).error();
  }
  TRY_ASSIGN(const HostKey key, (*session)->host_key());
  if (std::ranges::find(pins, key) == pins.end()) return mismatch_error(target, pins, key.type + " " + key.fingerprint);
  TRY(log_in(**session, target, deadline));
  TRY_ASSIGN(LIBSSH2_CHANNEL * channel, (*session)->start(command, deadline));
  return make_libssh2_channel(std::move(session).value(), channel, target.peer());
}

// ssh does not report what a server said instead of its banner; libssh2 does.
Result<std::unique_ptr<Channel>> connect_with_ssh(const Target& target, const Pins& pins, const std::string& command,
                                                  BootTime deadline, os::Clock& clock) {
  auto channel = connect_system(target, pins, command, deadline, clock);
  if (channel || channel.error().code != Code::busy || target.proxied) return channel;
  const std::vector<std::string> any = libssh2_host_key_types();
  auto session = Session::open(target, any, deadline, clock);
  if (!session && session.error().code == Code::host_unreachable) return std::move(session).error();
  return channel;
}

Result<std::unique_ptr<Channel>> attempt(const Target& target, const Pins& pins, const std::string& command,
                                         BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const LoginSlot slot, LoginSlot::acquire(target.address(), deadline, clock));
  if (target.transport == TransportKind::system) return connect_with_ssh(target, pins, command, deadline, clock);
  auto channel = connect_libssh2(target, pins, command, deadline, clock);
  if (channel || channel.error().code != Code::unsupported || target.transport == TransportKind::libssh2)
    return channel;
  os::log(os::LogLevel::info, channel.error().message + "; trying the ssh program");
  auto other = connect_with_ssh(target, pins, command, deadline, clock);
  if (other) return other;
  // Without an ssh program, the important part is why it would be needed; and libssh2 knows more about refused keys.
  if (!os::find_program("ssh")) return missing_program().with_context("because " + channel.error().message);
  const bool told_more = !channel.error().hint.empty() && channel.error().message.find(k_only_ssh) == std::string::npos;
  if (other.error().code == Code::auth_refused && told_more)
    return make_error(Code::auth_refused, channel.error().message, channel.error().hint);
  return other;
}

// A random part of the pause makes many clients of one host spread out.
Duration jittered(Duration pause) {
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return Duration{static_cast<std::int64_t>(half + os::random_u64() % (half + 1))};
}

template <class Value, class Try>
Result<Value> with_retries(const Target& target, BootTime deadline, os::Clock& clock, Try try_once) {
  for (Duration pause = k_backoff_first;; pause = std::min(pause * 2, k_backoff_max)) {
    Result<Value> result = try_once();
    if (result || result.error().code != Code::busy) return result;
    const Duration wait = jittered(pause);
    if (clock.boot() + wait >= deadline) {
      Error error = make_error(Code::host_unreachable, result.error().message + ", until the deadline");
      error.retry = Retry::same_host_later;
      return std::move(error).with_context("while logging in to " + target.peer());
    }
    os::pause_for(wait);
  }
}

}  // namespace

Result<LoginSlot> LoginSlot::acquire(const std::string& address, BootTime deadline, os::Clock& clock) {
  Slots& all = slots();
  const os::MutexLock lock(all.mutex);
  while (all.taken[address] >= k_logins_per_host_max) {
    if (clock.boot() >= deadline)
      return make_error(Code::timed_out, "cannot log in to " + address + ": " + std::to_string(k_logins_per_host_max) +
                                             " other logins to it were under way until the deadline");
    all.freed.wait_for(all.mutex, std::chrono::milliseconds{200});  // the deadline's clock is not the condition's
  }
  ++all.taken[address];
  return LoginSlot{address};
}

LoginSlot::LoginSlot(LoginSlot&& other) noexcept : address_(std::exchange(other.address_, {})) {}

LoginSlot::~LoginSlot() {
  if (address_.empty()) return;
  Slots& all = slots();
  const os::MutexLock lock(all.mutex);
  if (--all.taken[address_] == 0) all.taken.erase(address_);
  all.freed.notify_all();
}

Result<std::unique_ptr<Channel>> connect(const Target& target, const std::string& command, BootTime deadline,
                                         os::Clock& clock) {
  TRY_ASSIGN(const Pins pins, pinned(target));
  deadline = std::min(deadline, clock.boot() + k_login_max);
  return with_retries<std::unique_ptr<Channel>>(target, deadline, clock,
                                                [&] { return attempt(target, pins, command, deadline, clock); });
}

Result<std::vector<HostKey>> scan_host_keys(const Target& target, BootTime deadline, os::Clock& clock) {
  deadline = std::min(deadline, clock.boot() + k_login_max);
  const auto ask = [&]() -> Result<std::vector<HostKey>> {
    TRY_ASSIGN(const LoginSlot slot, LoginSlot::acquire(target.address(), deadline, clock));
    if (target.proxied) return scan_with_system(target, deadline, clock);
    std::vector<HostKey> keys;
    // Ed25519 and ECDSA come one after the other: a session shows one key.
    const std::vector<std::string> all = libssh2_host_key_types();
    for (const std::vector<std::string>& types :
         {std::vector<std::string>{all.front()}, std::vector<std::string>(all.begin() + 1, all.end())}) {
      const auto session = Session::open(target, types, deadline, clock);
      if (!session && session.error().code == Code::unsupported) continue;
      if (!session) return session.error();
      TRY_ASSIGN(HostKey key, (*session)->host_key());
      keys.push_back(std::move(key));
    }
    if (keys.empty()) return scan_with_system(target, deadline, clock);
    return keys;
  };
  return with_retries<std::vector<HostKey>>(target, deadline, clock, ask);
}

}  // namespace gridctl::ssh
