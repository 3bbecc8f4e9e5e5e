// SPDX-License-Identifier: Apache-2.0
// Defines the one error type of gridctl: what went wrong, where, whether trying again can help, and what to type next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl {

// Codes are stable: they appear in JSON and in the event log. Numbers are never reused.
enum class Code : std::uint16_t {
  internal = 1,             // our own bug
  usage = 2,                // bad command line
  bad_job_file = 3,         // job file or settings refused
  not_found = 4,            // no such job, provider or checkpoint
  no_provider_fits = 5,     // nothing registered can run the job
  host_unreachable = 6,     // connect, resolve, or the link broke
  timed_out = 7,            // a deadline passed; the state of the other side is unknown
  host_key_mismatch = 8,    // pinned key differs, or the key is unknown and may not be trusted silently
  auth_refused = 9,         // the host accepted none of our keys
  state_in_use = 10,        // another process holds the lock
  state_unreadable = 11,    // state directory damaged, newer, or not ours
  checkpoint_damaged = 12,  // a chunk, manifest or checkpoint is damaged or missing
  cancelled = 13,           // stopped by cancellation, budget or deadline
  protocol_violation = 14,  // the peer sent bytes the protocol forbids
  refused = 15,             // the host durably refused (stale epoch, busy, limits)
  busy = 16,                // the resource is held by someone else
  no_space = 17,            // a disk is full
  io = 18,                  // a system call failed
  engine = 19,              // the container engine failed
  unsupported = 20,         // this build or transport cannot do it
  interrupted = 21,         // the user interrupted
  job_failed = 22,          // the job's own code failed
  exists = 23,              // the name is taken
};

// Names the party for which another try may help.
enum class Retry : std::uint8_t { never, same_host_later, other_host, needs_user };

// Returns the stable lower-case name of a code ("host_unreachable"), as in JSON.
[[nodiscard]] std::string_view code_name(Code code);
[[nodiscard]] std::string_view retry_name(Retry retry);

// Returns the exit code of the process for an error of this code (contract: 0..9, 124, 130).
[[nodiscard]] int exit_code(Code code);

struct [[nodiscard]] Error {
  Code code = Code::internal;
  std::string message;  // lower case, no full stop: what was attempted, on what, why it failed
  Retry retry = Retry::never;
  std::string hint;                  // the next command to type, or empty
  std::vector<std::string> context;  // added on the way up, innermost first ("while …")

  // Adds one line of context and returns the error.
  Error&& with_context(std::string line) &&;
  Error&& with_hint(std::string command) &&;
  // Returns "message (while …; while …)" on one line.
  [[nodiscard]] std::string one_line() const;
};

// Returns the usual retry class of a code; override it by setting Error::retry.
[[nodiscard]] Retry default_retry(Code code);
[[nodiscard]] Error make_error(Code code, std::string message, std::string hint = {});
// Returns "MESSAGE: strerror(ERRNO)"; ENOSPC and EDQUOT become no_space, all others Code::io.
[[nodiscard]] Error errno_error(int err, std::string message);

}  // namespace gridctl
