// SPDX-License-Identifier: Apache-2.0
// Chooses the next link to measure, so that the matrix stays fresh for few bytes: every pair within a site (where
// islands can be), one pair for every two sites, nothing again before it is stale. Pure and deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace gridctl::sched {

inline constexpr std::uint64_t k_link_day_bytes = 64ull << 20;  // per host and day, both directions together, unasked
inline constexpr Duration k_here_stale = std::chrono::hours{24};
inline constexpr Duration k_pair_stale = std::chrono::hours{24 * 7};
inline constexpr Duration k_failed_stale = std::chrono::hours{6};  // a firewall is not asked more often
inline constexpr Duration k_slow_stale = std::chrono::hours{1};    // hosts nearby: one may have been busy
inline constexpr std::size_t k_pairs_near_max = 16;                // per host, within its site
inline constexpr std::size_t k_landmark_hosts_max = 4;             // that measure every other host
inline constexpr std::size_t k_pairs_far_max = 8;                  // per site, to other sites

struct LinkHost {
  std::string name;
  std::string site;                   // as derived; hosts of one name belong together
  bool up = true;                     // answers now
  bool is_landmark = false;           // its place is known: round trips from it bound where the others are
  std::optional<Duration> rtt_here;   // those at about the same distance are tried first
  std::uint64_t bytes_a_day = k_link_day_bytes;
  std::uint64_t bytes_today = 0;      // of them, spent
  std::uint64_t bytes_expected = 0;   // of one measurement with it, by the last one; 0 = not known
  std::optional<Duration> here_age;   // since the link from here was measured
  std::optional<Duration> asked_age;  // since its landmarks were measured; nullopt: never
};
struct LinkAge {
  std::string a, b;  // in any order
  Duration age{};
  bool failed = false;
  bool full = true;  // rates were measured, not only round trips
  bool slow = false;  // for hosts so near to each other
};

struct LinkTask {
  enum class Kind : std::uint8_t { here, landmarks, pair, round_trip } kind = Kind::here;
  std::string a, b;  // b where two hosts are concerned
  bool operator==(const LinkTask&) const = default;
};

// Returns the due measurements, most useful first. Skips hosts that are down or have spent their daily bytes.
[[nodiscard]] std::vector<LinkTask> due_links(std::span<const LinkHost> hosts, std::span<const LinkAge> pairs,
                                              bool has_landmarks);

}  // namespace gridctl::sched
