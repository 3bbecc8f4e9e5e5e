// SPDX-License-Identifier: Apache-2.0
#include "ssh/slots.hpp"

#include <map>
#include <utility>

#include "os/mutex.hpp"

namespace gridctl::ssh {
namespace {

struct Slots {
  os::Mutex mutex;
  os::Condition freed;
  std::map<std::string, int> taken GRIDCTL_GUARDED_BY(mutex);
};

Slots& slots() {
  static Slots all;
  return all;
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

}  // namespace gridctl::ssh
