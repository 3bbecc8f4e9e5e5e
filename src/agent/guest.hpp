// SPDX-License-Identifier: Apache-2.0
// A connection of somebody whom the owner of this machine lends it to: less is allowed than to the owner, whatever his
// gridctl asks for. gridctl-lend(7).
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/inventory.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/guest.hpp"
#include "wire/health.hpp"
#include "wire/messages.hpp"
#include "wire/receipts.hpp"

namespace gridctl::agent {

inline constexpr std::string_view k_start_operation = "start", k_put_operation = "put";

// Returns how many attempts of one researcher a machine with this number of processors runs at once.
[[nodiscard]] std::size_t guest_attempts_most(std::size_t processors);
// Returns how many processes and threads each of these attempts may have, so that all of them together leave half of what
// the kernel allows (`kernels`) to the machine's owner.
[[nodiscard]] std::uint64_t guest_processes_most(std::uint64_t kernels, std::size_t attempts);
[[nodiscard]] std::uint64_t guest_processes_here();

class Guest {
 public:
  // The owner may change the file at any time: it is read for each question. Without it nothing is allowed.
  Guest(os::Path terms, os::Clock& clock) : file_(std::move(terms)), clock_(clock) {}

  // Another controller than the one that was invited could act on the jobs of that one.
  [[nodiscard]] Result<void> check_controller(const ControllerId& controller) const;
  // A controller's name is no secret. Refuses one whose jobs on this machine are not those of this invitation.
  [[nodiscard]] Result<void> check_jobs(const os::Path& home, const ControllerId& controller) const;
  // An error while the owner has paused, and outside of his hours: no job begins.
  [[nodiscard]] Result<void> check_open() const;
  // For a benchmark, on a thread of its own: check_open, whose error the owner's log tells.
  [[nodiscard]] std::function<Result<void>()> while_open() const;
  // Until the owner's hours are over; nullopt: he has set none, or they are over.
  [[nodiscard]] std::optional<Duration> ends_in() const;
  // An error where the jobs of guests take, or would take with `more` bytes, more disk than the owner lends.
  [[nodiscard]] Result<void> check_disk(std::uint64_t more);
  // A job that does not say how much it takes gets what the owner lends.
  void limit(wire::StartRequest& request) const;
  // The machine as far as it is lent.
  void limit(Inventory& inventory) const;
  // Removes the names of the owner's own programs from the reply, because they are nobody else's business.
  [[nodiscard]] static wire::HealthReply limited(wire::HealthReply reply);
  // Draws this machine's part of a key in the token's place. refused once the researcher has used one.
  [[nodiscard]] Result<wire::RekeyReply> rekey(const wire::RekeyRequest& request) const;
  // Fixes what an attempt costs that is about to begin.
  [[nodiscard]] Result<void> open_account(const wire::AttemptSpec& spec) const;
  // Removes the account of a start that was refused, unless the attempt exists here nevertheless. Returns `started`.
  [[nodiscard]] Result<wire::StartReply> settled(const os::Path& agent_home, const wire::AttemptSpec& spec, Result<wire::StartReply> started) const;
  [[nodiscard]] Result<wire::ReceiptsReply> receipts(const wire::ReceiptsRequest& request) const;
  // Writes the refusal of an operation to the owner's log.
  void note_refusal(std::string_view operation, const Error& why);
  // Engines that are of no use to a guest need not be known to him.
  [[nodiscard]] bool offers(EngineKind engine) const;
  // Refused are: what reaches beyond containers (a shell, folders and network of the machine), and, while the owner has
  // paused or outside of his hours, what begins a job. `payload` is that of a request.
  [[nodiscard]] Result<void> check(std::string_view operation, std::string_view payload);

 private:
  [[nodiscard]] Result<void> check_start(std::string_view payload);
  [[nodiscard]] Result<void> check_count(const ControllerId& controller) const;
  [[nodiscard]] bool holds_until(WallTime until) const;  // what keeps jobs away
  [[nodiscard]] Result<wire::GuestTerms> terms() const;
  [[nodiscard]] os::Path home() const { return file_.parent_path().parent_path().parent_path(); }  // of the agent

  os::Path file_;
  os::Clock& clock_;
  std::set<std::string, std::less<>> noted_;  // operations whose refusal is in the log
  std::uint64_t put_ = 0;                     // bytes that have come since the disk was looked at
  BootTime looked_{};                         // at the disk
};

// `gridctl-agent guest CONTROLLER ...`, for the owner of this machine; returns the exit status. The number of attempts
// that have not ended is the first line that each prints, except reclaim.
//   list             a line for each: job, epoch, phase, milliseconds it has run, image and name, divided by tabs
//   gpus             the number of those that hold GPUs instead, and of benchmarks that do
//   end GRACE_MS [REASON [fresh]]
//                    programs get TERM, and KILL after GRACE_MS; their directories stay until the controller has fetched
//                    what they saved. With a reason they are warned before: gridctl-job(5). `fresh`: those that have just
//                    saved a checkpoint are killed at once
//   reclaim GRACE_MS [always]
//                    ends the attempts that hold GPUs if a program of the owner's uses one, and prints "taken", their
//                    number (with benchmarks, which end by themselves then) and its name, divided by tabs; "free" if none
//                    does; "idle" if neither holds a GPU, and `always` does not ask to look nevertheless
//   remove           removes what attempts that have ended have left
[[nodiscard]] int guest_command(std::span<char* const> arguments, os::Clock& clock);

}  // namespace gridctl::agent
