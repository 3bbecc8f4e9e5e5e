// SPDX-License-Identifier: Apache-2.0
// Does the controller's blocking work with one host, each piece over its own connection: for threads of an
// os::Executor. It never touches the registry; results are values that the loop turns into events.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "control/copies/world.hpp"
#include "control/follow/launch_protocol.hpp"
#include "control/follow/allowances.hpp"
#include "control/follow/results.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// Describes one member of an attempt and where to reach it.
struct MemberWork {
  World world;
  HostReach host;
  JobId job;
  Epoch epoch;
  AttemptNumber attempt;
  int rank = 0;
};

struct LaunchOrder {
  wire::AttemptSpec spec;
  Duration lease{};
  std::map<std::string, std::string> secrets;
  LaunchDoubt doubt = {};
  std::shared_ptr<const std::atomic<std::uint64_t>> wanted = {};  // the job's epoch as long as it is to be started
  CopiesOf copies = {};                                           // of the checkpoint it starts from
  std::optional<Allowances::AtStart> allowance{};
  bool start = true;  // false: everything up to START, which waits for the other members
  bool own_part = false;  // of the checkpoint it is given what its ranks need, where that can be told
};
[[nodiscard]] LaunchResult launch(const MemberWork& work, const LaunchOrder& order);

[[nodiscard]] Result<void> stop(const MemberWork& work, Duration grace);

// Makes the checkpoint ready on the host as files, replacing the job's earlier standby; first sends the other trees
// that the job needs (its inputs). Sends only what the host lacks. Returns the checkpoint's size in bytes.
[[nodiscard]] Result<std::uint64_t> make_standby(const World& world, const HostReach& host, const JobId& job,
                                                 const Digest& root, const std::vector<Digest>& others = {});
[[nodiscard]] Result<void> drop_standby(const World& world, const HostReach& host, const JobId& job);

// Returns whether such a failure is retried before the end of an output or a last checkpoint is given up. The host has
// let us in before; only our own disk can be full; and a disk error, theirs or ours, may have been the only one.
[[nodiscard]] bool is_worth_retrying(Code code, bool patient);

// Gathers, after an attempt's end, its newest checkpoint beyond number `known` and the rest of its output. A failure
// that may pass is an error, to be retried (a broken link, our full disk and, with `patient`, an I/O error); one that
// will not pass is reported.
struct Gathered {
  bool results_left = false;        // on the host: they could not be fetched
  std::vector<Pulled> checkpoints;  // in the order in which they are to be committed
  bool lacks_checkpoint = false;  // one that the host has could not be had
  std::string problem;  // empty: everything was fetched
  std::optional<GatheredResults> results{};
};
[[nodiscard]] Result<Gathered> collect(const MemberWork& work, std::uint64_t known, const std::optional<Digest>& head,
                                       bool patient, const ResultsWanted& results);
// Makes sure that the host runs and stores nothing of (job, epoch). For a stale attempt, first fetches the newest
// checkpoint beyond number `known` and removes nothing: call it again after the commit. `keep`: the host keeps the
// newest snapshots of that epoch for the job's next attempts; with epoch 0, it keeps none.
[[nodiscard]] Result<Gathered> clean_up(const MemberWork& work, const job::PendingCleanup& end, std::uint64_t known,
                                        const std::optional<Digest>& head, std::optional<Epoch> keep = {}, bool patient = false);

}  // namespace gridctl::control
