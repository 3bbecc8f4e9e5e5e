// SPDX-License-Identifier: Apache-2.0
// Carries out the requests of a controller: core.hpp's decisions on the folders of the host. No state in memory: any
// number of these may work on one home at once, in any processes.
#pragma once

#include <optional>

#include "agent/attempt_dir.hpp"
#include "agent/core.hpp"
#include "agent/host_folders.hpp"
#include "agent/own_snapshots.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "wire/messages.hpp"
#include "wire/pause.hpp"
#include "wire/own.hpp"

namespace gridctl::agent {

class Requests {
 public:
  Requests(Path home, ControllerId controller, os::Clock& clock);

  [[nodiscard]] Result<wire::PrepareReply> prepare(const wire::PrepareRequest& request);
  [[nodiscard]] Result<wire::StartReply> start(const wire::StartRequest& request);
  [[nodiscard]] Result<void> stop(const wire::StopRequest& request);
  [[nodiscard]] Result<void> clean(const wire::CleanRequest& request);
  [[nodiscard]] Result<wire::PauseReply> pause(const wire::PauseRequest& request);
  // Fails with busy while the attempt runs.
  [[nodiscard]] Result<void> keep(const wire::KeepRequest& request, const OwnSnapshots& own);
  [[nodiscard]] Result<wire::PollReply> poll(const wire::PollRequest& request);

  // Returns a poll reply about one attempt, as pushed in events; nullopt if it is gone.
  [[nodiscard]] std::optional<wire::PollReply> report(const JobId& job, Epoch epoch);
  // Gives every attempt of this controller that has not ended a live supervisor.
  void adopt_all();
  // Removes leftovers of attempts whose removal was interrupted.
  void finish_removals() { host_.finish_removals(); }
  [[nodiscard]] Result<AttemptDir> attempt(const JobId& job, Epoch epoch) const;
  // Locks the job's folder here: its holder may write what others only read.
  [[nodiscard]] Result<HostState::Lock> lock(const JobId& job);

 private:
  [[nodiscard]] Result<void> check_id(const JobId& job) const;
  [[nodiscard]] Result<void> check_key(const JobId& job, Epoch epoch) const;

  Path home_;
  ControllerId controller_;
  os::Clock& clock_;
  HostFolders host_;
  Core core_;
};

}  // namespace gridctl::agent
