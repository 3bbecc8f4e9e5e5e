// SPDX-License-Identifier: Apache-2.0
// Derives which hosts are near each other from an incomplete matrix of measured links. Pure and deterministic: the same
// links in any order give the same sites and islands.
//
// Site: hosts near each other (round trip up to k_site_rtt). Hosts that declare one site are believed unless the round
// trips contradict. Two groups merge if some pair of them was measured near and none was measured far; unmeasured pairs
// do not prevent it, because only a sample of them is ever measured.
//
// Island: hosts that a gang may treat as one machine room: *every* pair of them is known to be fast, both ways. This is
// complete linkage on purpose: a collective connects any two members, so one slow pair slows all, and single linkage
// would chain hosts whose ends never met. An unmeasured pair is not fast.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace gridctl::sched {

// A 10 Gbit/s link carries 9.4 Gbit/s of TCP payload with ordinary frames, minus some noise.
inline constexpr double k_island_bits_per_second = 9e9;
inline constexpr Duration k_island_rtt = std::chrono::milliseconds{2};
inline constexpr Duration k_site_rtt = std::chrono::milliseconds{5};  // within a town
inline constexpr Duration k_far_rtt = std::chrono::milliseconds{10};  // surely not one site; between the two: no word

struct SiteHost {
  std::string name;
  std::string site;  // as declared; may be empty
};

struct PairLink {
  std::string source, target;
  std::optional<Duration> rtt;            // as measured by the source
  std::optional<double> bits_per_second;  // from source to target
};

struct Site {
  std::string name;  // as declared, else "near-HOST" after its first host
  bool declared = false;
  std::vector<std::string> hosts;  // by name; never empty
};

struct SiteContradiction {
  std::string host;
  std::string text;  // "declared site hpc, but 38 ms from its other hosts"
};

struct Topology {
  std::vector<Site> sites;                        // each host in exactly one; by first host
  std::vector<std::vector<std::string>> islands;  // of at least two hosts; each host in at most one
  std::vector<SiteContradiction> contradictions;  // by host
};

// Links from or to names that are not among `hosts` are ignored.
[[nodiscard]] Topology derive_topology(std::span<const SiteHost> hosts, std::span<const PairLink> links);

}  // namespace gridctl::sched
