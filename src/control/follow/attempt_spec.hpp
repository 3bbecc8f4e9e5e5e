// SPDX-License-Identifier: Apache-2.0
// Turns a job and one of its attempts into what the agent is told. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "registry/records.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

struct AttemptFacts {
  const registry::Job& job;
  const job::Attempt& attempt;
  const std::vector<registry::Input>& inputs;
  std::optional<registry::Checkpoint> restore;
  std::string host_address;          // where the host is reached; the rendezvous address of its members
  std::optional<Vendor> gpu_vendor;  // of the leased GPUs
  Duration checkpoint_interval{};    // advice to the job
  std::string restart_reason;        // how the attempt before it ended ("host_lost"), empty on the first
  Duration snapshot_pause{};         // the host takes no two snapshots closer together
};
[[nodiscard]] wire::AttemptSpec build_attempt_spec(const AttemptFacts& facts);

}  // namespace gridctl::control
