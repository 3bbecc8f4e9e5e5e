// SPDX-License-Identifier: Apache-2.0
// Manages the machine-wide ledger of leases on GPUs, CPUs and memory, shared by all users; format in gridctl-agent(7),
// The ledger.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "wire/held.hpp"

namespace gridctl::agent {

struct Lease {
  ControllerId controller;
  JobId job;
  Epoch epoch;
  unsigned uid = 0;
  std::string boot_id;
  std::uint64_t pid_namespace = 0;  // pids below mean something only inside it
  os::ProcessId supervisor;         // {0,0}: none yet
  os::ProcessId payload;
  bool launching = false;  // a launch was begun and its outcome is not recorded yet
  BootTime deadline;
  Duration grace{};
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> gpus;

  [[nodiscard]] bool same_attempt(const Lease& other) const {
    return controller == other.controller && job == other.job && epoch == other.epoch;
  }
};

// Holds the machine's resources; 0 = not known, not limited.
struct Capacity {
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
};
[[nodiscard]] Capacity machine_capacity();

// Holds the facts by which a lease is judged; tests supply others.
struct Machine {
  std::string boot_id;
  std::uint64_t pid_namespace = 0;
  std::function<bool(const os::ProcessId&)> alive;
  // Returns whether that user runs the process, or an engine for that user. Empty: not asked.
  std::function<bool(const os::ProcessId&, unsigned)> owned = {};

  [[nodiscard]] static Machine real();
};

// Returns a lease for this user and the machine as it is now, without resources yet.
[[nodiscard]] Lease our_lease(ControllerId controller, JobId job, Epoch epoch);

// Returns true if no process can be using what the lease names.
[[nodiscard]] bool is_void(const Lease& lease, const Machine& machine, BootTime now);

// Returns whether a lease in a file of `owner` may be held by that user. Pure.
[[nodiscard]] bool is_believed(const Lease& lease, unsigned owner, const Machine& machine);

// States where a lease is entered, and which slots of the same attempt it replaces.
struct Entry {
  std::size_t slot = 0;
  std::vector<std::size_t> replaces;
};
// Plans the entry. Pure. busy if a GPU is held or the machine would be overcommitted.
[[nodiscard]] Result<Entry> plan_take(const std::vector<std::optional<Lease>>& slots, const Lease& lease,
                                      const Capacity& capacity, const Machine& machine, BootTime now);

class LedgerFolder;

class Ledger {
 public:
  Ledger(os::Path directory, Machine machine, os::Clock& clock)
      : directory_(std::move(directory)), machine_(std::move(machine)), clock_(clock) {}

  // Enters the lease, or replaces the entry of the same attempt. busy if a GPU is held or the machine would be
  // overcommitted; the message says until when, never by whom.
  [[nodiscard]] Result<void> take(const Lease& lease, const Capacity& capacity);
  // Replaces the attempt's entry while it names `from` as its supervisor: an entry made by the new supervisor itself
  // stays.
  [[nodiscard]] Result<void> hand_over(const Lease& lease, const os::ProcessId& from);
  // Removes the attempt's entry; missing is success.
  [[nodiscard]] Result<void> release(const ControllerId& controller, const JobId& job, Epoch epoch);
  // Does not wait.
  [[nodiscard]] Result<std::vector<Lease>> valid() const;
  // Returns the attempt's own entry, valid or not.
  [[nodiscard]] Result<std::optional<Lease>> find(const ControllerId& controller, const JobId& job, Epoch epoch) const;

 private:
  // Returns the leases of other users, as far as they are believed.
  [[nodiscard]] Result<std::vector<Lease>> others(const LedgerFolder& folder) const;

  os::Path directory_;
  Machine machine_;
  os::Clock& clock_;
};

// Returns the text of one slot; exposed for tests.
[[nodiscard]] std::string to_text(const Lease& lease);
[[nodiscard]] std::optional<Lease> parse_lease(std::string_view text);

// Returns every valid lease, as heartbeats report them: a controller need not try to lease a resource to learn that it
// is taken. nullopt if the ledger cannot be read or holds more than fits into a reply.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> held_shares(Ledger& ledger, const ControllerId& asking);
// Computes the shares from known leases. Pure.
[[nodiscard]] std::optional<std::vector<wire::HeldShare>> shares_of(const std::vector<Lease>& leases,
                                                                    const ControllerId& asking);

}  // namespace gridctl::agent
