// SPDX-License-Identifier: Apache-2.0
// Values of what is known of hosts over time: history, reports, observation spans, measured links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace gridctl::registry {

inline constexpr std::int64_t k_host_events_max = 2000;        // kept per provider: months of an ordinary host
inline constexpr std::int64_t k_host_spans_max = 2000;         // the same of what was watched, of a host and each GPU
inline constexpr std::size_t k_host_report_max = 1024 * 1024;  // bytes of one report's body
inline constexpr std::string_view k_here = "@here";            // this machine as an end of a link

struct HostEvent {
  std::int64_t id = 0;  // grows; set by the registry
  HostName provider;
  WallTime at;
  std::string kind;  // machine word: "lost", "returned", "rebooted", "quarantined", "benchmarked", …
  std::string text;  // for people, with the reason
};

// The newest report of one kind: "bench", "health", "network", "standing".
struct HostReport {
  HostName provider;
  std::string kind;
  WallTime at;
  std::string body;  // JSON; each kind's shape is documented where it is made
};

// A time during which a host or one of its GPUs was watched. A failure ends a span; so does the end of watching, which
// says nothing about failing (a censored observation). A span that goes on is saved anew with a later end.
struct HostSpan {
  HostName provider;
  std::string unit;  // empty = the host, else a GPU's uuid
  WallTime began_at, ended_at;
  std::string cause;  // why it failed; empty = censored
};

struct HostLink {
  std::string source, target;  // provider names, or k_here
  WallTime at;
  std::optional<std::int64_t> rtt_us;
  std::optional<double> bits_per_second;  // from source to target
};

}  // namespace gridctl::registry
