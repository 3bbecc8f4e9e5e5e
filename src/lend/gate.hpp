// SPDX-License-Identifier: Apache-2.0
// Whether the state of a lent machine lets jobs of others run: its owner's presence, its heat, its battery. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "lend/presence.hpp"
#include "lend/sensors.hpp"
#include "wire/guest.hpp"

namespace gridctl::lend {

struct MachineState {
  Presence presence;
  std::string gpu_program;  // of the owner's, on a GPU now; empty: none
  std::optional<Heat> heat;
  std::optional<bool> battery;
};

inline constexpr Duration k_heat_patience = std::chrono::seconds{30};  // above the limit, before jobs leave
inline constexpr int k_heat_gap = 10;                                  // degrees below the limit, for them to come back

// The memory of one guest.
class Gate {
 public:
  // Returns why jobs are kept away; nullopt: nothing keeps them. `until` is left out.
  [[nodiscard]] std::optional<wire::Closed> judge(const wire::GuestTerms& terms, const MachineState& state, WallTime wall, BootTime now);

 private:
  [[nodiscard]] std::string too_hot(const wire::GuestTerms& terms, const MachineState& state, BootTime now);

  std::optional<BootTime> hot_since_;
  bool hot_ = false;
  wire::ClosedBy closed_by_ = wire::ClosedBy::owner;
  std::optional<WallTime> since_;
};

}  // namespace gridctl::lend
