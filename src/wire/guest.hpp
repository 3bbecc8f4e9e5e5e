// SPDX-License-Identifier: Apache-2.0
// What the owner of a lent machine lets one researcher do there, as its agent reads it: lend/ID/terms.json, gridctl-lend(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::wire {

inline constexpr std::int64_t k_until_resumed = INT64_MAX;

// Names the part of the network that the jobs of a guest reach.
enum class Egress : std::uint8_t {
  filtered,  // the Internet; not the owner's own networks, and not this machine
  open,      // whatever programs of the owner reach
  none,
};
[[nodiscard]] std::string_view egress_name(Egress egress);
[[nodiscard]] Result<Egress> parse_egress(std::string_view name);

struct GuestTerms {
  ControllerId controller;                      // the only one that is let in
  std::string who;                              // the researcher, in words
  std::optional<std::int64_t> paused_until_ms;  // since 1970; k_until_resumed: until the owner says so
  std::optional<int> from_minute, to_minute;    // of the day, local time: jobs may begin and run then; past midnight too
  Egress egress = Egress::filtered;
  bool reclaim = true;  // jobs leave a GPU when a program of the owner's uses one
  bool operator==(const GuestTerms&) const = default;

  [[nodiscard]] bool is_paused(WallTime now) const { return paused_until_ms && now.ms < *paused_until_ms; }
  // `minute` of the day.
  [[nodiscard]] bool is_open_at(int minute) const;
};

// Beside the terms: while a program of the owner's is on a GPU, milliseconds since 1970 until which no job begins.
inline constexpr std::string_view k_reclaimed_file = "reclaimed";

// A folder of the agent's home with a file for each controller that a machine is lent to: the id of the invitation (the
// folder of its terms) under which that controller's jobs run here. No other invitation reaches them.
inline constexpr std::string_view k_guests_folder = "guests";

[[nodiscard]] std::string encode(const GuestTerms& terms);
[[nodiscard]] Result<GuestTerms> parse_guest_terms(std::string_view text);

}  // namespace gridctl::wire
