// SPDX-License-Identifier: Apache-2.0
// The machine-wide ledger of leases on GPUs, CPUs and memory, shared by all users; format in gridctl-agent(7), The
// ledger.
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

// The machine's resources; 0 = not known, not limited.
struct Capacity {
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
};
[[nodiscard]] Capacity machine_capacity();

// The facts by which a lease is judged; tests supply others.
struct Machine {
  std::string boot_id;
  std::uint64_t pid_namespace = 0;
  std::function<bool(const os::ProcessId&)> alive;
  // Whether that user runs it, or an engine for that user. Empty: nobody asks.
  std::function<bool(const os::ProcessId&, unsigned)> owned = {};

  [[nodiscard]] static Machine real();
};

// For this user and the machine as it is now; of nothing yet.
[[nodiscard]] Lease our_lease(ControllerId controller, JobId job, Epoch epoch);

// True when nobody can be using what the lease names.
[[nodiscard]] bool is_void(const Lease& lease, const Machine& machine, BootTime now);

// Pure. Whether a lease that stands in a file of `owner` is that user's to hold.
[[nodiscard]] bool is_believed(const Lease& lease, unsigned owner, const Machine& machine);

// Where a lease is entered, and the slots of the same attempt that it replaces.
struct Entry {
  std::size_t slot = 0;
  std::vector<std::size_t> replaces;
};
// Pure. busy when a GPU is held or the machine would be overcommitted.
[[nodiscard]] Result<Entry> plan_take(const std::vector<std::optional<Lease>>& slots, const Lease& lease,
                                      const Capacity& capacity, const Machine& machine, BootTime now);

class LedgerFolder;

class Ledger {
 public:
  Ledger(os::Path directory, Machine machine, os::Clock& clock)
      : directory_(std::move(directory)), machine_(std::move(machine)), clock_(clock) {}

  // Enters the lease, or replaces the entry of the same attempt. busy when a GPU is held or the machine would be
  // overcommitted; the message tells until when, never by whom.
  [[nodiscard]] Result<void> take(const Lease& lease, const Capacity& capacity);
  // Replaces the attempt's entry while it names `from` as its supervisor: what the new one has entered by itself stays.
  [[nodiscard]] Result<void> hand_over(const Lease& lease, const os::ProcessId& from);
  // Removes the attempt's entry; missing is success.
  [[nodiscard]] Result<void> release(const ControllerId& controller, const JobId& job, Epoch epoch);
  // Waits for nobody.
  [[nodiscard]] Result<std::vector<Lease>> valid() const;
  // The attempt's own entry, valid or not.
  [[nodiscard]] Result<std::optional<Lease>> find(const ControllerId& controller, const JobId& job, Epoch epoch) const;

 private:
  // The leases of other users, as far as they are believed.
  [[nodiscard]] Result<std::vector<Lease>> others(const LedgerFolder& folder) const;

  os::Path directory_;
  Machine machine_;
  os::Clock& clock_;
};

// Text of one slot, exposed for tests.
[[nodiscard]] std::string to_text(const Lease& lease);
[[nodiscard]] std::optional<Lease> parse_lease(std::string_view text);

}  // namespace gridctl::agent
