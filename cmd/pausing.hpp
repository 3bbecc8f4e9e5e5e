// SPDX-License-Identifier: Apache-2.0
// Shares functions between `job pause`, `job resume` and `provider pause`.
#pragma once

#include "cmd/context.hpp"

namespace gridctl::cmd {

struct PauseWish {
  bool resume = false;
  bool gpu_only = false;
  std::optional<Duration> most = std::nullopt;  // what the user says; nothing: registry::k_pause_max
};
// Pauses the running job on its host, or resumes it there, and records that. Returns what was done, for people: "paused
// on ada: 35.7 GiB left its GPU in 20s".
[[nodiscard]] Result<std::string> pause_in_place(Context& context, registry::Registry& registry,
                                                 const registry::Job& job, const PauseWish& wish);
// Returns whether the current attempt of the job is paused.
[[nodiscard]] Result<bool> is_paused(registry::RunRecords& registry, const registry::Job& job);

}  // namespace gridctl::cmd
