// SPDX-License-Identifier: Apache-2.0
#include "lend/gate.hpp"

namespace gridctl::lend {

namespace {

std::string idle_words(std::int64_t ms) { return format_duration(std::chrono::milliseconds{ms}); }

}  // namespace

// A limit that is exceeded for a moment is none: chips are hot for seconds. A sensor that is gone says nothing.
std::string Gate::too_hot(const wire::GuestTerms& terms, const MachineState& state, BootTime now) {
  if (!terms.heat_celsius) {
    hot_since_.reset();
    hot_ = false;
    return {};
  }
  if (!state.heat) return hot_ ? "no sensor tells whether it has cooled down" : "";
  if (state.heat->celsius <= *terms.heat_celsius) hot_since_.reset();
  else if (!hot_since_) hot_since_ = now;
  if (hot_since_ && now - *hot_since_ >= k_heat_patience) hot_ = true;
  if (state.heat->celsius <= *terms.heat_celsius - k_heat_gap) hot_ = false;
  if (!hot_) return {};
  return state.heat->sensor + " has " + std::to_string(state.heat->celsius) + " C; jobs return at " +
         std::to_string(*terms.heat_celsius - k_heat_gap) + " C";
}

std::optional<wire::Closed> Gate::judge(const wire::GuestTerms& terms, const MachineState& state, WallTime wall, BootTime now) {
  const std::string hot = too_hot(terms, state, now);
  std::optional<wire::Closed> closed;
  const auto close = [&](wire::ClosedBy by, std::string why) {
    if (!closed) closed = wire::Closed{{}, wall, by, std::move(why)};
  };
  if (terms.idle_ms && !state.gpu_program.empty()) close(wire::ClosedBy::owner, "your program " + state.gpu_program + " uses a GPU");
  if (terms.idle_ms && wall.ms - state.presence.last.ms < *terms.idle_ms)
    close(wire::ClosedBy::owner, state.presence.sign + "; jobs run once nobody has used it for " + idle_words(*terms.idle_ms));
  if (!terms.on_battery && state.battery.value_or(false)) close(wire::ClosedBy::battery, "it runs on its battery");
  if (!hot.empty()) close(wire::ClosedBy::heat, hot);
  if (!closed) {
    since_.reset();
    return closed;
  }
  if (!since_ || closed->by != closed_by_) since_ = wall;
  closed_by_ = closed->by;
  closed->since = *since_;
  return closed;
}

}  // namespace gridctl::lend
