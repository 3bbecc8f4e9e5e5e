// SPDX-License-Identifier: Apache-2.0
// The use that jobs of guests make of a lent machine: marked while they run, and passed to the researcher as receipts, which
// `gridctl lend serve` makes of the marks. gridctl-lend(7), RECEIPTS.
#pragma once

#include <memory>

#include "agent/attempt_dir.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/guest.hpp"
#include "wire/messages.hpp"
#include "wire/receipts.hpp"

namespace gridctl::agent {

// refused: the researcher has not accepted what the owner asks now.
[[nodiscard]] Result<void> check_rates(const os::Path& invitation, const wire::GuestTerms& terms);
// Fixes the rates of an attempt that is about to begin. The same start may come again.
[[nodiscard]] Result<void> open_account(const os::Path& invitation, const wire::GuestTerms& terms, const wire::AttemptSpec& spec);
// Removes the account of an attempt that has not begun and will not.
void forget_account(const os::Path& invitation, const wire::AttemptSpec& spec);
// The researcher takes receipts, and brings answers to them.
[[nodiscard]] Result<wire::ReceiptsReply> exchange_receipts(const os::Path& invitation, const wire::GuestTerms& terms,
                                                            const wire::ReceiptsRequest& request);

inline constexpr Duration k_use_mark_every = std::chrono::seconds{10};  // at most so much goes unbilled when the machine dies

// Counts for one attempt, in the process that supervises it. Time in which that process does not run is not counted.
class UseAccount {
 public:
  // nullptr: the attempt is no guest's, or its account is closed.
  [[nodiscard]] static std::unique_ptr<UseAccount> of(const AttemptDir& attempt, int payload_pid, os::Clock& clock);

  // Adds the time since the last call. `gpus`: it held them; `running`: it was not paused.
  void add(bool gpus, bool running);
  // Adds, and marks on disk when that is due.
  void tick(bool gpus, bool running);
  [[nodiscard]] BootTime due() const { return due_; }
  // Adds nothing more, and marks that on disk.
  void close(bool gpus, bool running);
  // Closes the account of an attempt that nobody counts for any more.
  static void close(const AttemptDir& attempt);

 private:
  UseAccount(Path file, wire::UseMark mark, int payload_pid, os::Clock& clock);
  void add_traffic();
  void write();

  const Path file_;
  wire::UseMark mark_;
  const int pid_;
  os::Clock& clock_;
  Duration counted_;  // up to then, by os::awake_time
  BootTime due_;
};

// Pure. The bytes that all but the loopback device of a network have received and sent, of /proc/PID/net/dev.
struct TrafficCounters {
  std::uint64_t received = 0, sent = 0;
};
[[nodiscard]] TrafficCounters parse_network_devices(std::string_view text);

}  // namespace gridctl::agent
