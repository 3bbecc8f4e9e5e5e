// SPDX-License-Identifier: Apache-2.0
#include "cmd/followed.hpp"

#include "control/daemon/daemon.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::int64_t k_old_ms = 15'000;  // a sign of life that nobody has asked for since
}

bool is_followed(const Context& context) {
  const Result<control::DaemonStatus> status = control::daemon_status(context.state);
  return status && status->running;
}

Result<void> warn_unfollowed(Context& context, registry::JobRecords& registry) {
  if (context.json) return {};
  TRY_ASSIGN(const std::size_t unfinished, registry.count_unfinished());
  if (unfinished == 0 || is_followed(context)) return {};
  const std::string who = unfinished == 1 ? "the unfinished job" : std::to_string(unfinished) + " unfinished jobs";
  context.note("warning: no daemon follows " + who + ", so what you see may be old: gridctl daemon start");
  return {};
}

std::string liveness_today(const registry::Provider& provider, bool followed, WallTime now) {
  if (followed || provider.liveness == "unknown") return provider.liveness;
  if (provider.last_seen_at && now.ms - provider.last_seen_at->ms <= k_old_ms) return provider.liveness;
  return provider.liveness == "answering" ? "answered" : "unknown";
}

}  // namespace gridctl::cmd
