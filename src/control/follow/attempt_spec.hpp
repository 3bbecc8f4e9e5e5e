// SPDX-License-Identifier: Apache-2.0
// Turns a job and one of its attempts into the specification for the agent. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "registry/records.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

struct GangRendezvous {
  int port = 0;
  std::string token;
};
struct AttemptFacts {
  const registry::Job& job;
  const job::Attempt& attempt;
  const job::Member& member;  // of the attempt, whose part this is
  const std::vector<registry::Input>& inputs;
  std::optional<registry::Checkpoint> restore;
  std::vector<registry::Provider> hosts;  // of all members, by rank
  GangRendezvous rendezvous{};            // of a gang whose members have proven that they reach each other
  Duration checkpoint_interval{};         // advice to the job
  std::string restart_reason;             // how the attempt before it ended ("host_lost"), empty on the first
  Duration snapshot_pause{};              // the host takes no two snapshots closer together
  bool lent = false;                      // the member's host is a stranger's
  bool any_lent = false;                  // some member's host is
};
// Returns the vendor of the member's GPUs; nullopt without GPUs.
[[nodiscard]] std::optional<Vendor> vendor_of(const AttemptFacts& facts);
[[nodiscard]] wire::AttemptSpec build_attempt_spec(const AttemptFacts& facts);

}  // namespace gridctl::control
