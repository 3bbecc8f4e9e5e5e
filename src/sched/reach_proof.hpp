// SPDX-License-Identifier: Apache-2.0
// Judges whether the members of a gang reach each other, and fast enough, from what they proved just before their
// start. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "job/spec.hpp"

namespace gridctl::sched {

// Records that one member connected to another, or tried to.
struct ReachOutcome {
  std::string from, to;
  std::uint16_t port = 0;
  bool connected = false;
  std::string address;  // of `to`, that worked
  std::string reason;   // why none did
  std::optional<Duration> rtt;
  std::optional<double> there, back;  // bits a second
  std::uint16_t ephemeral_first = 0;  // of `to`: the lowest port of its outgoing connections; 0: not known
};

// Returns the pairs that prove enough: every member reaches the rendezvous on the first, and each the next one in a
// ring, as a collective communicates. Positions of members: from, to.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> pairs_to_prove(std::size_t members);

struct ReachNeed {
  std::optional<double> bits_per_second;  // of the slowest link; nullopt: not known, or nothing is needed
  int ports = 0;                          // of the gang's range
};
// Returns the rate at which the exchanges of the job leave its processors waiting for at most half of the time; nullopt
// if the job does not state its exchange, or relaxes it by `constraints: {interconnect: any}`.
[[nodiscard]] std::optional<double> needed_bits_per_second(const job::Spec& spec, std::optional<Duration> round_trip);

struct ReachVerdict {
  bool good = true;
  std::string why;                 // names the pair and the number
  std::vector<std::string> fixes;  // what would help, each of them
  std::vector<std::string> notes;  // what is odd and does no harm by itself
};
[[nodiscard]] ReachVerdict judge_reach(std::span<const ReachOutcome> outcomes, const ReachNeed& need);

}  // namespace gridctl::sched
