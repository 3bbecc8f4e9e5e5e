// SPDX-License-Identifier: Apache-2.0
// Makes the decisions behind the controller's requests: which attempt may start, which request is refused, which
// refusal is a promise, what a poll renews. It uses no files, clocks or processes: HostState has those, so that the
// simulator runs this very code. Job ids are already checked.
#pragma once

#include "agent/host_state.hpp"
#include "base/result.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

class Core {
 public:
  explicit Core(HostState& host) : host_(host) {}

  [[nodiscard]] Result<wire::PrepareReply> prepare(const wire::PrepareRequest& request);
  [[nodiscard]] Result<wire::StartReply> start(const wire::StartRequest& request);
  [[nodiscard]] Result<void> stop(const wire::StopRequest& request);
  [[nodiscard]] Result<void> clean(const wire::CleanRequest& request);
  [[nodiscard]] Result<wire::PollReply> poll(const wire::PollRequest& request);

 private:
  [[nodiscard]] Result<Epoch> raise_fence(const JobId& job, Epoch epoch);
  [[nodiscard]] Result<void> accept(const wire::StartRequest& request);
  [[nodiscard]] Result<void> check_no_older(const AttemptKey& key);
  [[nodiscard]] Result<wire::AttemptStatus> poll_one(const wire::PollRequest& request,
                                                     const wire::PollRequest::Want& want);
  [[nodiscard]] Result<void> renew(const wire::PollRequest& request, const wire::PollRequest::Want& want);

  HostState& host_;
};

// Returns whether this lease may be given (again) now: the echo must be a past time of this host, and the deadline
// `echo + lease` must be in the future.
[[nodiscard]] Result<void> check_lease(BootTime echo, Duration lease, BootTime now);

}  // namespace gridctl::agent
