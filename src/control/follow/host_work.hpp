// SPDX-License-Identifier: Apache-2.0
// The controller's blocking work with one host, each over a connection of its own: for threads of an os::Executor. None
// of it touches the registry; results are values that the loop turns into events.
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

// One member of an attempt, where it is to be reached.
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

// Has the checkpoint lie ready on the host as files, in place of what the job had ready there, and before it what the job
// wants of other trees (its inputs); what the host lacks is sent. Returns the checkpoint's bytes.
[[nodiscard]] Result<std::uint64_t> make_standby(const World& world, const HostReach& host, const JobId& job,
                                                 const Digest& root, const std::vector<Digest>& others = {});
[[nodiscard]] Result<void> drop_standby(const World& world, const HostReach& host, const JobId& job);

// Whether what failed so is tried again before the end of an output or a last checkpoint is given up. Its host has let us
// in before; only our own disk can be full; and an error of a disk, theirs or ours, may have been the only one.
[[nodiscard]] bool is_worth_retrying(Code code, bool patient);

// After an attempt's end: its newest checkpoint beyond number `known`, and its output to the end. What may pass is an
// error, to be tried again (a broken link, a full disk of ours, and with `patient` an I/O error); what will not is
// told.
struct Gathered {
  bool results_left = false;        // on the host: they could not be fetched
  std::vector<Pulled> checkpoints;  // in the order in which they are to be committed
  bool lacks_checkpoint = false;  // one that the host has could not be had
  std::string problem;  // empty: everything was fetched
  std::optional<GatheredResults> results{};
};
[[nodiscard]] Result<Gathered> collect(const MemberWork& work, std::uint64_t known, const std::optional<Digest>& head,
                                       bool patient, const ResultsWanted& results);
// Makes sure that nothing of (job, epoch) runs or lies on the host. Of a stale attempt the newest checkpoint beyond
// number `known` is fetched first, and then nothing is removed: to be called again when it has been committed.
// `keep`: the host keeps the newest snapshots of that epoch for the job's next attempts; with epoch 0, none any more.
[[nodiscard]] Result<Gathered> clean_up(const MemberWork& work, const job::PendingCleanup& end, std::uint64_t known,
                                        const std::optional<Digest>& head, std::optional<Epoch> keep = {}, bool patient = false);

}  // namespace gridctl::control
