// SPDX-License-Identifier: Apache-2.0
// The supervisor's blocking work with one host, each over a connection of its own: for threads of a pool. None of it
// touches the registry; results are values that the loop turns into events.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "control/copies/remotes.hpp"
#include "control/follow/launch_protocol.hpp"
#include "control/reach/host_access.hpp"
#include "registry/records.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// Where a checkpoint that is damaged here can be had.
struct CopiesOf {
  JobId job;
  CheckpointSeq seq;  // 0: none
  std::vector<RemoteAccess> nearest_first;
};

struct LaunchOrder {
  wire::AttemptSpec spec;
  Duration lease{};
  std::map<std::string, std::string> secrets;
  LaunchDoubt doubt = {};
  std::shared_ptr<const std::atomic<std::uint64_t>> wanted = {};  // the job's epoch as long as it is to be started
  CopiesOf copies = {};                                           // of the checkpoint it starts from
};
[[nodiscard]] LaunchResult launch(const HostAccess& place, const LaunchOrder& order);

[[nodiscard]] Result<void> stop(const HostAccess& place, const JobId& job, Epoch epoch, Duration grace);

// A checkpoint of an attempt, whole and verified in the local store.
struct Pulled {
  wire::HostCheckpoint from;
  std::uint64_t bytes = 0, stored_bytes = 0, files = 0;
  Duration took{};  // from asking for it until it was whole and verified here
  std::vector<std::string> problems;
};
// `head`: the job's newest checkpoint in the local store, if any; what is new may be kept as differences to it.
[[nodiscard]] Result<Pulled> pull(const HostAccess& place, const JobId& job, Epoch epoch,
                                  const wire::HostCheckpoint& checkpoint, const std::optional<Digest>& head);

// Has the checkpoint lie ready on the host as files, in place of what the job had ready there; what the host lacks is
// sent. Returns its bytes.
[[nodiscard]] Result<std::uint64_t> make_standby(const HostAccess& place, const JobId& job, const Digest& root);
[[nodiscard]] Result<void> drop_standby(const HostAccess& place, const JobId& job);

// After an attempt's end: its newest checkpoint beyond number `known`, and its output to the end. What may pass is an
// error, to be tried again (a broken link, a full disk of ours, and with `patient` an I/O error); what will not is
// told.
struct Gathered {
  std::optional<Pulled> checkpoint;
  std::string problem;  // empty: everything was fetched
};
[[nodiscard]] Result<Gathered> collect(const HostAccess& place, const JobId& job, Epoch epoch, AttemptNumber attempt,
                                       std::uint64_t known, const std::optional<Digest>& head, bool patient);
// Makes sure that nothing of (job, epoch) runs or lies on the host. Of a stale attempt the newest checkpoint beyond
// number `known` is fetched first, and then nothing is removed: to be called again when it has been committed.
[[nodiscard]] Result<Gathered> settle(const HostAccess& place, const JobId& job, const job::PendingCleanup& end,
                                      std::uint64_t known, const std::optional<Digest>& head);

}  // namespace gridctl::control
