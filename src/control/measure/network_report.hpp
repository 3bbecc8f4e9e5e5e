// SPDX-License-Identifier: Apache-2.0
// Stores what the registry knows of a host's network beyond the matrix of links, as the host report "network": round
// trips from here, who can connect to it, its reports on landmarks, the bytes spent on measuring, the last verdicts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace gridctl::control {

inline constexpr std::string_view k_network_report = "network";
inline constexpr std::size_t k_network_peers_max = 256;

struct NetworkReport {
  std::string address;  // that the round trips belong to; another address begins anew
  std::optional<Duration> rtt_min, rtt_median;
  std::uint64_t rtt_samples = 0;
  std::optional<WallTime> rtt_at, here_at, landmarks_at;
  std::int64_t day = 0;                           // since 1970, UTC
  std::uint64_t bytes_today = 0, bytes_last = 0;  // spent on measuring; by the last measurement with data

  struct Contact {  // of a provider that connects to this one
    WallTime at;
    std::string reason;   // why it cannot; empty: it can
    std::string address;  // that worked
    bool full = false;    // rates were measured, not only round trips
  };
  std::map<std::string, Contact> contacts;  // by the name of the connecting provider

  struct Landmark {
    WallTime at;
    std::optional<Duration> rtt;  // as the host says
    std::string problem;
  };
  std::map<std::string, Landmark> landmarks;

  std::string verdict, verdict_text;  // of the country; verdict_name()
  std::string verdict_region{};       // the declaration that was judged
  std::string site_text;              // contradiction, or empty

  void spend(std::uint64_t bytes, WallTime now);
  [[nodiscard]] std::uint64_t spent_today(WallTime now) const;
};

[[nodiscard]] std::string encode(NetworkReport report);  // bounded: the oldest contacts go
// Returns an empty report if the text cannot be read: everything in it can be measured again.
[[nodiscard]] NetworkReport parse_network_report(std::string_view text);

}  // namespace gridctl::control
