// SPDX-License-Identifier: Apache-2.0
// Finds the part of a running job that a command is about: its host, and whose environment.
#pragma once

#include <memory>
#include <optional>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "control/reach/agent_network.hpp"
#include "os/loop.hpp"
#include "registry/registry.hpp"
#include "wire/stream.hpp"

namespace gridctl::cmd {

inline constexpr Option k_rank_option{"rank", 0, "R", "the host and environment of this rank", "0"};
inline constexpr Option k_attempt_option{"attempt", 0, "K", "only if this attempt is the one that runs"};

struct RunningMember {
  JobId job;
  std::string name;  // of the job
  AttemptNumber attempt;
  Epoch epoch;
  registry::Provider provider;
  std::uint32_t rank = 0;  // within its host
};
// Fails with not_found if no process of the job runs now, or not that attempt, or it has no such rank.
[[nodiscard]] Result<RunningMember> running_member(registry::Registry& registry, const JobId& id,
                                                   std::optional<std::uint64_t> rank,
                                                   std::optional<std::uint64_t> attempt);
// Uses the options above, for the job that the first positional names.
[[nodiscard]] Result<RunningMember> running_member(Context& context, const Parsed& parsed);

// Logs in at the host and enters the attempt there. Blocks.
[[nodiscard]] Result<std::unique_ptr<control::AgentChannel>> enter(Context& context, os::Loop& loop,
                                                                   const registry::Provider& provider,
                                                                   const wire::EnterRequest& whom);
[[nodiscard]] wire::EnterRequest whom(const RunningMember& member);

}  // namespace gridctl::cmd
